"""Every way in which Nova moves a server, written as Nova writes it: no promised place is lost.

Nova gives a migration's UUID the allocations of the source and the server those of the destination;
confirming deletes the migration's, reverting moves them back. After every move: members stand
where their servers are, every promise is kept in its size, the lease says so, and an audit finds
nothing.
"""

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.scenarios.nova.conftest import Cloud, clouded, new
from tests.scenarios.nova.leased import Leased, grant

from moorage.domain.audit import FindingKind, NovaView
from moorage.domain.bookings import BookingState
from moorage.domain.changes import Changeset, DropBookings
from moorage.domain.leases import reservation_class
from moorage.domain.resources import total
from moorage.domain.servers import Server
from moorage.service_environment import RandomIds, with_strategies
from moorage.solver.cpsat import CpSat
from moorage.solver.portfolio import Portfolio
from moorage.testing.service import OPERATOR
from moorage.usecases.decide.member_places import locate_members
from moorage.usecases.environment import UseCaseEnvironment
from moorage.usecases.leases.lease_sweeper import LeaseSweeper
from moorage.usecases.ledger.audit import audit
from moorage.usecases.shared.environment import Environment
from moorage.usecases.shared.limits import Limits

SIZES = {
    "db": {"DISK_GB": 160, "MEMORY_MB": 16384, "VCPU": 8},
    "web": {"DISK_GB": 20, "MEMORY_MB": 2048, "VCPU": 1},
}
MEDIUM = {"DISK_GB": 40, "MEMORY_MB": 4096, "VCPU": 2}
APART = [{"type": "anti-affinity", "members": ["*"], "level": "host"}]
TOGETHER = [{"type": "affinity", "members": ["web"], "level": "host"}]


@dataclass
class Play:
    """Nova's moves of the servers of one lease, of two roles of different sizes."""

    cloud: Cloud
    leased: Leased
    servers: dict[str, str] = field(default_factory=dict)
    """Server -> the role whose flavor it has."""
    left: set[str] = field(default_factory=set)
    """Servers that were resized to a flavor which is not the lease's."""
    moving: dict[str, str] = field(default_factory=dict)
    """Server -> migration."""
    load: frozenset[str] = frozenset()
    """Consumers that the fleet's file books, and Nova does not know."""

    def wants(self, role: str) -> dict[str, int]:
        """What the flavor of a role's reservation asks for."""
        (name,) = (
            reservation_class(one.id) for one in self.leased.lease.reservations if one.role == role
        )
        return {**SIZES[role], name: 1}

    def candidates(self, role: str) -> list[Any]:
        return self.cloud.nova.candidates(None, self.wants(role))

    def boot(self, role: str) -> str | None:
        """A new server, or none where the lease has no place left."""
        server = new()
        if not self._claim(server, self.candidates(role)):
            return None
        self.servers[server] = role
        return server

    def _claim(self, server: str, candidates: list[Any], generation: int | None = None) -> bool:
        if not candidates:
            return False
        answer = self.cloud.nova.claim_resources(server, candidates[0], generation=generation)
        assert answer.status_code == 204, answer.text
        return True

    def to_migration(self, server: str) -> None:
        self.moving[server] = new()
        self.swap(server, self.moving[server])

    def swap(self, source: str, target: str) -> None:
        """Nova's report client: read both, write both in one POST."""
        had, has = self.cloud.nova.allocations(source), self.cloud.nova.allocations(target)
        owner = {"project_id": had["project_id"], "user_id": had["user_id"]}
        generation = had["consumer_generation"]
        body = {
            source: {"allocations": {}, "consumer_generation": generation, **owner},
            target: {
                "allocations": had["allocations"],
                "consumer_generation": has.get("consumer_generation"),
                **owner,
            },
        }
        answer = self.cloud.nova.call("POST", "/allocations", body)
        assert answer.status_code == 204, answer.text

    def delete(self, consumer: str) -> None:
        answer = self.cloud.nova.call("DELETE", f"/allocations/{consumer}")
        assert answer.status_code == 204, answer.text

    def resize(self, server: str, role: str) -> bool:
        """Onto a place of this role; back at once where there is none."""
        self.to_migration(server)
        if self._claim(server, self.candidates(role)):
            return True
        self.swap(self.moving.pop(server), server)
        return False

    def confirm(self, server: str) -> None:
        self.delete(self.moving.pop(server))

    def revert(self, server: str) -> None:
        self.swap(self.moving.pop(server), server)

    def force(self, server: str, host: str, amounts: dict[str, int]) -> None:
        """Onto a host that an operator names, of which the lease has nothing."""
        self.to_migration(server)
        body = {"allocations": {host: {"resources": amounts}}, "mappings": {"": [host]}}
        assert self._claim(server, [body])

    def host_of(self, consumer: str) -> str:
        (host,) = self.cloud.nova.allocations(consumer)["allocations"]
        return str(host)

    # --- whole moves ------------------------------------------------------------------------

    def evacuate(self, server: str) -> None:
        """The server has both places until its old host is back."""
        role = self.servers[server]
        found = self.candidates(role)
        if not found:
            return
        had = self.cloud.nova.allocations(server)
        both = {**had["allocations"], **found[0]["allocations"]}
        doubled = {"allocations": both, "mappings": found[0]["mappings"]}
        assert self._claim(server, [doubled], had["consumer_generation"])
        now = self.cloud.nova.allocations(server)
        for source in had["allocations"].keys() - found[0]["allocations"].keys():
            del now["allocations"][source]
        answer = self.cloud.nova.call("PUT", f"/allocations/{server}", now)
        assert answer.status_code == 204, answer.text

    def shelve(self, server: str) -> None:
        """Offloaded, then back on whatever place there is."""
        self.delete(server)
        assert self._claim(server, self.candidates(self.servers[server]))

    def remove(self, server: str) -> None:
        self.delete(server)
        del self.servers[server]

    # --- what must be so --------------------------------------------------------------------

    def check(self) -> None:
        """Nothing is on its way, and all is as promised."""
        assert not self.moving
        store, lease = self.cloud.store, self.leased.lease
        ensemble = store.ensemble(lease.ensemble_id)
        inside = self.servers.keys() - self.left
        assert {one.server_id for one in ensemble.members if one.server_id} == inside
        places: Counter[tuple[tuple[str, int], ...]] = Counter()
        for member in ensemble.members:
            consumer = member.server_id or member.uuid
            booked = [one for _, one in store.bookings(consumer=consumer)]
            assert booked, f"{member.name} has no place"
            state = BookingState.RESERVED if member.server_id is None else BookingState.ALLOCATED
            assert {one.state for one in booked} == {state}
            assert {one.period.end for one in booked} == {lease.terms.occupied.end}
            amounts = total(one.amounts for one in booked)
            places[tuple(sorted(amounts.items()))] += 1
            if member.server_id is not None:
                where = self.cloud.nova.allocations(member.server_id)["allocations"]
                assert where.keys() == {one.provider for one in booked}
                assert dict(amounts) == SIZES[self.servers[member.server_id]]
        promised = Counter(tuple(sorted(SIZES[one.name.role].items())) for one in ensemble.members)
        assert places == promised
        LeaseSweeper(self.env()).run_round()
        lease = self.leased.lease
        assert (lease.degraded, lease.missing) == (False, 0)
        found = audit(store, OPERATOR, self.nova_view()).findings
        assert [one for one in found if one.subject not in self.load] == []

    def env(self) -> UseCaseEnvironment:
        ids, solver = RandomIds(), Portfolio(CpSat())
        return with_strategies(
            Environment(self.cloud.store, solver, ids, Limits(), time.monotonic, time.sleep)
        )

    def nova_view(self) -> NovaView:
        snapshot = self.cloud.store.snapshot()
        names = {uuid: snapshot.names[row] for uuid, row in snapshot.row_of.items()}
        servers = {
            one: Server(one, one, "ACTIVE", names[self.host_of(one)], project_id="project-a")
            for one in self.servers
        }
        return NovaView(servers, self.cloud.clock.now())


def play(cloud: Cloud, *, db: int = 2, web: int = 2, policies: Any = APART) -> Play:
    """A lease of places of two sizes, on hosts that are empty otherwise."""
    members = [
        {"name": "db", "count": db, "flavor": "m1.xlarge"},
        {"name": "web", "count": web, "flavor": "m1.small"},
    ]
    nobody = NovaView({}, cloud.clock.now())
    load = frozenset(one.subject for one in audit(cloud.store, OPERATOR, nobody).findings)
    leased = grant(cloud, members=members, policies=policies, emptiest=True)
    return Play(cloud, leased, load=load)


# --- each move ----------------------------------------------------------------------------------


def reverted_resize(on: Play, server: str) -> None:
    assert on.resize(server, "web")
    on.revert(server)


def confirmed_resize(on: Play, server: str) -> None:
    assert on.resize(server, "web")
    on.servers[server] = "web"
    on.confirm(server)


def cold_migration(on: Play, server: str) -> None:
    assert on.resize(server, "db")
    on.confirm(server)


def reverted_migration(on: Play, server: str) -> None:
    assert on.resize(server, "db")
    on.revert(server)


def resized_there_and_back(on: Play, server: str) -> None:
    confirmed_resize(on, server)
    on.check()
    assert on.resize(server, "db")
    on.servers[server] = "db"
    on.confirm(server)


def free_host(on: Play) -> str:
    """A host with room on which the lease has nothing."""
    taken = set(on.leased.hosts()) | {on.host_of(one) for one in on.servers}
    found = on.cloud.nova.candidates(None, SIZES["db"])
    return next(str(host) for one in found for host in one["allocations"] if host not in taken)


def forced_migration(on: Play, server: str) -> None:
    """A live migration to a host that an operator names takes along what the server had."""
    on.force(server, free_host(on), SIZES["db"])
    on.confirm(server)


def aborted_forced_migration(on: Play, server: str) -> None:
    on.force(server, free_host(on), SIZES["db"])
    on.revert(server)


def resized_out_of_the_lease(on: Play, server: str) -> None:
    """A flavor of no reservation: the server leaves the lease, the place does not."""
    on.force(server, free_host(on), MEDIUM)
    on.confirm(server)
    on.left.add(server)


def resized_out_on_the_same_host(on: Play, server: str) -> None:
    on.force(server, on.host_of(server), MEDIUM)
    on.confirm(server)
    on.left.add(server)


def reverted_on_the_same_host(on: Play, server: str) -> None:
    on.force(server, on.host_of(server), MEDIUM)
    on.revert(server)


def rebuilt(on: Play, server: str) -> None:
    """Nova writes nothing for a rebuild with another image, or writes what is there."""
    body = on.cloud.nova.allocations(server)
    assert on.cloud.nova.call("PUT", f"/allocations/{server}", body).status_code == 204


def evacuated(on: Play, server: str) -> None:
    on.evacuate(server)


def shelved(on: Play, server: str) -> None:
    on.shelve(server)


MOVES: list[Callable[[Play, str], None]] = [
    reverted_resize,
    confirmed_resize,
    resized_there_and_back,
    cold_migration,
    reverted_migration,
    forced_migration,
    aborted_forced_migration,
    resized_out_of_the_lease,
    resized_out_on_the_same_host,
    reverted_on_the_same_host,
    rebuilt,
    evacuated,
    shelved,
]


@pytest.mark.parametrize("move", MOVES, ids=lambda one: one.__name__)
def test_no_place_of_a_lease_is_lost(cloud: Cloud, move: Callable[[Play, str], None]) -> None:
    on = play(cloud)
    server = on.boot("db")
    assert server is not None
    on.check()
    move(on, server)
    on.check()
    on.remove(server)
    on.left.discard(server)
    on.check()
    for role in ("db", "db", "web", "web"):
        assert on.boot(role) is not None
    on.check()


@pytest.mark.parametrize("ends", ["revert", "confirm"])
def test_a_move_between_two_places_of_one_host(cloud: Cloud, ends: str) -> None:
    on = play(cloud, db=1, web=3, policies=TOGETHER)
    server = on.boot("web")
    assert server is not None
    host = on.host_of(server)
    assert on.resize(server, "web")
    assert on.host_of(server) == host, "all web places are there"
    getattr(on, ends)(server)
    on.check()


def test_a_place_that_shrank_comes_back_in_its_promised_size(cloud: Cloud) -> None:
    on = play(cloud)
    server = on.boot("db")
    assert server is not None
    host = on.host_of(server)
    body = on.cloud.nova.allocations(server)
    body["allocations"][host]["resources"]["VCPU"] -= 1
    assert on.cloud.nova.call("PUT", f"/allocations/{server}", body).status_code == 204
    on.remove(server)
    on.check()


def test_a_promised_size_that_others_took_is_said_and_healed(cloud: Cloud) -> None:
    on = play(cloud, db=1, web=0)
    server = on.boot("db")
    assert server is not None
    host = on.host_of(server)
    body = on.cloud.nova.allocations(server)
    body["allocations"][host]["resources"]["VCPU"] -= 1
    assert on.cloud.nova.call("PUT", f"/allocations/{server}", body).status_code == 204
    on.cloud.nova.fill(host)
    on.delete(server)
    del on.servers[server]
    assert (on.leased.lease.degraded, on.leased.lease.missing) == (True, 1)
    look = LeaseSweeper(on.env())
    look.run_round()
    look.run_round()
    (healed,) = on.leased.hosts()
    assert healed != host
    lease = on.leased.lease
    assert (lease.degraded, lease.missing) == (False, 0)


def test_an_audit_names_a_place_that_nobody_has_noted_as_lost(cloud: Cloud) -> None:
    on = play(cloud)
    (member, *_) = cloud.store.ensemble(on.leased.lease.ensemble_id).members
    cloud.store.commit(Changeset((DropBookings(frozenset({member.uuid})),)))
    found = audit(cloud.store, OPERATOR, None).findings
    assert [(one.kind, one.subject) for one in found] == [(FindingKind.UNPLACED, on.leased.id)]
    assert "1 promised place booked nowhere" in found[0].detail


# --- members without a lease --------------------------------------------------------------------


def joint(cloud: Cloud, until: str | None) -> tuple[Any, str]:
    """A claim of a member that is placed jointly, and the server that has taken its place.

    Half of the server's host is free.
    """
    options = {"hold": "PT10M", "objective": "balance"}
    body = {
        "name": f"shop {new()}",
        "members": [{"name": "db", "count": 2, "flavor": "m1.xlarge"}],
        "policies": [{"type": "anti-affinity", "members": ["db"], "level": "host"}],
        "decide": {**options, **({} if until is None else {"until": until})},
    }
    claim = cloud.tenant.claim(cloud.tenant.call("POST", "/ensembles", {"ensemble": body}))
    request_id, server = claim["present_as"]["header"]["X-Openstack-Request-Id"], new()
    (candidate, *_) = cloud.nova.candidates(request_id)
    assert cloud.nova.claim_resources(server, candidate, request_id).status_code == 204
    return claim, server


@pytest.mark.parametrize("until", [None, "2026-11-22T09:00:00Z"])
@pytest.mark.parametrize("ends", ["confirm", "revert"])
@pytest.mark.parametrize("amounts", [SIZES["db"], MEDIUM], ids=["migrated", "resized"])
@pytest.mark.parametrize("same", [False, True], ids=["elsewhere", "same-host"])
def test_a_member_follows_its_server_and_keeps_its_end(
    cloud: Cloud, until: str | None, ends: str, amounts: dict[str, int], *, same: bool
) -> None:
    claim, server = joint(cloud, until)
    on = Play(cloud, Leased(cloud, ""))
    source = on.host_of(server)
    (end,) = {one.period.end for _, one in cloud.store.bookings(consumer=server)}
    ensemble = cloud.store.ensemble(claim["ensemble_id"])
    places = locate_members(cloud.store.snapshot(), ensemble).places
    taken = {place.host for place in places.values()}
    other = next(
        host
        for one in cloud.nova.candidates(None, SIZES["db"])
        for host in one["allocations"]
        if host not in taken
    )
    on.force(server, source if same else other, amounts)
    getattr(on, ends)(server)
    where = other if ends == "confirm" and not same else source
    assert on.host_of(server) == where
    bookings = [one for _, one in cloud.store.bookings(consumer=server)]
    assert {one.period.end for one in bookings} == {end}
    size = amounts if ends == "confirm" else SIZES["db"]
    assert total(one.amounts for one in bookings) == size
    member = cloud.tenant.member(claim)
    assert (member["server_id"], member["status"]) == (server, "active")
    snapshot = cloud.store.snapshot()
    member_places = locate_members(snapshot, cloud.store.ensemble(claim["ensemble_id"]))
    assert {str(name): place.host for name, place in member_places.places.items()}["db[0]"] == where
    everything = audit(cloud.store, OPERATOR, None).findings
    assert everything == ()


# --- all of them, in any order ------------------------------------------------------------------


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(steps=st.lists(st.tuples(st.sampled_from("bmwcrex"), st.integers(0, 9)), max_size=14))
def test_moves_in_any_order_lose_no_place(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, int]]
) -> None:
    path: Path = tmp_path_factory.mktemp("moves")
    with clouded(path) as cloud:
        on = play(cloud)
        targets: dict[str, str] = {}
        for step, number in steps:
            idle = sorted(on.servers.keys() - on.moving.keys())
            away = sorted(on.moving)
            if step == "b":
                on.boot("db" if number % 2 else "web")
            elif step in "mw" and idle:
                server = idle[number % len(idle)]
                role = on.servers[server] if step == "m" else "web"
                if on.resize(server, role):
                    targets[server] = role
            elif step == "c" and away:
                server = away[number % len(away)]
                on.servers[server] = targets[server]
                on.confirm(server)
            elif step == "r" and away:
                on.revert(away[number % len(away)])
            elif step == "e" and idle:
                on.evacuate(idle[number % len(idle)])
            elif step == "x" and idle:
                on.remove(idle[number % len(idle)])
            assert not on.leased.lease.degraded
        for server in sorted(on.moving):
            on.revert(server)
        on.check()
