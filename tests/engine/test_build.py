"""From a snapshot to a problem: capacity over the period, filters with reasons, fixed members."""

from dataclasses import replace
from types import MappingProxyType

import numpy as np
import pytest

from moorage.domain.bookings import Booking, BookingState
from moorage.domain.ensembles import Role
from moorage.domain.errors import InvalidDescription, UnknownName, UnknownPolicy
from moorage.domain.member_names import MemberName
from moorage.domain.period import HOUR, Period
from moorage.domain.placement import Occupant
from moorage.domain.providers import Inventory, ResourceProvider
from moorage.domain.requests import EnsembleRequest
from moorage.domain.topology import Attachment, Domain, Topology
from moorage.engine.joint.build import build
from moorage.engine.state.snapshot import ProviderState, Snapshot
from moorage.testing.problems import OTHER_PROJECT, PROJECT, statement

NOW = 1_000 * HOUR
WEB = MemberName("web", 0)


def uuid(number: int) -> str:
    return f"00000000-0000-4000-8000-{number:012}"


def state(
    number: int,
    *,
    vcpu: Inventory | None = None,
    traits: frozenset[str] = frozenset(),
    aggregates: frozenset[str] = frozenset(),
    bookings: tuple[Booking, ...] = (),
) -> ProviderState:
    inventory = vcpu or Inventory("VCPU", 16)
    provider = ResourceProvider(
        uuid(number), f"h{number}", None, uuid(number),
        inventories=(inventory,), traits=traits, aggregates=aggregates,
    )  # fmt: skip
    occupants = tuple(Occupant(one.consumer, OTHER_PROJECT) for one in bookings)
    return ProviderState(provider, bookings, occupants)


def booking(number: int, amount: int, period: Period, consumer: str = "other") -> Booking:
    held = BookingState.HELD
    return Booking(consumer, uuid(number), {"VCPU": amount}, period, state=held)


def snapshot(*states: ProviderState) -> Snapshot:
    topology = Topology.build(
        {"location": ("rack",)},
        [Domain("r1", "rack"), Domain("r2", "rack")],
        [Attachment("h1", "r1"), Attachment("h2", "r2")],
    )
    return Snapshot.empty(now=NOW).with_states(states, topology=topology, now=NOW)


def request(**changes: object) -> EnsembleRequest:
    asked = EnsembleRequest(
        project_id=PROJECT,
        roles=(Role("web", {"VCPU": 4}),),
        members=(WEB,),
        policies=(),
        period=Period(NOW),
    )
    return replace(asked, **changes)  # type: ignore[arg-type]


def allowed(asked: EnsembleRequest, *states: ProviderState) -> list[str]:
    found = build(asked, snapshot(*states))
    return [found.terrain.names[row] for row in np.flatnonzero(found.problem.allowed[0])]


def test_a_later_booking_counts_over_an_open_period_and_not_before_it_starts() -> None:
    later = booking(1, 14, Period(NOW + HOUR, NOW + 2 * HOUR))
    assert allowed(request(), state(1, bookings=(later,))) == []
    short = request(period=Period(NOW, NOW + HOUR))
    assert allowed(short, state(1, bookings=(later,))) == ["h1"]


def test_released_consumers_do_not_count_against_capacity() -> None:
    held = booking(1, 14, Period(NOW), consumer="ours")
    assert allowed(request(released=frozenset({"ours"})), state(1, bookings=(held,))) == ["h1"]


def test_every_filter_tells_its_reason_and_count() -> None:
    role = Role(
        "web",
        {"VCPU": 4},
        required=(frozenset({"CUSTOM_A", "CUSTOM_B"}),),
        forbidden=frozenset({"CUSTOM_OLD"}),
        member_of=(frozenset({"agg"}),),
    )
    good = frozenset({"CUSTOM_B"})
    agg = frozenset({"agg"})
    found = build(
        request(roles=(role,)),
        snapshot(
            state(1, traits=good, aggregates=agg),
            state(2, traits=frozenset({"CUSTOM_OLD"}), aggregates=agg),
            state(3, traits=good),
            state(4, traits=good, aggregates=agg, vcpu=Inventory("VCPU", 3)),
            state(5, traits=good, aggregates=agg, vcpu=Inventory("VCPU", 8, step_size=3)),
            state(6, traits=good, aggregates=agg, vcpu=Inventory("VCPU", 8, max_unit=2)),
            state(7, traits=good, aggregates=agg),
        ),
        closed={"exclusive": frozenset({uuid(7)})},
    )
    assert found.considered == 7
    assert found.rejected == {
        "aggregate": 1,
        "capacity:VCPU": 1,
        "exclusive": 1,
        "forbidden:CUSTOM_OLD": 1,
        "trait:CUSTOM_A|CUSTOM_B": 1,
        "unit:VCPU": 2,
    }
    assert found.problem.allowed[0].tolist() == [True] + [False] * 6


def test_eligible_hosts_are_those_that_would_do_if_they_were_empty() -> None:
    full = booking(1, 16, Period(NOW))
    found = build(
        request(), snapshot(state(1, bookings=(full,)), state(2, vcpu=Inventory("VCPU", 2)))
    )
    assert not found.problem.allowed.any()
    assert found.policy_view.eligible(WEB) == {0}


def test_a_host_that_shares_its_inventory_is_no_place_to_stand() -> None:
    found = build(
        request(), snapshot(state(1), state(2, traits=frozenset({"MISC_SHARES_VIA_AGGREGATE"})))
    )
    assert found.terrain.names == ("h1",)


def test_foreign_consumers_are_everybody_but_the_ensembles_own_consumers() -> None:
    bookings = (booking(1, 1, Period(NOW), "ours"), booking(1, 1, Period(NOW), "theirs"))
    asked = request(own_consumers=frozenset({"ours"}))
    policy_view = build(asked, snapshot(state(1, bookings=bookings))).policy_view
    assert [one.consumer for one in policy_view.foreign_consumers(0)] == ["theirs"]


def test_foreigners_on_a_child_provider_stand_on_its_host() -> None:
    child = ResourceProvider(
        uuid(2), "h1-numa", uuid(1), uuid(1), inventories=(Inventory("PCPU", 4),)
    )
    taken = Booking("theirs", uuid(2), {"PCPU": 1}, Period(NOW))
    lapsed = booking(1, 1, Period(NOW), "gone")
    nested = ProviderState(child, (taken,), (Occupant("theirs", OTHER_PROJECT),))
    root = state(1, bookings=(replace(lapsed, lapses_at=NOW),))
    found = build(request(), snapshot(root, nested))
    assert found.terrain.names == ("h1",)
    assert [one.consumer for one in found.policy_view.foreign_consumers(0)] == ["theirs"]
    alone = build(request(), snapshot(root))
    assert list(alone.policy_view.foreign_consumers(0)) == []


def test_names_mean_hosts_domains_and_aggregates() -> None:
    fence = statement("f", "fence", "*", domains=["h1", "r2", "agg"], traits=["CUSTOM_A"])
    has = frozenset({"CUSTOM_A"})
    found = build(
        request(policies=(fence,)),
        snapshot(
            state(1, traits=has),
            state(2, traits=has),
            state(3, traits=has, aggregates=frozenset({"agg"})),
            state(4, traits=has),
            state(5, aggregates=frozenset({"agg"})),
        ),
    )
    assert found.policy_view.hosts_in(frozenset({"h1", "r2", "agg"})) == {0, 1, 2, 4}
    assert found.problem.primitives[0].hosts == {0, 1, 2}  # type: ignore[union-attr]


def test_a_fixed_member_stands_where_it_stands_and_takes_nothing() -> None:
    full = booking(1, 16, Period(NOW))
    found = build(
        request(fixed=MappingProxyType({WEB: uuid(1)})), snapshot(state(1, bookings=(full,)))
    )
    assert found.problem.fixed.tolist() == [0]
    assert found.rejected == {}


@pytest.mark.parametrize(
    ("asked", "error"),
    [
        (request(fixed=MappingProxyType({WEB: uuid(9)})), InvalidDescription),
        (request(policies=(statement("p", "affinity", "*", level="row"),)), UnknownName),
        (request(policies=(statement("p", "sprea", "*", max_skew=1),)), UnknownPolicy),
    ],
)
def test_names_that_mean_nothing_are_refused(asked: EnsembleRequest, error: type) -> None:
    with pytest.raises(error):
        build(asked, snapshot(state(1)))


def test_a_fleet_without_hosts_is_considered_and_found_empty() -> None:
    found = build(request(), snapshot())
    assert (found.considered, found.problem.hosts) == (0, ())
