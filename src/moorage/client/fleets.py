"""The operator's nouns: flavors, topology, fleet, the Placement dialect, the simulated clock."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from moorage.client import structs
from moorage.client.ensembles import answer
from moorage.client.lookup import UUID
from moorage.client.structs import Answer

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from moorage.client.transport import Transport


class Flavors:
    """`/v1/flavors`."""

    def __init__(self, transport: Transport) -> None:
        self._call = transport.call

    def all(self) -> Answer[list[structs.Flavor]]:
        """Every flavor, by name."""
        return answer(self._call("GET", "/v1/flavors"), "flavors", list[structs.Flavor])

    def show(self, name: str) -> Answer[structs.Flavor]:
        """A flavor by id or name."""
        return answer(self._call("GET", f"/v1/flavors/{name}"), "flavor", structs.Flavor)

    def create(self, flavor: Mapping[str, Any]) -> Answer[structs.Flavor]:
        """Make a flavor, or replace the one of its id."""
        return answer(
            self._call("POST", "/v1/flavors", body={"flavor": flavor}), "flavor", structs.Flavor
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
        """Replace everything at once."""
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
        reply = self._call("GET", "/v1/fleet")
        return Answer(reply.body["fleet"], reply.body, reply.request_id)


class Placement:
    """The little that is needed of the Placement dialect, at its usual mount."""

    def __init__(self, transport: Transport) -> None:
        self._call = transport.call

    def providers(self) -> list[structs.Provider]:
        """Every resource provider."""
        reply = self._call("GET", "/placement/resource_providers")
        return msgspec.convert(
            reply.body["resource_providers"], list[structs.Provider], strict=False
        )

    def named(self, name: str) -> list[structs.Provider]:
        """The provider of that name, or UUID; an empty list where there is none."""
        key = "uuid" if UUID.fullmatch(name) else "name"
        return self._listed({key: name})

    def in_tree(self, provider: str) -> list[structs.Provider]:
        """Every provider of the tree that one is in, by its UUID."""
        return self._listed({"in_tree": provider})

    def _listed(self, query: Mapping[str, str | int]) -> list[structs.Provider]:
        found = self._call("GET", "/placement/resource_providers", params=query).body
        return msgspec.convert(found["resource_providers"], list[structs.Provider], strict=False)

    def inventories(self, provider: str) -> Mapping[str, Mapping[str, Any]]:
        """What a provider has: resource class to total, reserved and the rest."""
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
        """Move time forward; what lapses on the way lapses."""
        reply = self._call("PUT", "/v1/simulation/clock", body={"clock": {"now": now}})
        return Answer(reply.body["clock"], reply.body, reply.request_id)
