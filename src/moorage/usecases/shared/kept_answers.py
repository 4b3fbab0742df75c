"""Answers that a process has made and still hold: for those who ask the same in the same state.

Many who look at the same leases ask again after each change, all at once: the answer is made once.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field
from threading import Lock
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from moorage.domain.period import Instant
    from moorage.engine.state.snapshot import Snapshot

_ANSWERS: Final = 32
"""Answers that are kept: those that were asked for last."""


@dataclass(frozen=True, eq=False)
class KeptAnswer:
    """An answer, and for which states of the ledger it is right."""

    revision: int
    computed_at: Instant
    valid_until: Instant
    """When time alone changes it."""
    tag: str
    """Names what it shows: of equal answers it is equal, in every process."""
    bodies: dict[str, bytes] = field(default_factory=dict)
    """The answer as it is sent, by form: whoever asks next gets the same bytes."""

    def holds(self, snapshot: Snapshot) -> bool:
        """Whether it is right for a snapshot, too."""
        same = self.revision == snapshot.revision
        return same and self.computed_at <= snapshot.taken_at < self.valid_until


@dataclass(slots=True, eq=False)
class _Place:
    """Where the answer to one question is kept; who makes it has the lock."""

    lock: Lock = field(default_factory=Lock)
    answer: KeptAnswer | None = None


class KeptAnswers:
    """The last answers. Thread-safe; those who ask the same at once wait for one."""

    def __init__(self) -> None:
        """Keep none yet."""
        self._places: OrderedDict[Hashable, _Place] = OrderedDict()
        self._lock = Lock()

    def current(
        self, question: Hashable, snapshot: Snapshot, make: Callable[[], KeptAnswer]
    ) -> KeptAnswer:
        """The answer to a question for a snapshot; it is made if none is kept that still holds."""
        with self._lock:
            place = self._places.setdefault(question, _Place())
            self._places.move_to_end(question)
            while len(self._places) > _ANSWERS:
                self._places.popitem(last=False)
        with place.lock:
            if place.answer is None or not place.answer.holds(snapshot):
                place.answer = None
                place.answer = make()
            return place.answer
