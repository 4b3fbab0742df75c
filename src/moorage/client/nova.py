"""Creates and watches servers in Nova, as the tenant; images and networks may go by their names."""

from __future__ import annotations

import base64
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, Self, TypeVar
from urllib.parse import quote, urlencode, urlsplit

import msgspec

from moorage.client import discovery
from moorage.client.credentials import GivenToken
from moorage.client.errors import Ambiguous, Missing, NoEndpoint, UnknownAnswer
from moorage.client.lookup import UUID
from moorage.client.placement_wire import Options, PlacementWire, SourceFailed
from moorage.client.service_types import COMPUTE, IMAGE, NETWORK
from moorage.domain.describe_server_options import ALONE, ANY_NETWORK

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from types import TracebackType

    from moorage.client.credentials import Credentials
    from moorage.client.discovery import Wishes
    from moorage.domain.nova_servers import ServerOptions

T = TypeVar("T")

VERSION: Final = "2.37"
"""The microversion that is spoken: the first in which `networks` may be `auto` or `none`."""
GONE: Final = frozenset({"DELETED", "SOFT_DELETED"})
_MISSING: Final = 404
_PAGE: Final = 1000


class Fault(msgspec.Struct, frozen=True):
    """Why a server is in the state ERROR."""

    message: str = ""
    code: int = 0


class Server(msgspec.Struct, frozen=True):
    """A server as Nova shows it."""

    id: str
    name: str
    status: str
    metadata: dict[str, str] = {}
    fault: Fault | None = None
    launched_at: str | None = msgspec.field(default=None, name="OS-SRV-USG:launched_at")
    """When it was first active; None: never."""


class _Named(msgspec.Struct, frozen=True):
    """An image or a network."""

    id: str
    name: str | None = None


class NovaFlavor(_Named, frozen=True):
    """A flavor."""

    disk: int = 0
    """GB of its root disk."""


class Nova:
    """The compute API of a cloud, and the names of its images and networks. Safe for threads."""

    def __init__(
        self,
        credentials: Credentials,
        endpoint: Callable[[str], str],
        options: Options | None = None,
    ) -> None:
        """Connects later; `endpoint` gives the URL of a service by its type.

        Raises:
            NoEndpoint: there is no compute API.
        """
        self._credentials = credentials
        self._endpoint = endpoint
        self._options = options or Options()
        self._wires: dict[str, PlacementWire] = {}
        self._compute = self.connection(COMPUTE)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for wire in self._wires.values():
            wire.__exit__(kind, error, trace)

    @property
    def url(self) -> str:
        """Where the compute API is."""
        return self._compute.endpoint

    def flavor(self, text: str) -> NovaFlavor:
        """A flavor by its name or id.

        Raises:
            Missing, Ambiguous: Nova shows this project none of the name, or several.
            SourceFailed: an error, or no answer.
        """
        every = list(self._pages("/flavors/detail", "flavors", NovaFlavor))
        found = _picked("flavor in Nova", text, every)
        return next(one for one in every if one.id == found)

    def image_id(self, text: str) -> str:
        """The id of an image by its name or id. Raises as `flavor`, and NoEndpoint."""
        if UUID.fullmatch(text):
            return text
        return self._by_name(IMAGE, "/v2", "images", text)

    def network_id(self, text: str) -> str:
        """The id of a network by its name or id. Raises as `image_id`."""
        if UUID.fullmatch(text):
            return text
        return self._by_name(NETWORK, "/v2.0", "networks", text)

    def servers(self) -> Iterator[Server]:
        """Every server of the project that is not deleted.

        Raises:
            SourceFailed: an error, or no answer.
        """
        found = self._pages("/servers/detail", "servers", Server)
        return (one for one in found if one.status not in GONE)

    def server(self, server_id: str) -> Server | None:
        """One server; None if it is deleted. Raises as `servers`."""
        try:
            body = self._call("GET", f"/servers/{quote(server_id, safe='')}")
        except SourceFailed as error:
            if error.status == _MISSING:
                return None
            raise
        found = _read(body, "server", Server)
        return None if found.status in GONE else found

    def create(self, request: Mapping[str, object], request_id: str) -> str:
        """Create a server, and return its id; `request_id` is the request's global id.

        Raises:
            SourceFailed: Nova refuses (with its status), or gives no answer: then the server may
                exist.
        """
        headers = {"X-Openstack-Request-Id": request_id}
        body = self._call("POST", "/servers", {"server": request}, headers)
        return str(_read(body, "server", _Named).id)

    def delete(self, server_id: str) -> None:
        """Delete a server; one that is gone is deleted. Raises as `servers`."""
        try:
            self._call("DELETE", f"/servers/{quote(server_id, safe='')}")
        except SourceFailed as error:
            if error.status != _MISSING:
                raise

    def attach(self, server_id: str, port_id: str) -> None:
        """Attach a port to a server. Raises as `servers`; without an answer it may be attached."""
        attachment = {"interfaceAttachment": {"port_id": port_id}}
        self._call("POST", f"/servers/{quote(server_id, safe='')}/os-interface", attachment)

    def detach(self, server_id: str, port_id: str) -> None:
        """Begin to detach a port from a server; one that is not attached is. As `servers`."""
        try:
            self._call("DELETE", f"/servers/{quote(server_id, safe='')}/os-interface/{port_id}")
        except SourceFailed as error:
            if error.status != _MISSING:
                raise

    def connection(self, service: str) -> PlacementWire:
        """The connection to a service of the same cloud, closed with this.

        Raises:
            NoEndpoint: nothing says where it is.
        """
        if service not in self._wires:
            self._wires[service] = PlacementWire(
                self._endpoint(service), self._credentials, replace(self._options, service=service)
            )
        return self._wires[service]

    def _call(
        self,
        method: str,
        path: str,
        body: object = None,
        headers: Mapping[str, str] | None = None,
    ) -> Any:  # noqa: ANN401 - JSON is what it is
        return self._compute.call(method, path, body, version=VERSION, headers=headers or {})

    def _pages(self, path: str, key: str, kind: type[T]) -> Iterator[T]:
        marker: dict[str, str] = {}
        while True:
            query = urlencode({"limit": _PAGE, **marker})
            body = self._call("GET", f"{path}?{query}")
            found = _read_all(body, key, kind)
            yield from found
            if not found or not body.get(f"{key}_links"):
                return
            marker = {"marker": str(body[key][-1]["id"])}

    def _by_name(self, service: str, version: str, key: str, text: str) -> str:
        wire = self.connection(service)
        # Catalogs name these APIs with or without their version.
        prefix = "" if urlsplit(wire.endpoint).path.rstrip("/").endswith(version) else version
        body = wire.get(f"{prefix}/{key}?{urlencode({'name': text})}")
        return _picked(service, text, _read_all(body, key, _Named))


def connect(wishes: Wishes, environment: Mapping[str, str]) -> Nova:
    """Nova for the caller of these options and variables; see `discovery.find`.

    Its URL and those of Glance and Neutron are the login's; without a login those that
    `OS_COMPUTE_ENDPOINT_OVERRIDE` and its like name.

    Raises:
        NoEndpoint: nothing says where Nova is.
        LoginRefused, Unreachable: from the login, at the first call.
    """
    access = discovery.find(wishes, environment)
    if not isinstance(access, discovery.Access):
        return Nova(access, access.endpoint)
    named = {**environment, **({"OS_CLOUD": wishes.cloud} if wishes.cloud else {})}
    login = discovery.login_from(named)

    def endpoint(service: str) -> str:
        url = login.overrides.get(service) if login else discovery.override(service, named)
        if url is None:
            raise NoEndpoint(
                f"nothing says where the {service} API is: log in to a cloud (OS_CLOUD or the OS_"
                f" variables), or name it in OS_{service.upper()}_ENDPOINT_OVERRIDE"
            )
        return url

    return Nova(GivenToken(access.token, access.trust), endpoint)


def server_request(
    options: ServerOptions, image: str | None, networks: Sequence[str]
) -> dict[str, Any]:
    """The fields of a request to create a server that are a role's; images and networks by id.

    Without networks Nova finds the project's own (`auto`).
    """
    alone = next((one for one in networks if one in ALONE), None if networks else ANY_NETWORK)
    found: dict[str, Any] = {
        "imageRef": image,
        "networks": alone or [{"uuid": one} for one in networks],
        "key_name": options.key_name,
        "config_drive": options.config_drive,
    }
    if options.user_data is not None:
        found["user_data"] = base64.b64encode(options.user_data.encode()).decode()
    if options.security_groups:
        found["security_groups"] = [{"name": one} for one in options.security_groups]
    return {name: value for name, value in found.items() if value is not None}


def on_volume(request: Mapping[str, Any], size_gb: int) -> dict[str, Any]:
    """The same request, with a root disk on a new volume of its image, deleted with the server."""
    volume = {
        "boot_index": 0,
        "source_type": "image",
        "uuid": request["imageRef"],
        "destination_type": "volume",
        "volume_size": size_gb,
        "delete_on_termination": True,
    }
    rest = {name: value for name, value in request.items() if name != "imageRef"}
    return {**rest, "block_device_mapping_v2": [volume]}


def _picked(kind: str, text: str, found: Iterable[_Named]) -> str:
    """The id of the one that has this id or name; an id goes before names."""
    every = list(found)
    fitting = [one for one in every if text == one.id] or [one for one in every if text == one.name]
    if not fitting:
        raise Missing(kind, text)
    if len(fitting) > 1:
        raise Ambiguous(kind, text, tuple(one.id for one in fitting))
    return fitting[0].id


def _read(body: Any, key: str, kind: type[T]) -> T:  # noqa: ANN401 - JSON is what it is
    try:
        return msgspec.convert(body[key], kind)
    except (msgspec.ValidationError, KeyError, TypeError) as error:
        raise UnknownAnswer(str(error)) from error


def _read_all(body: Any, key: str, kind: type[T]) -> list[T]:  # noqa: ANN401 - as above
    try:
        return [msgspec.convert(one, kind) for one in body[key]]
    except (msgspec.ValidationError, KeyError, TypeError) as error:
        raise UnknownAnswer(str(error)) from error
