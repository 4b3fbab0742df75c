"""What a process knows of the waitlist: entries tried in vain, and what was freed since.

It saves work; nothing depends on it. Whoever was not tried by this process is tried.
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
"""Entries remembered; beyond that all are forgotten, and tried again."""


@dataclass
class WaitlistMemory:
    """May be asked from any thread."""

    _log: FreedLog = field(default_factory=FreedLog)
    _last: Snapshot | None = None
    _keepers: int = -1
    _tried: dict[str, int] = field(default_factory=dict)
    """Entry -> the mark before the snapshot in which it was refused."""
    _again: dict[str, float] = field(default_factory=dict)
    """Entry -> when it is tried again whatever was freed, by the stopwatch."""
    _lock: Lock = field(default_factory=Lock)

    def see(self, snapshot: Snapshot, keepers: int) -> int:
        """Note what was freed up to this snapshot; the mark after it."""
        with self._lock:
            last = self._last
            if last is None or snapshot.revision > last.revision or _later(snapshot, last):
                if last is not None:
                    self._log.add(freed(last, snapshot))
                self._last = snapshot
            if keepers != self._keepers:
                # Who keeps others out has changed: that frees without any booking.
                self._log.add(iter([(ALL_CLASSES, 0, FOREVER)]))
                self._keepers = keepers
            return self._log.mark

    def refused(self, entry: WaitlistEntry, mark: int) -> None:
        """Note that an entry did not fit in what was seen up to a mark."""
        with self._lock:
            if len(self._tried) >= _KEPT:
                self._tried.clear()
                self._again.clear()
            self._tried[entry.id] = mark
            self._again.pop(entry.id, None)

    def unsure(self, entry: WaitlistEntry, mark: int, again: float) -> None:
        """Record that a try was inconclusive: it is tried again at `again` at the latest."""
        self.refused(entry, mark)
        with self._lock:
            self._again[entry.id] = again

    def due(self, entry: WaitlistEntry, now: float) -> bool:
        """Whether it might be granted now: not tried here yet, or something was freed since."""
        with self._lock:
            mark = self._tried.get(entry.id)
            if self._again.get(entry.id, now + 1) <= now:
                return True
            return mark is None or self._log.since(mark, entry.classes, entry.whole)

    def forget(self) -> None:
        """Forget everything; the waitlist is empty."""
        with self._lock:
            self._last = None
            self._tried.clear()
            self._again.clear()


def _later(snapshot: Snapshot, last: Snapshot) -> bool:
    return snapshot.revision == last.revision and snapshot.taken_at >= last.valid_until
