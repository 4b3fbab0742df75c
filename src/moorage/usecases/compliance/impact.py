"""Finds what a change newly breaks: policies that are kept before it, and not after it.

After a dry run that is judged in a hypothetical ledger, which has what was left out.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeVar

from moorage.domain.violations import FOUND
from moorage.usecases.compliance.disclosure import violation_seen_by
from moorage.usecases.compliance.judgement import judge
from moorage.usecases.compliance.records import violations_of

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from moorage.domain.ensembles import Ensemble
    from moorage.domain.violations import Violation
    from moorage.engine.state.snapshot import Snapshot
    from moorage.usecases.compliance_ports import ComplianceRecords
    from moorage.usecases.environment import UseCaseEnvironment
    from moorage.usecases.ports import Caller, Store
    from moorage.usecases.shared.environment import Environment

T = TypeVar("T")

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


def ensembles_at(store: Store, snapshot: Snapshot, *rows: int) -> frozenset[str]:
    """Ids of the ensembles that have something booked on these hosts, or on servers there."""
    booked = [
        one for row in rows for at in snapshot.at_host(row) for one in snapshot.bookings_of(at)
    ]
    decisions = {one.decision for one in booked if one.decision is not None}
    return store.compliance.ensembles_of({one.consumer for one in booked}, decisions)


def newly_broken(
    env: Environment,
    before: Snapshot,
    after: Snapshot,
    *,
    ensembles: Collection[str] | None = None,
    seconds: float | None = None,
    then: Store | None = None,
) -> Impact:
    """Judge ensembles (None: all) on both snapshots, for at most so many seconds.

    Those in a set are judged by id, others in their order. `then` has the ensembles as they are
    afterwards, where the change concerns them, too. Members out of service count as well as
    policies.
    """
    records = env.store.compliance
    ids = _in_order(records, ensembles)
    named: list[Violation] = []
    found = judged = 0
    end = None if seconds is None else env.stopwatch() + seconds
    for start in range(0, len(ids), _AT_ONCE):
        some = ids[start : start + _AT_ONCE]
        known = _by_id(env.store, some)
        changed = known if then is None else _by_id(then, some)
        for one in changed.values():
            old = known.get(one.id)
            fresh = _begun(None if old is None else (before, old), (after, one))
            found += len(fresh)
            named += fresh[: NAMED - len(named)]
        judged += len(some)
        if end is not None and env.stopwatch() >= end:
            break
    return Impact(tuple(named), found, judged, len(ids))


def _by_id(store: Store, ids: Collection[str]) -> dict[str, Ensemble]:
    return {one.ensemble.id: one.ensemble for one in store.compliance.ensembles_by_id(ids)}


def _in_order(records: ComplianceRecords, ensembles: Collection[str] | None) -> Sequence[str]:
    if ensembles is None:
        return records.every_ensemble()
    return sorted(ensembles) if isinstance(ensembles, AbstractSet) else tuple(ensembles)


def _begun(
    before: tuple[Snapshot, Ensemble] | None, after: tuple[Snapshot, Ensemble]
) -> list[Violation]:
    """The violations that an ensemble has after a change and not before it."""
    then = list(violations_of(*after, judge(*after), FOUND))
    if before is None or not then:
        return then
    known = {one.key for one in violations_of(*before, judge(*before), FOUND)}
    return [one for one in then if one.key not in known]


def with_impact(
    env: UseCaseEnvironment,
    caller: Caller,
    ensembles: Collection[str],
    use_case: Callable[[UseCaseEnvironment, Caller], T],
) -> tuple[T, Impact]:
    """The result of a use case, and what it newly breaks, as the caller may see it.

    Judged are these ensembles and those whose policies refer to them. What others change
    meanwhile counts as well.
    """
    records = env.store.compliance
    before = env.store.snapshot()
    concerned = {*ensembles, *records.referring(ensembles)}
    known = {one.ensemble.id: one.ensemble for one in records.ensembles_by_id(concerned)}
    done = use_case(env, caller)
    outcome = env.store.hypothetical() if env.store.left_out else env.store
    after = outcome.snapshot()
    broken: list[Violation] = []
    judged = 0
    for one in _by_id(outcome, concerned).values():
        old = known.get(one.id)
        judged += 1
        every = _begun(None if old is None else (before, old), (after, one))
        broken += (seen for each in every if (seen := violation_seen_by(caller, one, each)))
    return done, Impact(tuple(broken[:NAMED]), len(broken), judged, judged)
