"""Entries of the change log: what a commit writes, a writer's turn, what a reader has missed.

Most commits only add bookings to a provider. A process that follows the log then adds them to its
snapshot, instead of reading all bookings of that provider again. The text of an addition is a JSON
array without names of fields, some 250 characters for one booking: each commit writes one for each
provider, and every process reads it.
"""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass
from sys import intern
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

import msgspec
from sqlalchemy import select

from moorage.domain.placement import Occupant
from moorage.store.changelog.lapsed_bookings import sweep_all
from moorage.store.schema.tables import changes
from moorage.store.values import rows

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from contextlib import AbstractContextManager

    from sqlalchemy import Connection

    from moorage.domain.bookings import Booking
    from moorage.domain.changes import Changeset
    from moorage.domain.period import Instant
    from moorage.store.changelog.lapsed_bookings import Swept
    from moorage.store.database.session import Session

KEPT: Final = 50_000
"""Rows that a log of one writer at a time keeps, one for each provider that a commit changes; a
reader that slept longer loads everything anew."""
TRIM_EVERY: Final = 1_000
"""Such a log is trimmed after so many commits."""
_BEYOND: Final = select(changes.c.revision).order_by(changes.c.revision.desc()).limit(1)
_NO_QUEUE: Final = nullcontext()


@dataclass(frozen=True, slots=True)
class Turn:
    """The result of taking the locks of a commit."""

    at: Instant
    """The database's clock, read after every wait: later commits have later instants."""
    number: int
    """The commit's revision."""
    topology_revision: int
    """The ledger's, read after every wait, like the next one."""
    exclusive_revision: int
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
    """The bookings it added, if it did nothing but that; see `encode_added`."""


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


def by_provider(found_rows: Iterable[Any]) -> dict[str, list[Entry]]:
    """Rows of the log, with the columns of an `Entry`, by the provider that changed.

    Those of a provider are in the order of commits. On PostgreSQL, which orders them by instant,
    they may be in another one if the clock was set back between two commits.
    """
    found: dict[str, list[Entry]] = {}
    for row in found_rows:
        entry = Entry(*row)
        if entry.subject != NO_PROVIDER:
            found.setdefault(entry.subject, []).append(entry)
    return found


def log_rows(
    number: int, turn: Turn, changed: Mapping[str, ProviderChange], actor: str | None = None
) -> list[dict[str, object]]:
    """Rows of `changes` for the commit of this number, the same on every database.

    A commit that touched no provider writes a row as well, without a provider: it proves that
    the commit was.

    `changed` says of each provider, by its UUID, what the commit did to it; `actor` is the stored
    text of who committed it.
    """
    return [
        {
            "revision": number,
            "subject": subject,
            "bookings_only": change.bookings_only,
            "at": turn.at,
            "added": change.added,
            "actor": actor,
        }
        for subject, change in (changed or _UNTOUCHED).items()
    ]


_UNTOUCHED: Final = {NO_PROVIDER: ProviderChange(bookings_only=True)}


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


_Plain: TypeAlias = (
    "tuple[int, Instant, list[str] | None, list[tuple[dict[str, int], list[object]]]]"
)
"""The bump, the instant, the newcomers' projects, and the bookings; see `rows.packed`."""

_ENCODER: Final = msgspec.json.Encoder()
_DECODER: Final = msgspec.json.Decoder()


def encode_added(added: Added) -> str:
    """The text for the log."""
    newcomers = added.newcomers
    projects = None if newcomers is None else [one.project_id for one in newcomers]
    plain = added.bump, added.at, projects, [rows.packed(one) for one in added.bookings]
    return _ENCODER.encode(plain).decode()


def decode_added(provider: str, text: str) -> Added:
    """What `encode_added` made the text of; the provider is its entry's subject."""
    plain: _Plain = _DECODER.decode(text)
    bump, at, projects, packed = plain
    bookings = [rows.unpacked(provider, *one) for one in packed]
    newcomers = None
    if projects is not None:
        newcomers = [
            Occupant(booking.consumer, intern(project))
            for booking, project in zip(bookings, projects, strict=True)
        ]
    return Added(bookings, newcomers, bump, at)


def all_added(entries: Sequence[Entry]) -> list[Added] | None:
    """What these commits added to their provider, in their order; None if one of them does not say.

    It does not if it did more than add bookings, or an earlier version of the program wrote it.
    """
    found = []
    for entry in entries:
        if entry.added is None:
            return None
        found.append(decode_added(entry.subject, entry.added))
    return found


class SingleWriterLog:
    """What logs share with one writer at a time: their numbers are the ledger's own."""

    def belongs(self, connection: Session | Connection) -> bool:
        del connection
        return True

    def reset_log(self, connection: Connection) -> None:
        """Nothing needs to be forgotten: the log always belongs."""

    def queue(self, changeset: Changeset) -> AbstractContextManager[object]:
        """No queue of its own: all writers are in one anyway."""
        del changeset
        return _NO_QUEUE

    def sweep(self, connection: Session, turn: Turn, now: Instant) -> Swept:
        del turn
        return sweep_all(connection, now)

    @staticmethod
    def surplus(connection: Session, revision: int) -> int:
        """The revision up to which the commit of this one trims the log; 0: it does not."""
        if revision % TRIM_EVERY:
            return 0
        beyond = connection.execute(_BEYOND.offset(KEPT)).scalar_one_or_none() or 0
        return min(beyond, revision - 1)  # its own rows are kept, however many they are
