"""Outward effects: notices, hooks and deletions, each stored once.

Their ids are derived from their content, so that a second write of the same effect changes nothing.
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


def lease_details(lease: Lease) -> dict[str, object]:
    """The details that every notice of a lease has."""
    period = lease.terms.period
    return {
        "lease": lease.id,
        "name": lease.name,
        "start": format_instant(period.start),
        "end": format_instant(period.end),
    }


def action_effects(
    lease: Lease, edge: Edge, action: Action, at: Instant, now: Instant
) -> Iterator[Change]:
    """The outward effect of an owner's action; none for actions inside the ledger.

    `at` is the edge's instant.
    """
    kinds = {ActionKind.NOTIFY: EffectKind.NOTIFY, ActionKind.HOOK: EffectKind.HOOK}
    if action.kind not in kinds:
        return
    details = {**lease_details(lease), "state": lease.state.value, "edge": edge.value}
    details["at"] = format_instant(at)
    if action.hook:
        details["hook"] = action.hook
    yield idempotent_effect(
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
    """The effect that deletes a server whose stay ends at `until`.

    In `details`, `because` is the reason of that end, a value of `EndReason`.
    """
    return idempotent_effect(
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
    """The id of a health notice of a lease with this previous generation."""
    return fact_id(EffectKind.NOTIFY, *health(lease_id, generation))


def health(lease_id: str, generation: int) -> tuple[object, ...]:
    """The identity of the notice; see `idempotent_effect`."""
    return lease_id, "health", generation


def preemption_id(lease_id: str) -> str:
    """The id of the notice that a lease was preempted."""
    return fact_id(EffectKind.NOTIFY, *preemption(lease_id))


def preemption(lease_id: str) -> tuple[object, ...]:
    """The identity of the notice; see `idempotent_effect`."""
    return lease_id, "preempted"


def idempotent_effect(  # noqa: PLR0913 - the fields of an effect
    kind: EffectKind,
    subject: str,
    project_id: str,
    *,
    due: Instant,
    now: Instant,
    details: Mapping[str, object],
    same: tuple[object, ...],
) -> PutEffect:
    """An effect with an id derived from `same`."""
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


def checked_lease_end(lease: Lease, now: Instant) -> Iterator[Change]:
    """The effect that reports the end of a checked lease to the operator's check."""
    if lease.checked:
        yield idempotent_effect(
            EffectKind.ENDED,
            lease.id,
            lease.project_id,
            due=now,
            now=now,
            details={
                **lease_details(lease),
                "id": lease.id,
                "project_id": lease.project_id,
                "user_id": lease.user_id,
                "units": lease.units,
            },
            same=(lease.id,),
        )
