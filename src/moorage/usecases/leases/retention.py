"""Retention: records of what is over are deleted once they have been kept for long enough."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from moorage.domain.changes import Changeset, DeleteRecords
from moorage.domain.period import MINUTE, SECOND
from moorage.domain.records import RecordKind, RecordPlace

if TYPE_CHECKING:
    from moorage.domain.period import Duration
    from moorage.usecases.environment import UseCaseEnvironment
    from moorage.usecases.shared.limits import Limits

AT_ONCE: Final = 100
"""Records looked at, and deleted, in one transaction: others wait meanwhile."""
EVERY: Final = 5 * MINUTE
_KINDS: Final = tuple(RecordKind)


def retention_period(limits: Limits) -> Duration | None:
    """How long records are kept; None: for ever.

    A lease is kept for as long as a quota of unit-hours counts it.
    """
    if limits.records_age is None:
        return None
    return max(limits.records_age, limits.quotas.window)


@dataclass
class Retention:
    """One worker's rounds: kind by kind, a few records at a time.

    Several workers may look at the same ones: who comes later finds them gone.
    """

    env: UseCaseEnvironment
    _next: float = 0.0
    _kind: int = 0
    """The place of the kind whose turn it is."""
    _after: RecordPlace = field(default_factory=RecordPlace)

    def look(self) -> bool:
        """Delete some if it is time; whether there are more to be looked at now.

        Raises:
            MoorageError: the ledger is out of reach.
        """
        age, now = retention_period(self.env.limits), self.env.stopwatch()
        if age is None or now < self._next:
            return False
        store, kind = self.env.store, _KINDS[self._kind]
        before = store.now() - age
        found = store.records.deletable(kind, before, self._after, AT_ONCE)
        if found.ids:  # a quiet ledger stays as it is
            store.commit(Changeset((DeleteRecords(kind, found.ids, before),)))
        self._after = found.after or RecordPlace()
        if found.after is not None:
            return True
        self._kind = (self._kind + 1) % len(_KINDS)
        if self._kind:
            return True
        self._next = now + EVERY / SECOND
        return False
