"""Calls of operators: flavors, topology, fleet, the Placement dialect, the simulated clock."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import msgspec

from moorage.client import lookup
from moorage.client.errors import Conflict, NotFound
from moorage.client.lookup import UUID
from moorage.client.resource import Answer, Resource, answer, converted
from moorage.domain.period import parse_instant
from moorage.domain.providers import SHARING_TRAIT
from moorage.wire.flavors import FlavorValue

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from moorage.client.transport import Transport
    from moorage.domain.period import Instant


class Provider(msgspec.Struct, frozen=True):
    """A resource provider as the Placement dialect lists it."""

    uuid: str
    name: str
    generation: int = 0
    parent_provider_uuid: str | None = None
    root_provider_uuid: str | None = None


class Flavors(Resource):
    """`/v1/flavors`."""

    path, one, many = "/v1/flavors", "flavor", "flavors"

    def all(self) -> Answer[list[FlavorValue]]:
        """Every flavor, by name."""
        return answer(lookup.whole(self._call, self.path, "flavors"), "flavors", list[FlavorValue])

    def show(self, name: str) -> Answer[FlavorValue]:
        """A flavor by id or name."""
        return self._get(FlavorValue, f"/{name}")

    def create(self, flavor: Mapping[str, Any]) -> Answer[FlavorValue]:
        """Create a flavor, or replace the one with its id."""
        return self._send("POST", "", {"flavor": flavor}, FlavorValue, "flavor")

    def delete(self, name: str) -> None:
        """Delete a flavor by id or name."""
        self._delete(f"/{name}")

    def load(self, listing: Sequence[Mapping[str, Any]]) -> Answer[dict[str, Any]]:
        """Load what `openstack flavor list --long -f json` printed."""
        return self._send("POST", "/load", {"flavors": listing}, dict[str, Any])


class Topologies(Resource):
    """`/v1/topology/domains`."""

    path, one = "/v1/topology/domains", "topology"

    def show(self) -> Answer[dict[str, Any]]:
        """Levels, domains and attachments of every tree."""
        return self._get(dict[str, Any])

    def replace(
        self, topology: Mapping[str, Any], *, revision: int | None = None, dry_run: bool = False
    ) -> Answer[dict[str, Any]]:
        """Replace the whole topology, if it still has this revision; None: whichever it has."""
        headers = None if revision is None else {"If-Match": f'"{revision}"'}
        params: dict[str, str | int] = {"dry_run": "true"} if dry_run else {}
        body = {"topology": topology}
        reply = self._call("PUT", self.path, body=body, headers=headers, params=params)
        return self._decoded(reply, dict[str, Any], None)


class Fleets(Resource):
    """`/v1/fleet`."""

    path = "/v1/fleet"

    def load(self, part: Mapping[str, Any]) -> Answer[dict[str, Any]]:
        """Load a part of a fleet in one transaction; loading it again changes nothing."""
        return self._send("POST", "", {"fleet": part}, dict[str, Any])

    def show(self) -> Answer[dict[str, Any]]:
        """Every host with its domains, capacity and use."""
        reply = lookup.whole(self._call, self.path, "hosts", within="fleet")
        return answer(reply, "fleet", dict[str, Any])

    def map(self, **query: str) -> Answer[dict[str, Any]]:
        """The fleet as columns: `class`, `at` and other parameters of the map."""
        return answer(self._call("GET", f"{self.path}/map", params=query), "map", dict[str, Any])


class Hosts(Resource):
    """`/v1/hosts`."""

    path = "/v1/hosts"

    def all(self) -> list[Any]:
        """Every host with its status."""
        return [host for body in self._pages("", "hosts", "uuid") for host in body["hosts"]]

    def show(self, name: str) -> Any:  # noqa: ANN401 - a JSON object
        """One host with all its bookings."""
        first, *more = self._pages(f"/{quote(name, safe='')}", "bookings", "consumer", "host")
        del first["bookings_links"]
        for page in more:
            first["bookings"] += page["bookings"]
        return first

    def close(self, name: str, reason: str, *, dry_run: bool = False) -> Any:  # noqa: ANN401
        """Close a host: its status then as `host`, and which violations begin as `breaks`."""
        body = {"close": {"reason": reason}}
        return self._answered("POST", name, "close", body, dry_run=dry_run)

    def open(self, name: str, *, dry_run: bool = False) -> Any:  # noqa: ANN401
        """Open a host again; its status then."""
        return self._changed("POST", name, "open", None, dry_run=dry_run)

    def put_service(self, name: str, *, state: str, status: str, forced_down: bool = False) -> Any:  # noqa: ANN401
        """Say what Nova says of a host's compute service; its status then."""
        service = {"state": state, "status": status, "forced_down": forced_down}
        return self._changed("PUT", name, "service", {"service": service})

    def refused_move(self, name: str, server: str) -> str | None:
        """Why a server may not move to a host; None if it may."""
        found = self._call("GET", f"{self.path}/{quote(name, safe='')}/moves/{server}").body
        reason: str | None = found["move"]["reason"]
        return reason

    def _changed(
        self, method: str, name: str, what: str, body: object, *, dry_run: bool = False
    ) -> Any:  # noqa: ANN401 - a JSON object
        return self._answered(method, name, what, body, dry_run=dry_run)["host"]

    def _answered(
        self, method: str, name: str, what: str, body: object, *, dry_run: bool = False
    ) -> Any:  # noqa: ANN401 - a JSON object
        params = {"dry_run": "true"} if dry_run else {}
        path = f"{self.path}/{quote(name, safe='')}/{what}"
        return self._call(method, path, body=body, params=params).body

    def _pages(self, path: str, key: str, marker: str, within: str = "") -> Iterator[Any]:
        """The pages of a listing, each continued after the marker of the last item before."""
        params: dict[str, str] = {}
        while True:
            body = self._call("GET", self.path + path, params=params).body
            page = body[within] if within else body
            yield page
            if not page[f"{key}_links"]:
                return
            params = {"marker": page[key][-1][marker]}


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

    @property
    def endpoint(self) -> str:
        """Where the calls go."""
        return "the service's /placement"

    def negotiate(self) -> None:
        """Every call asks for the newest microversion."""

    def get(self, path: str) -> Any:  # noqa: ANN401 - a JSON object
        """GET a resource of the dialect."""
        return self._call("GET", f"/placement{path}").body

    def dated(self, path: str) -> tuple[Any, Instant] | None:
        """GET a resource of the dialect, without its time, or None for 404."""
        try:
            return self.get(path), 0
        except NotFound:
            return None

    def in_aggregate(self, aggregate: str) -> list[Provider]:
        """Every provider in an aggregate, by its UUID."""
        return self._listed({"member_of": aggregate})

    def that_share(self) -> list[Provider]:
        """Every sharing provider: pools, and devices that other trees take from."""
        return self._listed({"required": SHARING_TRAIT})

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

    def allocate(
        self, consumer: str, providers: Mapping[str, Mapping[str, int]], *, project: str
    ) -> None:
        """Write the allocations of a new consumer. Conflict if there is no room for them."""
        body = {
            "allocations": _allocations(providers),
            "project_id": project,
            "user_id": project,
            "consumer_generation": None,
            "consumer_type": "INSTANCE",
        }
        self._call("PUT", f"/placement/allocations/{consumer}", body=body)

    def delete_allocations(self, consumer: str) -> None:
        """Delete a consumer's allocations."""
        self._call("DELETE", f"/placement/allocations/{consumer}")

    def move(self, server: str, providers: Mapping[str, Mapping[str, int]], migration: str) -> None:
        """Write a server's allocations elsewhere, as Nova's live migration does.

        Conflict if that is refused; then the server has what it had.
        """
        known = self.allocations(server)
        before = {uuid: one["resources"] for uuid, one in known["allocations"].items()}
        self._hand_over(server, migration, before, "MIGRATION")
        now = {**known, "allocations": _allocations(providers)}
        try:
            now["consumer_generation"] = self.allocations(server).get("consumer_generation")
            self._call("PUT", f"/placement/allocations/{server}", body=now)
        except Conflict:
            self._hand_over(migration, server, before, known["consumer_type"])
            raise
        self.delete_allocations(migration)

    def _hand_over(
        self, giver: str, taker: str, providers: Mapping[str, Mapping[str, int]], kind: str
    ) -> None:
        """Give all that a consumer has to another one, in one write."""
        gives, takes = self.allocations(giver), self.allocations(taker)
        owner = {name: gives[name] for name in ("project_id", "user_id")}
        body = {
            giver: {
                "allocations": {},
                "consumer_generation": gives["consumer_generation"],
                "consumer_type": gives["consumer_type"],
                **owner,
            },
            taker: {
                "allocations": _allocations(providers),
                "consumer_generation": takes.get("consumer_generation"),
                "consumer_type": kind,
                **owner,
            },
        }
        self._call("POST", "/placement/allocations", body=body)


class Simulation(Resource):
    """`/v1/simulation`: only where `moorage sim` started the service."""

    path, one = "/v1/simulation/clock", "clock"

    def clock(self) -> Answer[dict[str, Any]]:
        """The simulated time."""
        return self._get(dict[str, Any])

    def set_clock(self, now: str) -> Answer[dict[str, Any]]:
        """Move time forward, past every edge on the way; a long way takes several requests."""
        while True:
            found = self._send("PUT", "", {"clock": {"now": now}}, dict[str, Any], "clock")
            if parse_instant(found.value["now"]) >= parse_instant(now):
                return found


def _allocations(providers: Mapping[str, Mapping[str, int]]) -> dict[str, Any]:
    """Allocations as Placement's bodies have them."""
    return {uuid: {"resources": dict(amounts)} for uuid, amounts in providers.items()}
