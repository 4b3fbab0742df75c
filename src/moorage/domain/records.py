"""Records: closed things that are kept for a while so that people can look them up."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from moorage.domain.period import Instant


class RecordKind(StrEnum):
    """Kinds of records, in the order of deletion: referring ones before those they refer to."""

    SERIES = "series"
    """Series of which every lease has ended, with these."""
    LEASE = "lease"
    """Closed leases that are of no series, and offers that are over, with their ensembles."""
    ENTRY = "waitlist entry"
    """Entries of the waitlist that are closed."""
    DECISION = "decision"
    """Decisions that others have replaced, or whose ensemble is gone, with their claims."""
    EFFECT = "effect"
    """Effects that were carried out or given up, of leases and servers that are gone."""
    VIOLATION = "violation"
    """Violations that have ended, of ensembles that are there still."""
    WINDOW = "capacity window"
    """Capacity windows that are over."""
    PLAN = "plan"
    """Plans that are done or canceled."""


@dataclass(frozen=True, slots=True)
class RecordPlace:
    """A position in the order in which records of a kind are scanned."""

    ended_at: Instant = 0
    """When it ended; 0 throughout for kinds that are looked at by creation."""
    number: int = 0


@dataclass(frozen=True, slots=True)
class Deletable:
    """Records of one kind that may be deleted, found in one step."""

    ids: tuple[str, ...]
    after: RecordPlace | None
    """Where the next step begins; None: the scan is complete."""
