"""Targets of moves: held once a plan is applied, and free for the server they are held for alone.

A request of Nova's to Placement that names a server (`req-<server UUID>`) finds the place that is
held for it free, and only there; the write of its allocations there frees the hold in the same
commit. Holds lapse unless the plan goes on: `held` renews them.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from moorage.domain.bookings import Booking, BookingState
from moorage.domain.changes import DropBookings, PutBookings
from moorage.domain.consumers import NO_PROJECT, Consumer
from moorage.domain.period import FOREVER, HOUR, Period
from moorage.domain.plans import MoveState
from moorage.engine.candidates.enumerate import candidates
from moorage.usecases.claims.presented import without_consumer
from moorage.usecases.decide.member_places import bookings_of, host_row

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from moorage.domain.changes import Changeset
    from moorage.domain.plans import Move, Plan
    from moorage.engine.state.snapshot import Snapshot
    from moorage.usecases.ports import Store
    from moorage.usecases.shared.allocation_write import AllocationWrite
    from moorage.usecases.shared.candidate_search import CandidateSearch

LASTING: Final = HOUR
"""How long a hold lasts that is not renewed."""


def host_of(snapshot: Snapshot, consumer: str) -> str | None:
    """The UUID of the host on which a consumer has allocations; None: it has none."""
    rows = [
        snapshot.row_of[one.provider]
        for one in bookings_of(snapshot, consumer)
        if one.state is BookingState.ALLOCATED
    ]
    return snapshot.uuids[host_row(snapshot, rows)] if rows else None


# --- holding ----------------------------------------------------------------------------------


def held(snapshot: Snapshot, plan: Plan) -> Iterator[PutBookings]:
    """Holds of targets that are needed and not there, as far as there is room; and renewals.

    In the order of the moves: a target that an earlier move frees is held once that is done.
    """
    taken: dict[tuple[int, str], int] = {}
    for move in plan.moves:
        if move.state.over or (move.state is MoveState.MOVING and move.asked):
            continue
        own = bookings_of(snapshot, move.id)
        if own and own[0].lapses_at - snapshot.taken_at > LASTING // 2:
            continue
        if own or _fits(snapshot, move, taken):
            yield _hold(snapshot, plan, move)


def is_held(snapshot: Snapshot, move: Move) -> bool:
    """Whether the target of a move is held now."""
    return bool(bookings_of(snapshot, move.id))


def freed(plan: Plan) -> DropBookings:
    """The end of all holds of a plan, but for moves that are under way."""
    return DropBookings(
        frozenset(one.id for one in plan.moves if one.state is not MoveState.MOVING)
    )


def _hold(snapshot: Snapshot, plan: Plan, move: Move) -> PutBookings:
    now = snapshot.taken_at
    ends = [one.occupies_until(now) for one in bookings_of(snapshot, move.server)]
    period = Period(now, max(ends, default=FOREVER))
    owner = Consumer(move.id, plan.actor.project_id or NO_PROJECT, plan.actor.user_id or NO_PROJECT)
    bookings = tuple(
        Booking(move.id, provider, amounts, period, BookingState.HELD, lapses_at=now + LASTING)
        for provider, amounts in move.allocations.items()
    )
    return PutBookings(owner, bookings)


def _fits(snapshot: Snapshot, move: Move, taken: dict[tuple[int, str], int]) -> bool:
    """Whether the target has room beside all that is booked there, and takes it from `taken`."""
    wanted: dict[tuple[int, str], int] = {}
    for provider, amounts in move.allocations.items():
        row = snapshot.row_of.get(provider)
        for name, amount in amounts.items():
            columns = snapshot.classes.get(name)
            if row is None or columns is None or columns.position[row] < 0:
                return False
            at = int(columns.position[row])
            if taken.get((row, name), 0) + amount > int(columns.max_addition[at]):
                return False
            wanted[row, name] = taken.get((row, name), 0) + amount
    taken |= wanted
    return True


# --- the rules of requests by Nova --------------------------------------------------------------


def on_held_target(search: CandidateSearch) -> CandidateSearch:
    """The search with what is held for the named server free, and on its target if it fits there.

    Elsewhere its candidates are those of any request, so that its owner may still do otherwise.
    """
    snapshot, fleet = search.snapshot, search.fleet
    named = search.asked.named or ""
    moves = search.asked.store.exclusive_ensembles(snapshot).targets.get(named, ())
    rows = {row: one.id for one in moves for row in fleet.rows_of_consumer(one.id)}
    if not rows:
        return search
    free = fleet.with_states(
        without_consumer(fleet.state(row), consumer) for row, consumer in rows.items()
    )
    targets = frozenset(fleet.row_of[one.target] for one in moves if one.target in fleet.row_of)
    anchors = search.query.anchors
    there = replace(search.query, anchors=targets if anchors is None else anchors & targets)
    fits = any(True for _ in candidates(free, there))
    return replace(search, fleet=free, query=there if fits else search.query)


def take_held_target(asked: AllocationWrite, changeset: Changeset) -> Changeset:
    """The changeset, with holds freed for servers that get allocations where these are."""
    snapshot = asked.store.last_snapshot()
    targets = asked.store.exclusive_ensembles(snapshot).targets
    taken: set[str] = set()
    for write in asked.writes:
        rows = [snapshot.row_of[uuid] for uuid in write.allocations if uuid in snapshot.row_of]
        hosts = {snapshot.uuids[int(snapshot.root[row])] for row in rows}
        taken.update(one.id for one in targets.get(write.consumer.uuid, ()) if one.target in hosts)
    if not taken:
        return changeset
    return replace(changeset, changes=(DropBookings(frozenset(taken)), *changeset.changes))


def is_moved_by_plan(store: Store, snapshot: Snapshot, server: str, entered: Iterable[str]) -> bool:
    """Whether a plan moves the server now, to a host on which all of these providers are."""
    if server not in store.exclusive_ensembles(snapshot).targets:
        return False
    rows = [snapshot.row_of[uuid] for uuid in entered if uuid in snapshot.row_of]
    hosts = {snapshot.uuids[host_row(snapshot, rows)]} if rows else set()
    return any(
        move.server == server and move.state is MoveState.MOVING and hosts <= {move.target}
        for plan in store.plans.unfinished()
        for move in plan.moves
    )
