"""The ways to look for an answer, those that ask less of others first, and what each asks for."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from moorage.domain.errors import InvalidDescription
from moorage.domain.period import DAY, FOREVER, HOUR, Period
from moorage.engine.build import state
from moorage.engine.terrain import survey
from moorage.usecases.joint import request_for
from moorage.usecases.limits import check_stay

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from moorage.domain.ensembles import MemberName
    from moorage.domain.period import Duration, Instant
    from moorage.domain.requests import EnsembleRequest
    from moorage.engine.build import Built
    from moorage.engine.snapshot import Snapshot
    from moorage.usecases.joint import Ask
    from moorage.usecases.limits import Limits
    from moorage.usecases.proposal import Promise, Proposal
    from moorage.usecases.standing import Standing

_RUNS: Final = (28 * DAY, 7 * DAY, DAY, 4 * HOUR)
"""How long a preemptible ensemble is looked for where it cannot stay throughout; then any time."""


@dataclass(frozen=True, slots=True)
class Way:
    """One way to look for an answer."""

    anew: Callable[[Standing], frozenset[MemberName]]
    """See `Proposal.anew`."""
    displacing: bool = False
    """Whether preemptible users end early for it."""
    run: Duration | None = None
    """Time enough for a preemptible ensemble; None: all that it asks for."""


def ways(proposal: Proposal, ask: Ask, notice: Duration) -> Iterator[Way]:
    """The ways to look for one proposal's answer."""
    plain = [Way(proposal.anew)]
    if proposal.or_anew is not None:
        plain.append(Way(proposal.or_anew))
    yield from plain
    if proposal.promise is not None:
        if may_displace(proposal.promise, notice):
            yield from (replace(way, displacing=True) for way in plain)
    elif ask.preemptible:
        yield from (replace(plain[0], run=run) for run in (*_RUNS, notice) if run >= notice)


def may_displace(promise: Promise, notice: Duration) -> bool:
    """Whether preemptible users may end for it: for an offer, who need not go while it is one."""
    return not promise.offered or promise.period.start - 2 * notice >= promise.expires_at


def asked_period(limits: Limits, promise: Promise | None, ask: Ask, now: Instant) -> Period:
    """When the places are kept.

    Raises:
        InvalidDescription: a stay that is over already.
        LimitExceeded: one that ends beyond the horizon, unless it is carried on.
    """
    if promise is not None:
        return promise.period
    until = FOREVER if ask.until is None else ask.until
    if until <= now:
        raise InvalidDescription("the end of the stay lies in the past", path="until")
    if not ask.as_before:
        check_stay(limits, until, now)
    return Period(now, until)


def request_by(
    way: Way, proposal: Proposal, ask: Ask, stand: Standing, period: Period
) -> EnsembleRequest:
    """What one way asks for."""
    ahead = Period(max(period.start, stand.at), period.end)
    request = request_for(proposal.ensemble, stand, way.anew(stand), ahead, ask.objective)
    return replace(
        request,
        roles=proposal.roles or request.roles,
        own_consumers=request.own_consumers | proposal.freed,
        released=request.released | proposal.freed,
        restated=proposal.restated,
    )


def built_for(
    request: EnsembleRequest,
    view: Snapshot,
    run: Duration | None,
    closed: Mapping[str, frozenset[str]],
) -> Built:
    """The problem; with `run`, room counts for so long only, and company all the time."""
    terrain = survey(view, request)
    if run is not None and (shorter := brief(request.period, run)) != request.period:
        first = survey(view, replace(request, period=shorter))
        terrain = replace(first, occupants_of=terrain.occupants_of)
    return state(request, terrain, closed=closed)


def brief(stay: Period, run: Duration) -> Period:
    """The beginning of a stay."""
    return Period(stay.start, min(stay.start + run, stay.end))
