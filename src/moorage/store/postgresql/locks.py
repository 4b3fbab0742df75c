"""The locks of a commit on PostgreSQL, and how they are asked for (ADR-0007).

All go in one order: the one lock that everybody holds shared, then ids, consumers and providers,
each by their keys. The function `moorage_begin` takes any number of them, and finds out on the way
where consumers stand. Most commits of the wire need at most one of each kind, of names that they
know: a plain statement takes those for a third of what the function costs.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Final

from sqlalchemy import text

if TYPE_CHECKING:
    from sqlalchemy import TextClause

    from moorage.store.changelog.footprint import Footprint
    from moorage.store.database.session import Question

ALONE: Final = text("SELECT pg_advisory_xact_lock(hashtextextended('moorage', 0))")
"""Takes the lock that everybody holds shared: whoever has it is the only writer."""
_BEGIN: Final = text(
    "SELECT number, instant FROM moorage_begin(:alone, CAST(:ids AS text[]),"
    " CAST(:ensembles AS text[]), CAST(:consumers AS text[]), CAST(:providers AS text[]),"
    " CAST(:relied AS text[]))"
)
_KINDS: Final = {"id": 3, "consumer": 1, "provider": 2}
"""The seed of each kind's keys, in the order in which they are locked."""


def begin(footprint: Footprint) -> Question:
    """What takes the locks, and tells the commit's number and, after every wait, its instant."""
    one_each = _one_each(footprint)
    if one_each is None:
        return by_function(footprint)
    return _brief(tuple(one_each)), one_each


def by_function(footprint: Footprint) -> Question:
    """The same for any footprint."""
    return _BEGIN, {
        "alone": footprint.alone,
        "ids": list(footprint.ids),
        "ensembles": list(footprint.ensembles),
        "consumers": list(footprint.consumers | footprint.newcomers),
        "providers": list(footprint.providers),
        "relied": list(footprint.relied),
    }


def _one_each(footprint: Footprint) -> dict[str, str] | None:
    """The names to lock, where there is at most one of each kind and nothing to find out."""
    if footprint.alone or footprint.ensembles or footprint.consumers or footprint.relied:
        return None
    found: dict[str, str] = {}
    named = (footprint.ids, footprint.newcomers, footprint.providers)
    for kind, names in zip(_KINDS, named, strict=True):
        if len(names) > 1:
            return None
        found.update((kind, name) for name in names)
    return found


@cache
def _brief(kinds: tuple[str, ...]) -> TextClause:
    """Takes one lock of each of these kinds; the offset keeps the clock from being read before."""
    locks = "".join(
        f", pg_advisory_xact_lock(hashtextextended(CAST(:{kind} AS text), {_KINDS[kind]}))"
        for kind in kinds
    )
    return text(
        "SELECT CAST(CAST(pg_current_xact_id() AS text) AS bigint) AS number,"  # noqa: S608 - constants
        " CAST(extract(epoch FROM clock_timestamp()) * 1000000 AS bigint) AS instant FROM"
        f" (SELECT pg_advisory_xact_lock_shared(hashtextextended('moorage', 0)){locks} OFFSET 0)"
        " AS locked"
    )
