"""A chart of leases over time: a row for each, an axis with ticks, as wide as the terminal.

Marks show the states without colour, so a pipe and a terminal show the same. A column is a
stretch of time; an edge is drawn at the nearest column, so back to back is drawn back to back,
and even the shortest lease has a column.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from moorage.cli.output import stack
from moorage.cli.ticks import Tick, ticks
from moorage.cli.times import minute
from moorage.domain.period import DAY, HOUR, MINUTE, SECOND, format_instant, say_duration

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import RenderableType
    from rich.text import Text

    from moorage.domain.period import Instant, Period

MARKS: Final = {
    "pending": ("░", "cyan"),
    "starting": ("▒", "yellow"),
    "active": ("█", "green"),
    "ending": ("▓", "magenta"),
    "closed": ("·", "bright_black"),
}
"""State -> mark and colour, in the order of a lease's life."""
AROUND: Final = "╌"
"""Lead and cleaning."""
DEGRADED: Final = "red"
NOW: Final = "▼"
NOW_LINE: Final = "┊"
NARROWEST: Final = 16
"""Columns of time, however narrow the terminal is."""


@dataclass(frozen=True, slots=True)
class Row:
    """One lease in the chart."""

    name: str
    status: str
    period: Period
    occupied: Period
    """With lead and cleaning."""
    degraded: bool = False
    missing: int = 0
    project: str = ""
    """Shown where the chart is of several projects."""

    @property
    def said(self) -> str:
        """The status, `active`, or `active !2` where two places are missing."""
        return f"{self.status} !{self.missing or ''}" if self.degraded else self.status


@dataclass(frozen=True, slots=True)
class Scale:
    """The scale from instants to columns of a window."""

    window: Period
    columns: int

    @property
    def column(self) -> int:
        """The time of one column, in microseconds."""
        return max(1, (self.window.end - self.window.start) // self.columns)

    def at(self, instant: Instant) -> int:
        """The column with the nearest left edge; outside the window, its first or last edge."""
        inside = min(max(instant, self.window.start), self.window.end)
        length = self.window.end - self.window.start
        return ((inside - self.window.start) * self.columns + length // 2) // length

    def stretch(self, period: Period) -> range:
        """The columns of a period, at least one for what lies in the window."""
        if not period.overlaps(self.window):
            return range(0)
        first, last = self.at(period.start), self.at(period.end)
        if first < last:
            return range(first, last)
        first = min(first, self.columns - 1)
        return range(first, first + 1)


def chart(rows: Sequence[Row], window: Period, now: Instant, width: int) -> RenderableType:
    """The whole chart, at most `width` columns wide if that leaves room for any."""
    names = column("lease", [row.name for row in rows], max(width // 4, 8))
    if any(row.project for row in rows):
        owners = column("project", [row.project for row in rows], max(width // 6, 8))
        names = [f"{name}  {owner}" for name, owner in zip(names, owners, strict=True)]
    said = column("status", [row.said for row in rows], 14)
    left = len(names[0]) + len(said[0]) + 4
    scale = Scale(window, max(width - left, NARROWEST))
    marks = ticks(window, scale.columns)
    lines: list[RenderableType] = [
        f"{' ' * left}{labels(marks, scale)}".rstrip(),
        f"{names[0]}  {said[0]}  {axis(marks, scale, now)}",
    ]
    for row, name, status in zip(rows, names[1:], said[1:], strict=True):
        lines.append(_line(row, f"{name}  {status}  ", scale, now))
    return stack(*lines, "", *_legend(rows, scale, now, width))


def column(head: str, texts: Sequence[str], most: int) -> list[str]:
    """A column's head and cells in one width; longer ones are cut."""
    cut = [text if len(text) <= most else f"{text[: most - 1]}…" for text in texts]
    width = max(len(head), *(len(text) for text in cut))
    return [text.ljust(width) for text in (head, *cut)]


def labels(marks: Sequence[Tick], scale: Scale) -> str:
    """The axis' labels, each above its tick; one that does not fit on the right is left out."""
    line = ""
    for tick in marks:
        at = scale.at(tick.instant)
        if at >= len(line) and at + len(tick.label) <= scale.columns:
            line = line.ljust(at) + tick.label + " "
    return line


def axis(marks: Sequence[Tick], scale: Scale, now: Instant) -> str:
    """The axis' line with the ticks and the present."""
    line = ["─"] * scale.columns
    for tick in marks:
        if (at := scale.at(tick.instant)) < scale.columns:
            line[at] = "┬"
    if (here := _now_column(scale, now)) is not None:
        line[here] = NOW
    return "".join(line)


def _now_column(scale: Scale, now: Instant) -> int | None:
    covered = scale.window.covers(now)
    return min(scale.at(now), scale.columns - 1) if covered else None


def _line(row: Row, head: str, scale: Scale, now: Instant) -> Text:
    from rich.text import Text

    cells = [" "] * scale.columns
    if (at := _now_column(scale, now)) is not None:
        cells[at] = NOW_LINE
    mark, colour = MARKS.get(row.status, ("?", ""))
    around, bar = scale.stretch(row.occupied), scale.stretch(row.period)
    for column in around:
        cells[column] = AROUND
    for column in bar:
        cells[column] = mark
    line = Text(head, no_wrap=True, overflow="ignore")
    line.append("".join(cells).rstrip())
    line.stylize(DEGRADED if row.degraded else colour, len(head))
    return line


def _legend(rows: Sequence[Row], scale: Scale, now: Instant, width: int) -> list[str]:
    """The legend: the marks in this chart, and the time of a column."""
    present = {row.status for row in rows}
    said = [f"{mark} {state}" for state, (mark, _) in MARKS.items() if state in present]
    if any(row.period != row.occupied for row in rows):
        said.append(f"{AROUND} lead, cleaning")
    if any(row.degraded for row in rows):
        said.append("!n degraded, n places missing")
    said.append(f"{NOW} now {minute(format_instant(now))}")
    said.append(f"a column is {length(scale.column)}")
    return filled(said, width)


def length(duration: int) -> str:
    """A length: `1h12m` or `45s`, rounded to minutes from an hour on, to hours from a day on."""
    grain = HOUR if duration >= DAY else MINUTE if duration >= HOUR else SECOND
    rounded = (duration + grain // 2) // grain * grain
    return say_duration(rounded) if rounded else "less than 1s"


def filled(words: Sequence[str], width: int) -> list[str]:
    """Words joined to lines of the given width."""
    lines = [""]
    for word in words:
        longer = f"{lines[-1]}   {word}" if lines[-1] else word
        if lines[-1] and len(longer) > width:
            lines.append(word)
        else:
            lines[-1] = longer
    return lines
