"""Try one waitlist entry: it becomes a lease, keeps waiting, or expires.

A grant and the entry's last state are one changeset, which names the entry's generation. So only
one of several concurrent tries grants the entry, and an interrupted one writes both or nothing.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from moorage.domain.actors import WAITLIST
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
from moorage.usecases.decide.request import RefusalDetail, RequestIdentity
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
    from moorage.usecases.environment import UseCaseEnvironment
    from moorage.usecases.leases.requests import LeaseResult

UNSURE: Final = 30.0
"""Seconds until an entry is tried again if the last try had no definite result."""

_log = logging.getLogger(__name__)


def try_entry(env: UseCaseEnvironment, entry: WaitlistEntry, seconds: float) -> bool:
    """Grant an entry if it fits now; True if it is no longer waiting.

    `seconds` is the time limit of the search.
    """
    env = env.by(WAITLIST)  # whoever asked for it to be tried now
    mark = env.waitlist_memory.see(env.store.snapshot())
    one = env.store.waitlist_entry(entry.id)
    if one.state is not EntryState.WAITING:
        return True
    try:
        if one.over_at(env.store.now()):
            return leave(env, one, EntryStep.EXPIRE)
        if one.waits_for is WaitsFor.QUOTA and not _quota_passes(env, one):
            return False
        granted = _granted(_hurried(env, seconds), one)
    except QuotaExceeded as refused:
        env.waitlist_memory.unsure(one, mark, env.stopwatch() + UNSURE)
        note_waiting(env, one, WaitsFor.QUOTA, refused.message)
    except Infeasible as refused:
        env.waitlist_memory.refused(one, mark)
        note_waiting(env, one, WaitsFor.CAPACITY, refused.message)
    except (Busy, ConcurrentUpdate):
        env.waitlist_memory.unsure(one, mark, env.stopwatch() + UNSURE)
    except MoorageError as problem:
        return _failed(env, one, problem)
    except Exception:  # noqa: BLE001 - one that cannot be judged must not keep others from being granted
        _log.exception("could not try waitlist entry %s", one.id)
        env.waitlist_memory.unsure(one, mark, env.stopwatch() + UNSURE)
    else:
        _log.info("lease %s is granted from the waitlist", granted.lease.id)
        return True
    return False


def leave(env: UseCaseEnvironment, entry: WaitlistEntry, step: EntryStep, why: str = "") -> bool:
    """Write the entry's last state; always True.

    Raises:
        ConcurrentUpdate: the entry has changed meanwhile.
    """
    state = entry_after(entry.state, step)
    after = replace(entry, state=state, why=why or entry.why, updated_at=env.store.now())
    env.store.commit(Changeset((PutEntry(after, entry.generation),)))
    return True


def note_waiting(
    env: UseCaseEnvironment, entry: WaitlistEntry, waits_for: WaitsFor, why: str
) -> None:
    """Store what the entry waits for, if that has changed."""
    if entry.waits_for is waits_for:
        return
    after = replace(entry, waits_for=waits_for, why=why, updated_at=env.store.now())
    try:
        env.store.commit(Changeset((PutEntry(after, entry.generation),)))
    except ConcurrentUpdate:
        return  # somebody else knows more


def _quota_passes(env: UseCaseEnvironment, entry: WaitlistEntry) -> bool:
    """Whether the quota that an entry waits for now allows some start of its range."""
    first = min(entry.first_at(env.store.now()), entry.latest)
    refused = quota_refusal(env, entry, first)
    if refused is None:
        return True
    passes = refused.start_at_once
    return passes is not None and first < passes <= entry.latest


def caller_of(entry: WaitlistEntry) -> Caller:
    """The caller who made the entry."""
    return Caller(entry.user_id, entry.asked_from, entry.roles)


def _hurried(env: UseCaseEnvironment, seconds: float) -> UseCaseEnvironment:
    """The environment for a try within `seconds`, without explanations."""
    limit = max(1, min(env.limits.time_limit, int(seconds * SECOND)))
    return unexplained(replace(env, limits=replace(env.limits, time_limit=limit)))


def _granted(env: UseCaseEnvironment, entry: WaitlistEntry) -> LeaseResult:
    """Grant the entry in the earliest window that fits, and return the lease."""
    caller, length = caller_of(entry), entry.terms.period.end - entry.terms.period.start

    def create(start: Instant) -> LeaseResult:
        request = LeaseRequest(
            name=entry.name,
            terms=entry.terms.moved(Period(start, start + length)),
            ensemble_id=None if entry.ensemble is not None else entry.ensemble_id,
            actions=entry.actions,
            annotations=entry.annotations,
            entry=entry,
            refusal=RefusalDetail.UNSTORED,
            any_priority=entry.any_priority,
            objective=entry.objective,
            seed=entry.seed,
        )
        return create_lease(env, caller, request, RequestIdentity(entry.id))

    first = entry.first_at(env.store.now())
    if first >= entry.latest:
        return create(entry.latest)
    ensemble = placeable(env, caller, entry)
    return first_that_fits(env, ensemble, entry, first, create, operator=caller.operator)


def _failed(env: UseCaseEnvironment, entry: WaitlistEntry, problem: MoorageError) -> bool:
    """Handle an error of a try; True if the entry is no longer waiting."""
    try:
        now = env.store.waitlist_entry(entry.id)
        if now.state is not EntryState.WAITING:
            return True
        _log.info("waitlist entry %s has failed: %s", entry.id, problem.message)
        return leave(env, now, EntryStep.FAIL, problem.message)
    except ConcurrentUpdate:
        return False
