"""Calls of operators: flavors, topology, fleet, the Placement dialect, the simulated clock."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import msgspec

from moorage.client import lookup
from moorage.client.answer import Answer, answer, converted
from moorage.client.lookup import UUID
from moorage.wire.flavors import FlavorValue

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from moorage.client.transport import Transport


class Provider(msgspec.Struct, frozen=True):
    """A resource provider as the Placement dialect lists it."""

    uuid: str
    name: str
    generation: int = 0
    parent_provider_uuid: str | None = None
    root_provider_uuid: str | None = None


class Flavors:
    """`/v1/flavors`."""

    def __init__(self, transport: Transport) -> None:
        self._call = transport.call

    def all(self) -> Answer[list[FlavorValue]]:
        """Every flavor, by name."""
        reply = lookup.whole(self._call, "/v1/flavors", "flavors")
        return answer(reply, "flavors", list[FlavorValue])

    def show(self, name: str) -> Answer[FlavorValue]:
        """A flavor by id or name."""
        return answer(self._call("GET", f"/v1/flavors/{name}"), "flavor", FlavorValue)

    def create(self, flavor: Mapping[str, Any]) -> Answer[FlavorValue]:
        """Create a flavor, or replace the one with its id."""
        return answer(
            self._call("POST", "/v1/flavors", body={"flavor": flavor}), "flavor", FlavorValue
        )

    def delete(self, name: str) -> None:
        """Delete a flavor by id or name."""
        self._call("DELETE", f"/v1/flavors/{name}")

    def load(self, listing: Sequence[Mapping[str, Any]]) -> Answer[Any]:
        """Load what `openstack flavor list --long -f json` printed."""
        reply = self._call("POST", "/v1/flavors/load", body={"flavors": listing})
        return Answer(reply.body, reply.body, reply.request_id)


class Topologies:
    """`/v1/topology/domains`."""

    def __init__(self, transport: Transport) -> None:
        self._call = transport.call

    def show(self) -> Answer[Any]:
        """Levels, domains and attachments of every tree."""
        reply = self._call("GET", "/v1/topology/domains")
        return Answer(reply.body["topology"], reply.body, reply.request_id)

    def replace(self, topology: Mapping[str, Any]) -> Answer[Any]:
        """Replace the whole topology."""
        reply = self._call("PUT", "/v1/topology/domains", body={"topology": topology})
        return Answer(reply.body, reply.body, reply.request_id)


class Fleets:
    """`/v1/fleet`."""

    def __init__(self, transport: Transport) -> None:
        self._call = transport.call

    def load(self, part: Mapping[str, Any]) -> Answer[Any]:
        """Load a part of a fleet in one transaction; loading it again changes nothing."""
        reply = self._call("POST", "/v1/fleet", body={"fleet": part})
        return Answer(reply.body, reply.body, reply.request_id)

    def show(self) -> Answer[Any]:
        """Every host with its domains, capacity and use."""
        reply = lookup.whole(self._call, "/v1/fleet", "hosts", within="fleet")
        return Answer(reply.body["fleet"], reply.body, reply.request_id)


class Hosts:
    """`/v1/hosts`."""

    def __init__(self, transport: Transport) -> None:
        self._call = transport.call

    def all(self) -> list[Any]:
        """Every host with its status, page by page."""
        found: list[Any] = []
        marker: str | None = None
        while True:
            params = {} if marker is None else {"marker": marker}
            body = self._call("GET", "/v1/hosts", params=params).body
            found += body["hosts"]
            if not body["hosts_links"]:
                return found
            marker = body["hosts"][-1]["uuid"]

    def show(self, name: str) -> Any:  # noqa: ANN401 - a JSON object
        """One host with all its bookings."""
        host: Any = None
        marker: str | None = None
        while True:
            params = {} if marker is None else {"marker": marker}
            more = self._call("GET", f"/v1/hosts/{quote(name, safe='')}", params=params).body[
                "host"
            ]
            links = more.pop("bookings_links")
            if host is None:
                host = more
            else:
                host["bookings"] += more["bookings"]
            if not links:
                return host
            marker = more["bookings"][-1]["consumer"]


class Placement:
    """The calls of the Placement dialect that commands need, at its usual mount."""

    def __init__(self, transport: Transport) -> None:
        self._call = transport.call

    def providers(self) -> list[Provider]:
        """Every resource provider."""
        reply = self._call("GET", "/placement/resource_providers")
        return converted(reply.body["resource_providers"], list[Provider])

    def named(self, name: str) -> list[Provider]:
        """The provider with that name or UUID; an empty list without one."""
        key = "uuid" if UUID.fullmatch(name) else "name"
        return self._listed({key: name})

    def in_tree(self, provider: str) -> list[Provider]:
        """Every provider in the tree of a provider, by its UUID."""
        return self._listed({"in_tree": provider})

    def _listed(self, query: Mapping[str, str | int]) -> list[Provider]:
        found = self._call("GET", "/placement/resource_providers", params=query).body
        return converted(found["resource_providers"], list[Provider])

    def inventories(self, provider: str) -> Mapping[str, Mapping[str, Any]]:
        """A provider's inventories: resource class to total, reserved and the rest."""
        body = self._call("GET", f"/placement/resource_providers/{provider}/inventories").body
        found: Mapping[str, Mapping[str, Any]] = body["inventories"]
        return found

    def traits(self, provider: str) -> tuple[frozenset[str], int]:
        """The traits of a provider, and its generation."""
        body = self._call("GET", f"/placement/resource_providers/{provider}/traits").body
        return frozenset(body["traits"]), body["resource_provider_generation"]

    def set_traits(self, provider: str, traits: frozenset[str], generation: int) -> None:
        """Replace the traits of a provider. Conflict if it has another generation."""
        self._call(
            "PUT",
            f"/placement/resource_providers/{provider}/traits",
            body={"traits": sorted(traits), "resource_provider_generation": generation},
        )

    def allocations(self, consumer: str) -> Mapping[str, Any]:
        """A consumer's allocations, provider UUID to resources; empty for none."""
        found: Mapping[str, Any] = self._call("GET", f"/placement/allocations/{consumer}").body
        return found


class Simulation:
    """`/v1/simulation`: only where `moorage sim` started the service."""

    def __init__(self, transport: Transport) -> None:
        self._call = transport.call

    def clock(self) -> Answer[Any]:
        """The simulated time."""
        reply = self._call("GET", "/v1/simulation/clock")
        return Answer(reply.body["clock"], reply.body, reply.request_id)

    def set_clock(self, now: str) -> Answer[Any]:
        """Move time forward; what is due takes effect."""
        reply = self._call("PUT", "/v1/simulation/clock", body={"clock": {"now": now}})
        return Answer(reply.body["clock"], reply.body, reply.request_id)
