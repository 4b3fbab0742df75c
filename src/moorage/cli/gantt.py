"""A chart of leases over time: a row for each, an axis with ticks, as wide as the terminal.

Marks show the states without colour, so a pipe and a terminal show the same. A column is a
stretch of time; an edge is drawn at the nearest column, so back to back is drawn back to back,
and even the shortest lease has a column.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import MAXYEAR, UTC, datetime
from typing import TYPE_CHECKING, Final

from moorage.cli.output import stack
from moorage.cli.times import minute
from moorage.domain.period import (
    DAY,
    HOUR,
    MINUTE,
    SECOND,
    format_instant,
    from_datetime,
    say_duration,
    to_datetime,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rich.console import RenderableType
    from rich.text import Text

    from moorage.domain.period import Duration, Instant, Period

STEPS: Final[tuple[Duration, ...]] = (
    *(n * SECOND for n in (1, 5, 15, 30)),
    *(n * MINUTE for n in (1, 5, 15, 30)),
    *(n * HOUR for n in (1, 3, 6, 12)),
    *(n * DAY for n in (1, 2, 7, 14)),
)
MONTHS: Final = (1, 2, 3, 6, 12, 24, 60, 120, 600, 1200)
"""Steps where even two weeks are too close: whole months, then years."""
_MONDAYS: Final = 7 * DAY
_MONDAY: Final = 4 * DAY
"""1970-01-05, from which weeks are counted."""
_BY_DAYS: Final = 3 * DAY
"""From this length on noon and midnight are noise, however much room there is."""
_GAP: Final = 2
"""Columns between two labels."""


@dataclass(frozen=True, slots=True)
class Tick:
    """A tick: an instant on the axis, and its label."""

    instant: Instant
    label: str


def ticks(window: Period, columns: int) -> list[Tick]:
    """The ticks of a window with so many columns: as many as their labels leave room for."""
    length = window.end - window.start
    steps = (step for step in STEPS if step >= DAY or length < _BY_DAYS)
    for step in steps:
        room = step * columns // length - _GAP
        for form in _forms(step):
            if len(f"{_SAMPLE:{form}}") <= room:
                return [Tick(at, _label(at, step, form)) for at in _rounded(window, step)]
    for months in MONTHS:
        if months * 30 * DAY * columns >= (len("2026-12") + _GAP) * length:
            break
    return [Tick(at, f"{to_datetime(at):%Y-%m}") for at in _firsts(window, months)]


_SAMPLE: Final = to_datetime(0)


def _forms(step: Duration) -> tuple[str, ...]:
    """Forms of labels, the best first; weekdays for steps of days, not of weeks."""
    if step < MINUTE:
        return ("%H:%M:%S",)
    if step < DAY:
        return ("%H:%M",)
    return ("%a %m-%d", "%m-%d") if step < _MONDAYS else ("%m-%d",)


def _label(at: Instant, step: Duration, form: str) -> str:
    """A tick's label: the day at midnight, where the others are times of day."""
    return f"{to_datetime(at):{form if step >= DAY or at % DAY else '%m-%d'}}"


def _rounded(window: Period, step: Duration) -> Iterator[Instant]:
    """The multiples of the step in the window; weeks begin on Mondays."""
    origin = _MONDAY if step >= _MONDAYS else 0
    at = window.start + (origin - window.start) % step
    while at < window.end:
        yield at
        at += step


def _firsts(window: Period, months: int) -> Iterator[Instant]:
    """The first days of every so many months, counted from a January."""
    start = to_datetime(window.start)
    month = -(-(start.year * 12 + start.month - 1) // months) * months
    while month < MAXYEAR * 12:
        at = from_datetime(datetime(month // 12, month % 12 + 1, 1, tzinfo=UTC))
        if at >= window.end:
            return
        if at >= window.start:
            yield at
        month += months


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
