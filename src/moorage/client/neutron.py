"""Makes and removes ports in Neutron, as the tenant, and the sub-ports of trunks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeVar
from urllib.parse import quote, urlencode, urlsplit

import msgspec

from moorage.client.errors import UnknownAnswer
from moorage.client.lookup import pick
from moorage.client.placement_wire import SourceFailed

if TYPE_CHECKING:
    from moorage.client.placement_wire import PlacementWire

T = TypeVar("T")

_VERSION: Final = "/v2.0"
_MISSING: Final = 404


class Port(msgspec.Struct, frozen=True):
    """A port as Neutron shows it."""

    id: str
    name: str = ""
    description: str = ""
    device_id: str = ""
    """The server that it is attached to; empty: none. A sub-port has none either."""


class SubPort(msgspec.Struct, frozen=True):
    """A port on a trunk."""

    port_id: str
    segmentation_id: int
    """Its VLAN."""


class Trunk(msgspec.Struct, frozen=True):
    """A trunk as Neutron shows it."""

    id: str
    port_id: str
    """Its parent port."""
    name: str = ""
    sub_ports: list[SubPort] = []


class Neutron:
    """The network API of a cloud. Every call raises SourceFailed after an error, or no answer."""

    def __init__(self, wire: PlacementWire) -> None:
        self._wire = wire
        # Catalogs name this API with or without its version.
        path = urlsplit(wire.endpoint).path.rstrip("/")
        self._prefix = "" if path.endswith(_VERSION) else _VERSION

    def check_network(self, network_id: str) -> None:
        """Raise SourceFailed (404) if there is no such network."""
        self._call("GET", f"/networks/{quote(network_id, safe='')}?fields=id")

    def ports(self, description: str) -> list[Port]:
        """The ports with a description."""
        body = self._call("GET", f"/ports?{urlencode({'description': description})}")
        found = _read(body, "ports", list[Port])
        return [one for one in found if one.description == description]

    def port(self, port_id: str) -> Port | None:
        """A port; None: it is deleted."""
        try:
            return _read(self._call("GET", f"/ports/{port_id}"), "port", Port)
        except SourceFailed as error:
            if error.status == _MISSING:
                return None
            raise

    def create_port(self, network_id: str, name: str, description: str) -> Port:
        """Make a port on a network. Without an answer it may exist."""
        port = {"network_id": network_id, "name": name, "description": description}
        return _read(self._call("POST", "/ports", {"port": port}), "port", Port)

    def delete_port(self, port_id: str) -> None:
        """Delete a port; one that is gone is deleted."""
        try:
            self._call("DELETE", f"/ports/{port_id}")
        except SourceFailed as error:
            if error.status != _MISSING:
                raise

    def trunks(self) -> list[Trunk]:
        """Every trunk of the project; none where Neutron has no trunks."""
        try:
            return _read(self._call("GET", "/trunks"), "trunks", list[Trunk])
        except SourceFailed as error:
            if error.status == _MISSING:
                return []
            raise

    def trunk(self, text: str) -> Trunk:
        """A trunk by its name or id.

        Raises:
            Missing, Ambiguous: there is none of the name, or there are several.
        """
        every = self.trunks()
        found = pick("trunk", text, [{"id": one.id, "name": one.name} for one in every])
        return next(one for one in every if one.id == found)

    def add_sub_port(self, trunk_id: str, port_id: str, vlan: int) -> None:
        """Put a port on a trunk, with a VLAN id that is free there."""
        sub_port = {
            "port_id": port_id,
            "segmentation_type": "vlan",
            "segmentation_id": vlan,
        }
        self._call("PUT", f"/trunks/{trunk_id}/add_subports", {"sub_ports": [sub_port]})

    def remove_sub_port(self, trunk_id: str, port_id: str) -> None:
        """Take a port off a trunk; one that is not on it is off."""
        body = {"sub_ports": [{"port_id": port_id}]}
        try:
            self._call("PUT", f"/trunks/{trunk_id}/remove_subports", body)
        except SourceFailed as error:
            if error.status != _MISSING:
                raise

    def _call(self, method: str, path: str, body: object = None) -> Any:  # noqa: ANN401 - JSON is what it is
        return self._wire.call(method, f"{self._prefix}{path}", body)


def _read(body: Any, key: str, kind: type[T]) -> T:  # noqa: ANN401 - JSON is what it is
    try:
        return msgspec.convert(body[key], kind)
    except (msgspec.ValidationError, KeyError, TypeError) as error:
        raise UnknownAnswer(str(error)) from error
