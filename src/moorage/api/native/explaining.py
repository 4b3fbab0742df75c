"""Explanations on the wire, and what of them a tenant sees."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import UNSET

from moorage.api.native.answers import (
    Conflict,
    ConflictPart,
    Counts,
    Explanation,
    Largest,
    Relaxation,
)
from moorage.api.native.views import instant
from moorage.domain.period import FOREVER, format_instant
from moorage.usecases.labels import bucket

if TYPE_CHECKING:
    from moorage.api.native.call import Call
    from moorage.domain import explain


def explanation_view(
    call: Call, explanation: explain.Explanation, instance: str | None = None
) -> Explanation:
    """An explanation; numbers about the fleet are bucketed for tenants."""
    parts = [conflict_parts(call, one) for one in explanation.conflicts]
    minimal = [one.minimal for one in explanation.conflicts]
    window, most = explanation.earliest, explanation.largest
    return Explanation(
        id=explanation.id,
        verdict=explanation.verdict,
        stage=explanation.stage.value,
        computed_at=format_instant(explanation.computed_at),
        revision=explanation.revision,
        conflict=parts[0] if parts else [],
        minimal=minimal[0] if minimal else False,
        more_conflicts=[
            Conflict(conflict, proved)
            for conflict, proved in zip(parts[1:], minimal[1:], strict=True)
        ],
        relaxations=[relaxation_view(one) for one in explanation.relaxations],
        note=explanation.note,
        earliest_start=instant(window.start) if window else None,
        earliest_end=instant(FOREVER if window.end is None else window.end) if window else None,
        earliest_proved=window is not None and window.proved,
        earliest_beyond=window is not None and window.beyond,
        largest=Largest(most.role, most.count, most.asked) if most else None,
        other_zones=list(explanation.zones),
        counts=Counts(
            considered=_count(call, explanation.considered),
            rejected={name: _count(call, n) for name, n in sorted(explanation.rejected.items())},
        ),
        links=[call.link("self", "explanations", explanation.id)],
        instance=UNSET if instance is None else msgspec.Raw(instance.encode()),
    )


def conflict_parts(call: Call, conflict: explain.Conflict) -> list[ConflictPart]:
    """Both sides of a conflict: what each element needs, and the facts it runs into."""
    needs = [
        ConflictPart(**{element.kind: element.name}, needs=need)
        for element, need in zip(conflict.elements, conflict.needs, strict=True)
    ]
    facts = [ConflictPart(topology=name, have=_count(call, n)) for name, n in conflict.facts]
    return [*needs, *facts]


def relaxation_view(relaxation: explain.Relaxation) -> Relaxation:
    """`{"policy": "db-ha", "keep": [3, 2]}` and what it cost and gave."""
    change = relaxation.change
    written: dict[str, Any] = {
        change.subject: change.name,
        change.field: [change.before, change.after],
    }
    return Relaxation(
        change=written,
        cost=relaxation.cost,
        verified=relaxation.verified,
        result=relaxation.result,
    )


def _count(call: Call, count: int) -> int | str:
    return count if call.caller.operator else bucket(count)
