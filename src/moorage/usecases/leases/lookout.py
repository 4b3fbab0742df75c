"""What nobody asks for: servers that stay too long, hosts that fail, leases with better places."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from moorage.usecases.leases import health, overrun
from moorage.usecases.leases.heal import Healing
from moorage.usecases.leases.overrun import Seen
from moorage.usecases.leases.reprieve import Reprieving

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
    _healing: Healing | None = None
    _reprieving: Reprieving = field(init=False)

    def __post_init__(self) -> None:
        self._reprieving = Reprieving(self.parts)

    def look(self) -> bool:
        """Look once; True if there is more to be looked at now.

        Raises:
            MoorageError: the ledger is out of reach.
        """
        if self._healing is None or self._rounds % AFRESH == 0:
            self._seen = Seen()
            self._healing = Healing(self.parts, health.degraded(self.parts.store))
        self._rounds += 1
        self._seen = overrun.look(self.parts, self._seen)
        more = self._healing.look(self.parts.store.snapshot())
        late = self._reprieving.look(self.parts.store.snapshot())
        return self._seen.more or more or late
