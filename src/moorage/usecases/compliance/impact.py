"""Finds what a change newly breaks: policies that are kept before it, and not after it.

What a dry run leaves out is put over what the ledger has, so that it says what the change will.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, TypeVar

from moorage.domain.bookings import BookingState
from moorage.domain.changes import DeleteEnsemble, DropBookings, PutBookings, PutEnsemble
from moorage.domain.placement import Occupant
from moorage.domain.violations import FOUND
from moorage.usecases.compliance.disclosure import violation_seen_by
from moorage.usecases.compliance.judgement import judge
from moorage.usecases.compliance.records import violations_of

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

    from moorage.domain.bookings import Booking
    from moorage.domain.changes import Change
    from moorage.domain.ensembles import Ensemble
    from moorage.domain.violations import Violation
    from moorage.engine.state.columns import ProviderState
    from moorage.engine.state.snapshot import Snapshot
    from moorage.usecases.environment import UseCaseEnvironment
    from moorage.usecases.ports import Caller, Store

T = TypeVar("T")

NAMED: Final = 100
"""Violations that are named; all are counted."""
_AT_ONCE: Final = 100
"""Ensembles that are read together."""


@dataclass(frozen=True, slots=True)
class Impact:
    """What a change newly breaks, of the ensembles that were judged."""

    violations: tuple[Violation, ...]
    """The first ones, without id and time."""
    found: int
    """How many there are."""
    judged: int
    """How many ensembles were judged."""
    ensembles: int
    """How many there are."""


NOTHING: Final = Impact((), 0, 0, 0)


def ensembles_at(store: Store, snapshot: Snapshot, row: int) -> frozenset[str]:
    """Ids of the ensembles that have something booked on a host, or on servers there."""
    booked = [one for at in snapshot.at_host(row) for one in snapshot.bookings_of(at)]
    decisions = {one.decision for one in booked if one.decision is not None}
    return store.compliance.ensembles_of({one.consumer for one in booked}, decisions)


def newly_broken(
    env: UseCaseEnvironment,
    before: Snapshot,
    after: Snapshot,
    *,
    ensembles: Collection[str] | None = None,
    seconds: float | None = None,
) -> Impact:
    """Judge ensembles (None: all) on both snapshots, for at most so many seconds.

    Members out of service count as well as policies.
    """
    records = env.store.compliance
    ids = records.every_ensemble() if ensembles is None else sorted(ensembles)
    named: list[Violation] = []
    found = judged = 0
    end = None if seconds is None else env.stopwatch() + seconds
    for start in range(0, len(ids), _AT_ONCE):
        some = ids[start : start + _AT_ONCE]
        for one in records.ensembles_by_id(some):
            ensemble = one.ensemble
            fresh = _begun((before, ensemble), (after, ensemble))
            found += len(fresh)
            named += fresh[: NAMED - len(named)]
        judged += len(some)
        if end is not None and env.stopwatch() >= end:
            break
    return Impact(tuple(named), found, judged, len(ids))


def _begun(
    before: tuple[Snapshot, Ensemble] | None, after: tuple[Snapshot, Ensemble]
) -> list[Violation]:
    """The violations that an ensemble has after a change and not before it."""
    then = list(violations_of(*after, judge(*after), FOUND))
    if before is None or not then:
        return then
    known = {one.key for one in violations_of(*before, judge(*before), FOUND)}
    return [one for one in then if one.key not in known]


def with_impact(
    env: UseCaseEnvironment,
    caller: Caller,
    ensembles: Collection[str],
    use_case: Callable[[UseCaseEnvironment, Caller], T],
) -> tuple[T, Impact]:
    """The result of a use case, and what it newly breaks, as the caller may see it.

    Judged are these ensembles and those whose policies refer to them. What others change
    meanwhile counts as well.
    """
    records = env.store.compliance
    before = env.store.snapshot()
    concerned = {*ensembles, *records.referring(ensembles)}
    known = {one.ensemble.id: one.ensemble for one in records.ensembles_by_id(concerned)}
    done = use_case(env, caller)
    left_out = env.store.left_out
    after = _booked(env.store.snapshot(), left_out)
    broken: list[Violation] = []
    judged = 0
    for one in _written(env.store, concerned, left_out):
        old = known.get(one.id)
        judged += 1
        every = _begun(None if old is None else (before, old), (after, one))
        broken += (seen for each in every if (seen := violation_seen_by(caller, one, each)))
    return done, Impact(tuple(broken[:NAMED]), len(broken), judged, judged)


def _written(store: Store, ids: Collection[str], left_out: Iterable[Change]) -> Iterable[Ensemble]:
    """The ensembles after the changes of a dry run."""
    gone = {one.id for one in left_out if isinstance(one, DeleteEnsemble)}
    put = {one.ensemble.id: one.ensemble for one in left_out if isinstance(one, PutEnsemble)}
    for written in store.compliance.ensembles_by_id(ids):
        if written.ensemble.id not in gone:
            one = put.get(written.ensemble.id, written.ensemble)
            references = {
                id_: put[id_].consumers if id_ in put else consumers
                for id_, consumers in one.references.items()
                if id_ not in gone
            }
            yield replace(one, references=MappingProxyType(references))


def _booked(snapshot: Snapshot, left_out: Iterable[Change]) -> Snapshot:
    """The snapshot with the places that a dry run would have held or freed."""
    states: dict[int, ProviderState] = {}

    def drop(consumers: frozenset[str], decision: str | None) -> None:
        for row in {row for one in consumers for row in snapshot.rows_of_consumer(one)}:
            state = states.get(row) or snapshot.state(row)
            stay = [one for one in state.bookings if not _dropped(one, consumers, decision)]
            states[row] = _with_bookings(state, stay)

    for change in left_out:
        match change:
            case DropBookings(consumers, decision):
                drop(consumers, decision)
            case PutBookings(consumer, bookings):
                drop(frozenset({consumer.uuid}), None)
                for one in bookings:
                    row = snapshot.row_of[one.provider]
                    state = states.get(row) or snapshot.state(row)
                    owner = Occupant(consumer.uuid, consumer.project_id)
                    states[row] = _with_bookings(state, (*state.bookings, one), owner)
    return snapshot.with_states(states.values()) if states else snapshot


def _with_bookings(
    state: ProviderState, bookings: Iterable[Booking], *owners: Occupant
) -> ProviderState:
    booked = tuple(bookings)
    there = {one.consumer for one in booked}
    known = {one.consumer: one for one in (*owners, *state.occupants) if one.consumer in there}
    return replace(state, bookings=booked, occupants=tuple(known.values()))


def _dropped(booking: Booking, consumers: frozenset[str], decision: str | None) -> bool:
    """Whether `DropBookings` drops a booking."""
    if booking.consumer not in consumers or booking.state is BookingState.ALLOCATED:
        return False
    return decision is None or (
        booking.decision == decision and booking.state is not BookingState.CLAIMED
    )
