"""What commands print: text for people, or the API's body for programs."""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TextIO

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
    from rich.table import Table

FORMATS: Final = ("table", "json", "yaml")

OK: Final = 0
FAILED: Final = 1
USAGE: Final = 2
INFEASIBLE: Final = 3
CONFLICT: Final = 4
FORBIDDEN: Final = 5
INTERRUPTED: Final = 130


@dataclass(frozen=True)
class Shown:
    """What a command found: `body` for `-f json|yaml`, `text` (or something rich) for people."""

    body: object
    text: str | RenderableType
    status: int = OK


def show(shown: Shown, form: str, out: TextIO) -> None:
    """Print in the form asked for."""
    if form == "json":
        out.write(as_json(shown.body) + "\n")
    elif form == "yaml":
        import yaml

        yaml.safe_dump(shown.body, out, sort_keys=False, allow_unicode=True)
    elif isinstance(shown.text, str):
        if shown.text:
            out.write(shown.text + "\n")
    else:
        draw(shown.text, out)


def draw(text: RenderableType, out: TextIO) -> None:
    """Print something rich; what is not a terminal gets no colour and no trailing blanks."""
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
    """A console that colours only a terminal and breaks no identifiers."""
    from rich.console import Console

    return Console(
        file=out or sys.stdout, highlight=False, markup=False, emoji=False, soft_wrap=False
    )


@dataclass(frozen=True)
class Rows:
    """A listing; a column of numbers is called `#places`."""

    columns: Sequence[str]
    rows: Sequence[Sequence[object]]
    quiet: Sequence[str] = ()
    """Columns that are shown only where some row has something in them, or asked for by name."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """As a table: narrowed to the terminal, and wider than it before a word would break."""
        at = [place for place, name in enumerate(self.columns) if self._told(place, name)]
        rows = [[row[place] for place in at] for row in self.rows]
        made = _drawn([self.columns[place] for place in at], rows)
        whole = options.update(max_width=_UNBOUNDED)
        if console.measure(made, options=whole).maximum > options.max_width:
            made.collapse_padding = True
        _narrow(made, console.measure(made, options=whole).maximum - options.max_width)
        yield from console.render(made, whole)

    def _told(self, place: int, name: str) -> bool:
        return name not in self.quiet or any(row[place] for row in self.rows)


_UNBOUNDED: Final = 100_000
"""Wider than any table: its columns have their widths by then."""


@dataclass(frozen=True)
class Fields:
    """What is known of one thing, by names; what is None is not shown."""

    pairs: Sequence[tuple[str, object]]
    aside: Sequence[tuple[str, object]] = ()
    """Shown only when asked for by name."""

    def __rich__(self) -> RenderableType:
        """As names and values, one pair a line."""
        from rich.table import Table

        grid = Table.grid(padding=(0, 2))
        grid.add_column(style="bold", no_wrap=True)
        grid.add_column(overflow="fold")
        for name, value in self.pairs:
            if value is not None:
                grid.add_row(name, said(value))
        return grid


def said(value: object) -> str:
    """A value in words; what is true is `true`, as in JSON."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def table(
    columns: Sequence[str], rows: Iterable[Sequence[object]], quiet: Sequence[str] = ()
) -> Rows:
    """A borderless table: quiet, and kind to `cut` and to narrow terminals."""
    return Rows(columns, tuple(rows), quiet)


def _drawn(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> Table:
    """A table each column of which is as wide as its longest cell, and needs its longest word."""
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
    """Take so many characters off its widths, off the widest first, and never break a word.

    Rich's own way lets a column that may wrap vanish beside those that may not.
    """
    for _ in range(excess):
        wide = [one for one in made.columns if (one.width or 0) > (one.min_width or 0)]
        if not wide:
            return
        widest = max(wide, key=lambda one: one.width or 0)
        widest.width = (widest.width or 0) - 1


def _widest(texts: Iterable[str]) -> int:
    """In cells of a terminal. Ids and times are there to be copied, so words stay whole."""
    from rich.cells import cell_len

    return max(map(cell_len, texts), default=0)


def _cell(value: object) -> RenderableType:
    from rich.text import Text

    if isinstance(value, Text):
        return value
    return "" if value is None else str(value)


def fields(pairs: Iterable[tuple[str, object]], aside: Iterable[tuple[str, object]] = ()) -> Fields:
    """Names and values, one pair a line; those aside only when they are asked for."""
    return Fields(tuple(pairs), tuple(aside))


def stack(*parts: RenderableType) -> RenderableType:
    """One under the other. A text stays on its line, however narrow the terminal is."""
    from rich.console import Group
    from rich.text import Text

    return Group(
        *(
            Text(part, no_wrap=True, overflow="ignore") if isinstance(part, str) else part
            for part in parts
        )
    )


def paragraphs(docstring: str) -> RenderableType:
    """A docstring's paragraphs, wrapped anew."""
    from rich.text import Text

    return Text("\n\n".join(" ".join(one.split()) for one in docstring.split("\n\n")))


def short(identifier: str) -> str:
    """An id as people quote it; every command takes any unambiguous beginning."""
    return identifier[:8]


def moment(instant: str | None) -> str:
    """An instant for a table: to the second."""
    return re.sub(r"\.\d+", "", instant) if instant else "-"


def clock_time(instant: str | None) -> str:
    """`2026-11-21T09:10:00Z` as `09:10:00Z`: what is left of a hold is read off a clock."""
    if not instant:
        return "-"
    whole = moment(instant)
    return whole.partition("T")[2] or whole
