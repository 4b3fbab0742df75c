"""The plot of the measured times, as SVG: seconds by the number of hosts, for each family."""

from __future__ import annotations

import math
from html import escape
from typing import TYPE_CHECKING, Any, Final

from benchmarks.joint.families import FAMILIES
from benchmarks.joint.refusals import REFUSALS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

_WIDTH: Final = 330
_HEIGHT: Final = 230
_LEFT: Final = 56
_TOP: Final = 34
_BETWEEN: Final = 70
_LEGEND: Final = 22
_DECADES: Final = (-3, 2)
"""Powers of ten of seconds at the bottom and at the top."""
_COLOURS: Final = (
    "#3f51b5",
    "#26a69a",
    "#ef6c00",
    "#8e24aa",
    "#c0ca33",
    "#e53935",
    "#546e7a",
)
_STYLE: Final = (
    "text{font:12px system-ui,sans-serif;fill:#607080}"
    ".title{font-weight:600}"
    ".grid{stroke:#90a4ae;stroke-width:.5}"
    ".back{fill:#90a4ae;fill-opacity:.12}"
)
_PANELS: Final = (
    ("first valid answer", tuple(FAMILIES), "first"),
    ("refusal and its minimal conflict", tuple(REFUSALS), "conflict"),
)


def picture(rows: Sequence[Mapping[str, Any]]) -> str:
    """Panels side by side for answers and for refusals, one row of them per number of members.

    A line is a family's median; a bar goes from there to its 95th percentile. `rows` are the cells
    of one set at one load.
    """
    counts = sorted({row["members"] for row in rows})
    sizes = sorted({row["hosts"] for row in rows})
    width = 2 * (_WIDTH + _BETWEEN) + _LEFT
    below = _TOP + _HEIGHT + 40
    legend = _LEGEND * (max(len(families) for _, families, _ in _PANELS) + 1)
    height = below * len(counts) + legend
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}">',
        "<title>Seconds of a decision by the number of hosts</title>",
        f"<style>{_STYLE}</style>",
    ]
    for line, members in enumerate(counts):
        for column, (title, families, what) in enumerate(_PANELS):
            left = _LEFT + column * (_WIDTH + _BETWEEN)
            panel = _Panel(left, below * line + _TOP, sizes)
            parts += panel.frame(f"{members:,} members: {title}")
            for number, family in enumerate(families):
                mine = [
                    row
                    for row in rows
                    if (row["family"], row["members"]) == (family, members) and what in row["found"]
                ]
                parts += panel.line(mine, what, _COLOURS[number])
    for column, (_, families, _) in enumerate(_PANELS):
        parts += _legend(families, _LEFT + column * (_WIDTH + _BETWEEN), below * len(counts))
    return "\n".join([*parts, "</svg>\n"])


def _legend(families: Sequence[str], left: int, top: int) -> Iterable[str]:
    for number, family in enumerate(families):
        y = top + _LEGEND * number
        yield f'<rect x="{left}" y="{y}" width="12" height="12" fill="{_COLOURS[number]}"/>'
        yield f'<text x="{left + 18}" y="{y + 10}">{escape(family)}</text>'


class _Panel:
    """One pair of axes, both logarithmic."""

    def __init__(self, left: int, top: int, sizes: Sequence[int]) -> None:
        self._left = left
        self._top = top
        self._sizes = sizes

    def frame(self, title: str) -> Iterable[str]:
        """The background, the grid and its labels."""
        left, top, right = self._left, self._top, self._left + _WIDTH
        yield f'<text class="title" x="{left}" y="{top - 8}">{escape(title)}</text>'
        yield f'<rect class="back" x="{left}" y="{top}" width="{_WIDTH}" height="{_HEIGHT}"/>'
        for power in range(_DECADES[0], _DECADES[1] + 1):
            y = self._y(10.0**power)
            yield f'<line class="grid" x1="{left}" x2="{right}" y1="{y:.0f}" y2="{y:.0f}"/>'
            text = f"{10.0**power:g} s"
            yield f'<text x="{left - 6}" y="{y + 4:.0f}" text-anchor="end">{text}</text>'
        for size in self._sizes:
            x, name = self._x(size), _short(size)
            yield f'<text x="{x:.0f}" y="{top + _HEIGHT + 16}" text-anchor="middle">{name}</text>'
        middle, below = (left + right) // 2, top + _HEIGHT + 31
        yield f'<text x="{middle}" y="{below}" text-anchor="middle">hosts</text>'

    def line(self, rows: Sequence[Mapping[str, Any]], what: str, colour: str) -> Iterable[str]:
        """The medians of one family, and their bars."""
        points = []
        for row in sorted(rows, key=lambda row: int(row["hosts"])):
            x, found = self._x(row["hosts"]), row["found"][what]
            middle, high = self._y(found["p50"]), self._y(found["p95"])
            points.append(f"{x:.1f},{middle:.1f}")
            yield f'<circle cx="{x:.1f}" cy="{middle:.1f}" r="2.5" fill="{colour}"/>'
            yield (
                f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{middle:.1f}" y2="{high:.1f}"'
                f' stroke="{colour}"/>'
            )
        if points:
            yield f'<polyline fill="none" stroke="{colour}" points="{" ".join(points)}"/>'

    def _x(self, hosts: int) -> float:
        low, high = math.log(self._sizes[0]), math.log(self._sizes[-1])
        share = (math.log(hosts) - low) / (high - low) if high > low else 0.5
        margin = 24
        return self._left + margin + share * (_WIDTH - 2 * margin)

    def _y(self, seconds: float) -> float:
        low, high = _DECADES
        share = (math.log10(max(seconds, 10.0**low)) - low) / (high - low)
        return self._top + _HEIGHT * (1 - min(share, 1.0))


def _short(size: int) -> str:
    """A number of hosts in thousands, if it is of thousands: `50k`."""
    return f"{size // 1000}k" if size % 1000 == 0 else f"{size:,}"
