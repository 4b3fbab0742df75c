"""A process's memory of the waitlist: entries whose attempt failed, and capacity freed since.

It only saves work: an entry that this process has not tried is tried.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from threading import Lock
from typing import TYPE_CHECKING, Final

from moorage.domain.period import FOREVER
from moorage.engine.state.freed_capacity import ALL_CLASSES, FreedLog, freed

if TYPE_CHECKING:
    from moorage.domain.waitlist import WaitlistEntry
    from moorage.engine.state.snapshot import Snapshot

_KEPT: Final = 10_000
"""Most entries remembered; beyond that all are forgotten, and tried again."""


@dataclass
class WaitlistMemory:
    """Failed attempts at entries, and the log of freed capacity. Thread-safe."""

    _log: FreedLog = field(default_factory=FreedLog)
    _snapshot: Snapshot | None = None
    _exclusive: int = -1
    _tried: dict[str, int] = field(default_factory=dict)
    """Entry id -> the mark of the log before the snapshot in which it was refused."""
    _again: dict[str, float] = field(default_factory=dict)
    """Entry id -> stopwatch time at which it is tried again even if nothing was freed."""
    _lock: Lock = field(default_factory=Lock)

    def see(self, snapshot: Snapshot) -> int:
        """Log the capacity freed up to this snapshot; returns the mark of the log after it."""
        with self._lock:
            last = self._snapshot
            if last is None or snapshot.revision > last.revision or _later(snapshot, last):
                if last is not None:
                    self._log.add(freed(last, snapshot))
                self._snapshot = snapshot
            if snapshot.exclusive_revision != self._exclusive:
                # Exclusive ensembles have changed, which can free hosts without any booking.
                self._log.add(iter([(ALL_CLASSES, 0, FOREVER)]))
                self._exclusive = snapshot.exclusive_revision
            return self._log.mark

    def refused(self, entry: WaitlistEntry, mark: int) -> None:
        """Record that an entry did not fit in the snapshot at a mark."""
        with self._lock:
            if len(self._tried) >= _KEPT:
                self._tried.clear()
                self._again.clear()
            self._tried[entry.id] = mark
            self._again.pop(entry.id, None)

    def unsure(self, entry: WaitlistEntry, mark: int, again: float) -> None:
        """Record an inconclusive attempt: the entry is tried again at `again` at the latest."""
        self.refused(entry, mark)
        with self._lock:
            self._again[entry.id] = again

    def due(self, entry: WaitlistEntry, now: float) -> bool:
        """Whether an entry may fit now: not tried by this process, or capacity was freed since."""
        with self._lock:
            mark = self._tried.get(entry.id)
            if self._again.get(entry.id, now + 1) <= now:
                return True
            return mark is None or self._log.since(mark, entry.classes, entry.whole)

    def forget(self) -> None:
        """Forget everything; the waitlist is empty."""
        with self._lock:
            self._snapshot = None
            self._tried.clear()
            self._again.clear()


def _later(snapshot: Snapshot, last: Snapshot) -> bool:
    return snapshot.revision == last.revision and snapshot.taken_at >= last.valid_until
