"""The earliest window against looking at every instant, and what counting may refute."""

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.engine.test_build import NOW, booking, state

from moorage.domain.ensembles import PolicyStatement, Role
from moorage.domain.member_names import MemberName
from moorage.domain.period import FOREVER, HOUR, Period
from moorage.domain.providers import Inventory
from moorage.domain.requests import EnsembleRequest
from moorage.domain.topology import Attachment, Domain, Topology
from moorage.engine.capacity.earliest_start import first_fitting
from moorage.engine.capacity.starts import (
    Starts,
    candidate_starts,
    enough_total_capacity,
    not_refuted,
)
from moorage.engine.explain.conflicts import Oracle
from moorage.engine.joint.build import build
from moorage.engine.state.snapshot import Snapshot
from moorage.solver.exhaustive import Exhaustive
from moorage.testing.problems import PROJECT, statement

HOSTS = 4
RACKS = Topology.build(
    {"location": ("rack",)},
    [Domain("r0", "rack"), Domain("r1", "rack")],
    [Attachment(f"h{number}", f"r{number % 2}") for number in range(HOSTS)],
)
POLICIES = (
    (),
    (statement("apart", "anti-affinity", "a"),),
    (statement("racks", "anti-affinity", "a", level="rack"),),
    (statement("wide", "spread", "a", level="rack", min_domains=2),),
    (statement("near", "affinity", "a", level="rack"),),
    (statement("one", "affinity", "a", "b"), statement("apart", "anti-affinity", "b")),
)


def at(hour: int) -> int:
    return NOW + hour * HOUR


@st.composite
def fleets(draw: st.DrawFn) -> Snapshot:
    """Four hosts in two racks, with bookings that begin and end on the hour, some never."""
    states = []
    for number in range(HOSTS):
        total = draw(st.integers(1, 4))
        some = []
        for _ in range(draw(st.integers(0, 3))):
            start, length = draw(st.integers(0, 12)), draw(st.integers(1, 9))
            end = at(start + length) if draw(st.integers(0, 9)) else FOREVER
            some.append((Period(at(start), end), draw(st.integers(1, 3))))
        bookings = tuple(
            booking(number, amount, period, f"c{number}-{i}")
            for i, (period, amount) in enumerate(some)
        )
        states.append(state(number, vcpu=Inventory("VCPU", total), bookings=bookings))
    return Snapshot.empty(now=NOW).with_states(states, topology=RACKS, now=NOW)


@st.composite
def requests(draw: st.DrawFn) -> EnsembleRequest:
    a, b = draw(st.integers(1, 3)), draw(st.integers(0, 1))
    policies: tuple[PolicyStatement, ...] = draw(
        st.sampled_from(POLICIES[:5] if not b else POLICIES)
    )
    return EnsembleRequest(
        project_id=PROJECT,
        roles=(
            Role("a", {"VCPU": draw(st.integers(1, 2))}),
            Role("b", {"VCPU": draw(st.integers(1, 3))}),
        ),
        members=(
            *(MemberName("a", i) for i in range(a)),
            *(MemberName("b", i) for i in range(b)),
        ),
        policies=policies,
        period=Period(NOW, at(1)),
    )


@st.composite
def given_back(draw: st.DrawFn) -> frozenset[str]:
    """Consumers whose bookings are given back: those of an ensemble that is decided anew."""
    everyone = [f"c{number}-{i}" for number in range(HOSTS) for i in range(3)]
    return frozenset(draw(st.lists(st.sampled_from(everyone), max_size=6)))


@settings(deadline=None)
@given(fleets(), requests(), given_back(), st.integers(0, 6), st.integers(0, 20), st.integers(1, 8))
def test_the_earliest_window_is_the_one_that_trying_every_hour_finds(
    fleet: Snapshot,
    request: EnsembleRequest,
    released: frozenset[str],
    first: int,
    more: int,
    hours: int,
) -> None:
    starts = Starts(at(first), at(first + more), hours * HOUR)
    request = replace(request, own_consumers=released, released=released)
    oracle = Oracle(Exhaustive(), lambda: 60.0)

    def fits(start: int) -> bool | None:
        return oracle.feasible(build(replace(request, period=starts.window(start)), fleet).problem)

    by_hand = next((hour for hour in range(first, first + more + 1) if fits(at(hour))), None)
    built = build(request, fleet)
    found = candidate_starts(built, fleet, starts)
    survive = not_refuted(built, fleet, starts, found) & enough_total_capacity(
        built, fleet, starts, found
    )
    for start in found[~survive].tolist():
        assert fits(start) is False, "what counting refutes has no placement"
    sought = first_fitting(found[survive].tolist(), fits, lambda: 60.0)
    assert sought.start == (None if by_hand is None else at(by_hand))
    assert sought.proved
