"""The refusal of a range without a window: why its first start fails, and alternatives after it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from moorage.domain.explain import Stage
from moorage.domain.period import SECOND, format_instant
from moorage.engine.explain.conflicts import Oracle
from moorage.engine.explain.elements import on_empty_hosts
from moorage.usecases.refusals.alternatives import with_alternatives
from moorage.usecases.refusals.explanation import (
    explain_request,
    explain_static,
    refusal,
    with_nearest_relaxations,
)
from moorage.usecases.refusals.obstacles import in_time

if TYPE_CHECKING:
    from moorage.domain.errors import Infeasible
    from moorage.domain.explain import Explanation
    from moorage.domain.period import Duration
    from moorage.engine.capacity.starts import Starts
    from moorage.engine.joint.build import BuiltProblem
    from moorage.usecases.decide.request import RequestIdentity
    from moorage.usecases.environment import UseCaseEnvironment
    from moorage.usecases.refusals.trial import WindowRequest


def no_window_refusal(  # noqa: PLR0913 - the request, its range, its reader and its margins
    env: UseCaseEnvironment,
    window_request: WindowRequest,
    starts: Starts,
    identity: RequestIdentity,
    *,
    lead: Duration,
    cleaning: Duration,
    proved: bool,
    operator: bool,
) -> Infeasible:
    """The error for a range without a window; of stage `static` if it fails on an empty fleet too.

    `lead` is the time between the starts of the booked and of the tenant's period, `cleaning` that
    between their ends. `proved` says that no relocation of leases that have not started could help
    either. With `operator` the explanation may name other projects' leases by their ids.
    """
    env = env.with_disclosure_for(operator=operator)
    built = window_request.problem_at(starts, starts.first, window_request.snapshot)
    if (never := _never(env, window_request, built)) is not None:
        return refusal(env, built, never, identity, ensemble=window_request.ensemble)
    why = explain_request(env, built, window_request.snapshot, seed=window_request.seed)
    otherwise = (
        None
        if window_request.trial is None
        else window_request.trial.in_window(starts.window(starts.first))
    )
    if otherwise is not None:
        why = with_nearest_relaxations(env, why, built, otherwise)
    why = in_time(env, why, built, window_request.snapshot, operator=operator, lease=True)
    if why.stage is not Stage.STATIC:
        first, last = format_instant(starts.first), format_instant(starts.last)
        unmoved = "" if proved else ", with leases where they are"
        note = f"no start from {first} to {last}{unmoved}: this is why not at the first"
        why = replace(why, note=note if why.complete else f"{note}; {why.note}")
        latest = window_request.snapshot.taken_at + env.limits.horizon - starts.length
        after = replace(starts, first=starts.last, last=max(latest, starts.last))
        why = with_alternatives(
            env, why, window_request, built, otherwise, after, lead=lead, cleaning=cleaning
        )
    return refusal(env, built, why, identity, ensemble=window_request.ensemble)


THEN: Final = "fits then"
"""Result text of relaxations that help at the first start."""


def _never(
    env: UseCaseEnvironment, window_request: WindowRequest, built: BuiltProblem
) -> Explanation | None:
    """The static explanation if the request does not fit even an empty fleet; else None."""
    seconds = env.limits.explanation_budget / SECOND
    oracle = Oracle(env.solver, lambda: seconds, window_request.seed)
    if oracle.feasible_if_time(lambda: on_empty_hosts(built.request, built).problem) is not False:
        return None
    return explain_static(env, built, window_request.snapshot, seed=window_request.seed, helps=THEN)
