"""Output of commands: text for people, or the API's body for programs.

Selecting is not cliff's own: it would take the table's order for the one given, and pass over a
name that no column has.
"""

from __future__ import annotations

import re
import sys
from argparse import Namespace
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Self, TypeAlias

from cliff.columns import FormattableColumn

from moorage.cli.command_names import as_typed

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from typing import TextIO

    from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
    from rich.table import Table

    from moorage.client.moorage import Moorage

OBJECTS: Final = ("json", "yaml")
CELLS: Final = ("csv", "value")
FORMATS: Final = ("table", *OBJECTS, *CELLS)
FORMAT_HELP: Final = (
    "table (default); json or yaml: the API's answer; csv or value: the columns of the table"
)
DRAWN_HELP: Final = {
    "svg": "svg: a picture for a file",
    "html": "html: the picture in a page, with a table of the same",
    "commands": "commands: what to run instead, one command a line",
}

OK: Final = 0
FAILED: Final = 1
USAGE: Final = 2
INFEASIBLE: Final = 3
CONFLICT: Final = 4
FORBIDDEN: Final = 5
NOT_FOUND: Final = 6
INTERRUPTED: Final = 130


@dataclass(frozen=True)
class Shown:
    """A command's output: `body` for `-f json|yaml`, `text` (or rich's) for people.

    `-f csv|value` writes the first table of `text`.
    """

    body: object
    text: str | RenderableType
    status: int = OK
    drawn: Callable[[str], str] | None = None
    """For `-f svg|html`, where a command has these: the file in that form."""


def show(shown: Shown, form: str, out: TextIO) -> None:
    """Print in the requested format; those of `CELLS` are printed by `columns.write`."""
    if form == "json":
        out.write(as_json(shown.body) + "\n")
    elif form == "yaml":
        import yaml

        yaml.safe_dump(shown.body, out, sort_keys=False, allow_unicode=True)
    elif isinstance(shown.text, str):
        if shown.text:
            out.write(as_typed(shown.text) + "\n")
    else:
        draw(shown.text, out)


def draw(text: RenderableType, out: TextIO) -> None:
    """Print with rich; without a terminal no colour and no trailing blanks."""
    target = console(out)
    if target.is_terminal:
        target.print(text, crop=False)
        return
    with target.capture() as captured:
        target.print(text, crop=False)
    out.writelines(f"{line.rstrip()}\n" for line in captured.get().splitlines())


def as_json(body: object) -> str:
    """Indented JSON."""
    import msgspec

    return msgspec.json.format(msgspec.json.encode(body), indent=2).decode()


def console(out: TextIO | None = None) -> Console:
    """A console with colours only on a terminal, which does not break identifiers."""
    from rich.console import Console

    return Console(
        file=out or sys.stdout, highlight=False, markup=False, emoji=False, soft_wrap=False
    )


@dataclass(frozen=True)
class Rows:
    """A listing; the title of a numeric column begins with `#`."""

    columns: Sequence[str]
    rows: Sequence[Sequence[object]]
    quiet: Sequence[str] = ()
    """Columns that are shown only where some row has something in them, or asked for by name."""
    merged: Sequence[str] = ()
    """Columns that people are not shown again in rows that begin as the row before."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """A table fitted to the terminal, without breaking words."""
        at = [place for place, name in enumerate(self.columns) if self._is_shown(place, name)]
        rows = [[row[place] for place in at] for row in self._merged_rows()]
        made = _drawn([self.columns[place] for place in at], rows)
        whole = options.update(max_width=_UNBOUNDED)
        if console.measure(made, options=whole).maximum > options.max_width:
            made.collapse_padding = True
        _narrow(made, console.measure(made, options=whole).maximum - options.max_width)
        yield from console.render(made, whole)

    def _merged_rows(self) -> Iterator[Sequence[object]]:
        first: object = None
        for row in self.rows:
            if self.merged and row[0] == first:
                pairs = zip(self.columns, row, strict=True)
                yield ["" if name in self.merged else cell for name, cell in pairs]
            else:
                first = row[0] if row else None
                yield row

    def _is_shown(self, place: int, name: str) -> bool:
        return name not in self.quiet or any(row[place] for row in self.rows)


_UNBOUNDED: Final = 100_000
"""Wider than any table: its columns have their widths by then."""


@dataclass(frozen=True)
class Fields:
    """The fields of one thing by name; None is left out."""

    pairs: Sequence[tuple[str, object]]
    aside: Sequence[tuple[str, object]] = ()
    """Shown only when asked for by name."""

    def __rich__(self) -> RenderableType:
        """Names and values, one pair a line."""
        from rich.table import Table

        grid = Table.grid(padding=(0, 2))
        grid.add_column(style="bold", no_wrap=True)
        grid.add_column(overflow="fold")
        for name, value in self.pairs:
            if value is not None:
                grid.add_row(name, as_text(value))
        return grid


def as_text(value: object) -> str:
    """A value as text; booleans as in JSON."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def table(
    columns: Sequence[str],
    rows: Iterable[Sequence[object]],
    quiet: Sequence[str] = (),
    merged: Sequence[str] = (),
) -> Rows:
    """A table without borders, which suits `cut` and narrow terminals."""
    return Rows(columns, tuple(rows), quiet, merged)


def _drawn(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> Table:
    """A table with each column as wide as its longest cell, and at least its longest word."""
    from rich import box
    from rich.table import Table

    made = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, header_style="bold")
    cells = [[_cell(cell) for cell in row] for row in rows]
    for at, column in enumerate(columns):
        title = column.removeprefix("#")
        texts = [title, *(str(row[at]) for row in cells)]
        made.add_column(
            title,
            justify="right" if title != column else "left",
            overflow="fold",
            width=_widest(line for text in texts for line in text.splitlines()),
            min_width=_widest(word for text in texts for word in text.split()),
        )
    for row in cells:
        made.add_row(*row)
    return made


def _narrow(made: Table, excess: int) -> None:
    """Reduce the widths by so many characters, the widest first, without breaking words.

    Rich's own way lets a column that may wrap vanish beside those that may not.
    """
    for _ in range(excess):
        wide = [one for one in made.columns if (one.width or 0) > (one.min_width or 0)]
        if not wide:
            return
        widest = max(wide, key=lambda one: one.width or 0)
        widest.width = (widest.width or 0) - 1


def _widest(texts: Iterable[str]) -> int:
    """The width of the widest text in terminal cells; words stay whole, to be copied."""
    from rich.cells import cell_len

    return max(map(cell_len, texts), default=0)


def _cell(value: object) -> RenderableType:
    from rich.text import Text

    if isinstance(value, Text):
        return value
    return "" if value is None else str(value)


def fields(pairs: Iterable[tuple[str, object]], aside: Iterable[tuple[str, object]] = ()) -> Fields:
    """Names and values, one pair a line; secondary ones only on request."""
    return Fields(tuple(pairs), tuple(aside))


def stack(*parts: RenderableType) -> RenderableType:
    """The parts below one another. Lines of text are not broken."""
    from rich.console import Group
    from rich.text import Text

    return Group(
        *(
            Text(as_typed(part), no_wrap=True, overflow="ignore") if isinstance(part, str) else part
            for part in parts
        )
    )


def paragraphs(docstring: str) -> RenderableType:
    """A docstring's paragraphs, wrapped anew."""
    from rich.text import Text

    return Text("\n\n".join(" ".join(one.split()) for one in docstring.split("\n\n")))


class ShortId(str, FormattableColumn[str]):  # type: ignore[misc]  # ordered as text
    """The beginning of an id; programs get the whole id."""

    __slots__ = ()

    def __new__(cls, whole: str) -> Self:
        """Shorten an id."""
        return super().__new__(cls, whole[:8])


def short(identifier: str) -> ShortId:
    """The beginning of an id, which every command accepts if it is unambiguous."""
    return ShortId(identifier)


def moment(instant: str | None) -> str:
    """An instant in a table: to the second."""
    return re.sub(r"\.\d+", "", instant) if instant else "-"


def clock_time(instant: str | None) -> str:
    """The time of day of an instant: `2026-11-21T09:10:00Z` as `09:10:00Z`."""
    if not instant:
        return "-"
    whole = moment(instant)
    return whole.partition("T")[2] or whole


ELSEWHERE = "none in this project; --all-projects lists those of others"
Columns: TypeAlias = "Mapping[str, Callable[[Any], object]]"
"""A title of a column to what its cell is, of one thing."""


def listing(columns: Columns, things: Iterable[Any], quiet: Sequence[str] = ()) -> Rows:
    """A row for each thing."""
    rows = [[cell(one) for cell in columns.values()] for one in things]
    return table(list(columns), rows, quiet)


def listing_of_projects(
    client: Moorage,
    args: argparse.Namespace,
    path: str,
    columns: Columns,
    things: Sequence[Any],
    quiet: Sequence[str] = (),
    **narrowed: str | None,
) -> RenderableType:
    """The listing of one project, or of all, as `--all-projects` says.

    That of all has the project as second column, since handles repeat across projects. Below an
    empty one is a hint for operators that other projects have such things; `narrowed` is the query.
    """
    if args.all_projects:
        (first, cell), *others = columns.items()
        of_all: Columns = {first: cell, "project": lambda one: one.project_id, **dict(others)}
        return listing(of_all, things, quiet)
    listed = listing(columns, things, quiet)
    if things or not client.elsewhere(path, narrowed):
        return listed
    return stack(listed, "", ELSEWHERE)


LISTING: Final = "list"
SHOWING = frozenset({"show", LISTING})
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
    at = places_of(part.columns, wanted)
    rows = [[row[place] for place in at] for row in part.rows]
    names = [bare(part.columns[place]) for place in at]
    body = [dict(zip(names, map(_plain, row), strict=True)) for row in rows]
    return replace(shown, body=body, text=table([part.columns[place] for place in at], rows))


def _of_fields(shown: Shown, part: Fields, wanted: Sequence[str]) -> Shown:
    known = dict(part.pairs)
    known |= {name: value for name, value in part.aside if known.get(name) is None}
    names = list(known)
    picked = [names[place] for place in places_of(names, wanted)]
    body = {name: _plain(known[name]) for name in picked}
    line = "  ".join("-" if body[name] is None else as_text(known[name]) for name in picked)
    return replace(shown, body=body, text=line)


def places_of(names: Sequence[str], wanted: Sequence[str]) -> list[int]:
    """The indexes of columns by their names. Raises NoColumn: one is none of them."""
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
        rows = [[_cell_text(cell) for cell in row] for row in part.rows]
    else:
        names = [name for name, _ in part.pairs]
        rows = [[_cell_text(value) for _, value in part.pairs]]
    if form == "csv":
        CSVLister().emit_list(names, rows, out, Namespace(quote_mode="minimal"))
    elif isinstance(part, Rows):
        ValueFormatter().emit_list(names, rows, out, Namespace())
    else:
        ValueFormatter().emit_one(names, rows[0], out, Namespace())


def _cell_text(value: object) -> str | FormattableColumn[Any]:
    if isinstance(value, FormattableColumn):
        return value
    return "" if value is None else as_text(value)
