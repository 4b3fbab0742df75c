"""Columns of an output: `-c` selects them; `-f csv` and `-f value` write them, by cliff.

Selecting is not cliff's own: it would take the table's order for the one given, and pass over a
name that no column has.
"""

from __future__ import annotations

from argparse import Namespace
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from cliff.columns import FormattableColumn

from moorage.cli.output import Fields, Rows, Shown, draw, said, table

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import TextIO

    from rich.console import RenderableType

SHOWING = frozenset({"show", "list"})
"""Verbs whose answers have columns to choose from."""


class NoColumn(Exception):
    """An unknown column; the message lists the known ones."""


def chosen(shown: Shown, wanted: Sequence[str]) -> Shown:
    """The output with these columns only: one thing's values on one line, or a listing's rows.

    As JSON or YAML they are an object by name, or a list of such. The first part of an answer
    that has columns is the one that is meant.

    Raises:
        NoColumn: it has not got one of these.
    """
    part = next(parts(shown.text), None)
    if isinstance(part, Rows):
        return _of_rows(shown, part, wanted)
    if isinstance(part, Fields):
        return _of_fields(shown, part, wanted)
    if isinstance(shown.text, str):
        return replace(without_words(shown), body=[])
    raise NoColumn("the output has no columns")


def without_words(shown: Shown) -> Shown:
    """A listing for programs, without the words that people get for an empty one."""
    return replace(shown, text="") if isinstance(shown.text, str) else shown


def parts(text: str | RenderableType) -> Iterator[Rows | Fields]:
    """The tables and field lists in an output, in their order."""
    from rich.console import Group

    if isinstance(text, Rows | Fields):
        yield text
    elif isinstance(text, Group):
        for one in text.renderables:
            yield from parts(one)


def _of_rows(shown: Shown, part: Rows, wanted: Sequence[str]) -> Shown:
    at = _places(part.columns, wanted)
    rows = [[row[place] for place in at] for row in part.rows]
    names = [bare(part.columns[place]) for place in at]
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
            there = ", ".join(bare(name) for name in names if name)
            raise NoColumn(f"no column {one!r}; known are {there}")
    return [folded.index(_folded(one)) for one in wanted]


def _folded(name: str) -> str:
    """A column's name in one spelling: equal for `before start`, `before-start`, `before_start`."""
    return bare(name).lower().replace("-", " ").replace("_", " ")


def bare(name: str) -> str:
    """A column's name alone: `place` of `place (zone/rack/host)`, `places` of `#places`."""
    return name.removeprefix("#").partition(" (")[0]


def _plain(value: object) -> object:
    if value is None or isinstance(value, bool | int | float):
        return value
    return value.machine_readable() if isinstance(value, FormattableColumn) else str(value)


def write(text: str | RenderableType, form: str, out: TextIO) -> None:
    """Write the first table of an output, or the fields of the one thing shown, as cells.

    `csv` has a line of names first; of one thing the values are the second line. `value` has no
    names: a row is a line with its cells between blanks, of one thing each value is a line. Ids
    are whole. Text and pictures, which have neither rows nor fields, are written as for people.
    """
    from cliff.formatters.commaseparated import CSVLister
    from cliff.formatters.value import ValueFormatter

    part = next(parts(text), None)
    if part is None:
        if text:
            draw(text, out)
        return
    if isinstance(part, Rows):
        names = [bare(name) for name in part.columns]
        rows = [[_cell(cell) for cell in row] for row in part.rows]
    else:
        names = [name for name, _ in part.pairs]
        rows = [[_cell(value) for _, value in part.pairs]]
    if form == "csv":
        CSVLister().emit_list(names, rows, out, Namespace(quote_mode="minimal"))
    elif isinstance(part, Rows):
        ValueFormatter().emit_list(names, rows, out, Namespace())
    else:
        ValueFormatter().emit_one(names, rows[0], out, Namespace())


def _cell(value: object) -> str | FormattableColumn[Any]:
    if isinstance(value, FormattableColumn):
        return value
    return "" if value is None else said(value)
