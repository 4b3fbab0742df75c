"""Rows of the change log for one commit, the same on every database.

A commit that touched no provider writes a row as well, in the name of nobody: it proves that the
commit was.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

    from moorage.store.changelog.answers import Turn

NOBODY: Final = ""
"""The subject of a commit that touched no provider."""


def entries(number: int, turn: Turn, touched: Mapping[str, bool]) -> list[dict[str, object]]:
    """Rows of `changes` for the commit of this number.

    `touched` says of each provider, by its UUID, whether nothing but bookings changed.
    """
    found: list[dict[str, object]] = []
    for subject, bookings_only in (touched or {NOBODY: True}).items():
        found.append(
            {"revision": number, "subject": subject, "bookings_only": bookings_only, "at": turn.at}
        )
    return found
