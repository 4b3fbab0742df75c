"""Bookings that this process committed, kept until its snapshot has them.

A snapshot that follows the log reads again what changed. Where a provider was changed by nobody
else, and by nothing but bookings that came, all that is to be read is known here already: what came
is added to what the snapshot had. A commit is found by its number and its instant, as the log has
them, so what was lost in a crash is never taken for the commit that got its number afterwards.
"""

from __future__ import annotations

from dataclasses import dataclass
from threading import Lock
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from moorage.domain.bookings import Booking
    from moorage.domain.period import Instant
    from moorage.domain.placement import Occupant
    from moorage.store.changelog.answers import Mark

KEPT: Final = 5_000
"""Bookings that are kept at most; what is not here is read."""


@dataclass(frozen=True, slots=True)
class Added:
    """What one commit did to one provider: nothing but this."""

    bookings: Sequence[Booking]
    """What it wrote, as it would be read; of each consumer one."""
    newcomers: Sequence[Occupant] | None
    """Who they are of, in their order and without tags, if the commit made every one of these
    consumers; None if it did not, so that who they are, and were before, is to be asked."""
    bump: int
    """How far it moved the wire generation."""
    at: Instant
    """When the commit says it was."""


@dataclass(frozen=True, slots=True)
class Ended:
    """A commit of this process."""

    mark: Mark
    added: Mapping[str, Added]
    """What is known of it, by provider."""
    size: int
    """How many bookings that are."""


_NOTHING: Final[tuple[int, Mapping[str, Added]]] = 0, MappingProxyType({})


class Own:
    """See the module. Safe for threads."""

    def __init__(self) -> None:
        self._busy = Lock()
        self._commits: dict[Mark, tuple[int, Mapping[str, Added]]] = {}
        """With their sizes."""
        self._size = 0

    def note(self, ended: Ended) -> None:
        """A commit has ended well."""
        size = ended.size
        if not size:
            return
        with self._busy:
            if self._size + size > KEPT:
                self._commits.clear()
                self._size = 0
            if size <= KEPT:
                self._commits[ended.mark] = size, ended.added
                self._size += size

    def of(self, provider: str, marks: Sequence[Mark]) -> list[Added] | None:
        """What these commits did to a provider, in their order; None if one of them is unknown."""
        commits, found = self._commits, []
        # Commits that touch one provider come one after the other, and so do their instants.
        for mark in marks if len(marks) == 1 else sorted(marks, key=_by_instant):
            one = commits.get(mark, _NOTHING)[1].get(provider)
            if one is None:
                return None
            found.append(one)
        return found

    def forget(self, marks: Iterable[Mark]) -> None:
        """The snapshot has these."""
        with self._busy:
            for mark in marks:
                self._size -= self._commits.pop(mark, _NOTHING)[0]


def _by_instant(mark: Mark) -> tuple[Instant, int]:
    number, instant = mark
    return instant or 0, number
