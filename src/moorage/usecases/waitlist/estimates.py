"""Estimates of waitlist entries: the earliest window in which each would fit.

Entries are estimated in the order of the list, each with the estimated places of the earlier
entries taken. An estimate is made from the present ledger and promises nothing. An entry with a
window in its range is granted, so estimates mostly lie after the range.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from hashlib import sha256
from itertools import takewhile
from typing import TYPE_CHECKING, Final

from moorage.domain.bookings import Booking, BookingState
from moorage.domain.changes import Changeset, PutEntry
from moorage.domain.errors import Busy, ConcurrentUpdate, MoorageError, NotFound
from moorage.domain.period import SECOND, Period, format_instant
from moorage.domain.waitlist import Estimate, WaitsFor
from moorage.engine.capacity.starts import Starts
from moorage.engine.state.overlay import with_bookings
from moorage.usecases.decide.solution import solve_and_verify
from moorage.usecases.refusals.earliest_window import earliest_start
from moorage.usecases.refusals.explanation import refused_because
from moorage.usecases.refusals.obstacles import present_obstacles
from moorage.usecases.waitlist.attempt import caller_of
from moorage.usecases.waitlist.queries import basis, waitlist_order
from moorage.usecases.waitlist.starts import placeable, quota_refusal, starts_of, window_request_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from moorage.domain.ensembles import Ensemble
    from moorage.domain.period import Instant
    from moorage.domain.waitlist import WaitlistEntry
    from moorage.engine.state.snapshot import Snapshot
    from moorage.usecases.environment import UseCaseEnvironment
    from moorage.usecases.refusals.trial import WindowRequest


def entry_obstacle(env: UseCaseEnvironment, entry: WaitlistEntry, snapshot: Snapshot) -> str | None:
    """Why the entry's first start would be refused now; None if no obstacle can be named."""
    first = min(entry.first_at(snapshot.taken_at), entry.latest)
    if entry.waits_for is WaitsFor.QUOTA:
        refused = quota_refusal(env, entry, first)
        return None if refused is None else refused.message
    caller = caller_of(entry)
    try:
        ensemble = placeable(env, caller, entry)
        starts = starts_of(entry, first, first)
        exclusive = env.store.exclusive_ensembles(snapshot).ensembles
        window_request = window_request_of(env, ensemble, starts, (snapshot, exclusive), entry)
        built = window_request.problem_at(starts, starts.first, snapshot)
        why = present_obstacles(env, built, snapshot, operator=caller.operator)
    except MoorageError:
        return None  # what it needs is gone: whoever tries it will find that out
    return None if why is None else refused_because(why)


EACH: Final = SECOND
"""Time limit of the search for one entry."""
EVERY: Final = 5.0
"""Minimum seconds between two rounds."""
REST: Final = 9
"""How many times as long as a round took a worker rests after it."""
_TRIES: Final = 10
"""How many windows refused by a quota are tried before an entry gets no estimate."""
_LATER: Final = "too many entries wait before it for an estimate"


@dataclass
class EstimateWorker:
    """Runs in one worker. Its cache only saves work."""

    env: UseCaseEnvironment
    _next: float = 0.0
    _seen: bytes = b""

    def run_round(self, entries: Sequence[WaitlistEntry]) -> None:
        """Estimate the entries again, if it is time and the ledger or the list has changed."""
        began = self.env.stopwatch()
        if began < self._next:
            return
        snapshot = self.env.store.snapshot()
        seen = _basis(snapshot, entries)
        if seen == self._seen:
            return
        _round(self.env, entries, snapshot, self.env.limits.waitlist_time)
        self._seen = seen
        now = self.env.stopwatch()
        self._next = now + max(EVERY, (now - began) * REST)


def estimate_entry(env: UseCaseEnvironment, entry_id: str) -> None:
    """Estimate a new entry, after the competing entries before it."""
    try:
        mine = env.store.waitlist_entry(entry_id)
        ordered = waitlist_order(env.store)
        before = takewhile(lambda one: one.id != entry_id, ordered)
        some = [*(one for one in before if one.classes & mine.classes), mine]
        _round(env, some, env.store.snapshot(), env.limits.waitlist_time, only=entry_id)
    except NotFound:
        return  # granted, and forgotten, meanwhile


def _round(
    env: UseCaseEnvironment,
    entries: Sequence[WaitlistEntry],
    snapshot: Snapshot,
    budget: int,
    *,
    only: str | None = None,
) -> None:
    until = env.stopwatch() + budget / SECOND
    view, ordered = snapshot, waitlist_order(env.store)
    for one in entries:
        if one.over_at(snapshot.taken_at):
            continue
        if env.stopwatch() >= until:
            found, note = None, _LATER
        else:
            found, note, view = _estimate(env, one, view)
        if only is None or one.id == only:
            _write(env, replace(one, estimate=found, estimate_note=note), one, ordered, snapshot)


def _estimate(
    env: UseCaseEnvironment, entry: WaitlistEntry, view: Snapshot
) -> tuple[Estimate | None, str, Snapshot]:
    """The estimate, a note, and the fleet with the entry's places taken."""
    first = entry.first_at(view.taken_at)
    note = ""
    try:
        ensemble = placeable(env, caller_of(entry), entry)
        for _ in range(_TRIES):
            last = max(first, _last_start(env, entry, view))
            starts = starts_of(entry, first, last, env.limits.disclosure)
            exclusive = env.store.exclusive_ensembles(view).ensembles
            window_request = window_request_of(env, ensemble, starts, (view, exclusive), entry)
            sought = earliest_start(env, window_request, starts, time_limit=EACH)
            if sought.start is None:
                return None, _why_none(starts, proved=sought.proved), view
            refused = quota_refusal(env, entry, sought.start + entry.terms.lead)
            if refused is None:
                break
            if refused.passes_at is None:
                return None, refused.message, view
            note = refused.message
            if refused.when_asked:
                break
            first = refused.passes_at
        else:
            return None, note, view
    except MoorageError as problem:
        return None, problem.message, view
    window = starts.window(sought.start)
    found = Estimate(
        window.start + entry.terms.lead, window.end - entry.terms.cleaning, sought.proved
    )
    return found, note, _taken(env, ensemble, window_request, window, view)


def _last_start(env: UseCaseEnvironment, entry: WaitlistEntry, view: Snapshot) -> Instant:
    """The last start that the horizon of leases allows."""
    return view.taken_at + env.limits.horizon - entry.length + entry.terms.lead


def _why_none(starts: Starts, *, proved: bool) -> str:
    if not proved:
        return "time ran out before a window was found"
    return f"nothing in the way ends early enough to make room before {format_instant(starts.last)}"


def _taken(
    env: UseCaseEnvironment,
    ensemble: Ensemble,
    window_request: WindowRequest,
    window: Period,
    view: Snapshot,
) -> Snapshot:
    """The fleet with the places of one estimate taken."""
    starts = Starts(window.start, window.start, window.end - window.start)
    built = window_request.problem_at(starts, window.start, view)
    try:
        found = solve_and_verify(env.solver, built, time_limit=EACH, seed=window_request.seed)
    except Busy:
        found = None
    if found is None:  # there for one who may displace: then nobody after it is kept waiting
        return view
    uuids = {one.name: one.uuid for one in ensemble.members}
    return with_bookings(
        view,
        {
            uuids[name]: tuple(
                Booking(uuids[name], provider, amounts, window, BookingState.RESERVED)
                for provider, amounts in place.allocations.items()
            )
            for name, place in found.places.items()
        },
    )


def _write(
    env: UseCaseEnvironment,
    found: WaitlistEntry,
    before: WaitlistEntry,
    ordered: Sequence[WaitlistEntry],
    snapshot: Snapshot,
) -> None:
    """Store an estimate that is new, or made from another state of the ledger."""
    made_from = basis(snapshot, ordered, before)
    if made_from != before.estimated_from and before.estimated_from:
        found = replace(found, why=entry_obstacle(env, before, snapshot) or before.why)
    after = replace(found, estimated_from=made_from)
    if after == before:
        return
    now = env.store.now()
    told = (found.estimate, found.estimate_note, found.why)
    if told != (before.estimate, before.estimate_note, before.why):
        after = replace(after, updated_at=now)
    after = replace(after, estimated_at=now)
    try:
        env.store.commit(Changeset((PutEntry(after, before.generation),)))
    except (ConcurrentUpdate, NotFound):
        return  # it has left, or somebody else was quicker


def _basis(snapshot: Snapshot, entries: Sequence[WaitlistEntry]) -> bytes:
    """A hash of everything that estimates depend on."""
    revisions = snapshot.revisions.tobytes()
    line = " ".join(one.id for one in entries)
    return sha256(revisions + f"{snapshot.valid_until} {line}".encode()).digest()
