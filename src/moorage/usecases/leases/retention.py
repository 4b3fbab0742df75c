"""Retention: records of ended objects are deleted after a configured time."""

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
"""Records read and deleted in one transaction; kept small because other writers wait for it."""
EVERY: Final = 5 * MINUTE
_KINDS: Final = tuple(RecordKind)


def retention_period(limits: Limits) -> Duration | None:
    """How long records are kept; None means for ever.

    Leases are kept at least as long as the window of unit-hour quotas, which counts them.
    """
    if limits.records_age is None:
        return None
    return max(limits.records_age, limits.quotas.window)


@dataclass
class Retention:
    """A worker's deletion of old records: one kind after another, a few records at a time.

    Several workers may read the same records; the later ones find them deleted.
    """

    env: UseCaseEnvironment
    _next: float = 0.0
    _kind: int = 0
    """Index in `_KINDS` of the kind to read next."""
    _after: RecordPlace = field(default_factory=RecordPlace)

    def run_round(self) -> bool:
        """Delete some records if the interval is over; True if there are more to read at once.

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
