"""Entries of the change log: rows of a commit, a writer's turn, what changed, local commits."""

from __future__ import annotations

from dataclasses import dataclass
from threading import Lock
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from moorage.domain.bookings import Booking
    from moorage.domain.period import Instant
    from moorage.domain.placement import Occupant

Mark: TypeAlias = "tuple[int, Instant | None]"
"""A commit: its number in the log and its instant. After a crash a number may be given again."""


@dataclass(frozen=True, slots=True)
class Turn:
    """The result of taking the locks of a commit."""

    at: Instant
    """The database's clock, read after every wait: later commits have later instants."""
    number: int = 0
    """The commit's revision, where it is known before the end."""
    alone: bool = True
    """Whether all other writers wait, not only those that touch the same rows."""


@dataclass(frozen=True, slots=True)
class Connections:
    """The connections of one process to its database."""

    in_use: int
    idle: int
    limit: int
    """How many it may have; further ones wait."""


@dataclass(frozen=True, slots=True)
class LogPoll:
    """The answer to the one cheap question of each request."""

    moved: bool
    """Whether there is a commit that the cursor does not know."""
    now: Instant | None = None
    """The database's clock, where it came along for nothing."""


@dataclass(frozen=True, slots=True)
class LogDelta:
    """What happened after a cursor, all of it seen in one consistent state."""

    cursor: object
    revision: int
    topology_revision: int
    commits: Mapping[str, Sequence[Mark]]
    """Providers that changed, each with the commits that changed it."""
    wholly: frozenset[str]
    """Those of them of which more than bookings changed."""
    tags: bool
    """Whether any consumer has tags at all, as members of ensembles may."""
    complete: bool
    """False: the log does not reach back to the cursor, so everything is to be read anew."""
    now: Instant | None = None
    """The database's clock, where it came along for nothing."""


def commits(found: Iterable[Any]) -> dict[str, list[Mark]]:
    """Rows of the log by subject: subject, number and instant are the first columns."""
    marks: dict[str, list[Mark]] = {}
    for subject, number, instant, *_ in found:
        marks.setdefault(subject, []).append((number, instant))
    return marks


NOBODY: Final = ""
"""The subject of a commit that touched no provider."""


def entries(number: int, turn: Turn, touched: Mapping[str, bool]) -> list[dict[str, object]]:
    """Rows of `changes` for the commit of this number, the same on every database.

    A commit that touched no provider writes a row as well, without a provider: it proves that
    the commit was.

    `touched` says of each provider, by its UUID, whether nothing but bookings changed.
    """
    found: list[dict[str, object]] = []
    for subject, bookings_only in (touched or {NOBODY: True}).items():
        found.append(
            {"revision": number, "subject": subject, "bookings_only": bookings_only, "at": turn.at}
        )
    return found


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


class LocalCommits:
    """Bookings that this process committed, kept until its snapshot has them. Safe for threads.

    A snapshot that follows the log reads again what changed. Where no other process changed a
    provider, and only bookings were added, all that is to be read is known here already: what
    came is added to what the snapshot had. A commit is found by its number and its instant, as the
    log has them, so what was lost in a crash is never taken for the commit that got its number
    afterwards.
    """

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
