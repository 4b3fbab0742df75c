"""After any sequence of changes the stored violations equal a full evaluation from nothing."""

from collections.abc import Callable
from dataclasses import replace
from random import Random
from typing import Any
from uuid import UUID

import pytest
from tests.seeds import cases

from moorage.domain.bookings import Booking, BookingState
from moorage.domain.capacity_windows import CapacityWindow, WindowKind
from moorage.domain.changes import (
    Changeset,
    CreateProvider,
    DropCapacityWindow,
    PutBookings,
    PutCapacityWindow,
    PutInventories,
    PutTopology,
    PutTraits,
    ReplaceAllocations,
)
from moorage.domain.consumers import ANY_GENERATION, Consumer
from moorage.domain.errors import MoorageError
from moorage.domain.period import HOUR, MINUTE, Period
from moorage.domain.providers import Inventory
from moorage.domain.topology import Topology
from moorage.engine.state.differences import differences
from moorage.testing.service import OTHER, Service
from moorage.usecases.compliance.judgement import judge
from moorage.usecases.compliance.monitor import ComplianceMonitor
from moorage.usecases.compliance_ports import ViolationFilter
from moorage.usecases.decide.member_places import locate_members
from moorage.usecases.paging import Page

DISABLED = "COMPUTE_STATUS_DISABLED"
POLICIES: tuple[dict[str, Any], ...] = (
    {"name": "ha", "type": "survive", "members": ["a"], "level": "rack", "keep": 1},
    {"name": "apart", "type": "anti-affinity", "members": ["*"]},
    {"name": "racks", "type": "spread", "members": ["a"], "level": "rack", "max_skew": 1},
    {"name": "two", "type": "spread", "members": ["b"], "level": "rack", "min_domains": 2},
    {"name": "pair", "type": "proximity", "zip": ["a", "b"], "level": "rack"},
    {"name": "alone", "type": "exclusive", "members": ["a"], "against": "others"},
    {"name": "cage", "type": "exclusive", "members": ["b"], "level": "rack"},
    {"name": "fast", "type": "fence", "members": ["b"], "traits": ["HW_CPU_X86_AVX2"]},
    {"name": "off", "type": "ban", "members": ["a"], "domains": ["az1"]},
)
"""Of each the strength is drawn: one that could not be placed is only preferred."""


class World:
    """A service whose hosts, servers and descriptions are changed at random."""

    def __init__(self, service: Service, seed: int) -> None:
        self.service, self.random = service, Random(seed)
        limits = replace(service.env.limits, compliance_settle=0)
        self.seconds = 0.0
        self.missed = 0
        self.env = replace(service.env, limits=limits, stopwatch=lambda: self.seconds)
        self.monitors = [self.monitor(), self.monitor()]
        self.ensembles: list[str] = []
        self.windows: list[str] = []
        self.strangers: list[Consumer] = []
        self.kept: list[tuple[Consumer, Booking]] = []
        self.numbers = iter(range(1, 10_000))
        self.topology = service.store.snapshot().topology

    def monitor(self) -> ComplianceMonitor:
        return ComplianceMonitor(self.env, self._count)

    def _count(self, number: int) -> None:
        self.missed += number

    def uuid(self) -> str:
        return str(UUID(int=next(self.numbers) + (1 << 100), version=4))

    def commit(self, *changes: Any) -> None:
        self.service.store.commit(Changeset(changes))

    def host(self) -> str:
        snapshot = self.service.store.snapshot()
        return str(snapshot.uuids[self.random.choice(snapshot.hosts.tolist())])

    # --- what happens -----------------------------------------------------------------------

    def create(self) -> None:
        drawn = self.random.sample(POLICIES, self.random.randint(1, 4))
        policies = [{**one, "strength": {"preferred": 3}} for one in drawn]
        other = self.random.choice(self.ensembles) if self.ensembles else None
        if other is not None and self.random.random() < 0.3:
            sides = [{"members": ["a"]}, {"ensemble": other}]
            policies.append(
                {"name": "near", "type": "affinity", "level": "rack", "between": sides}
                | {"strength": {"preferred": 1}}
            )
        body = {
            "name": f"e{next(self.numbers)}",
            "members": [
                {"name": name, "count": self.random.randint(1, 3), "flavor": "m1.small"}
                for name in ("a", "b")
            ],
            "policies": policies,
            "decide": {"hold": "PT1H"},
        }
        answer = self.service.call("POST", "/ensembles", {"ensemble": body})
        assert answer.status_code in {201, 400, 409}, answer.text
        if answer.status_code == 201:
            self.ensembles.append(answer.json["ensemble"]["id"])

    def claim(self) -> None:
        """A member becomes a server, which its owner has made elsewhere."""
        ensemble, member = self.member()
        path = f"/ensembles/{ensemble}"
        found = self.service.call("GET", path).json["ensemble"]["decision"]
        path = f"/decisions/{found['id']}/claims"
        body: dict[str, Any] = {"claim": {"member": member, "server": {"flavorRef": "m1.small"}}}
        answer = self.service.call("POST", path, body)
        if answer.status_code == 201:
            body = {"claim": {"server_id": self.uuid(), "status": "active"}}
            self.service.call("PATCH", f"/claims/{answer.json['claim']['id']}", body)

    def member(self) -> tuple[str, str]:
        ensemble = self.random.choice(self.ensembles)
        names = [str(one.name) for one in self.service.store.ensemble(ensemble).members]
        return ensemble, self.random.choice(names or ["a[0]"])

    def move(self) -> None:
        """The server of a member stands elsewhere, whatever its policies say."""
        store = self.service.store
        ensemble = store.ensemble(self.random.choice(self.ensembles))
        servers = [one.server_id for one in ensemble.members if one.server_id is not None]
        if servers:
            server = self.random.choice(servers)
            found = store.consumer(server)
            if found is not None:
                where = {self.host(): {"VCPU": 1}}
                self.commit(ReplaceAllocations(found[0], where, ANY_GENERATION, self.end()))

    def delete_server(self) -> None:
        store = self.service.store
        ensemble = store.ensemble(self.random.choice(self.ensembles))
        servers = [one.server_id for one in ensemble.members if one.server_id is not None]
        if servers and (found := store.consumer(self.random.choice(servers))) is not None:
            self.commit(ReplaceAllocations(found[0], {}, ANY_GENERATION))

    def stranger(self) -> None:
        owner = Consumer(self.uuid(), self.random.choice(["project-a", "p"]), "u")
        self.commit(ReplaceAllocations(owner, {self.host(): {"VCPU": 1}}, None, self.end()))
        self.strangers.append(owner)

    def end(self) -> int | None:
        """A declared end, at which nobody leaves: whoever stays is overrun."""
        draw = self.random.choice([None, 3 * MINUTE, 20 * MINUTE])
        return None if draw is None else self.service.clock.now() + draw

    def reserve(self) -> None:
        """A place is kept for a stranger, for a while that may begin later."""
        owner, host = Consumer(self.uuid(), "p", "u"), self.host()
        start = self.service.clock.now() + self.random.choice([0, 5 * MINUTE, 30 * MINUTE])
        period = Period(start, start + self.random.choice([4 * MINUTE, HOUR]))
        kept = Booking(owner.uuid, host, {"VCPU": 1}, period, BookingState.RESERVED)
        self.commit(PutBookings(owner, (kept,)))
        self.kept.append((owner, kept))

    def postpone(self) -> None:
        """A kept place is for another time."""
        if not self.kept:
            return
        owner, kept = self.random.choice(self.kept)
        start = self.service.clock.now() + self.random.choice([0, 5 * MINUTE, 3 * HOUR])
        other = replace(kept, period=Period(start, start + HOUR))
        self.commit(PutBookings(owner, (other,)))

    def own(self) -> None:
        """A stranger belongs to another project from now on."""
        store = self.service.store
        known = [one for one in self.strangers if store.consumer(one.uuid) is not None]
        if known:
            one = self.random.choice(known)
            found = store.allocations_of_consumer(one.uuid)
            assert found is not None
            where = {each.provider: each.amounts for each in found[1]}
            owner = replace(one, project_id=self.random.choice(["project-a", "p", "q"]))
            self.commit(ReplaceAllocations(owner, where, ANY_GENERATION))

    def trait(self) -> None:
        snapshot = self.service.store.snapshot()
        marked = snapshot.traits.get(DISABLED)
        off = [] if marked is None else [one for one in snapshot.hosts.tolist() if marked[one]]
        back = bool(off) and self.random.random() < len(off) / 4
        uuid = snapshot.uuids[self.random.choice(off)] if back else self.host()
        host = self.service.store.provider(uuid)
        some = frozenset({self.random.choice([DISABLED, DISABLED, "HW_CPU_X86_AVX2"])})
        self.commit(PutTraits(host.uuid, host.traits ^ some, host.generation))

    def inventory(self) -> None:
        host = self.service.store.provider(self.host())
        reserved = self.random.choice([0, 8, 16])
        new = tuple(
            replace(one, reserved=reserved if one.resource_class == "VCPU" else one.reserved)
            for one in host.inventories
        )
        self.commit(PutInventories(host.uuid, new, host.generation))

    def racks(self) -> None:
        """Hosts are said to be in other racks, or all is as it was; at times there are no racks."""
        draw = self.random.random()
        if draw < 0.2:
            self.commit(PutTopology(Topology.build({}, [], [])))
            return
        attachments = dict(self.topology.attachments)
        for tree, host in [*attachments] if draw < 0.7 else ():
            if self.random.random() < 0.3:
                attachments[tree, host] = self.random.choice(["r1", "r2", "r3"])
        self.commit(PutTopology(Topology(self.topology.levels, self.topology.domains, attachments)))

    def window(self) -> None:
        if self.windows and self.random.random() < 0.5:
            self.commit(DropCapacityWindow(self.windows.pop()))
            return
        now = self.service.clock.now()
        start = now + self.random.choice([0, 10 * MINUTE])
        period = Period(start, start + self.random.choice([5 * MINUTE, 3 * HOUR]))
        id_ = self.uuid()
        self.commit(
            PutCapacityWindow(CapacityWindow(id_, WindowKind.MAINTENANCE, (self.host(),), period))
        )
        self.windows.append(id_)

    def time(self) -> None:
        self.service.clock.pass_by(self.random.choice([MINUTE, 6 * MINUTE]))

    def policy(self) -> None:
        ensemble = self.random.choice(self.ensembles)
        one = {**self.random.choice(POLICIES), "strength": {"preferred": 2}}
        path = f"/ensembles/{ensemble}/policies/{one.pop('name')}"
        either = {"If-Match": "*"}
        if self.random.random() < 0.4:
            self.service.call("DELETE", path, headers=either)
        else:
            self.service.call("PUT", path, {"policy": one}, headers=either)

    def strengthen(self) -> None:
        """A preferred policy is required from now on, whether it holds or not."""
        ensemble = self.random.choice(self.ensembles)
        one = {**self.random.choice(POLICIES)}
        path = f"/ensembles/{ensemble}/policies/{one.pop('name')}"
        self.service.call("PUT", path, {"policy": one}, headers={"If-Match": "*"})

    def leave(self) -> None:
        ensemble, member = self.member()
        path = f"/ensembles/{ensemble}/members/{member}"
        self.service.call("DELETE", path, headers={"If-Match": "*"})

    def delete(self) -> None:
        ensemble = self.ensembles.pop(self.random.randrange(len(self.ensembles)))
        path = f"/ensembles/{ensemble}"
        answer = self.service.call("DELETE", path, headers={"If-Match": "*"})
        assert answer.status_code == 204, answer.text

    def restart(self) -> None:
        """One of the processes dies and is replaced."""
        self.monitors[self.random.randrange(2)] = self.monitor()

    # --- what is compared -------------------------------------------------------------------

    def look(self) -> None:
        for one in self.random.sample(self.monitors, 2):
            while one.run_round() or not one.idle:
                pass

    def expected(self) -> dict[tuple[str, str], tuple[int, set[str]]]:
        """Ensemble and key -> amount and members, by a judgement of everything."""
        store = self.service.store
        found: dict[tuple[str, str], tuple[int, set[str]]] = {}
        for ensemble in store.ensembles(project_id=None):
            judged = judge(store.snapshot(), ensemble)
            for one in judged.violations:
                key = ensemble.id, f"policy {one.policy}"
                amount, members = found.get(key, (0, set()))
                found[key] = amount + one.amount, members | set(map(str, one.members))
            for member in judged.out_of_service:
                found[ensemble.id, f"member {member}"] = 1, {str(member)}
        return found

    def stored(self) -> dict[tuple[str, str], tuple[int, set[str]]]:
        records = self.service.store.compliance.page(ViolationFilter(), Page(100_000))
        found = {
            (one.ensemble_id, one.key): (one.amount, set(map(str, one.members))) for one in records
        }
        assert len(found) == len(records), "one open record for each"
        return found


ACTS: tuple[tuple[int, Callable[[World], None]], ...] = (
    (4, World.create),
    (6, World.claim),
    (5, World.move),
    (2, World.delete_server),
    (5, World.stranger),
    (3, World.own),
    (3, World.reserve),
    (2, World.postpone),
    (12, World.trait),
    (3, World.inventory),
    (3, World.racks),
    (3, World.window),
    (5, World.time),
    (3, World.policy),
    (2, World.strengthen),
    (2, World.leave),
    (1, World.delete),
    (1, World.restart),
)


@pytest.mark.parametrize("seed", range(cases(12, 200)))
def test_stored_violations_equal_a_full_evaluation(service: Service, seed: int) -> None:
    world = World(service, seed)
    for _ in range(4):
        world.create()
    weights, acts = zip(*ACTS, strict=True)
    for step in range(60):
        if not world.ensembles:
            world.create()
            continue
        (act,) = world.random.choices(acts, weights)
        try:
            act(world)
        except MoorageError:
            continue  # such as a host that is full
        if world.random.random() < 0.6:
            world.look()
            assert world.stored() == world.expected(), f"step {step}, {act.__name__}"
    world.look()
    assert world.stored() == world.expected()
    events = service.call("GET", "/events", query={"limit": "1000"}).json["events"]
    began = [one["body"]["violation"] for one in events if one["type"] == "policy.violated"]
    ended = [one["body"]["violation"] for one in events if one["type"] == "policy.restored"]
    assert len(began) == len(set(began)), "each is told once"
    assert len(ended) == len(set(ended))
    world.seconds += 3_601
    world.look()
    assert world.missed == 0, "the sweep finds nothing"


def alone(service: Service) -> tuple[World, ComplianceMonitor, str]:
    """A server that prefers to be without other projects on its host, and ends in five minutes."""
    world = World(service, 1)
    policy = {"name": "alone", "type": "exclusive", "members": ["a"]}
    body = {
        "name": "one",
        "members": [{"name": "a", "count": 1, "flavor": "m1.small"}],
        "policies": [{**policy, "strength": {"preferred": 1}}],
        "decide": {"hold": "PT1H"},
    }
    answer = service.call("POST", "/ensembles", {"ensemble": body})
    world.ensembles.append(answer.json["ensemble"]["id"])
    world.claim()
    ensemble = service.store.ensemble(world.ensembles[0])
    (place,) = locate_members(service.store.snapshot(), ensemble).places.values()
    found = service.store.consumer(str(ensemble.members[0].server_id))
    assert found is not None
    until = service.clock.now() + 5 * MINUTE
    where = {place.host: {"VCPU": 1}}
    world.commit(ReplaceAllocations(found[0], where, ANY_GENERATION, until))
    return world, world.monitors[0], place.host


@pytest.mark.parametrize("minutes_later", [10, 60])
def test_the_time_of_neighbours_is_noticed_as_it_passes(
    service: Service, minutes_later: int
) -> None:
    """An overrun server meets whoever comes after its end; a kept place ends by itself."""
    world, monitor, host = alone(service)
    start = service.clock.now() + minutes_later * MINUTE
    other = Consumer(world.uuid(), "p", "u")
    kept = Booking(other.uuid, host, {"VCPU": 1}, Period(start, start + MINUTE))
    kept = replace(kept, state=BookingState.RESERVED)
    world.commit(PutBookings(other, (kept,)))
    seen = []
    for minutes in (0, 4, 2):
        service.clock.pass_by(minutes * MINUTE)
        while monitor.run_round() or not monitor.idle:
            pass
        seen.append([key for _, key in world.stored()])
    assert seen == [[], [], ["policy alone"]]
    service.clock.set(start + MINUTE)
    while monitor.run_round() or not monitor.idle:
        pass
    assert world.stored() == {}


def test_a_neighbour_with_another_period_is_noticed(service: Service) -> None:
    world, monitor, host = alone(service)
    start = service.clock.now() + HOUR
    other = Consumer(world.uuid(), "p", "u")
    kept = Booking(other.uuid, host, {"VCPU": 1}, Period(start), BookingState.RESERVED)
    world.commit(PutBookings(other, (kept,)))
    while monitor.run_round() or not monitor.idle:
        pass
    assert world.stored() == {}
    sooner = replace(kept, period=Period(service.clock.now()))
    world.commit(PutBookings(other, (sooner,)))
    while monitor.run_round() or not monitor.idle:
        pass
    assert [key for _, key in world.stored()] == ["policy alone"]


def test_a_neighbour_in_a_slice_is_noticed(service: Service) -> None:
    """Who is on what a server on the host offers is on the host, too."""
    world, monitor, host = alone(service)
    carrier, slice_ = Consumer(world.uuid(), "project-a", "u"), Consumer(world.uuid(), "p", "u")
    offer = world.uuid()
    world.commit(ReplaceAllocations(carrier, {host: {"VCPU": 1}}, None))
    world.commit(CreateProvider(offer, "offer", offered_by=carrier.uuid))
    world.commit(PutInventories(offer, (Inventory("VCPU", 4),), 0))
    while monitor.run_round() or not monitor.idle:
        pass
    assert world.stored() == {}
    world.commit(ReplaceAllocations(slice_, {offer: {"VCPU": 1}}, None))
    while monitor.run_round() or not monitor.idle:
        pass
    assert [key for _, key in world.stored()] == ["policy alone"]


def test_of_other_projects_nothing_is_told(service: Service) -> None:
    world = World(service, 1)
    for _ in range(5):
        world.create()
    for _ in range(10):
        world.trait()
        world.look()
    events = service.call("GET", "/events", caller=OTHER).json["events"]
    assert [one for one in events if one["type"].startswith(("policy.", "member."))] == []


def test_places_are_found_and_servers_move_at_all(service: Service) -> None:
    """The worlds above would pass if nothing was ever placed, or if no server ever moved."""
    world = World(service, 3)
    for _ in range(5):
        world.create()
    assert world.ensembles
    snapshot = service.store.snapshot()
    for ensemble in service.store.ensembles(project_id=None):
        assert len(locate_members(snapshot, ensemble).places) == len(ensemble.members)
    for _ in range(20):
        world.claim()
    before = service.store.snapshot()
    world.move()
    after = service.store.snapshot()
    moved = differences(before, after).consumers
    assert [one for one in moved if service.store.compliance.ensembles_of({one}, set())]
