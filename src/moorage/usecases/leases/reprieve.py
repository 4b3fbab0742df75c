"""Shortly before a lease: other places for it, where fewer preemptible servers have to go.

Whom a lease displaces was chosen when it was granted, or when they came. Until it starts others
have gone, and its places may still change (see `replan`). So shortly before servers go for a
lease, places are looked for once more as if they stayed: for all of its members, then together
with other leases that have not started, and at last where the fewest have to go, be it others.
What is found is taken only if fewer go by it. Who goes instead is warned as long before as anybody
is, and has no higher priority than those who stay; whatever was promised stays promised.

Several workers may do this at once: whoever is slower finds the lease changed.
"""

from __future__ import annotations

import logging
from collections import Counter
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

import numpy as np

from moorage.domain.changes import Changeset, EndBookings
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
from moorage.engine.build import state
from moorage.engine.overlay import exchanged
from moorage.engine.terrain import survey
from moorage.policies.primitives import NeverOn
from moorage.usecases.joint import find, still_holds
from moorage.usecases.leases.evict import warnings
from moorage.usecases.leases.given_back import given_back
from moorage.usecases.leases.planned import Moved, movable
from moorage.usecases.leases.replan import Replanned, elsewhere, party, replanned
from moorage.usecases.leases.sparing import SPARING, sparing
from moorage.usecases.leases.yielding import (
    aside,
    displaceable,
    displaced,
    last_end,
    victims,
    yielders,
)
from moorage.usecases.reliance import reliance
from moorage.usecases.standing import bookings_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from moorage.domain.bookings import Booking
    from moorage.domain.ensembles import Ensemble
    from moorage.domain.period import Instant
    from moorage.engine.build import Built
    from moorage.engine.snapshot import Snapshot
    from moorage.policies.primitives import Primitive
    from moorage.usecases.joint import Found
    from moorage.usecases.leases.asking import Displaced
    from moorage.usecases.leases.planned import Planned
    from moorage.usecases.leases.yielding import Candidate
    from moorage.usecases.parts import Parts

AHEAD: Final = 6
"""How many notices before somebody goes the search begins; until then much may still change."""
_LIMIT: Final = SECOND
"""For each of the three searches."""
REST: Final = 20
"""How many times as long as it took in vain, for all leases together, nothing is looked for again
for the same lease: so what is in vain takes a twentieth of a worker's time at most."""
BUDGET: Final = 2.0
"""Seconds in one look after which other work has its turn."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Tried:
    """When places were last looked for in vain: at which state of the ledger."""

    revision: int
    took: float
    """Seconds."""
    rests_until: float
    """On the stopwatch."""
    over: Instant
    """When it is too late for this lease."""


class Reprieving:
    """One worker's rounds. What it remembers saves work; nothing depends on it."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._tried: dict[str, Tried] = {}

    def look(self, snapshot: Snapshot) -> bool:
        """Look for other places of leases for which servers go soon; True if more are due.

        Raises:
            MoorageError: the ledger is out of reach.
        """
        parts, now = self._parts, snapshot.taken_at
        self._tried = {one: tried for one, tried in self._tried.items() if tried.over > now}
        soon = leaving(snapshot, now + AHEAD * parts.limits.notice)
        due = [
            one for one in sorted(soon, key=lambda one: soon[one]) if self._is_due(one, snapshot)
        ]
        began = parts.stopwatch()
        for number, lease_id in enumerate(due):
            if number and parts.stopwatch() >= began + BUDGET:
                return True
            at = parts.stopwatch()
            if not _reprieve(parts, lease_id):
                self._rest(lease_id, snapshot, parts.stopwatch() - at, soon[lease_id])
        return False

    def _rest(self, lease_id: str, snapshot: Snapshot, took: float, over: Instant) -> None:
        self._tried.pop(lease_id, None)
        rest = REST * (took + sum(one.took for one in self._tried.values()))
        until = self._parts.stopwatch() + rest
        self._tried[lease_id] = Tried(snapshot.revision, took, until, over)

    def _is_due(self, lease_id: str, snapshot: Snapshot) -> bool:
        tried = self._tried.get(lease_id)
        return tried is None or (
            tried.revision != snapshot.revision and self._parts.stopwatch() >= tried.rests_until
        )


def leaving(snapshot: Snapshot, until: Instant) -> dict[str, Instant]:
    """Leases for which somebody goes by an instant -> when the first does."""
    now = snapshot.taken_at
    found: dict[str, Instant] = {}
    for row in np.flatnonzero(snapshot.preemptible & (snapshot.breaks <= until)).tolist():
        for one in snapshot.bookings_of(row):
            if one.yields_to is not None and now < one.period.end <= until:
                first = found.get(one.yields_to, one.period.end)
                found[one.yields_to] = min(first, one.period.end)
    return found


def _reprieve(parts: Parts, lease_id: str) -> bool:
    """Whether something was written, or may have been by somebody else."""
    try:
        fewer = reprieve(parts, lease_id)
    except (CapacityExceeded, ConcurrentUpdate, ConstraintViolated, DuplicateName, NotFound):
        return True  # somebody was quicker: the ledger has moved, and is looked at again
    except MoorageError as error:
        if not isinstance(error, Busy):
            _log.exception("could not look for other places of lease %s", lease_id)
        return False
    if fewer:
        _log.info("lease %s is planned anew: %d servers fewer go for it", lease_id, fewer)
    return fewer > 0


@dataclass(frozen=True, eq=False)
class Better:
    """Other places for a lease, and what becomes of others."""

    moved: tuple[Moved, ...]
    found: Found
    """The lease's answer, judged with everybody who is there then."""
    fresh: tuple[Displaced, ...] = ()
    """Who goes instead of those who may stay."""
    giving_way: Mapping[str, frozenset[str]] = field(default_factory=lambda: MappingProxyType({}))
    """The same: consumer -> the providers it is booked on."""


def reprieve(parts: Parts, lease_id: str) -> int:
    """Place a lease that has not started where fewer servers go for it.

    Returns:
        How many fewer they are; with none nothing was written.

    Raises:
        Busy: time ran out.
        ConcurrentUpdate, CapacityExceeded, ConstraintViolated, NotFound: overtaken.
    """
    store = parts.store
    keepers = store.keepers()
    snapshot = store.snapshot()
    planned = movable(store, snapshot, store.lease(lease_id).decision_id)
    now, notice = snapshot.taken_at, parts.limits.notice
    going = [one for one in yielders(store, lease_id) if now < one.end < one.declared_end]
    if planned is None or not going:
        return 0
    better = _Search(parts, snapshot, keepers.ensembles, planned, going).answer()
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
    back = tuple(given_back(store, snapshot, leases, instead, notice))
    fewer = sum(isinstance(one, EndBookings) for one in back) - len(better.fresh)
    if fewer <= 0:
        return 0
    beside = frozenset[str]().union(*(one.providers() for one in moved))
    relied = reliance(snapshot, better.found, planned.stand, giving_way, beside)
    changes = (
        *(one for each in moved for one in each.changes(now)),
        *back,
        *(EndBookings(frozenset({one.consumer}), one.end, lease_id) for one in better.fresh),
        *warnings(store, better.fresh, replace(planned.decision, created_at=now)),
    )
    store.commit(
        Changeset(
            changes,
            relies_on=relied.relies_on,
            seen=relied.seen,
            standing=relied.standing,
            topology_revision=snapshot.topology_revision,
            keepers_revision=keepers.revision,
        )
    )
    return fewer


def _counted(built: Built, view: Snapshot, may_go: Iterable[Candidate]) -> Built:
    """The same problem, in which a host is grudged the more, the more have to go there."""
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
    """Looks for other places of one lease, those first where nobody has to go."""

    parts: Parts
    snapshot: Snapshot
    keepers: Sequence[Ensemble]
    planned: Planned
    going: Sequence[Displaced]

    def answer(self) -> Better | None:
        """The best there is; its gain is for the caller to judge."""
        declared = {one.consumer: one.declared_end for one in self.going}
        staying = exchanged(
            self.snapshot,
            {name: _until(self.snapshot, name, end) for name, end in declared.items()},
        )
        built = self._built(staying)
        try:
            found = find(self.parts.solver, built, time_limit=_LIMIT, seed=self._seed)
        except Busy:
            found = None
        if found is not None:
            return self._better(found)
        if not any(role.groups for role in self.planned.ensemble.roles):
            together = replanned(
                self.parts.store,
                self.parts.solver,
                staying,
                built,
                self.keepers,
                time_limit=_LIMIT,
                seed=self._seed,
            )
            if isinstance(together, Replanned):
                return self._better(together.found, together.moved)
        return self._fewer(staying)

    def _fewer(self, staying: Snapshot) -> Better | None:
        """Places that some have to go for, yet fewer than do.

        Who would go instead of others has no higher priority than any of them.
        """
        period, notice = self._built(staying).request.period, self.parts.limits.notice
        own = self.planned.stand.consumers
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
        bare = self._built(aside(staying, may_go.keys()))
        asked = _counted(sparing(bare, [staying]), staying, may_go.values())
        found = find(self.parts.solver, asked, time_limit=_LIMIT, seed=self._seed)
        if found is None:
            return None
        empty = exchanged(staying, dict.fromkeys(self.planned.consumers, ()))
        out = victims(empty, found.places.values(), may_go, period)
        if out is None or len(out) >= len(who):
            return None
        there = survey(aside(staying, out), bare.request)
        judged = still_holds(found, state(bare.request, there, closed=bare.closed))
        better = None if judged is None else self._better(judged)
        if better is None:
            return None
        fresh = displaced(may_go, out - who, end)
        providers = {one.consumer: may_go[one.consumer].providers for one in fresh}
        return replace(better, fresh=fresh, giving_way=providers)

    @property
    def _seed(self) -> int:
        return self.planned.decision.solve.seed

    def _built(self, view: Snapshot) -> Built:
        return party(view, self.planned, self.planned.consumers, self.keepers).built

    def _better(self, found: Found, others: tuple[Moved, ...] = ()) -> Better | None:
        places = elsewhere(self.planned, found)
        if not places:
            return None
        return Better((Moved(self.planned, places), *others), found)
