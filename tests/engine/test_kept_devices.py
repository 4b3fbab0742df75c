"""What is kept of devices from revision to revision, against what is cut from scratch."""

import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from types import MappingProxyType

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from moorage.domain.bookings import Booking, BookingState
from moorage.domain.ensembles import Role
from moorage.domain.period import FOREVER, Period
from moorage.domain.placement import Occupant, Place
from moorage.domain.providers import Inventory, ResourceProvider
from moorage.domain.request_groups import Group
from moorage.domain.requests import EnsembleRequest
from moorage.engine.joint.build import BuiltProblem, build, build_on_terrain
from moorage.engine.joint.terrain import Terrain, cut_terrain
from moorage.engine.state.columns import ProviderState
from moorage.engine.state.kept_columns import KeptColumns
from moorage.engine.state.overlay import with_bookings
from moorage.engine.state.snapshot import Snapshot
from moorage.testing.problems import statement
from moorage.testing.trees import PROJECT, asked, random_members
from moorage.testing.trees import snapshot as snapshot_of

HOUR = 3_600_000_000
CLASSES = ("VCPU", "DISK", "VF")
CONSUMERS = ("one", "two", "three")


def fresh(snapshot: Snapshot) -> Snapshot:
    """The same snapshot, with which nothing is kept."""
    return snapshot.with_states(topology=snapshot.topology)


# --- commits ----------------------------------------------------------------------------------


def _picked(dice: random.Random, snapshot: Snapshot) -> ProviderState:
    return snapshot.state(dice.choice(np.flatnonzero(snapshot.alive).tolist()))


def _booked(dice: random.Random, snapshot: Snapshot) -> ProviderState:
    """Bookings of a provider come, some for a time only, and others go."""
    state, now = _picked(dice, snapshot), snapshot.taken_at
    kept = [one for one in state.bookings if dice.random() < 0.7]
    classes = [one.resource_class for one in state.provider.inventories]
    for consumer in CONSUMERS:
        if classes and dice.random() < 0.6:
            start = now + dice.choice((0, 0, HOUR))
            end = dice.choice((FOREVER, FOREVER, start + dice.randint(1, 3) * HOUR))
            kept.append(
                Booking(
                    consumer,
                    state.provider.uuid,
                    MappingProxyType({dice.choice(classes): dice.randint(1, 2)}),
                    Period(start, end),
                    state=BookingState.HELD if end < FOREVER else BookingState.ALLOCATED,
                )
            )
    occupants = {one.consumer: Occupant(one.consumer, PROJECT) for one in kept}
    return replace(state, bookings=tuple(kept), occupants=tuple(occupants.values()))


def _resized(dice: random.Random, snapshot: Snapshot) -> ProviderState:
    """A provider gets other inventories: other totals and rules, a class more or less."""
    state = _picked(dice, snapshot)
    inventories = tuple(
        Inventory(
            name,
            dice.randint(1, 6),
            reserved=dice.randint(0, 1),
            max_unit=dice.choice((1, 2, 1_000)),
            step_size=dice.choice((1, 1, 2)),
        )
        for name in CLASSES
        if dice.random() < 0.5
    )
    return replace(state, provider=replace(state.provider, inventories=inventories))


def _retraited(dice: random.Random, snapshot: Snapshot) -> ProviderState:
    state = _picked(dice, snapshot)
    own = state.provider.traits - {"T", "U"}
    traits = own | {one for one in ("T", "U") if dice.random() < 0.5}
    return replace(state, provider=replace(state.provider, traits=traits))


def _regrouped(dice: random.Random, snapshot: Snapshot) -> ProviderState:
    state, known = _picked(dice, snapshot), sorted(snapshot.aggregates)
    some = frozenset(one for one in known if dice.random() < 0.4)
    return replace(state, provider=replace(state.provider, aggregates=some))


def _added(dice: random.Random, snapshot: Snapshot) -> ProviderState:
    above = _picked(dice, snapshot).provider
    name = f"new{snapshot.revision}"
    return ProviderState(
        ResourceProvider(
            uuid=name,
            name=name,
            parent_uuid=above.uuid,
            root_uuid=above.root_uuid,
            inventories=(Inventory(dice.choice(CLASSES), dice.randint(1, 4)),),
        )
    )


CHANGES: Sequence[Callable[[random.Random, Snapshot], ProviderState]] = (
    *(_booked,) * 6,
    _resized,
    _retraited,
    _regrouped,
    _added,
)


def _committed(dice: random.Random, snapshot: Snapshot) -> Snapshot:
    """The next revision, an hour later now and then."""
    now = snapshot.taken_at + dice.choice((0, 0, 0, HOUR))
    revision = snapshot.revision + 1
    if dice.random() < 0.1:
        leaves = [
            row
            for row in np.flatnonzero(snapshot.alive).tolist()
            if snapshot.parent[row] >= 0 and not len(snapshot.children(row))
        ]
        removed = [snapshot.uuids[row] for row in leaves[:1]]
        return snapshot.with_states(removed=removed, revision=revision, now=now)
    states = [dice.choice(CHANGES)(dice, snapshot) for _ in range(dice.randint(1, 2))]
    by_uuid = {one.provider.uuid: one for one in states}
    return snapshot.with_states(by_uuid.values(), revision=revision, now=now)


def _tried(dice: random.Random, snapshot: Snapshot) -> Snapshot:
    """The snapshot with other bookings of some consumers, to try a change."""
    gone: dict[str, tuple[Booking, ...]] = {dice.choice(CONSUMERS): ()}
    return with_bookings(snapshot, gone)


# --- what is compared -------------------------------------------------------------------------


def _same(kept: BuiltProblem, anew: BuiltProblem) -> None:
    ours, theirs = kept.problem, anew.problem
    assert ours.classes == theirs.classes
    for name in ("demand", "allowed", "free", "capacity", "fixed"):
        mine, other = getattr(ours, name), getattr(theirs, name)
        assert np.array_equal(mine, other), f"{name}: {mine.tolist()}, anew {other.tolist()}"
    assert ours.cuts == theirs.cuts
    assert ours.primitives == theirs.primitives
    assert kept.rejected == anew.rejected
    assert (ours.proof is None) == (theirs.proof is None)
    if ours.proof is None or theirs.proof is None:
        return
    left, right = ours.proof.devices, theirs.proof.devices
    assert left.uuids == right.uuids
    for name in ("host", "parent", "borrower", "lender", "computing"):
        assert np.array_equal(getattr(left.trees, name), getattr(right.trees, name)), name
    for name in ("free", "capacity", "min_unit", "max_unit", "step_size"):
        assert np.array_equal(getattr(left, name), getattr(right, name)), name
    for mine, other in zip(ours.proof.requirements, theirs.proof.requirements, strict=True):
        assert mine.role == other.role
        for slot, twin in zip(mine.slots, other.slots, strict=True):
            assert (slot.group, slot.amounts, slot.label) == (twin.group, twin.amounts, twin.label)
            assert np.array_equal(slot.own, twin.own)
            assert np.array_equal(slot.lends, twin.lends)


def _compare(request: EnsembleRequest, snapshot: Snapshot) -> None:
    names = request.roles[0].name
    closed = {f"kept/{names}": frozenset(snapshot.uuids[:1]), "quota": frozenset({"pool0"})}
    _same(build(request, snapshot), build(request, fresh(snapshot)))
    _same(build(request, snapshot, closed=closed), build(request, fresh(snapshot), closed=closed))
    terrain, other = cut_terrain(snapshot, request), cut_terrain(fresh(snapshot), request)
    for change in (_emptied, _taken):
        _same(build_on_terrain(request, change(terrain)), build_on_terrain(request, change(other)))


def _emptied(terrain: Terrain) -> Terrain:
    return terrain.without_bookings()


def _taken(terrain: Terrain) -> Terrain:
    """Without what one more booking takes of the first provider that has anything."""
    if terrain.devices is None:
        return terrain
    for at, k in np.argwhere(terrain.devices.free > 0).tolist()[:1]:
        provider = terrain.devices.uuids[at]
        taken = MappingProxyType({provider: MappingProxyType({terrain.devices.classes[k]: 1})})
        return terrain.with_places([Place(terrain.uuids[0], taken)])
    return terrain


@given(seed=st.integers(0, 10**6))
def test_kept_devices_are_those_cut_from_scratch(seed: int) -> None:
    """After any commits, for any period, without members that move, and for what is only tried."""
    dice = random.Random(seed)
    nodes, request, topology = random_members(seed)
    snapshot = snapshot_of(nodes, topology)
    for _ in range(dice.randint(2, 6)):
        now = snapshot.taken_at
        start = now + dice.choice((0, 0, HOUR))
        asked_now = replace(
            request,
            period=Period(start, dice.choice((FOREVER, FOREVER, start + HOUR))),
            released=frozenset({"one"}) if dice.random() < 0.3 else frozenset(),
            own_consumers=frozenset({"one", "two"}),
        )
        _compare(asked_now, snapshot)
        if dice.random() < 0.3:
            _compare(asked_now, _tried(dice, snapshot))
        snapshot = _committed(dice, snapshot)
    _compare(request, snapshot)


# --- what is kept, and how much ----------------------------------------------------------------


def gpu(name: str, amount: int = 1) -> Role:
    return Role(name, {"VCPU": 1}, groups=(Group("gpu", {"GPU": amount}),))


def gpu_hosts(count: int) -> Snapshot:
    states = []
    for number in range(count):
        host = f"h{number}"
        states.append(
            ProviderState(
                ResourceProvider(host, host, None, host, inventories=(Inventory("VCPU", 8),))
            )
        )
        states += [
            ProviderState(
                ResourceProvider(
                    f"{host}g{n}", f"{host}g{n}", host, host, inventories=(Inventory("GPU", 4),)
                )
            )
            for n in range(2)
        ]
    return Snapshot.empty().with_states(states, revision=1)


def booked(snapshot: Snapshot, uuid: str, amounts: dict[str, int]) -> Snapshot:
    state = snapshot.state(snapshot.row(uuid))
    one = Booking(f"c{snapshot.revision}", uuid, MappingProxyType(amounts), Period(0))
    changed = replace(
        state,
        bookings=(*state.bookings, one),
        occupants=(*state.occupants, Occupant(one.consumer, PROJECT)),
    )
    return snapshot.with_states([changed], revision=snapshot.revision + 1)


def places_for(built: BuiltProblem, role: str) -> list[int]:
    """Per host, how many members of a role its devices serve."""
    column = built.problem.classes.index(f"places for {role}")
    found: list[int] = built.problem.free[:, column].tolist()
    return found


def test_trees_are_cut_once_and_follow_commits() -> None:
    snapshot, request = gpu_hosts(3), asked([(gpu("a"), 9)])
    first = build(request, snapshot)
    assert places_for(first, "a") == [9, 9, 9]
    later = booked(snapshot, "h1g0", {"GPU": 4})
    second = build(request, later)
    assert places_for(second, "a") == [9, 4, 9]
    assert first.terrain.devices is not None
    assert second.terrain.devices is not None
    assert second.terrain.devices.trees is first.terrain.devices.trees
    assert places_for(build(request, snapshot), "a") == [9, 9, 9], "an earlier revision again"


def test_roles_that_ask_for_the_same_share_what_is_kept() -> None:
    snapshot = gpu_hosts(2)
    one = build(asked([(gpu("a"), 2)]), snapshot).problem.proof
    other = build(asked([(gpu("b"), 3)]), snapshot).problem.proof
    assert one is not None
    assert other is not None
    assert one.requirements[0].slots is other.requirements[0].slots
    assert (one.requirements[0].role, other.requirements[0].role) == ("a", "b")


def test_a_role_with_more_members_is_counted_further() -> None:
    snapshot = gpu_hosts(2)
    assert places_for(build(asked([(gpu("a"), 1)]), snapshot), "a") == [1, 1]
    assert places_for(build(asked([(gpu("a", 3), 5)]), snapshot), "a") == [2, 2]
    later = booked(snapshot, "h0g0", {"GPU": 3})
    assert places_for(build(asked([(gpu("a"), 7)]), later), "a") == [5, 7]
    assert places_for(build(asked([(gpu("a"), 1)]), later), "a") == [1, 1]


def test_what_is_kept_is_bounded() -> None:
    """Each shape takes few bytes per provider, and what was not asked for longest is dropped."""
    count = 400
    snapshot = gpu_hosts(count)
    build(asked([(gpu("a"), 20)]), snapshot)
    store = snapshot.cache["devices"]
    assert isinstance(store, KeptColumns)
    before = store.size
    build(asked([(gpu("a", 2), 20)]), snapshot)
    assert 0 < store.size - before <= 16 * 3 * count
    small: KeptColumns[str, bytes] = KeptColumns(most=10)
    for name in ("one", "two", "three"):
        small.put(name, b"1234", 4)
        assert small.get("one") == b"1234"
    assert small.get("two") is None
    assert small.get("three") == b"1234"
    assert small.size == 8
    small.put("large", b"", 100)
    assert (small.size, small.get("one")) == (100, None)


def test_hosts_that_count_when_empty_follow_their_inventories() -> None:
    """A policy counts domains that could hold a member if they were empty."""
    snapshot = gpu_hosts(3)
    even = statement("even", "spread", "a", level="host", max_skew=1)
    request = replace(asked([(gpu("a", 4), 2)]), policies=(even,))
    full = booked(booked(snapshot, "h0g0", {"GPU": 4}), "h0g1", {"GPU": 4})
    _same(build(request, full), build(request, fresh(full)))
    states = [full.state(full.row(uuid)) for uuid in ("h0g0", "h0g1")]
    smaller = full.with_states(
        [
            replace(one, provider=replace(one.provider, inventories=(Inventory("GPU", 3),)))
            for one in states
        ],
        revision=9,
    )
    _same(build(request, smaller), build(request, fresh(smaller)))
