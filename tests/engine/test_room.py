"""The room of hosts for a mix, against a count one by one; what placements leave to others."""

import random
from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np
import pytest

from moorage.domain.bookings import Booking, BookingState
from moorage.domain.ensembles import Role
from moorage.domain.flavors import Flavor
from moorage.domain.member_names import MemberName
from moorage.domain.period import FOREVER, HOUR, SECOND, Period
from moorage.domain.placement import Occupant
from moorage.domain.providers import Inventory, ResourceProvider
from moorage.domain.request_groups import Group
from moorage.domain.request_mix import RequestMix, Shape, StatedMix, StatedShape, shape_of
from moorage.domain.request_mix import shape as domain_shape
from moorage.domain.requests import EnsembleRequest, Objective
from moorage.engine.joint.build import BuiltProblem, build
from moorage.engine.joint.fleet_room import weighed_mix, with_fleet_room, with_room
from moorage.engine.joint.problem_index import index_problem
from moorage.engine.state.ledger_mix import RENEWED, ledger_mix
from moorage.engine.state.snapshot import ProviderState, Snapshot
from moorage.solver.greedy import Greedy
from moorage.solver.room_costs import RoomCosts
from moorage.testing.problems import OTHER_PROJECT, PROJECT

NOW = 1_000 * HOUR
ALWAYS = Period(NOW, FOREVER)


def provider(
    name: str,
    capacity: Mapping[str, int],
    *,
    parent: str | None = None,
    root: str | None = None,
    traits: frozenset[str] = frozenset(),
    used: Mapping[str, Mapping[str, int]] | None = None,
) -> ProviderState:
    """`used`: consumer -> amounts."""
    made = ResourceProvider(
        name, name, parent, root or name,
        inventories=tuple(Inventory(one, total) for one, total in capacity.items()),
        traits=traits,
    )  # fmt: skip
    bookings = tuple(
        Booking(consumer, name, amounts, ALWAYS, state=BookingState.ALLOCATED)
        for consumer, amounts in (used or {}).items()
    )
    return ProviderState(
        made, bookings, tuple(Occupant(one.consumer, OTHER_PROJECT) for one in bookings)
    )


def snapshot(*states: ProviderState) -> Snapshot:
    return Snapshot.empty(now=NOW).with_states(states, now=NOW, revision=1)


def asked(
    needed: Mapping[str, tuple[int, Mapping[str, int]]],
    objective: Objective = Objective.SPREAD,
    required: tuple[frozenset[str], ...] = (),
) -> EnsembleRequest:
    return EnsembleRequest(
        PROJECT,
        roles=tuple(
            Role(name, resources=amounts, required=required)
            for name, (_, amounts) in needed.items()
        ),
        members=tuple(MemberName(name, i) for name, (n, _) in needed.items() for i in range(n)),
        policies=(),
        period=ALWAYS,
        objective=objective,
    )


def shape(*required: str, **amounts: int) -> Shape:
    return Shape(tuple(sorted(amounts.items())), tuple((one,) for one in required))


def solved(request: EnsembleRequest, fleet: Snapshot, mix: RequestMix) -> list[str]:
    mine = Counter(shape_of(request.role_of(one)) for one in request.members)
    built = with_room(build(request, fleet), fleet, mix.joined(mine))
    found = Greedy().solve(built.problem, time_limit=20 * SECOND, seed=0).hosts
    assert found is not None
    return [built.problem.hosts[row] for row in found.tolist()]


def test_a_scarce_class_is_spared() -> None:
    """The GPU host is the emptiest and the fullest would be as well; only one in three has GPUs."""
    states = [
        provider(f"c{i}", {"VCPU": 16}, used={f"x{i}": {"VCPU": 4 + i}}) for i in range(2)
    ] + [provider("gpu", {"VCPU": 32, "VGPU": 4})]
    fleet = snapshot(*states)
    mix = RequestMix.of({shape(VCPU=2): 10, shape(VCPU=8, VGPU=1): 2})
    for objective in Objective:
        got = solved(asked({"web": (2, {"VCPU": 2})}, objective), fleet, mix)
        # To balance, the emptiest host is the best.
        assert ("gpu" in got) == (objective is Objective.BALANCE), objective


def test_a_scarce_trait_is_spared() -> None:
    rare = frozenset({"CUSTOM_RARE"})
    fleet = snapshot(
        provider("plain", {"VCPU": 16}),
        provider("rare", {"VCPU": 16}, traits=rare, used={"x": {"VCPU": 2}}),
    )
    mix = RequestMix.of({shape(VCPU=2): 1, shape("CUSTOM_RARE", VCPU=2): 1})
    assert solved(asked({"web": (1, {"VCPU": 2})}), fleet, mix) == ["plain"]
    only_rare = asked({"web": (1, {"VCPU": 2})}, required=(rare,))
    assert solved(only_rare, fleet, mix) == ["rare"]


def test_a_host_that_serves_none_of_the_mix_is_used_first() -> None:
    """Two VCPU are left on `rest`, too few for the mix."""
    fleet = snapshot(
        provider("whole", {"VCPU": 16}), provider("rest", {"VCPU": 16}, used={"x": {"VCPU": 14}})
    )
    assert solved(asked({"web": (1, {"VCPU": 2})}), fleet, RequestMix.of({shape(VCPU=8): 99})) == [
        "rest"
    ]


def test_spread_and_pack_keep_what_they_state() -> None:
    fleet = snapshot(*(provider(f"h{i}", {"VCPU": 16}) for i in range(4)))
    mix = RequestMix.of({shape(VCPU=16): 5, shape(VCPU=3): 7})
    request = {"web": (4, {"VCPU": 4})}
    assert len(set(solved(asked(request, Objective.SPREAD), fleet, mix))) == 4
    assert len(set(solved(asked(request, Objective.PACK), fleet, mix))) == 1


def random_fleet(dice: random.Random) -> Snapshot:
    states = []
    for i in range(dice.randint(1, 6)):
        name, traits = f"h{i}", frozenset(t for t in ("T", "U") if dice.random() < 0.4)
        used = {f"x{i}": {"VCPU": dice.randint(1, 8)}} if dice.random() < 0.5 else {}
        capacity = {"VCPU": dice.randint(1, 16), "MEMORY_MB": dice.randint(1, 4000)}
        states.append(provider(name, capacity, traits=traits, used=used))
        states += [
            provider(f"g{i}-{j}", {"SHARE": 10}, parent=name, root=name)
            for j in range(dice.randint(0, 3))
        ]
    return snapshot(*states)


def one_by_one(fleet: Snapshot, host: str, wanted: Shape, taken: Mapping[str, int]) -> int:
    """How many of a shape the host can take if so much is taken of its own classes."""
    rows = fleet.tree(fleet.row_of[host]).tolist()
    if not {one for (one,) in wanted.required} <= set().union(
        *(fleet.traits_of(row) for row in rows)
    ):
        return 0
    most = []
    for name, amount in wanted.resources:
        times = 0
        for row in rows:
            for inventory in fleet.inventories_of(row):
                if inventory.resource_class == name:
                    used = sum(one.amounts.get(name, 0) for one in fleet.bookings_of(row))
                    times += max(inventory.total - used - taken.get(name, 0), 0) // amount
        most.append(times)
    return min(most)


@pytest.mark.parametrize("seed", range(60))
def test_harm_is_the_share_of_room_that_is_lost(seed: int) -> None:
    dice = random.Random(seed)
    fleet = random_fleet(dice)
    shapes = Counter[Shape]()
    for _ in range(dice.randint(0, 5)):
        amounts = {"VCPU": dice.randint(1, 8)}
        if dice.random() < 0.5:
            amounts["MEMORY_MB"] = dice.randint(1, 2000)
        if dice.random() < 0.3:
            amounts["SHARE"] = dice.randint(1, 10)
        required = tuple(t for t in ("T", "U") if dice.random() < 0.2)
        shapes[shape(*required, **amounts)] += dice.randint(1, 9)
    needed = {"VCPU": dice.randint(1, 4), "MEMORY_MB": dice.randint(1, 900)}
    every = shapes + Counter({shape(**needed): 2})
    built = with_room(build(asked({"web": (2, needed)}), fleet), fleet, RequestMix.of(every))
    hosts = built.problem.hosts
    free = built.problem.free.T.copy()
    assert built.problem.room is not None
    costs = RoomCosts(index_problem(built.problem), built.problem.room, free, [])
    rows = np.arange(len(hosts))

    def room(taken: Mapping[str, int]) -> Mapping[Shape, list[int]]:
        return {one: [one_by_one(fleet, h, one, taken) for h in hosts] for one in every}

    before, after = room({}), room(needed)
    total = {one: sum(before[one]) for one in every}
    sure = [one for one in every if total[one]]
    scale = len(hosts) / max(sum(every[one] for one in sure), 1)
    expected = [
        scale * sum(every[one] * (before[one][h] - after[one][h]) / total[one] for one in sure)
        for h in rows
    ]
    assert costs.of(0, rows) == pytest.approx(
        np.minimum(20 * np.array(expected), 250), rel=1e-4, abs=1e-4
    )


def test_the_ledger_tells_the_mix() -> None:
    fleet = snapshot(
        provider("a", {"VCPU": 16}, used={"x": {"VCPU": 2}, "y": {"VCPU": 4}}),
        provider("b", {"VCPU": 16}, used={"z": {"VCPU": 2}}),
        provider("g", {"VGPU": 4}, parent="b", root="b", used={"z": {"VGPU": 1}}),
    )
    mix = ledger_mix(fleet, tuple)
    assert dict(mix.shapes) == {shape(VCPU=2): 1, shape(VCPU=4): 1, shape(VCPU=2, VGPU=1): 1}
    later = fleet.with_states([provider("a", {"VCPU": 16})], now=NOW, revision=1 + RENEWED)
    assert dict(ledger_mix(later, tuple).shapes) == {shape(VCPU=2, VGPU=1): 1}
    assert ledger_mix(Snapshot.empty(now=NOW), tuple) == RequestMix()


def test_the_mix_is_kept_for_some_revisions() -> None:
    """As many as there were consumers, and at most 500: an almost empty ledger tells little."""
    for consumers, revisions in ((3, 3), (RENEWED + 20, RENEWED)):
        used = {f"x{n}": {"VCPU": 1} for n in range(consumers)}
        fleet = snapshot(provider("a", {"VCPU": 2 * consumers}, used=used))
        kept = ledger_mix(fleet, tuple)
        empty = provider("a", {"VCPU": 16})
        soon = fleet.with_states([empty], now=NOW, revision=revisions)
        assert ledger_mix(soon, tuple) is kept
        later = fleet.with_states([empty], now=NOW, revision=1 + revisions)
        assert ledger_mix(later, tuple) == RequestMix()


def test_a_snapshot_is_not_told_the_mix_of_a_later_one() -> None:
    used = {f"x{n}": {"VCPU": 1} for n in range(3)}
    fleet = snapshot(provider("a", {"VCPU": 6}, used=used))
    grown = {**used, **{f"y{n}": {"VCPU": 2} for n in range(3)}}
    later = fleet.with_states([provider("a", {"VCPU": 16}, used=grown)], now=NOW, revision=3)
    assert dict(ledger_mix(later, tuple).shapes) == {shape(VCPU=1): 3, shape(VCPU=2): 3}
    assert dict(ledger_mix(fleet, tuple).shapes) == {shape(VCPU=1): 3}


def test_an_empty_ledger_weighs_the_request_alone() -> None:
    fleet = snapshot(provider("a", {"VCPU": 16}), provider("b", {"VCPU": 8}))
    built: BuiltProblem = with_fleet_room(
        build(asked({"web": (1, {"VCPU": 8})}), fleet), fleet, tuple
    )
    assert built.problem.room is not None
    assert built.problem.room.ceiling.tolist() == [[2.0, 1.0]]


def test_a_stated_mix_is_weighed_alone() -> None:
    """Neither what is booked counts, nor the request itself."""
    fleet = snapshot(
        provider("a", {"VCPU": 16}, used={"x": {"VCPU": 2}}), provider("b", {"VCPU": 8})
    )
    stated = StatedMix.of([StatedShape(shape(VCPU=3), 7)], now=NOW)
    request = asked({"web": (1, {"VCPU": 8})})
    assert weighed_mix(fleet.with_stated_mix(stated), request, tuple).shapes == (
        (shape(VCPU=3), 7),
    )
    counted = {shape(VCPU=2): 1, shape(VCPU=8): 1}
    assert dict(weighed_mix(fleet.with_stated_mix(None), request, tuple).shapes) == counted
    built = with_fleet_room(build(request, fleet), fleet.with_stated_mix(stated), tuple)
    assert built.problem.room is not None
    assert built.problem.room.ceiling.tolist() == [[4.0, 2.0]]


def test_room_is_where_traits_and_groups_can_be_had() -> None:
    """Each device gives whole groups; forbidden and alternative traits; two groups alike."""
    fast, old = frozenset({"CUSTOM_FAST"}), frozenset({"CUSTOM_OLD"})
    fleet = snapshot(
        provider("a", {"VCPU": 16}, traits=old),
        provider("a0", {"VGPU": 10, "SRIOV": 1}, parent="a", root="a", traits=fast),
        provider("a1", {"VGPU": 9}, parent="a", root="a", traits=fast | old),
        provider("b", {"VCPU": 16}),
        provider("b0", {"VGPU": 10}, parent="b", root="b"),
    )

    def room(one: Shape) -> list[float]:
        built = build(asked({"web": (1, {"VCPU": 1})}), fleet)
        problem = with_room(built, fleet, RequestMix(((one, 1),))).problem
        assert problem.room is not None
        return [float(room) for room in problem.room.ceiling[0]]

    gpu = domain_shape({"VGPU": 5})
    assert room(gpu) == [3, 2]
    assert room(domain_shape({"VCPU": 2}, groups=[gpu])) == [3, 2]
    assert room(domain_shape({"VCPU": 2}, groups=[gpu, gpu])) == [1, 1]
    assert room(domain_shape({}, groups=[domain_shape({"VGPU": 5}, [fast])])) == [3, 0]
    assert room(domain_shape({}, groups=[domain_shape({"VGPU": 5}, [fast], old)])) == [2, 0]
    assert room(domain_shape({}, groups=[domain_shape({"VGPU": 5, "SRIOV": 1})])) == [1, 0]
    assert room(domain_shape({"VCPU": 2}, [fast])) == [8, 0]
    assert room(domain_shape({"VCPU": 2}, [{"CUSTOM_NONE", "CUSTOM_FAST"}])) == [8, 0]
    assert room(domain_shape({"VCPU": 2}, (), old)) == [0, 8]
    assert room(domain_shape({"CUSTOM_NONE": 2}, groups=[gpu])) == [0, 0]
    assert room(domain_shape({}, groups=[domain_shape({"CUSTOM_NONE": 1})])) == [0, 0]
    assert room(domain_shape({}, groups=[domain_shape({"VGPU": 5, "CUSTOM_NONE": 1})])) == [0, 0]


def test_bookings_of_a_flavor_require_its_traits() -> None:
    """Whose amounts are a flavor's has its traits; of flavors alike only what all of them name."""
    fleet = snapshot(
        provider("a", {"VCPU": 64}, used={"x": {"VCPU": 2}, "y": {"VCPU": 4}, "z": {"VCPU": 6}}),
        provider("g", {"VGPU": 4}, parent="a", root="a", used={"z": {"VGPU": 1}}),
    )
    rare, old, new = frozenset({"RARE"}), frozenset({"OLD"}), frozenset({"NEW"})
    gpu = Flavor("5", "gpu", {"VCPU": 6}, groups=(Group("g", {"VGPU": 1}, required=(new,)),))
    flavors = (
        Flavor("1", "rare", {"VCPU": 2, "DISK_GB": 0}, (rare,)),
        Flavor("2", "some", {"VCPU": 4}, (rare, new), old | new),
        Flavor("3", "others", {"VCPU": 4}, (rare,), old),
        Flavor("4", "unused", {"VCPU": 9}, (rare,)),
        gpu,
    )
    read: list[Sequence[Flavor]] = []

    def reads() -> Sequence[Flavor]:
        read.append(flavors)
        return flavors

    mix = ledger_mix(fleet, reads)
    assert dict(mix.shapes) == {
        domain_shape({"VCPU": 2}, [rare]): 1,
        domain_shape({"VCPU": 4}, [rare], old): 1,
        shape_of(gpu): 1,
    }
    ledger_mix(fleet, reads)
    ledger_mix(Snapshot.empty(now=NOW), reads)
    assert len(read) == 1


def test_a_flavors_scarce_trait_is_spared() -> None:
    """Half of what runs needs the trait of one host in three, so others keep off that host."""
    rare = frozenset({"CUSTOM_RARE"})
    fleet = snapshot(
        provider("rare", {"VCPU": 16}, traits=rare, used={"y": {"VCPU": 4}}),
        *(provider(f"p{i}", {"VCPU": 14}, used={f"x{i}": {"VCPU": 2}}) for i in range(2)),
    )
    flavor = Flavor("1", "rare", {"VCPU": 4}, (rare,))

    def placed(*flavors: Flavor) -> list[str]:
        built = with_fleet_room(
            build(asked({"web": (2, {"VCPU": 2})}, Objective.ROOM), fleet), fleet, lambda: flavors
        )
        fleet.cache.clear()
        hosts = Greedy().solve(built.problem, time_limit=20 * SECOND, seed=0).hosts
        assert hosts is not None
        return [built.problem.hosts[row] for row in hosts.tolist()]

    assert "rare" in placed()
    assert "rare" not in placed(flavor)
