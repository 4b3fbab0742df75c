"""Writes pictures as SVG: one file that needs nothing else, light or dark as its viewer is.

Colours are classes of the style element, so that `prefers-color-scheme` chooses them. States are
told by shape as well. Text is escaped, and what XML cannot hold is replaced.
"""

from __future__ import annotations

import re
import unicodedata
from html import escape
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

Colours = tuple[str, str]
"""In light and in dark."""

_PAGE: Final = ("#ffffff", "#14181d")
INK: Final = ("#1c2733", "#e6ebf0")
MUTED: Final = ("#546373", "#9aa8b5")
FAINT: Final = ("#d3dae2", "#3a444f")
RAMP: Final[Sequence[Colours]] = (
    ("#f1f4f8", "#1f262e"),
    ("#dce8f5", "#22344a"),
    ("#c3d8ee", "#264262"),
    ("#a6c5e5", "#2b527b"),
    ("#86b0da", "#316394"),
    ("#679acd", "#3a76ad"),
    ("#4a84bf", "#4a8ac4"),
    ("#336fae", "#629fd6"),
    ("#21599a", "#80b5e4"),
    ("#134581", "#a3ccf0"),
    ("#0a3266", "#cbe3f9"),
)
"""One hue, from empty to full."""
ALARM: Final = ("#b3261e", "#ff8a80")
_INVALID: Final = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that an XML document must not have."""
_WIDE: Final = frozenset("WF")
_EM: Final = 0.56
"""Of a character's width in the height of its font, on the average."""


def escaped(text: str) -> str:
    """Text for an element or attribute."""
    return escape(_INVALID.sub("\N{REPLACEMENT CHARACTER}", text), quote=True)


def width_of(text: str, size: float = 12) -> float:
    """About the width of a text in a font of this size: nobody knows which one the viewer has."""
    wide = sum(unicodedata.east_asian_width(one) in _WIDE for one in text)
    return (len(text) + wide) * _EM * size


def fitting(text: str, width: float, size: float = 12) -> str:
    """The text, cut to about this width; empty if there is no room for anything."""
    if width_of(text, size) <= width:
        return text
    most = int(width / (_EM * size)) - 1
    return f"{text[:most]}…" if most > 0 else ""


class Svg:
    """A picture that grows as things are drawn; coordinates are in pixels."""

    def __init__(self, title: str, description: str, classes: Mapping[str, str]) -> None:
        """An empty one. `classes` are the style rules of its own, by selector.

        In a rule `{light|dark}` is a colour that depends on the viewer.
        """
        self._title, self._description = title, description
        self._classes = {**_BASE, **classes}
        self._parts: list[str] = []

    def rect(
        self, x: float, y: float, width: float, height: float, kind: str, *, round_: float = 0
    ) -> None:
        """A rectangle of a class."""
        corner = f' rx="{_n(round_)}"' if round_ else ""
        self._parts.append(
            f'<rect x="{_n(x)}" y="{_n(y)}" width="{_n(max(width, 0))}"'
            f' height="{_n(max(height, 0))}"{corner} class="{kind}"/>'
        )

    def text(self, x: float, y: float, text: str, kind: str = "", *, end: bool = False) -> None:
        """A text from `x` on, or up to it, on the line `y`."""
        shown = f' class="{kind}"' if kind else ""
        anchor = ' text-anchor="end"' if end else ""
        self._parts.append(f'<text x="{_n(x)}" y="{_n(y)}"{shown}{anchor}>{escaped(text)}</text>')

    def marked(self, x: float, y: float, text: str, kind: str, *, end: bool = False) -> None:
        """A text that can be read on any ground."""
        self.text(x, y, text, f"{kind} halo", end=end)
        self.text(x, y, text, kind, end=end)

    def path(self, shape: str, kind: str) -> None:
        """A path of a class; nothing if it has no shape."""
        if shape:
            self._parts.append(f'<path d="{shape}" class="{kind}"/>')

    def open(self, title: str) -> None:
        """Begin a group whose parts are about this, which viewers show where the mouse is."""
        self._parts.append(f"<g><title>{escaped(title)}</title>")

    def close(self) -> None:
        """End the group."""
        self._parts.append("</g>")

    def written(self, width: float, height: float) -> str:
        """The document."""
        wide, high = _n(width), _n(height)
        opening = (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{wide}" height="{high}"'
            f' viewBox="0 0 {wide} {high}" role="img" aria-labelledby="title description">'
        )
        return "\n".join(
            [
                opening,
                f'<title id="title">{escaped(self._title)}</title>',
                f'<desc id="description">{escaped(self._description)}</desc>',
                f"<style>{styled(self._classes)}</style>",
                _HATCH,
                '<rect width="100%" height="100%" class="page"/>',
                *self._parts,
                "</svg>",
                "",
            ]
        )


def box(x: float, y: float, width: float, height: float) -> str:
    """The path of a rectangle."""
    return f"M{_n(x)} {_n(y)}h{_n(width)}v{_n(height)}h{_n(-width)}z"


def line(x: float, y: float, to_x: float, to_y: float) -> str:
    """The path of a line."""
    return f"M{_n(x)} {_n(y)}L{_n(to_x)} {_n(to_y)}"


def cross(x: float, y: float, width: float, height: float) -> str:
    """The path of the two diagonals of a rectangle."""
    return line(x, y, x + width, y + height) + line(x, y + height, x + width, y)


def colour(colours: Colours) -> str:
    """A colour in a style rule."""
    return f"{{{colours[0]}|{colours[1]}}}"


def styled(classes: Mapping[str, str]) -> str:
    """A style sheet of these rules."""
    light = "".join(f"{name}{{{_chosen(rule, 0)}}}" for name, rule in classes.items())
    differing = ((name, rule) for name, rule in classes.items() if _CHOICE.search(rule))
    dark = "".join(f"{name}{{{_chosen(rule, 1)}}}" for name, rule in differing)
    return f"{light}@media (prefers-color-scheme:dark){{{dark}}}"


def _chosen(rule: str, which: int) -> str:
    return _CHOICE.sub(lambda match: match[which + 1], rule)


_CHOICE: Final = re.compile(r"\{([^{}|]*)\|([^{}|]*)\}")
_BASE: Final[Mapping[str, str]] = {
    "svg": "color-scheme:light dark",
    "text": f"font:12px system-ui,sans-serif;fill:{colour(INK)}",
    ".page": f"fill:{colour(_PAGE)}",
    ".head": "font-weight:600",
    ".title": "font-size:16px;font-weight:600",
    ".muted": f"fill:{colour(MUTED)}",
    ".small": "font-size:10px",
    ".frame": f"fill:none;stroke:{colour(FAINT)}",
    ".mark": f"fill:none;stroke:{colour(INK)};stroke-width:1.3",
    ".halo": f"fill:none;stroke:{colour(_PAGE)};stroke-width:3.2;stroke-opacity:.8",
    ".alarm": f"fill:none;stroke:{colour(ALARM)};stroke-width:2",
    ".alarmed": f"fill:{colour(ALARM)};stroke:{colour(_PAGE)};stroke-width:.5",
    ".hatched": "fill:url(#hatch)",
    ".stripe": f"stroke:{colour(INK)};stroke-width:1.4",
    ".gap": f"fill:{colour(_PAGE)};fill-opacity:.55",
}
_HATCH: Final = (
    '<defs><pattern id="hatch" width="5" height="5" patternUnits="userSpaceOnUse"'
    ' patternTransform="rotate(45)"><rect width="5" height="5" class="gap"/>'
    '<path d="M0 0V5" class="stripe"/></pattern></defs>'
)


def _n(number: float) -> str:
    """A coordinate, to a tenth of a pixel."""
    return f"{round(number, 1):g}" if abs(number) < _LONG else f"{round(number)}"


_LONG: Final = 100_000
"""From here on `g` would write exponents."""
