"""Thresholds of subscriptions: looked at after the ledger has moved, never while a request waits.

Every worker looks, at most once per interval, and only where something has changed that could
matter; what one finds is written with the subscription's new standing, so of several that find
it one commits. A look takes a bounded part of a worker's time: after it comes a rest.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import TYPE_CHECKING, Final

from moorage.domain.changes import Changeset, PutEvent, PutSubscription
from moorage.domain.errors import Busy, ConcurrentUpdate, MoorageError, NotFound
from moorage.domain.period import SECOND
from moorage.usecases.feed.measures import ROOM, TIME, capacity, ensembles, room, time_left

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from moorage.domain.subscriptions import Subscription
    from moorage.engine.snapshot import Snapshot
    from moorage.usecases.feed.measures import Crossing
    from moorage.usecases.parts import Parts

REST: Final = 9
"""A worker rests so many times as long as a look has taken."""

_log = logging.getLogger(__name__)


@dataclass
class Thresholds:
    """One worker's looks. What it remembers saves work; nothing depends on it."""

    parts: Parts
    _next: float = 0.0
    _until: int = 0
    """When time alone may change an answer."""
    _seen: dict[str, object] = field(default_factory=dict)
    """Subscription -> what its answer came of."""
    _last: dict[str, float] = field(default_factory=dict)

    def look(self) -> bool:
        """Look where something has changed; False: there is never more at once.

        Raises:
            MoorageError: the ledger is out of reach.
        """
        parts, began = self.parts, self.parts.stopwatch()
        if began < self._next:
            return False
        self._next = began + parts.limits.thresholds / SECOND
        some = parts.store.told.with_thresholds()
        if some:
            self._look_at(some)
        took = parts.stopwatch() - began
        self._next = max(self._next, began + took * (1 + REST))
        return False

    def _look_at(self, some: Sequence[Subscription]) -> None:
        snapshot = self.parts.store.snapshot()
        fleet, due = _digest(snapshot), snapshot.taken_at >= self._until
        self._until = snapshot.valid_until
        known: dict[str, object] = {}
        for one in some:
            try:
                known[one.id] = self._one(one, snapshot, fleet, due=due)
            except (ConcurrentUpdate, NotFound):
                continue  # somebody else was quicker; looked at again
            except Busy as busy:
                _log.info("threshold of subscription %s: %s", one.id, busy.message)
            except MoorageError:
                _log.exception("could not look at the threshold of subscription %s", one.id)
        self._seen = known

    def _one(
        self, one: Subscription, snapshot: Snapshot, fleet: bytes, *, due: bool
    ) -> tuple[object, ...]:
        parts = self.parts
        some = list(ensembles(parts, one)) if one.wants.has(ROOM) and _asks_for_room(one) else []
        basis = (fleet, one.threshold, tuple((each.id, each.generation) for each in some))
        crossings = list(time_left(parts, one))
        kept: Mapping[str, int] = {}
        if due or self._seen.get(one.id) != basis:
            for each in some:
                crossings += room(parts, one, each, snapshot, self._last)
            crossings += capacity(parts, one, snapshot, self._last)
        else:
            kept = {key: value for key, value in one.standing.items() if not key.startswith(TIME)}
        _write(parts, one, crossings, kept)
        return basis


def _digest(snapshot: Snapshot) -> bytes:
    """Of all that moves when a booking or a provider does."""
    revisions = snapshot.revisions.tobytes()
    return sha256(revisions + b"%d" % snapshot.topology_revision).digest()


def _asks_for_room(one: Subscription) -> bool:
    return one.wants.role is not None and one.threshold.below is not None


def _write(
    parts: Parts, one: Subscription, crossings: list[Crossing], kept: Mapping[str, int]
) -> None:
    """What has crossed, with how it stands now; nothing where nothing has."""
    stands = {**kept, **{each.key: each.stands for each in crossings}}
    if stands == dict(one.standing):
        return
    told = [
        PutEvent(each.event)
        for each in crossings
        if each.event is not None and one.standing.get(each.key) != each.stands
    ]
    after = replace(one, standing=stands, updated_at=parts.store.now())
    parts.store.commit(Changeset((PutSubscription(after, one.generation), *told)))
