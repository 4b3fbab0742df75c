"""`-c`: some columns of what a command shows, in the order in which they are asked for."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from moorage.cli.output import Fields, Rows, Shown, said, table

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rich.console import RenderableType

SHOWING = frozenset({"show", "list"})
"""Verbs whose answers have columns to choose from."""


class NoColumn(Exception):
    """There is none of that name; says which there are."""


def chosen(shown: Shown, wanted: Sequence[str]) -> Shown:
    """Only these columns: of one thing its values on one line, of a listing its rows.

    As JSON or YAML they are an object by name, or a list of such. The first part of an answer
    that has columns is the one that is meant.

    Raises:
        NoColumn: it has not got one of these.
    """
    part = next(_parts(shown.text), None)
    if isinstance(part, Rows):
        return _of_rows(shown, part, wanted)
    if isinstance(part, Fields):
        return _of_fields(shown, part, wanted)
    if isinstance(shown.text, str):
        return replace(shown, body=[], text="")  # an empty listing says so in words
    raise NoColumn("there are no columns to choose from")


def _parts(text: str | RenderableType) -> Iterator[Rows | Fields]:
    from rich.console import Group

    if isinstance(text, Rows | Fields):
        yield text
    elif isinstance(text, Group):
        for one in text.renderables:
            yield from _parts(one)


def _of_rows(shown: Shown, part: Rows, wanted: Sequence[str]) -> Shown:
    at = _places(part.columns, wanted)
    rows = [[row[place] for place in at] for row in part.rows]
    names = [_bare(part.columns[place]) for place in at]
    body = [dict(zip(names, map(_plain, row), strict=True)) for row in rows]
    return replace(shown, body=body, text=table([part.columns[place] for place in at], rows))


def _of_fields(shown: Shown, part: Fields, wanted: Sequence[str]) -> Shown:
    known = dict(part.pairs)
    known |= {name: value for name, value in part.aside if known.get(name) is None}
    names = list(known)
    picked = [names[place] for place in _places(names, wanted)]
    body = {name: _plain(known[name]) for name in picked}
    line = "  ".join("-" if body[name] is None else said(known[name]) for name in picked)
    return replace(shown, body=body, text=line)


def _places(names: Sequence[str], wanted: Sequence[str]) -> list[int]:
    folded = [_folded(name) for name in names]
    for one in wanted:
        if _folded(one) not in folded:
            there = ", ".join(_bare(name) for name in names if name)
            raise NoColumn(f"no column {one!r}; there are {there}")
    return [folded.index(_folded(one)) for one in wanted]


def _folded(name: str) -> str:
    """`before start`, `before-start` and `before_start` are the same column."""
    return _bare(name).lower().replace("-", " ").replace("_", " ")


def _bare(name: str) -> str:
    """`place` of `place (zone/rack/host)`, `places` of `#places`."""
    return name.removeprefix("#").partition(" (")[0]


def _plain(value: object) -> object:
    return value if value is None or isinstance(value, bool | int | float) else str(value)
