"""Pictures of a month, as SVG: what the hosts were used for, hour by hour, one panel a way."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Final, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

Shares: TypeAlias = "Sequence[tuple[float, float, float]]"

_WIDTH: Final = 760
_HEIGHT: Final = 150
_LEFT: Final = 46
_TOP: Final = 40
_GAP: Final = 46
_LAYERS: Final = (
    ("leased", "#3f51b5"),
    ("other servers", "#26a69a"),
    ("idle though wanted", "#ef6c00"),
)
_STYLE: Final = (
    "text{font:12px system-ui,sans-serif;fill:#607080}"
    ".title{font-weight:600}"
    ".line{stroke:#90a4ae;stroke-width:.5}"
    ".back{fill:#90a4ae;fill-opacity:.12}"
)


def picture(hours: Mapping[str, Shares], first_day: int) -> str:
    """The panels, one below the other.

    Args:
        hours: by title, per hour the shares of the capacity in the order of the legend.
        first_day: the day of the first hour.
    """
    height = _TOP + len(hours) * (_HEIGHT + _GAP)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_LEFT + _WIDTH + 14} {height}">',
        "<title>Use of the hosts over the month</title>",
        f"<style>{_STYLE}</style>",
        *_legend(),
    ]
    for number, (title, shares) in enumerate(hours.items()):
        parts += _panel(title, shares, _TOP + number * (_HEIGHT + _GAP), first_day)
    return "\n".join([*parts, "</svg>\n"])


def _legend() -> Iterable[str]:
    for number, (name, colour) in enumerate(_LAYERS):
        left = _LEFT + number * 170
        yield f'<rect x="{left}" y="4" width="12" height="12" fill="{colour}"/>'
        yield f'<text x="{left + 18}" y="14">{escape(name)}</text>'


def _panel(title: str, shares: Shares, top: int, first_day: int) -> Iterable[str]:
    yield f'<text class="title" x="{_LEFT}" y="{top + 2}">{escape(title)}</text>'
    top += 10
    yield f'<rect class="back" x="{_LEFT}" y="{top}" width="{_WIDTH}" height="{_HEIGHT}"/>'
    below = [0.0] * len(shares)
    for layer, (_, colour) in enumerate(_LAYERS):
        above = [low + hour[layer] for low, hour in zip(below, shares, strict=True)]
        line = [*_points(above, top), *reversed(list(_points(below, top)))]
        yield f'<polygon fill="{colour}" points="{" ".join(line)}"/>'
        below = above
    for share in (0, 50, 100):
        y = top + _HEIGHT * (1 - share / 100)
        yield f'<line class="line" x1="{_LEFT}" x2="{_LEFT + _WIDTH}" y1="{y}" y2="{y}"/>'
        yield f'<text x="{_LEFT - 6}" y="{y + 4}" text-anchor="end">{share} %</text>'
    days = len(shares) // 24
    for day in range(0, days + 1, 2):
        x, y = _LEFT + _WIDTH * day / days, top + _HEIGHT + 15
        said = first_day + day if day else f"day {first_day}"
        yield f'<text x="{x:.0f}" y="{y}" text-anchor="middle">{said}</text>'


def _points(levels: Sequence[float], top: int) -> Iterable[str]:
    last = max(1, len(levels) - 1)
    for number, level in enumerate(levels):
        yield f"{_LEFT + _WIDTH * number / last:.1f},{top + _HEIGHT * (1 - level):.1f}"
