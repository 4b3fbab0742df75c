"""Replanning shortly before a lease starts, so that fewer servers end for it.

Victims were chosen when the lease was granted, or when they were created. Until the lease starts
other servers may have ended, and its places may still change (see `replanning`). So shortly before
the first victim's end, three searches look for places: with all victims staying, for the lease
alone; the same with other planned leases moving; and with the fewest displacements, be it of other
servers.

A result is used only if it displaces fewer servers, or lets some run longer without displacing
others. A server that still has to end, later and for another lease, does not make up for a new
victim. New victims get the full notice and have no higher priority than the old ones; granted
leases stay granted.

Several workers may do this at once: the slower one finds the lease changed.
"""

from __future__ import annotations

import logging
from collections import Counter
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

import numpy as np

from moorage.domain.changes import EndBookings
from moorage.domain.errors import (
    Busy,
    CapacityExceeded,
    ConcurrentUpdate,
    ConstraintViolated,
    DuplicateName,
    MoorageError,
    NotFound,
)
from moorage.domain.period import SECOND, Period
from moorage.engine.joint.build import build
from moorage.engine.joint.fleet_room import with_fleet_room
from moorage.engine.state.overlay import with_bookings
from moorage.policies.primitives import NeverOn
from moorage.usecases.decide.member_places import bookings_of
from moorage.usecases.decide.reliance import reliance
from moorage.usecases.decide.solution import recheck_placement, solve_and_verify
from moorage.usecases.preemption.displacement import SPARING, prefer_vacant_hosts
from moorage.usecases.preemption.eviction import warnings
from moorage.usecases.preemption.restoration import restored_ends
from moorage.usecases.preemption.victims import (
    displaceable,
    displaced_for,
    displacements_of,
    last_end,
    victims,
    without_candidates,
)
from moorage.usecases.relocation.movable_leases import LeaseMove, movable
from moorage.usecases.relocation.replanning import ReplanResult, lease_party, moved_places, replan

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from moorage.domain.bookings import Booking
    from moorage.domain.ensembles import Ensemble
    from moorage.domain.period import Instant
    from moorage.engine.joint.build import BuiltProblem
    from moorage.engine.state.snapshot import Snapshot
    from moorage.policies.primitives import Primitive
    from moorage.usecases.decide.search_result import DisplacedConsumer
    from moorage.usecases.decide.solution import VerifiedPlacement
    from moorage.usecases.preemption.pending_leases import PendingLease
    from moorage.usecases.preemption.victims import PreemptionCandidate
    from moorage.usecases.shared.environment import Environment

AHEAD: Final = 6
"""How long before the first victim's end the search begins, in notices."""
_LIMIT: Final = SECOND
"""Time limit of each of the three searches."""
BACKOFF: Final = 20
"""After a failed search, the lease rests this many times as long as the failed searches of all
leases took: they use at most a twentieth of a worker's time."""
BUDGET: Final = 2.0
"""Seconds of one round after which no further lease is replanned."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ReplanAttempt:
    """The last failed search for better places, and the ledger's revision then."""

    revision: int
    took: float
    """Seconds."""
    retry_at: float
    """On the stopwatch."""
    over: Instant
    """The first victim's end, after which the record is dropped."""


class ReplanWorker:
    """Runs in one worker. Its cache only saves work."""

    def __init__(self, env: Environment) -> None:
        self._env = env
        self._tried: dict[str, ReplanAttempt] = {}

    def run_round(self, snapshot: Snapshot) -> bool:
        """Replan leases whose victims end soon; True if the time was over before all were tried.

        Raises:
            MoorageError: the ledger is out of reach.
        """
        env, now = self._env, snapshot.taken_at
        self._tried = {one: tried for one, tried in self._tried.items() if tried.over > now}
        soon = leases_with_departures(snapshot, now + AHEAD * env.limits.notice)
        due = [
            one for one in sorted(soon, key=lambda one: soon[one]) if self._is_due(one, snapshot)
        ]
        began = env.stopwatch()
        for number, lease_id in enumerate(due):
            if number and env.stopwatch() >= began + BUDGET:
                return True
            at = env.stopwatch()
            if not _replan(env, lease_id):
                self._back_off(lease_id, snapshot, env.stopwatch() - at, soon[lease_id])
        return False

    def _back_off(self, lease_id: str, snapshot: Snapshot, took: float, over: Instant) -> None:
        self._tried.pop(lease_id, None)
        pause = BACKOFF * (took + sum(one.took for one in self._tried.values()))
        until = self._env.stopwatch() + pause
        self._tried[lease_id] = ReplanAttempt(snapshot.revision, took, until, over)

    def _is_due(self, lease_id: str, snapshot: Snapshot) -> bool:
        tried = self._tried.get(lease_id)
        return tried is None or (
            tried.revision != snapshot.revision and self._env.stopwatch() >= tried.retry_at
        )


def leases_with_departures(snapshot: Snapshot, until: Instant) -> dict[str, Instant]:
    """Lease id -> the first end of a consumer displaced for it, up to an instant."""
    now = snapshot.taken_at
    found: dict[str, Instant] = {}
    for row in np.flatnonzero(snapshot.preemptible & (snapshot.next_change <= until)).tolist():
        for one in snapshot.bookings_of(row):
            if one.yields_to is not None and now < one.period.end <= until:
                first = found.get(one.yields_to, one.period.end)
                found[one.yields_to] = min(first, one.period.end)
    return found


def _replan(env: Environment, lease_id: str) -> bool:
    """Replan one lease; True if the ledger has changed."""
    try:
        fewer = replan_lease(env, lease_id)
    except (CapacityExceeded, ConcurrentUpdate, ConstraintViolated, DuplicateName, NotFound):
        return True  # somebody was quicker: the ledger has moved, and is looked at again
    except MoorageError as error:
        if not isinstance(error, Busy):
            _log.exception("could not replan lease %s", lease_id)
        return False
    if fewer:
        _log.info("lease %s is replanned: %d fewer servers end for it", lease_id, fewer)
    return fewer > 0


@dataclass(frozen=True, eq=False)
class BetterPlacement:
    """Better places for a lease, with the leases moved and the consumers displaced for them."""

    moved: tuple[LeaseMove, ...]
    placement: VerifiedPlacement
    """The lease's placement, checked with all consumers that stay."""
    fresh: tuple[DisplacedConsumer, ...] = ()
    """New victims, displaced instead of the old ones."""
    giving_way: Mapping[str, frozenset[str]] = field(default_factory=lambda: MappingProxyType({}))
    """New victim -> the providers it is booked on."""


def replan_lease(env: Environment, lease_id: str) -> int:
    """Move a lease that has not started to places for which fewer servers end.

    Returns:
        How many servers run longer, less the new victims; 0 if nothing was written.

    Raises:
        Busy: time ran out.
        ConcurrentUpdate, CapacityExceeded, ConstraintViolated, NotFound: the ledger has changed
            meanwhile.
    """
    store = env.store
    snapshot = store.snapshot()
    exclusive = store.exclusive_ensembles(snapshot)
    planned = movable(store, snapshot, store.lease(lease_id).decision_id)
    now, notice = snapshot.taken_at, env.limits.notice
    going = [one for one in displaced_for(store, lease_id) if now < one.end < one.declared_end]
    if planned is None or not going:
        return 0
    better = _Search(env, snapshot, exclusive.ensembles, planned, going).answer()
    if better is None:
        return 0
    moved = better.moved
    instead: dict[str, tuple[Booking, ...]] = {}
    giving_way = dict(better.giving_way)
    for one in moved:
        instead |= one.planned.bookings(one.places)
        giving_way |= one.relied()
    instead |= {one.consumer: _until(snapshot, one.consumer, one.end) for one in better.fresh}
    leases = [one.planned.lease.id for one in moved]
    back = tuple(restored_ends(store, snapshot, leases, instead, notice))
    later = [one for one in back if isinstance(one, EndBookings)]
    if better.fresh:
        # A server that ends later, for another lease, does not make up for one that ends now.
        later = [one for one in later if one.yields_to is None]
    fewer = len(later) - len(better.fresh)
    if fewer <= 0:
        return 0
    beside = frozenset[str]().union(*(one.providers() for one in moved))
    relied = reliance(snapshot, better.placement, planned.member_places, giving_way, beside)
    changes = (
        *(one for each in moved for one in each.changes(now)),
        *back,
        *(EndBookings(frozenset({one.consumer}), one.end, lease_id) for one in better.fresh),
        *warnings(store, better.fresh, replace(planned.decision, created_at=now)),
    )
    seen = snapshot.exclusive_revision
    store.commit(replace(relied, changes=changes, exclusive_revision=seen))
    return fewer


def _counted(
    built: BuiltProblem, view: Snapshot, may_go: Iterable[PreemptionCandidate]
) -> BuiltProblem:
    """The problem with the weight of each host multiplied by the number of its victims."""
    there = Counter(
        view.uuids[root]
        for one in may_go
        for root in {int(view.root[view.row_of[uuid]]) for uuid in one.providers}
    )
    hosts, most = built.problem.hosts, max(there.values(), default=1)
    primitives: list[Primitive] = []
    for one in built.problem.primitives:
        if isinstance(one, NeverOn) and one.policy == SPARING and one.weight is not None:
            rows: dict[int, set[int]] = {}
            for row in one.hosts:
                rows.setdefault(max(there[hosts[row]], 1), set()).add(row)
            primitives += (
                replace(one, hosts=frozenset(some), weight=one.weight * count)
                for count, some in sorted(rows.items())
            )
        else:
            weight = None if one.weight is None else one.weight * most
            primitives.append(replace(one, weight=weight))
    return replace(built, problem=replace(built.problem, primitives=tuple(primitives)))


def _until(snapshot: Snapshot, consumer: str, end: Instant) -> tuple[Booking, ...]:
    """A consumer's bookings with another end."""
    return tuple(
        replace(one, period=Period(one.period.start, end))
        for one in bookings_of(snapshot, consumer)
    )


@dataclass(frozen=True, eq=False)
class _Search:
    """Searches for other places of one lease, first without any displacement."""

    env: Environment
    snapshot: Snapshot
    exclusive: Sequence[Ensemble]
    planned: PendingLease
    going: Sequence[DisplacedConsumer]

    def answer(self) -> BetterPlacement | None:
        """The best placement found; the caller checks whether it displaces fewer servers."""
        declared = {one.consumer: one.declared_end for one in self.going}
        staying = with_bookings(
            self.snapshot,
            {name: _until(self.snapshot, name, end) for name, end in declared.items()},
        )
        built = self._built(staying)
        try:
            found = solve_and_verify(self.env.solver, built, time_limit=_LIMIT, seed=self._seed)
        except Busy:
            found = None
        if found is not None:
            return self._better(found)
        if not any(role.decided_alone for role in self.planned.ensemble.roles):
            together = replan(
                self.env.store,
                self.env.solver,
                staying,
                built,
                self.exclusive,
                time_limit=_LIMIT,
                seed=self._seed,
            )
            if isinstance(together, ReplanResult):
                return self._better(together.placement, together.moved)
        return self._fewer(built, staying)

    def _fewer(self, built: BuiltProblem, staying: Snapshot) -> BetterPlacement | None:
        """Places with fewer displacements than now.

        New victims have no higher priority than any of the present ones.
        """
        period, notice = built.request.period, self.env.limits.notice
        own = self.planned.member_places.consumers
        who = {one.consumer for one in self.going}
        most = min(one.priority for one in self.going)
        may_go = {
            name: one
            for name, one in displaceable(staying, period, notice, own).items()
            if name in who or one.priority <= most
        }
        end = last_end(staying.taken_at, period.start, notice)
        if end is None:
            return None
        bare = self._built(without_candidates(staying, may_go.keys()))
        weighted = _counted(prefer_vacant_hosts(bare, [staying]), staying, may_go.values())
        found = solve_and_verify(self.env.solver, weighted, time_limit=_LIMIT, seed=self._seed)
        if found is None:
            return None
        empty = with_bookings(staying, dict.fromkeys(self.planned.consumers, ()))
        out = victims(empty, found.places.values(), may_go, period)
        if out is None or len(out) >= len(who):
            return None
        there = without_candidates(staying, out)
        judged = recheck_placement(found, build(bare.request, there, closed=bare.closed))
        better = None if judged is None else self._better(judged)
        if better is None:
            return None
        fresh = displacements_of(may_go, out - who, end)
        providers = {one.consumer: may_go[one.consumer].providers for one in fresh}
        return replace(better, fresh=fresh, giving_way=providers)

    @property
    def _seed(self) -> int:
        return self.planned.decision.solve.seed

    def _built(self, view: Snapshot) -> BuiltProblem:
        built = lease_party(view, self.planned, self.planned.consumers, self.exclusive).built
        return with_fleet_room(built, view, self.env.store.flavors)

    def _better(
        self, found: VerifiedPlacement, others: tuple[LeaseMove, ...] = ()
    ) -> BetterPlacement | None:
        places = moved_places(self.planned, found)
        if not places:
            return None
        return BetterPlacement((LeaseMove(self.planned, places), *others), found)
