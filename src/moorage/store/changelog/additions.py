"""Bookings that a commit added to a provider, as its entry in the change log carries them.

Most commits only add bookings to a provider. A process that follows the log then adds them to its
snapshot, instead of reading all bookings of that provider again.

The text is a JSON array without names of fields, some 250 characters for one booking: each commit
writes one for each provider, and every process reads it.
"""

from __future__ import annotations

from dataclasses import dataclass
from sys import intern
from typing import TYPE_CHECKING, Final, TypeAlias

import msgspec

from moorage.domain.placement import Occupant
from moorage.store.values import rows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from moorage.domain.bookings import Booking
    from moorage.domain.period import Instant
    from moorage.store.changelog.entries import Entry


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


def encode(added: Added) -> str:
    """The text for the log."""
    newcomers = added.newcomers
    projects = None if newcomers is None else [one.project_id for one in newcomers]
    plain = added.bump, added.at, projects, [rows.packed(one) for one in added.bookings]
    return _ENCODER.encode(plain).decode()


def decode(provider: str, text: str) -> Added:
    """What `encode` made the text of; the provider is its entry's subject."""
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


def of_entries(entries: Sequence[Entry]) -> list[Added] | None:
    """What these commits added to their provider, in their order; None if one of them does not say.

    It does not if it did more than add bookings, or an earlier version of the program wrote it.
    """
    found = []
    for entry in entries:
        if entry.added is None:
            return None
        found.append(decode(entry.subject, entry.added))
    return found
