"""The earliest window ahead: over a range of starts, as a lease for it would be looked for.

Each start is judged as the request would be that names it: with the policies of all who keep others
out then, and where a lease may displace preemptible users, without those who could be warned in
time. Leases that have not started stay where they are at first; then `sooner` looks for what comes
of their making room.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from moorage.domain.period import SECOND
from moorage.engine.build import Built, build
from moorage.engine.conflicts import Oracle
from moorage.engine.earliest import NOWHERE, Sought, earliest
from moorage.engine.starts import Starts, candidates, plausible
from moorage.usecases.closed import closed_hosts
from moorage.usecases.leases.yielding import aside, displaceable
from moorage.usecases.sooner import sooner

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from moorage.domain.ensembles import Ensemble
    from moorage.domain.period import Duration, Instant
    from moorage.domain.requests import EnsembleRequest
    from moorage.engine.snapshot import Snapshot
    from moorage.usecases.parts import Parts
    from moorage.usecases.trial import Trial

NOBODY: Final[Mapping[str, frozenset[str]]] = {}
"""No host is barred."""


@dataclass(frozen=True, eq=False)
class Ahead:
    """What is looked for, and in what."""

    ensemble: Ensemble
    request: EnsembleRequest
    """All of its members are to be placed; its period does not matter."""
    snapshot: Snapshot
    keepers: Sequence[Ensemble]
    """Ensembles that keep others out."""
    displacing_from: Instant | None = None
    """Windows that start then or later may displace preemptible users; None: none may."""
    barred: Mapping[str, frozenset[str]] | None = None
    seed: int = 0
    trial: Trial | None = None
    """The request for any window; None: nobody moves for it, and then what is found is only
    proved where moving others could not help."""

    def stated(self, starts: Starts, start: Instant, view: Snapshot) -> Built:
        """The problem of one window."""
        period = starts.window(start)
        closed = closed_hosts(self.keepers, self.snapshot, self.ensemble, period)
        request = replace(self.request, period=period)
        return build(request, view, closed={**(self.barred or NOBODY), **closed})


def soonest(
    parts: Parts, ahead: Ahead, starts: Starts, *, time_limit: Duration, later: bool = False
) -> Sought:
    """The earliest start in a range at which everything asked for fits.

    Args:
        parts: the solver, the notice that preemptible users have, and the stopwatch.
        ahead: what is looked for.
        starts: where; of the places, with lead and cleaning.
        time_limit: for the whole search; past it the answer is not proved.
        later: whether the first start of the range does not count, only what ends after it.
    """
    until = parts.stopwatch() + time_limit / SECOND

    def remaining() -> float:
        return until - parts.stopwatch()

    found, ranges = NOWHERE, _parts(parts, ahead, starts)
    for part, view in ranges:
        first = later and part.first == starts.first
        sought = _among(parts, ahead, part, view, remaining, later=first)
        found = Sought(sought.start, proved=found.proved and sought.proved)
        if found.start is not None:
            break
    found = replace(found, unmoved=found.proved)
    after = starts.first if later else None
    return sooner(parts, ahead, ranges, found, remaining, after=after)


def _parts(parts: Parts, ahead: Ahead, starts: Starts) -> list[tuple[Starts, Snapshot]]:
    """The range in two: where nobody may be displaced, and after that the fleet without them."""
    since = ahead.displacing_from
    if since is None or since > starts.last or not ahead.snapshot.preemptible.any():
        return [(starts, ahead.snapshot)]
    since = max(since, starts.first)
    late = Starts(since, starts.last, starts.length)
    own = ahead.request.own_consumers
    going = displaceable(ahead.snapshot, late.whole, parts.limits.notice, own)
    view = aside(ahead.snapshot, going.keys()) if going else ahead.snapshot
    if since == starts.first:
        return [(late, view)]
    return [(Starts(starts.first, since - 1, starts.length), ahead.snapshot), (late, view)]


def _among(
    parts: Parts,
    ahead: Ahead,
    starts: Starts,
    view: Snapshot,
    remaining: Callable[[], float],
    *,
    later: bool,
) -> Sought:
    built = ahead.stated(starts, starts.first, view)
    at = candidates(built, view, starts)
    at = at[1:] if later else at
    if not len(at):
        return NOWHERE
    left = at[plausible(built, view, starts, at)].tolist()
    oracle = Oracle(parts.solver, remaining, ahead.seed)
    return earliest(
        left,
        lambda start: oracle.feasible(ahead.stated(starts, start, view).problem),
        remaining,
    )
