"""The timers of a lease, which follow from its terms and are rewritten with every change of it.

Each change deletes all timers of the lease and writes new ones. A due timer (one of `TIMERS`) reads
the lease again, so a superfluous one does nothing. Notices are not stored ahead: they are written
when a timer is due (see `notifications`), under an id made from their content, so that each is
sent once, no matter how often the lease changes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from moorage.domain.changes import DropEffects, PutEffect
from moorage.domain.effects import TIMERS, Effect, EffectKind
from moorage.domain.lease_actions import Edge, actions_at
from moorage.domain.leases import LeaseState

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from moorage.domain.changes import Change
    from moorage.domain.leases import Lease
    from moorage.domain.period import Instant
    from moorage.usecases.ports import Ids

_AHEAD: Final[Mapping[LeaseState, tuple[EffectKind, ...]]] = {
    LeaseState.OFFERED: (EffectKind.EXPIRE,),
    LeaseState.PENDING: (
        EffectKind.PREPARE,
        EffectKind.ACTIVATE,
        EffectKind.RELEASE,
        EffectKind.ACT,
        EffectKind.END,
        EffectKind.CLOSE,
    ),
    LeaseState.STARTING: (
        EffectKind.ACTIVATE,
        EffectKind.RELEASE,
        EffectKind.ACT,
        EffectKind.END,
        EffectKind.CLOSE,
    ),
    LeaseState.ACTIVE: (
        EffectKind.RELEASE,
        EffectKind.ACT,
        EffectKind.END,
        EffectKind.CLOSE,
    ),
    LeaseState.ENDING: (EffectKind.ACT, EffectKind.CLOSE),
    LeaseState.CLOSED: (),
}
"""Lease state -> kinds of its timers, in the order of execution at equal instants."""


def timers_after_change(lease: Lease, ids: Ids, now: Instant) -> tuple[Change, ...]:
    """The changes that replace a changed lease's timers.

    See `first_timers` for the arguments.
    """
    return (DropEffects(lease.id, TIMERS), *first_timers(lease, ids, now))


def first_timers(lease: Lease, ids: Ids, now: Instant) -> tuple[Change, ...]:
    """The changes that create a new lease's timers.

    A timer with an instant before `now` is due at once.
    """
    upcoming = [one for kind in _AHEAD[lease.state] for one in _of_kind(kind, lease)]
    upcoming.sort(key=lambda one: one[1])
    return tuple(
        PutEffect(
            Effect(
                id=ids.uuid(),
                kind=kind,
                subject=lease.id,
                project_id=lease.project_id,
                due=due,
                not_before=due,
                details=details,
                created_at=now,
                updated_at=now,
            ),
            None,
        )
        for kind, due, details in upcoming
    )


def edge_instant(lease: Lease, kind: EffectKind) -> Instant:
    """The instant of a lease's edge, by its present terms. Not for actions (`EffectKind.ACT`)."""
    if kind is EffectKind.EXPIRE:
        assert lease.offer is not None, "only an offer expires so"
        return lease.offer.expires_at
    terms = lease.terms
    return {
        EffectKind.PREPARE: terms.occupied.start,
        EffectKind.ACTIVATE: terms.period.start,
        EffectKind.RELEASE: terms.expires_at,
        EffectKind.END: terms.period.end,
        EffectKind.CLOSE: terms.occupied.end,
    }[kind]


_Ahead = tuple[EffectKind, int, dict[str, object]]


def _of_kind(kind: EffectKind, lease: Lease) -> Iterator[_Ahead]:
    if kind is EffectKind.ACT:
        yield from _actions(lease)
    elif kind is not EffectKind.RELEASE or lease.terms.expiry is not None:
        yield kind, edge_instant(lease, kind), {}


def _actions(lease: Lease) -> Iterator[_Ahead]:
    """Timers of the owner's actions before an edge."""
    period = lease.terms.period
    for edge in Edge:
        at = period.start if edge is Edge.ON_START else period.end
        for action in actions_at(lease.actions, edge):
            if action.before:
                # An action before the end is due no earlier than the start of the lease.
                due = at - action.before
                due = due if edge is Edge.ON_START else max(due, period.start)
                yield EffectKind.ACT, due, {"edge": edge.value, "action": str(action), "at": at}
