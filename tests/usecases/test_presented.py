"""What a presented claim shows: its own room given back on its own host, and nothing else."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from moorage.domain.bookings import Booking, BookingState
from moorage.domain.decisions import Claim, ClaimState
from moorage.domain.ensembles import Ensemble, Member
from moorage.domain.member_names import MemberName
from moorage.domain.period import HOUR, Period
from moorage.domain.placement import Occupant
from moorage.domain.providers import Inventory, ResourceProvider
from moorage.domain.requests import RequestGroup
from moorage.engine.candidates.enumerate import candidates
from moorage.engine.candidates.query import CandidateQuery
from moorage.engine.state.snapshot import ProviderState, Snapshot
from moorage.usecases.claims.presented import candidates_for
from moorage.usecases.shared.candidate_search import PresentedClaim

NAME = MemberName("db", 0)
MEMBER = Member(NAME, "member")
ENSEMBLE = Ensemble("e", "p", "u", "shop", (), (MEMBER,))
CLAIM = Claim("c", "d", "e", "p", NAME, ClaimState.BUILDING)
TREES = {"a": "a", "a1": "a", "a2": "a", "b": "b", "b1": "b", "c": "c"}
CLASSES = ("VCPU", "VGPU")


@st.composite
def fleets(draw: st.DrawFn) -> tuple[tuple[ProviderState, ...], frozenset[str]]:
    """Three trees with bookings of others, and one member's on some providers of one of them."""
    root = draw(st.sampled_from("abc"))
    held = draw(
        st.sets(st.sampled_from([u for u, r in TREES.items() if r == root]), min_size=1, max_size=2)
    )
    states = []
    for uuid, of in TREES.items():
        owners = ["x", "y", *(["member"] if uuid in held else [])]
        bookings = tuple(
            Booking(
                owner,
                uuid,
                {name: draw(st.integers(1, 4)) for name in CLASSES},
                Period(draw(st.integers(0, 1)) * HOUR),
                BookingState.CLAIMED if owner == "member" else draw(st.sampled_from(BookingState)),
            )
            for owner in owners
            if owner == "member" or draw(st.booleans())
        )
        provider = ResourceProvider(
            uuid,
            uuid,
            None if uuid == of else of,
            of,
            inventories=tuple(Inventory(name, draw(st.integers(1, 8))) for name in CLASSES),
        )
        occupants = tuple(Occupant(one.consumer, "p") for one in bookings)
        states.append(ProviderState(provider, bookings, occupants))
    return tuple(states), frozenset(held)


@given(fleets(), st.integers(1, 6), st.integers(0, 4))
def test_as_if_the_hold_were_not_and_the_rest_of_the_fleet_neither(
    found: tuple[tuple[ProviderState, ...], frozenset[str]], vcpu: int, vgpu: int
) -> None:
    states, held = found
    amounts = {name: n for name, n in (("VCPU", vcpu), ("VGPU", vgpu)) if n}
    query = CandidateQuery((RequestGroup(resources=amounts),))
    snapshot = Snapshot.empty().with_states(states)
    everybody = list(candidates(snapshot, query))

    place = next(one for state in states for one in state.bookings if one.consumer == "member")
    presented = PresentedClaim(CLAIM, ENSEMBLE, MEMBER, held, place)
    shown = list(candidates_for(snapshot, query, presented))

    without = Snapshot.empty().with_states(
        replace(one, bookings=tuple(b for b in one.bookings if b.consumer != "member"))
        for one in states
    )
    rows = {snapshot.row_of[uuid] for uuid in held}
    assert shown == [
        one for one in candidates(without, query) if rows <= {row for row, _ in one.allocations}
    ]
    assert list(candidates(snapshot, query)) == everybody, "nobody else sees the room"
