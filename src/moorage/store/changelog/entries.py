"""Entries of the change log: what a commit writes, a writer's turn, what a reader has missed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from moorage.domain.period import Instant


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
class ProviderChange:
    """What a commit did to one provider."""

    bookings_only: bool
    """Whether nothing else of it changed."""
    added: str | None = None
    """The bookings it added, if it did nothing but that; see `additions`."""


class Entry(NamedTuple):
    """One row of the log, its columns in the order in which every database is asked for them."""

    subject: str
    """The UUID of the provider, or `NO_PROVIDER`."""
    revision: int
    at: Instant | None
    bookings_only: bool
    added: str | None


@dataclass(frozen=True, slots=True)
class LogDelta:
    """What happened after a cursor, all of it seen in one consistent state."""

    cursor: object
    revision: int
    topology_revision: int
    exclusive_revision: int | None
    """None: a commit that moved it may be missing among the entries, and comes with the next."""
    waited: bool
    """Whether the waitlist has waiting entries."""
    entries: Mapping[str, Sequence[Entry]]
    """Providers that changed, each with its entries in the order of their commits."""
    tags: bool
    """Whether any consumer has tags at all, as members of ensembles may."""
    complete: bool
    """False: the log does not reach back to the cursor, so everything is to be read anew."""
    now: Instant | None = None
    """The database's clock, where it came along for nothing."""


NO_PROVIDER: Final = ""
"""The subject of a commit that touched no provider."""


def by_provider(rows: Iterable[Any]) -> dict[str, list[Entry]]:
    """Rows of the log, with the columns of an `Entry`, by the provider that changed.

    Those of a provider are in the order of commits. On PostgreSQL, which orders them by instant,
    they may be in another one if the clock was set back between two commits.
    """
    found: dict[str, list[Entry]] = {}
    for row in rows:
        entry = Entry(*row)
        if entry.subject != NO_PROVIDER:
            found.setdefault(entry.subject, []).append(entry)
    return found


def log_rows(
    number: int, turn: Turn, changed: Mapping[str, ProviderChange]
) -> list[dict[str, object]]:
    """Rows of `changes` for the commit of this number, the same on every database.

    A commit that touched no provider writes a row as well, without a provider: it proves that
    the commit was.

    `changed` says of each provider, by its UUID, what the commit did to it.
    """
    return [
        {
            "revision": number,
            "subject": subject,
            "bookings_only": change.bookings_only,
            "at": turn.at,
            "added": change.added,
        }
        for subject, change in (changed or _UNTOUCHED).items()
    ]


_UNTOUCHED: Final = {NO_PROVIDER: ProviderChange(bookings_only=True)}
