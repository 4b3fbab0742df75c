"""Plans hold on the ledger: their moves are made one by one, and every state is judged."""

from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from random import Random
from typing import Any
from uuid import UUID

import pytest
from tests.seeds import cases

from moorage.domain.changes import Changeset, ReplaceAllocations
from moorage.domain.consumers import ANY_GENERATION, SERVER_TYPE, Consumer
from moorage.domain.ensembles import STANDING, OnViolation, Phase
from moorage.domain.errors import InvalidDescription, MoorageError, NotFound, UnknownName
from moorage.domain.host_states import HostState
from moorage.domain.plan_requests import PlanRequest
from moorage.domain.plans import Move, MoveKind, Plan, PlanKind
from moorage.engine.state.host_states import host_states
from moorage.engine.state.snapshot import Snapshot
from moorage.testing.service import OPERATOR, TENANT, Service
from moorage.usecases.compliance.judgement import judge
from moorage.usecases.decide.request import RequestIdentity
from moorage.usecases.ledger.allocations import allocate
from moorage.usecases.plans.plan_maker import make_again, make_plan
from moorage.usecases.shared.allocation_write import WriteSettings

FLEET = """
fleet: plans
topology:
  location: {levels: [rack], domains: [{name: "r{n}", count: 3, level: rack}]}
hosts:
  - {name: "a{n}", count: 3, inventories: {VCPU: 8, MEMORY_MB: 8192}, place: {location: r1}}
  - {name: "b{n}", count: 3, inventories: {VCPU: 8, MEMORY_MB: 8192}, place: {location: r2}}
  - {name: "c{n}", count: 3, inventories: {VCPU: 8, MEMORY_MB: 8192}, place: {location: r3}}
flavors:
  - {name: small, resources: {VCPU: 1, MEMORY_MB: 1024}}
  - {name: big, resources: {VCPU: 4, MEMORY_MB: 4096}}
"""
APART = {"name": "apart", "type": "anti-affinity", "members": ["m"]}
TOGETHER = {"name": "together", "type": "affinity", "members": ["m"]}
RANDOM: tuple[dict[str, Any], ...] = (
    APART,
    {"name": "apart-racks", "type": "anti-affinity", "members": ["m"], "level": "rack"},
    {"name": "rack", "type": "affinity", "members": ["m"], "level": "rack"},
    {**TOGETHER, "members": ["n"], "phase": ["create", "steady"]},
    {"name": "ha", "type": "survive", "members": ["m"], "level": "rack", "keep": 1},
    {"name": "racks", "type": "spread", "members": ["*"], "level": "rack", "max_skew": 1},
    {"name": "two", "type": "spread", "members": ["n"], "level": "rack", "min_domains": 2},
    {"name": "pair", "type": "proximity", "zip": ["m", "n"], "level": "rack"},
    {"name": "alone", "type": "exclusive", "members": ["m"], "against": "others"},
    {"name": "ours", "type": "exclusive", "members": ["n"], "against": "other_projects"},
)


class Cloud:
    """A service with servers, which are moved as Nova moves them."""

    def __init__(self, service: Service, seed: int = 0) -> None:
        self.service, self.random = service, Random(seed)
        self.numbers = iter(range(1, 10_000))

    def uuid(self) -> str:
        return str(UUID(int=next(self.numbers) + (1 << 100), version=4))

    @property
    def snapshot(self) -> Snapshot:
        return self.service.store.snapshot()

    def row(self, name: str) -> int:
        return self.snapshot.names.index(name)

    def stranger(self, host: str, vcpu: int = 1, project: str = "p") -> str:
        """A server that no ensemble describes."""
        owner = Consumer(self.uuid(), project, "u", SERVER_TYPE)
        self.allocate(owner, host, vcpu)
        return owner.uuid

    def allocate(self, owner: Consumer, host: str, vcpu: int) -> None:
        uuid = self.snapshot.uuids[self.row(host)]
        amounts = {uuid: {"VCPU": vcpu, "MEMORY_MB": 1024 * vcpu}}
        change = ReplaceAllocations(owner, amounts, ANY_GENERATION)
        self.service.store.commit(Changeset((change,)))

    def ensemble(
        self, name: str, hosts: Sequence[str], *policies: dict[str, Any], vcpu: int = 1
    ) -> str:
        """An ensemble whose servers are on these hosts, whatever its policies say."""
        flavor = "small" if vcpu == 1 else "big"
        members = [{"name": "m", "count": 0, "flavor": flavor}]
        body = {"name": name, "members": members, "policies": list(policies)}
        made = self.service.call("POST", "/ensembles", {"ensemble": body}, caller=TENANT)
        assert made.status_code == 201, made.text
        id_ = str(made.json["ensemble"]["id"])
        for host in hosts:
            server = self.stranger(host, vcpu, TENANT.project_id)
            member = {"name": "m", "server_id": server, "on_violation": "accept_and_report"}
            answer = self.service.call("POST", f"/ensembles/{id_}/members", {"member": member})
            assert answer.status_code == 201, answer.text
        return id_

    def placed(self, name: str, counts: tuple[int, int], *policies: dict[str, Any]) -> str | None:
        """An ensemble of servers on hosts that a decision has found; None: there are none."""
        members: list[dict[str, Any]] = [
            {"name": "m", "count": counts[0], "flavor": "small"},
            {"name": "n", "count": counts[1], "flavor": self.random.choice(["small", "big"])},
        ]
        body = {
            "name": name,
            "members": members,
            "policies": list(policies),
            "decide": {"hold": "PT1H"},
        }
        made = self.service.call("POST", "/ensembles", {"ensemble": body}, caller=TENANT)
        assert made.status_code in {201, 400, 409}, made.text
        if made.status_code != 201:
            return None
        found = made.json["ensemble"]
        flavors = {one["name"]: one["flavor"] for one in members}
        for member in self.service.store.ensemble(found["id"]).members:
            server = {"flavorRef": flavors[member.name.role]}
            claim = {"claim": {"member": str(member.name), "server": server}}
            path = f"/decisions/{made.json['decision']['id']}/claims"
            claimed = self.service.call("POST", path, claim, caller=TENANT)
            assert claimed.status_code == 201, claimed.text
            active = {"claim": {"status": "active", "server_id": self.uuid()}}
            path = f"/claims/{claimed.json['claim']['id']}"
            assert self.service.call("PATCH", path, active, caller=TENANT).status_code == 200
        return str(found["id"])

    def plan(self, kind: PlanKind, **given: Any) -> Plan:
        request = PlanRequest(kind, **given)
        return make_plan(self.service.env, OPERATOR, request, RequestIdentity(self.uuid()))

    def names(self, plan: Plan) -> list[str]:
        return [f"{one.source_name}>{one.target_name}" for one in plan.moves]

    def hosts(self, id_: str) -> list[str]:
        found = judge(self.snapshot, self.service.store.ensemble(id_)).hosts
        return [self.snapshot.names[row] for _, row in sorted(found.items())]

    def broken(self, *ids: str, phases: frozenset[Phase] = STANDING) -> Counter[tuple[str, str]]:
        """By how much each policy of the ensembles is violated."""
        found: Counter[tuple[str, str]] = Counter()
        for id_ in ids:
            ensemble = self.service.store.ensemble(id_)
            for one in judge(self.snapshot, ensemble, phases).violations:
                found[id_, one.policy] += one.amount
        return found

    def make(self, move: Move, meanwhile: Callable[[], None] = lambda: None) -> None:
        """Move a server as Nova does: the source's allocations go to a migration first."""
        store = self.service.store
        found = store.consumer(move.server)
        assert found is not None
        server, bookings = found
        migration = Consumer(self.uuid(), server.project_id, server.user_id, "MIGRATION")
        old = {one.provider: one.amounts for one in bookings}
        taken = ReplaceAllocations(migration, old, None)
        self.write(taken, ReplaceAllocations(server, {}, ANY_GENERATION))
        self.write(ReplaceAllocations(server, move.allocations, ANY_GENERATION))
        meanwhile()
        self.write(ReplaceAllocations(migration, {}, ANY_GENERATION))

    def write(self, *writes: ReplaceAllocations) -> None:
        """Write allocations as Placement's API does, whatever policies say of the end."""
        settings = WriteSettings(misplaced_members=OnViolation.REPORT)
        allocate(self.service.store, writes, ids=self.service.env.ids, settings=settings)


@pytest.fixture
def cloud(service: Service) -> Cloud:
    return Cloud(service)


def test_a_drained_host_is_empty_and_nothing_breaks(cloud: Cloud) -> None:
    shop = cloud.ensemble("shop", ["a1", "a2", "b1"], APART)
    for host in ("a1", "a1", "b2"):
        cloud.stranger(host)
    plan = cloud.plan(PlanKind.DRAIN, hosts=("a1",))
    assert plan.complete
    assert (len(plan.moves), plan.lower_bound, plan.optimal) == (3, 3, True)
    assert {one.source_name for one in plan.moves} == {"a1"}
    assert all(one.kind is MoveKind.LIVE and one.memory_mb == 1024 for one in plan.moves)
    for move in plan.moves:
        cloud.make(move, lambda: None)
        assert not cloud.broken(shop)
    assert "a1" not in cloud.hosts(shop)
    row = cloud.row("a1")
    assert not cloud.snapshot.bookings_of(row)


def test_a_rack_is_drained_at_once(cloud: Cloud) -> None:
    racks = {"name": "racks", "type": "spread", "members": ["m"], "level": "rack"}
    shop = cloud.ensemble("shop", ["a1", "a2", "b1", "c1"], racks | {"min_domains": 2})
    plan = cloud.plan(PlanKind.DRAIN, domains=("rack/r1",))
    assert plan.complete
    assert len(plan.moves) == 2
    for move in plan.moves:
        cloud.make(move)
        assert not cloud.broken(shop)
    assert not {"a1", "a2", "a3"} & set(cloud.hosts(shop))


def test_members_that_stay_together_move_as_one(cloud: Cloud) -> None:
    policy = {**TOGETHER, "phase": ["create", "steady"]}
    pair = cloud.ensemble("pair", ["a1", "a1", "a1"], policy)
    plan = cloud.plan(PlanKind.DRAIN, hosts=("a1",))
    assert plan.complete
    assert len({one.target for one in plan.moves}) == 1
    assert len(plan.moves) == 3
    assert not cloud.broken(pair)


def test_members_that_may_not_part_even_while_moving_stay(cloud: Cloud) -> None:
    cloud.ensemble("pair", ["a1", "a1"], TOGETHER)
    other = cloud.stranger("a1")
    plan = cloud.plan(PlanKind.DRAIN, hosts=("a1",))
    assert [one.server for one in plan.moves] == [other]
    assert {one.code for one in plan.unmoved} <= {"policy", "no-order"}
    assert len(plan.unmoved) == 2


def test_what_has_no_room_stays_and_is_named(cloud: Cloud) -> None:
    for host in ("a2", "a3", "b1", "b2", "b3", "c1", "c2"):
        cloud.stranger(host, 8)
    cloud.stranger("c3", 4)
    cloud.stranger("a1", 4)
    cloud.stranger("a1", 2)
    plan = cloud.plan(PlanKind.DRAIN, hosts=("a1",))
    assert len(plan.moves) == len(plan.unmoved) == 1
    assert plan.unmoved[0].code in {"no-room", "undecided"}
    assert plan.unmoved[0].host_name == "a1"


def test_a_failed_host_is_evacuated(cloud: Cloud) -> None:
    shop = cloud.ensemble("shop", ["a1", "b1", "c1"], APART)
    report = {"service": {"status": "enabled", "state": "down"}}
    answer = cloud.service.call("PUT", "/hosts/a1/service", report, caller=OPERATOR)
    assert answer.status_code == 200, answer.text
    with pytest.raises(InvalidDescription, match="out of service"):
        cloud.plan(PlanKind.DRAIN, hosts=("a1",))
    plan = cloud.plan(PlanKind.EVACUATE, hosts=("a1",))
    assert [one.kind for one in plan.moves] == [MoveKind.EVACUATE]
    assert plan.moves[0].target_name not in {"a1", "b1", "c1"}
    repair = cloud.plan(PlanKind.REPAIR, ensemble=shop)
    assert [one.kind for one in repair.moves] == [MoveKind.EVACUATE]
    assert host_states(cloud.snapshot).state(cloud.row("a1")) is HostState.DOWN


def test_a_broken_policy_is_repaired_by_the_fewest_moves(cloud: Cloud) -> None:
    shop = cloud.ensemble("shop", ["a1", "a1", "b1", "c1"], APART)
    assert cloud.broken(shop)
    plan = cloud.plan(PlanKind.REPAIR, ensemble=shop)
    assert (len(plan.moves), plan.lower_bound, plan.optimal) == (1, 1, True)
    for move in plan.moves:
        cloud.make(move)
    assert not cloud.broken(shop)
    assert not cloud.plan(PlanKind.REPAIR, ensemble=shop).moves


@pytest.mark.parametrize(
    ("kind", "given", "error"),
    [
        (PlanKind.DRAIN, {"hosts": ("x9",)}, NotFound),
        (PlanKind.DRAIN, {"domains": ("rack/x9",)}, UnknownName),
        (PlanKind.DRAIN, {"domains": ("zone/r1",)}, UnknownName),
        (PlanKind.EVACUATE, {"hosts": ("a1",)}, InvalidDescription),
        (PlanKind.REPAIR, {"ensemble": "00000000-0000-4000-8000-000000000000"}, NotFound),
    ],
)
def test_what_does_not_exist_is_named(
    cloud: Cloud, kind: PlanKind, given: dict[str, Any], error: type[MoorageError]
) -> None:
    with pytest.raises(error):
        cloud.plan(kind, **given)


def test_a_plan_to_rebalance_frees_room_by_moves_that_gain(cloud: Cloud) -> None:
    for host in ("a1", "b1", "c1", "a2"):
        cloud.stranger(host, 1)
        cloud.stranger(host, 2)
    mix = {"request_mix": {"shapes": [{"resources": {"VCPU": 8}, "weight": 1}]}}
    answer = cloud.service.call("PUT", "/request-mix", mix, caller=OPERATOR)
    assert answer.status_code == 200, answer.text
    before = len([h for h in cloud.snapshot.hosts if not cloud.snapshot.bookings_of(int(h))])
    plan = cloud.plan(PlanKind.REBALANCE)
    assert plan.moves
    for move in plan.moves:
        cloud.make(move)
    after = len([h for h in cloud.snapshot.hosts if not cloud.snapshot.bookings_of(int(h))])
    assert after > before
    assert float(plan.attributes["gain"]) > 0
    assert not cloud.plan(PlanKind.REBALANCE).moves


@pytest.mark.parametrize("seed", range(cases(12, 400)))
def test_every_state_of_random_plans_keeps_policies_and_capacity(
    service: Service, seed: int
) -> None:
    cloud = Cloud(service, seed)
    random = cloud.random
    ensembles = []
    for number in range(random.randint(1, 4)):
        policies = random.sample(RANDOM, random.randint(0, 3))
        counts = random.randint(1, 4), random.randint(1, 2)
        ensembles.append(cloud.placed(f"e{number}", counts, *policies))
    known = [one for one in ensembles if one is not None]
    for _ in range(random.randint(0, 25)):
        host = random.choice("abc") + random.choice("123")
        with suppress(MoorageError):
            cloud.stranger(host, random.choice([1, 1, 2, 4]), random.choice(["p", "q"]))
    before, moving = cloud.broken(*known), frozenset({Phase.TRANSITION})
    meanwhile = cloud.broken(*known, phases=moving)
    hosts = random.sample(["a1", "a2", "b1", "b2", "c1", "c2"], random.randint(1, 3))
    plan = cloud.plan(PlanKind.DRAIN, hosts=tuple(sorted(hosts)))
    assert len(plan.moves) >= plan.lower_bound or plan.unmoved
    for move in plan.moves:
        cloud.make(move)
        assert not overfull(cloud.snapshot)
        assert cloud.broken(*known, phases=moving) <= meanwhile
    assert cloud.broken(*known) <= before
    left = {cloud.snapshot.names[cloud.row(name)] for name in hosts}
    staying = {one.server for one in plan.unmoved}
    for name in left:
        there = {one.consumer for one in cloud.snapshot.bookings_of(cloud.row(name))}
        assert there <= staying


def overfull(snapshot: Snapshot) -> list[str]:
    """Hosts on which more is booked than there is."""
    found = []
    for row in snapshot.hosts.tolist():
        booked: Counter[str] = Counter()
        for one in snapshot.bookings_of(row):
            booked.update(one.amounts)
        capacity = {one.resource_class: one.capacity for one in snapshot.inventories_of(row)}
        found += [snapshot.names[row] for name in booked if booked[name] > capacity[name]]
    return found


def test_a_plan_is_made_again_for_the_same_from_what_is_now(cloud: Cloud) -> None:
    shop = cloud.ensemble("shop", ["a1", "a1", "b1"], APART)
    cloud.stranger("a1")
    drain = cloud.plan(PlanKind.DRAIN, hosts=("a1",), cold=True)
    cloud.make(drain.moves[0])
    again = make_again(cloud.service.env, drain)
    assert again is not None
    assert {one.server for one in again.moves} == {one.server for one in drain.moves[1:]}
    assert {one.kind for one in again.moves} == {MoveKind.COLD}
    repair = cloud.plan(PlanKind.REPAIR, ensemble=shop)
    answer = cloud.service.call("DELETE", f"/ensembles/{shop}", headers={"If-Match": "*"})
    assert answer.status_code in {200, 204}, answer.text
    assert make_again(cloud.service.env, repair) is None


def test_a_host_that_came_back_is_evacuated_no_more(cloud: Cloud) -> None:
    cloud.stranger("a1")
    for state in ("down", "up"):
        report = {"service": {"status": "enabled", "state": state}}
        cloud.service.call("PUT", "/hosts/a1/service", report, caller=OPERATOR)
        if state == "down":
            plan = cloud.plan(PlanKind.EVACUATE, hosts=("a1",))
    assert make_again(cloud.service.env, plan) is None
