"""Long lists of names in lists that are short enough for one statement."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_CHUNK: Final = 500
"""Values of one IN list: few enough for every database."""


def chunks(values: Iterable[str]) -> Sequence[list[str]]:
    """Distinct values in lists short enough for one statement, in a stable order."""
    every = sorted(set(values))
    if len(every) <= _CHUNK:
        return [every] if every else ()
    return [every[start : start + _CHUNK] for start in range(0, len(every), _CHUNK)]


def only_chunk(values: Iterable[str]) -> Sequence[list[str]]:
    """The one list that `chunks` makes of the values; nothing where it makes none, or several."""
    every = chunks(values)
    return every if len(every) == 1 else ()
