"""Why there is no window in a range: the explanation of its first, and what comes after it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from moorage.domain.explain import Stage
from moorage.domain.period import SECOND, format_instant
from moorage.engine.conflicts import Oracle, emptied
from moorage.usecases.explain import UNTRIED, explained, explained_of_empty, nearest, refusal
from moorage.usecases.foresight import foreseen
from moorage.usecases.leases.obstacles import in_time

if TYPE_CHECKING:
    from moorage.domain.errors import Infeasible
    from moorage.domain.explain import Explanation
    from moorage.domain.period import Duration
    from moorage.engine.build import Built
    from moorage.engine.starts import Starts
    from moorage.usecases.ahead import Ahead
    from moorage.usecases.parts import Parts
    from moorage.usecases.proposal import Naming


def refuse(  # noqa: PLR0913 - what, where, for whom, and whether it is kept
    parts: Parts,
    ahead: Ahead,
    starts: Starts,
    naming: Naming,
    *,
    lead: Duration,
    cleaning: Duration,
    proved: bool,
    operator: bool,
    stored: bool,
) -> Infeasible:
    """The refusal of a range: of stage `static` where an empty fleet would not do either.

    Args:
        parts: the solver, and the budget.
        ahead: what was looked for in vain.
        starts: the range.
        naming: the request.
        lead: how long after the beginning of what is booked the tenant's time begins.
        cleaning: how long before the end of it the tenant's ends.
        proved: whether there is none however leases that have not started move for it.
        operator: whether who asks may know other projects' leases by their ids.
        stored: whether the explanation is kept.
    """
    built = ahead.stated(starts, starts.first, ahead.snapshot)
    if (never := _never(parts, ahead, built)) is not None:
        return refusal(parts, built, never, naming, stored=stored)
    why = explained(parts, built, ahead.snapshot, seed=ahead.seed)
    otherwise = None if ahead.trial is None else ahead.trial.at(starts.window(starts.first))
    if otherwise is not None:
        why = nearest(parts, why, built, otherwise)
    why = in_time(parts, why, built, ahead.snapshot, operator=operator, lease=True)
    if why.stage is not Stage.STATIC:
        first, last = format_instant(starts.first), format_instant(starts.last)
        unmoved = "" if proved else ", with leases where they are"
        note = f"no start from {first} to {last}{unmoved}: this is why not at the first"
        why = replace(why, note=f"{note}; {UNTRIED}" if why.note == UNTRIED else note)
        latest = ahead.snapshot.taken_at + parts.limits.horizon - starts.length
        after = replace(starts, first=starts.last, last=max(latest, starts.last))
        why = foreseen(parts, why, ahead, built, otherwise, after, lead=lead, cleaning=cleaning)
    return refusal(parts, built, why, naming, stored=stored)


THEN: Final = "fits then"
"""What is known of relaxations that help at the first start."""


def _never(parts: Parts, ahead: Ahead, built: Built) -> Explanation | None:
    """The explanation where no start would do, as an empty fleet would not."""
    seconds = parts.limits.explanation_budget / SECOND
    empty = emptied(built.request, built)
    if Oracle(parts.solver, lambda: seconds, ahead.seed).feasible(empty.problem) is not False:
        return None
    return explained_of_empty(parts, built, ahead.snapshot, seed=ahead.seed, helps=THEN)
