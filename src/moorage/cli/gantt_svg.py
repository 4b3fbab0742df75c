"""The timeline as SVG: rows and lanes as the API lays them out, for mails and tickets."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any, Final

from moorage.cli.gantt import ticks
from moorage.cli.svg import FAINT, INK, MUTED, RAMP, Svg, box, colour, fitting, line, width_of
from moorage.cli.times import minute
from moorage.domain.period import SECOND, Period, format_instant, parse_instant
from moorage.domain.words import counted

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from moorage.domain.period import Instant

_WIDTH: Final = 1000
_MARGIN: Final = 16
_LANE: Final = 20
_BAR: Final = 14
_TOP: Final = 76
"""Below the title and the axis."""
_LETTER: Final = 7
"""Pixels of a letter on the axis."""
_CLASSES: Final = {
    ".grid": f"fill:none;stroke:{colour(FAINT)}",
    ".now": "fill:none;stroke:{#b3261e|#ff8a80};stroke-width:1.5",
    ".around": f"fill:none;stroke:{colour(MUTED)};stroke-width:3;stroke-dasharray:2 2",
    ".active": f"fill:{colour(RAMP[6])}",
    ".pending": f"fill:{colour(RAMP[2])};stroke:{colour(RAMP[6])}",
    ".closed": f"fill:none;stroke:{colour(MUTED)};stroke-dasharray:4 3",
    ".offer": f"fill:{colour(RAMP[1])};stroke:{colour(INK)};stroke-dasharray:4 3",
    ".waiting": f"fill:none;stroke:{colour(INK)};stroke-dasharray:1 3;stroke-width:1.5",
    ".absence": f"fill:url(#hatch);stroke:{colour(MUTED)}",
}
_SAID: Final = (
    ("active", "active"),
    ("pending", "pending"),
    ("moving", "starting or ending"),
    ("closed", "closed"),
    ("offer", "offer"),
    ("waiting", "waits: estimated window"),
    ("absence", "hosts away"),
)
_MOVING: Final = frozenset({"starting", "ending"})


def gantt_svg(found: Mapping[str, Any], now: Instant) -> str:
    """The timeline that the API answers, as SVG."""
    window = Period(parse_instant(found["from"]), parse_instant(found["to"]))
    rows = found["rows"]
    bars: Sequence[Mapping[str, Any]] = _bars(found["bars"])
    kinds = {_kind(bar) for bar in bars}
    title = f"{_named(found)}, {minute(found['from'])} to {minute(found['to'])}"
    svg = Svg(title, _description(bars), _CLASSES)
    svg.text(_MARGIN, 28, title, "title")
    chart = _Chart(svg, window, _label_width(rows["label"]))
    tops = [_TOP]
    for lanes in rows["lanes"]:
        tops.append(tops[-1] + max(lanes, 1) * _LANE + 4)
    chart.axis(tops[-1], now)
    by_row: dict[int, list[Mapping[str, Any]]] = defaultdict(list)
    for bar in bars:
        by_row[bar["row"]].append(bar)
    several = found["rows_by"] != "lease"
    for n, label in enumerate(rows["label"]):
        chart.row(label or "-", tops[n], tops[n + 1])
        for bar in by_row[n]:
            chart.bar(bar, tops[n] + bar["lane"] * _LANE, named=several)
    if not rows["label"]:
        svg.text(_MARGIN, _TOP + 14, "nothing in this period", "muted")
    bottom = _legend(svg, kinds, max(tops[-1], _TOP + 20) + 12)
    return svg.written(_WIDTH, bottom + _MARGIN)


def _bars(columns: Mapping[str, Sequence[Any]]) -> list[dict[str, Any]]:
    return [
        dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)
    ]


def _named(found: Mapping[str, Any]) -> str:
    return {
        "lease": "Leases",
        "project": "Leases by project",
        "rack": "Leases by rack",
        "host": "Leases by host",
    }[found["rows_by"]]


def _description(bars: Sequence[Mapping[str, Any]]) -> str:
    distinct = {bar["id"]: bar["kind"] for bar in bars}
    kinds = list(distinct.values())
    said = [
        counted(kinds.count("lease"), "lease"),
        counted(kinds.count("offer"), "offer"),
        f"{kinds.count('waiting')} waiting",
        counted(kinds.count("absence"), "absence"),
    ]
    return f"A bar for each: {', '.join(said)}."


def _kind(bar: Mapping[str, Any]) -> str:
    """The class of a bar."""
    if bar["kind"] != "lease":
        return str(bar["kind"])
    return "moving" if bar["state"] in _MOVING else str(bar["state"])


def _label_width(labels: Sequence[str]) -> float:
    longest = max((width_of(label) for label in labels), default=0)
    return min(max(longest + 12, 60), 240)


class _Chart:
    """Places bars by their times."""

    def __init__(self, svg: Svg, window: Period, left: float) -> None:
        self._svg, self._window = svg, window
        self._labels = left
        self._left = _MARGIN + left
        self._wide = _WIDTH - _MARGIN - self._left

    def at(self, instant: Instant) -> float:
        """Where an instant is; of one outside of the window the nearest edge."""
        window = self._window
        inside = min(max(instant, window.start), window.end) - window.start
        return self._left + self._wide * inside / (window.end - window.start)

    def axis(self, bottom: float, now: Instant) -> None:
        """Ticks with their labels, and the present."""
        top = _TOP - 8
        for tick in ticks(self._window, int(self._wide / _LETTER)):
            x = self.at(tick.instant)
            self._svg.path(line(x, top, x, bottom), "grid")
            if x + width_of(tick.label, 11) < _WIDTH - 4:
                self._svg.text(x + 3, top - 4, tick.label, "small muted")
        self._svg.path(line(self._left, top, self._left + self._wide, top), "grid")
        if self._window.covers(now):
            x = self.at(now)
            self._svg.open(f"now, {format_instant(now)}")
            self._svg.path(line(x, top - 4, x, bottom), "now")
            self._svg.close()

    def row(self, label: str, top: float, bottom: float) -> None:
        """A row's label and the line below it."""
        self._svg.text(_MARGIN, top + 13, fitting(label, self._labels - 8), "")
        self._svg.path(line(_MARGIN, bottom - 2, self._left + self._wide, bottom - 2), "grid")

    def bar(self, bar: Mapping[str, Any], top: float, *, named: bool) -> None:
        """A bar with what is around it, and in rows of several its name."""
        start = bar["start"] * SECOND
        end = self._window.end if bar["end"] is None else bar["end"] * SECOND
        left, right = self.at(start), max(self.at(end), self.at(start) + 2)
        y, kind = top + 1, _kind(bar)
        until = "" if bar["end"] is None else f" to {minute(format_instant(end))}"
        self._svg.open(
            f"{bar['label']}: {bar['kind']}, {bar['state']}, {minute(format_instant(start))}{until}"
        )
        first, last = self.at(start - bar["lead"] * SECOND), self.at(end + bar["cleaning"] * SECOND)
        if first < left or last > right:
            self._svg.path(line(first, y + _BAR / 2, last, y + _BAR / 2), "around")
        if kind == "moving":
            self._svg.rect(left, y, right - left, _BAR, "active", round_=2)
            self._svg.path(box(left, y, right - left, _BAR), "hatched")
        else:
            self._svg.rect(left, y, right - left, _BAR, kind, round_=2)
        if named:
            text = fitting(bar["label"], right - left - 6, 10)
            self._svg.marked(left + 3, y + 11, text, "small")
        self._svg.close()


def _legend(svg: Svg, kinds: set[str], top: float) -> float:
    x = float(_MARGIN)
    for kind, said in _SAID:
        if kind in kinds:
            svg.rect(x, top, 26, _BAR, "active" if kind == "moving" else kind, round_=2)
            if kind == "moving":
                svg.path(box(x, top, 26, _BAR), "hatched")
            svg.text(x + 32, top + 11, said, "muted")
            x += 32 + width_of(said) + 20
    return top + 20
