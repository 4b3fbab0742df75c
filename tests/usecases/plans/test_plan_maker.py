"""Plans hold on the ledger: their moves are made one by one, and every state is judged."""

from collections import Counter
from contextlib import suppress
from typing import Any

import pytest
from tests.seeds import cases
from tests.usecases.plans import clouds
from tests.usecases.plans.clouds import APART, TOGETHER, Cloud

from moorage.domain.ensembles import Phase
from moorage.domain.errors import InvalidDescription, MoorageError, NotFound, UnknownName
from moorage.domain.host_states import HostState
from moorage.domain.plans import MoveKind, PlanKind
from moorage.engine.state.host_states import host_states
from moorage.engine.state.snapshot import Snapshot
from moorage.testing.service import OPERATOR, TENANT, Service
from moorage.usecases.plans.plan_maker import make_again

FLEET = clouds.FLEET
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
    assert "together of pair" in plan.unmoved[0].reason


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
    down, up = ({"service": {"status": "enabled", "state": one}} for one in ("down", "up"))
    cloud.service.call("PUT", "/hosts/a1/service", down, caller=OPERATOR)
    plan = cloud.plan(PlanKind.EVACUATE, hosts=("a1",))
    cloud.service.call("PUT", "/hosts/a1/service", up, caller=OPERATOR)
    assert make_again(cloud.service.env, plan) is None


def test_others_move_aside_where_there_is_no_room(cloud: Cloud) -> None:
    for host in ("a2", "a3", "b1", "b2", "b3", "c1"):
        cloud.stranger(host, 8)
    for host in ("c2", "c3"):
        for _ in range(6):
            cloud.stranger(host)
    large = cloud.stranger("a1", 4)
    plan = cloud.plan(PlanKind.DRAIN, hosts=("a1",))
    assert plan.complete
    assert len(plan.moves) == 3
    assert plan.moves[-1].server == large
    assert plan.moves[-1].after == (0, 1)
    for move in plan.moves:
        cloud.make(move)
    assert not cloud.snapshot.bookings_of(cloud.row("a1"))


def test_room_is_made_for_members_that_do_not_fit(cloud: Cloud) -> None:
    for host in ("a1", "a2", "a3", "b1", "b2", "b3", "c1", "c2", "c3"):
        for _ in range(5):
            cloud.stranger(host)
    body = {
        "name": "db",
        "members": [{"name": "m", "count": 2, "flavor": "big"}],
        "policies": [{**APART, "level": "rack"}],
    }
    made = cloud.service.call("POST", "/ensembles", {"ensemble": body}, caller=TENANT)
    id_ = made.json["ensemble"]["id"]
    decide = {"decision": {"ensemble_id": id_, "hold": "PT1H"}}
    assert cloud.service.call("POST", "/decisions", decide).status_code == 409
    plan = cloud.plan(PlanKind.ADMIT, ensemble=id_)
    assert plan.complete
    assert len(plan.moves) == 2
    for move in plan.moves:
        cloud.make(move)
    assert cloud.service.call("POST", "/decisions", decide).status_code == 201


def test_a_server_that_was_moved_before_may_be_moved_again(cloud: Cloud) -> None:
    shop = cloud.ensemble("shop", ["a1", "b1"], APART)
    for _ in range(2):
        plan = cloud.plan(PlanKind.DRAIN, hosts=(cloud.hosts(shop)[0],))
        (move,) = plan.moves
        cloud.make(move)
