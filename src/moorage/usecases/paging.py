"""Pages of listings, and their order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Order:
    """The order of a listing by a field of its items; equal ones are by creation.

    `key` is a field that the items have: `name`, `project_id`, `created_at`, `start`, `end`,
    `expires_at`, `priority`, `computed_at` or `stage`.
    """

    key: str
    descending: bool = False


@dataclass(frozen=True, slots=True)
class Page:
    """A part of a listing: at most `limit` items, after the item with id `marker`."""

    limit: int = 1000
    marker: str | None = None
    order: Order | None = None
    """None: the listing's own, by creation or newest first."""


WHOLE_LEDGER: Final = Page()
"""The first page of the default length."""
