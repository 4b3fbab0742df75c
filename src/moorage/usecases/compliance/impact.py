"""Finds what a change newly breaks: policies that are kept before it, and not after it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from moorage.domain.violations import FOUND
from moorage.usecases.compliance.judgement import judge
from moorage.usecases.compliance.records import violations_of

if TYPE_CHECKING:
    from collections.abc import Collection

    from moorage.domain.violations import Violation
    from moorage.engine.state.snapshot import Snapshot
    from moorage.usecases.environment import UseCaseEnvironment
    from moorage.usecases.ports import Store

NAMED: Final = 100
"""Violations that are named; all are counted."""
_AT_ONCE: Final = 100
"""Ensembles that are read together."""


@dataclass(frozen=True, slots=True)
class Impact:
    """What a change newly breaks, of the ensembles that were judged."""

    violations: tuple[Violation, ...]
    """The first ones, without id and time."""
    found: int
    """How many there are."""
    judged: int
    """How many ensembles were judged."""
    ensembles: int
    """How many there are."""


NOTHING: Final = Impact((), 0, 0, 0)


def ensembles_at(store: Store, snapshot: Snapshot, row: int) -> frozenset[str]:
    """Ids of the ensembles that have something booked on a host, or on servers there."""
    booked = [one for at in snapshot.at_host(row) for one in snapshot.bookings_of(at)]
    decisions = {one.decision for one in booked if one.decision is not None}
    return store.compliance.ensembles_of({one.consumer for one in booked}, decisions)


def newly_broken(
    env: UseCaseEnvironment,
    before: Snapshot,
    after: Snapshot,
    *,
    ensembles: Collection[str] | None = None,
    seconds: float | None = None,
) -> Impact:
    """Judge ensembles (None: all) on both snapshots, for at most so many seconds.

    Members out of service count as well as policies.
    """
    records = env.store.compliance
    ids = records.every_ensemble() if ensembles is None else sorted(ensembles)
    named: list[Violation] = []
    found = judged = 0
    end = None if seconds is None else env.stopwatch() + seconds
    for start in range(0, len(ids), _AT_ONCE):
        some = ids[start : start + _AT_ONCE]
        for one in records.ensembles_by_id(some):
            ensemble = one.ensemble
            then = list(violations_of(after, ensemble, judge(after, ensemble), FOUND))
            if then:
                now = violations_of(before, ensemble, judge(before, ensemble), FOUND)
                known = {each.key for each in now}
                fresh = [each for each in then if each.key not in known]
                found += len(fresh)
                named += fresh[: NAMED - len(named)]
        judged += len(some)
        if end is not None and env.stopwatch() >= end:
            break
    return Impact(tuple(named), found, judged, len(ids))
