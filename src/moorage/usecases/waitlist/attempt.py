"""Try one entry of the waitlist: it becomes a lease, or goes on waiting, or its time is over.

A grant and the entry's last state are one changeset that names the generation of the entry. So of
several who try, one grants; and whoever dies in between has written both or nothing.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from moorage.domain.changes import Changeset, PutEntry
from moorage.domain.errors import (
    Busy,
    ConcurrentUpdate,
    Infeasible,
    MoorageError,
    QuotaExceeded,
)
from moorage.domain.period import SECOND, Period
from moorage.domain.waitlist import EntryState, EntryStep, WaitsFor, entry_after
from moorage.usecases.decide.request import RequestIdentity
from moorage.usecases.leases.create import create_lease
from moorage.usecases.leases.requests import LeaseRequest
from moorage.usecases.ports import Caller
from moorage.usecases.waitlist.starts import (
    first_that_fits,
    placeable,
    quota_refusal,
    unexplained,
)

if TYPE_CHECKING:
    from moorage.domain.period import Instant
    from moorage.domain.waitlist import WaitlistEntry
    from moorage.usecases.collaborators import Parts
    from moorage.usecases.leases.requests import LeaseResult

UNSURE: Final = 30.0
"""Seconds until one is tried again of which nobody knows whether it fits."""

_log = logging.getLogger(__name__)


def try_entry(parts: Parts, entry: WaitlistEntry, seconds: float) -> bool:
    """Grant an entry if it fits now; whether it waits no more.

    Args:
        parts: the service's.
        entry: as it was read.
        seconds: for the search.
    """
    mark = parts.line.see(parts.store.snapshot(), parts.store.keepers().revision)
    one = parts.store.waitlist_entry(entry.id)
    if one.state is not EntryState.WAITING:
        return True
    try:
        if one.over_at(parts.store.now()):
            return leave(parts, one, EntryStep.EXPIRE)
        if one.waits_for is WaitsFor.QUOTA and not _quota_passes(parts, one):
            return False
        granted = _granted(_hurried(parts, seconds), one)
    except QuotaExceeded as refused:
        parts.line.unsure(one, mark, parts.stopwatch() + UNSURE)
        note_waiting(parts, one, WaitsFor.QUOTA, refused.message)
    except Infeasible as refused:
        parts.line.refused(one, mark)
        note_waiting(parts, one, WaitsFor.CAPACITY, refused.message)
    except (Busy, ConcurrentUpdate):
        parts.line.unsure(one, mark, parts.stopwatch() + UNSURE)
    except MoorageError as problem:
        return _failed(parts, one, problem)
    except Exception:  # noqa: BLE001 - one that cannot be judged must not keep others from being granted
        _log.exception("could not try %s, which waits", one.id)
        parts.line.unsure(one, mark, parts.stopwatch() + UNSURE)
    else:
        _log.info("%s is granted from the waitlist", granted.lease.id)
        return True
    return False


def leave(parts: Parts, entry: WaitlistEntry, step: EntryStep, why: str = "") -> bool:
    """Write that it waits no more; True.

    Raises:
        ConcurrentUpdate: it has changed meanwhile.
    """
    state = entry_after(entry.state, step)
    after = replace(entry, state=state, why=why or entry.why, updated_at=parts.store.now())
    parts.store.commit(Changeset((PutEntry(after, entry.generation),)))
    return True


def note_waiting(parts: Parts, entry: WaitlistEntry, waits_for: WaitsFor, why: str) -> None:
    """Note what it waits for, where that is something else now."""
    if entry.waits_for is waits_for:
        return
    after = replace(entry, waits_for=waits_for, why=why, updated_at=parts.store.now())
    try:
        parts.store.commit(Changeset((PutEntry(after, entry.generation),)))
    except ConcurrentUpdate:
        return  # somebody else knows more


def _quota_passes(parts: Parts, entry: WaitlistEntry) -> bool:
    """Whether the quota that an entry waits for lets some start of its range pass now."""
    first = min(entry.first_at(parts.store.now()), entry.latest)
    refused = quota_refusal(parts, entry, first)
    if refused is None:
        return True
    passes = refused.start_at_once
    return passes is not None and first < passes <= entry.latest


def asker(entry: WaitlistEntry) -> Caller:
    """The caller who entered it."""
    return Caller(entry.user_id, entry.asked_from, entry.roles)


def _hurried(parts: Parts, seconds: float) -> Parts:
    """The environment for a try within `seconds`, without explanations."""
    limit = max(1, min(parts.limits.time_limit, int(seconds * SECOND)))
    return unexplained(replace(parts, limits=replace(parts.limits, time_limit=limit)))


def _granted(parts: Parts, entry: WaitlistEntry) -> LeaseResult:
    """The lease that it becomes, of the earliest window that fits."""
    caller, length = asker(entry), entry.terms.period.end - entry.terms.period.start

    def create(start: Instant) -> LeaseResult:
        asked = LeaseRequest(
            name=entry.name,
            terms=entry.terms.moved(Period(start, start + length)),
            ensemble_id=None if entry.ensemble is not None else entry.ensemble_id,
            actions=entry.actions,
            annotations=entry.annotations,
            entry=entry,
            any_priority=entry.any_priority,
            objective=entry.objective,
            seed=entry.seed,
        )
        return create_lease(parts, caller, asked, RequestIdentity(entry.id))

    first = entry.first_at(parts.store.now())
    if first >= entry.latest:
        return create(entry.latest)
    ensemble = placeable(parts, caller, entry)
    return first_that_fits(parts, ensemble, entry, first, create, operator=caller.operator)


def _failed(parts: Parts, entry: WaitlistEntry, problem: MoorageError) -> bool:
    """Handle a failed try; whether the entry waits no more."""
    try:
        now = parts.store.waitlist_entry(entry.id)
        if now.state is not EntryState.WAITING:
            return True
        _log.info("%s waits in vain: %s", entry.id, problem.message)
        return leave(parts, now, EntryStep.FAIL, problem.message)
    except ConcurrentUpdate:
        return False
