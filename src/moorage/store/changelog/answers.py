"""Result types of the change log: a commit's number and time, and the changes since a cursor."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from moorage.domain.period import Instant


Mark: TypeAlias = "tuple[int, Instant | None]"
"""A commit: its number in the log and its instant. After a crash a number may be given again."""


@dataclass(frozen=True, slots=True)
class Turn:
    """What a writer has when nobody can get in its way any more."""

    at: Instant
    """The database's clock, read after every wait: later commits have later instants."""
    number: int = 0
    """The commit's revision, where it is known before the end."""
    alone: bool = True
    """Whether every other writer is shut out, not just those who touch the same things."""


@dataclass(frozen=True, slots=True)
class Connections:
    """The connections of one process to its database."""

    in_use: int
    idle: int
    limit: int
    """How many it may have; whoever comes then waits."""


@dataclass(frozen=True, slots=True)
class Glance:
    """The answer to the one cheap question of each request."""

    moved: bool
    """Whether there is a commit that the cursor does not know."""
    now: Instant | None = None
    """The database's clock, where it came along for nothing."""


@dataclass(frozen=True, slots=True)
class News:
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
