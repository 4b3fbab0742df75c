"""Effects that somebody outside must hear of: written when their time has come, once.

Their ids follow from what they say. Whoever would say it again finds the id taken.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from moorage.domain.changes import PutEffect
from moorage.domain.effects import Effect, EffectKind, fact_id
from moorage.domain.lease_actions import ActionKind
from moorage.domain.period import format_instant

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from moorage.domain.changes import Change
    from moorage.domain.lease_actions import Action, Edge
    from moorage.domain.leases import Lease
    from moorage.domain.period import Instant


def of_lease(lease: Lease) -> dict[str, object]:
    """What is told of a lease, whatever is told."""
    period = lease.terms.period
    return {
        "lease": lease.id,
        "name": lease.name,
        "start": format_instant(period.start),
        "end": format_instant(period.end),
    }


def acted(lease: Lease, edge: Edge, action: Action, at: Instant, now: Instant) -> Iterator[Change]:
    """The effect of an owner's action on somebody outside; nothing for those done inside.

    Args:
        lease: whose action it is.
        edge: where it belongs.
        action: as it was written.
        at: the edge's instant.
        now: when it is written.
    """
    kinds = {ActionKind.NOTIFY: EffectKind.NOTIFY, ActionKind.HOOK: EffectKind.HOOK}
    if action.kind not in kinds:
        return
    details = {**of_lease(lease), "state": lease.state.value, "edge": edge.value}
    details["at"] = format_instant(at)
    if action.hook:
        details["hook"] = action.hook
    yield fact(
        kinds[action.kind],
        lease.id,
        lease.project_id,
        due=at - action.before,
        now=now,
        details=details,
        same=(lease.id, edge.value, action, at),
    )


def deletion(
    server: str, project_id: str, reason: str, until: Instant, now: Instant, **details: object
) -> PutEffect:
    """Have a server ended that should be gone at `until`.

    Of the details, `because` says in the words of `Because` why it has that end.
    """
    return fact(
        EffectKind.DELETE,
        server,
        project_id,
        due=until,
        now=now,
        details={
            "server": server,
            "reason": reason,
            "until": format_instant(until),
            "ends": format_instant(until),
            **details,
        },
        same=(server, reason, until),
    )


def health_id(lease_id: str, generation: int) -> str:
    """The id of what is told of the health of a lease, which had that generation before."""
    return fact_id(EffectKind.NOTIFY, *health(lease_id, generation))


def health(lease_id: str, generation: int) -> tuple[object, ...]:
    """What makes it the same; see `fact`."""
    return lease_id, "health", generation


def preemption_id(lease_id: str) -> str:
    """The id of what is told of a lease that has given up its places."""
    return fact_id(EffectKind.NOTIFY, *preemption(lease_id))


def preemption(lease_id: str) -> tuple[object, ...]:
    """What makes it the same; see `fact`."""
    return lease_id, "preempted"


def fact(  # noqa: PLR0913 - what, of whom, whose, when, what more, and what makes it the same
    kind: EffectKind,
    subject: str,
    project_id: str,
    *,
    due: Instant,
    now: Instant,
    details: Mapping[str, object],
    same: tuple[object, ...],
) -> PutEffect:
    """An effect under an id that follows from `same`."""
    effect = Effect(
        id=fact_id(kind, *same),
        kind=kind,
        subject=subject,
        project_id=project_id,
        due=due,
        not_before=due,
        details=details,
        created_at=now,
        updated_at=now,
    )
    return PutEffect(effect, None)
