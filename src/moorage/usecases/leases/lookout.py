"""What nobody reports: servers that stay too long, hosts that fail under a lease."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from moorage.usecases.leases import health, overrun
from moorage.usecases.leases.overrun import Seen

if TYPE_CHECKING:
    from moorage.usecases.parts import Parts

AFRESH: Final = 300
"""Rounds after which a worker looks at everything again, whatever it has seen before."""


@dataclass
class Lookout:
    """One worker's rounds. What it remembers saves work; nothing depends on it."""

    parts: Parts
    _rounds: int = 0
    _seen: Seen = field(default_factory=Seen)
    _degraded: frozenset[str] = frozenset()
    _looked: tuple[int, int] = (-1, 0)
    """Revision and end of validity of the snapshot that was looked at last."""

    def look(self) -> bool:
        """Look once; True if there is more to be looked at now.

        Raises:
            MoorageError: the ledger is out of reach.
        """
        if self._rounds % AFRESH == 0:
            self._seen, self._looked = Seen(), (-1, 0)
            self._degraded = health.degraded(self.parts.store)
        self._rounds += 1
        self._seen = overrun.look(self.parts, self._seen)
        snapshot = self.parts.store.snapshot()
        looked = (snapshot.revision, snapshot.valid_until)
        if looked != self._looked:
            self._degraded = health.note(self.parts, snapshot, self._degraded)
            self._looked = looked
        return self._seen.more
