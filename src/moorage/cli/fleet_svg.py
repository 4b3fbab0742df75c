"""The map of the fleet as SVG, and as a page with a table of the same: for mails and tickets."""

from __future__ import annotations

import math
import struct
from base64 import b64decode
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from moorage.cli.svg import (
    ALARM,
    FAINT,
    INK,
    MUTED,
    RAMP,
    Svg,
    box,
    colour,
    cross,
    escaped,
    fitting,
    styled,
    width_of,
)
from moorage.domain.words import counted

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

_WIDTH: Final = 1000
_LEAST: Final = 640
_MARGIN: Final = 16
_NAMED: Final = 120
"""Up to so many hosts are drawn with their names."""
_BAR: Final = (150, 20)
_SIZES: Final = ((1_000, 14), (10_000, 9), (1_000_000, 5))
"""Most hosts, and the size of a cell for them."""
_NONE: Final = 255
_FULL: Final = 100
_CLOSED, _DOWN, _AWAY, _OVER, _BROKEN, _, _UNSERVED, _EXCLUSIVE = (1 << n for n in range(8))
_SAID: Final = (
    (_CLOSED, "closed"),
    (_DOWN, "down"),
    (_AWAY, "away"),
    (_OVER, "more booked than there is"),
    (_BROKEN, "with a violation"),
    (_UNSERVED, "held or reserved only"),
    (_EXCLUSIVE, "exclusive"),
)
_CLASSES: Final = {
    **{f".f{n}": f"fill:{colour(one)}" for n, one in enumerate(RAMP)},
    ".none": f"fill:none;stroke:{colour(FAINT)};stroke-dasharray:2 2",
    ".only": f"fill:none;stroke:{colour(MUTED)};stroke-dasharray:2 2",
    ".own": f"fill:none;stroke:{colour(INK)};stroke-width:1.5",
    ".on": "font-size:11px",
}


@dataclass(frozen=True, slots=True)
class _Host:
    name: str
    fill: int
    flags: int

    @property
    def said(self) -> str:
        """`40 %, closed`."""
        fill = "none of it" if self.fill == _NONE else f"{self.fill} %"
        return ", ".join([fill, *_words(self.flags)])


def _words(flags: int) -> list[str]:
    # One that is away is down for that reason.
    shown = flags & ~_DOWN if flags & _AWAY else flags
    return [word for flag, word in _SAID if shown & flag]


@dataclass(frozen=True, slots=True)
class _Block:
    name: str
    parent: str
    hosts: Sequence[_Host]


def _blocks(found: Mapping[str, Any]) -> list[_Block]:
    columns, parents = found["hosts"], found["parents"]["name"]
    fill = b64decode(columns["fill"])
    flags = struct.unpack(f"<{len(fill)}H", b64decode(columns["flags"]))
    hosts = [_Host(*one) for one in zip(columns["name"], fill, flags, strict=True)]
    blocks = found["blocks"]
    return [
        _Block(name or "elsewhere", parents[parent] if parent >= 0 else "", hosts[at : at + count])
        for name, parent, at, count in zip(
            blocks["name"], blocks["parent"], blocks["first"], blocks["count"], strict=True
        )
    ]


def _title(found: Mapping[str, Any]) -> str:
    number = len(found["hosts"]["name"])
    return f"{counted(number, 'host')}, {found['class'] or 'no resources'} booked at {found['at']}"


def _description(found: Mapping[str, Any], blocks: Sequence[_Block]) -> str:
    level = found["level"]
    marks: Counter[str] = Counter()
    for block in blocks:
        for host in block.hosts:
            marks.update(_words(host.flags))
    said = [f"{number} {word}" for word, number in marks.items()]
    where = f"by {level}" if level else "in one block"
    return f"Hosts {where}, coloured by how much is booked. {', '.join(said) or 'None is marked'}."


def fleet_svg(found: Mapping[str, Any]) -> str:
    """The map that the API answers, as SVG."""
    blocks = _blocks(found)
    svg = Svg(_title(found), _description(found, blocks), _CLASSES)
    svg.text(_MARGIN, 28, _title(found), "title")
    drawing = _Drawing(svg, blocks)
    bottom = drawing.draw(44)
    bottom = _legend(svg, blocks, bottom + 8)
    return svg.written(max(drawing.right + _MARGIN, _LEAST), bottom + _MARGIN)


class _Drawing:
    """Blocks side by side, below the names of their parents."""

    def __init__(self, svg: Svg, blocks: Sequence[_Block]) -> None:
        self._svg, self._blocks = svg, blocks
        number = sum(len(one.hosts) for one in blocks)
        most = max((len(one.hosts) for one in blocks), default=0)
        self._named = number <= _NAMED
        if self._named:
            self._across, (self._wide, self._high) = 1, _BAR
        else:
            size = next((size for hosts, size in _SIZES if number <= hosts), _SIZES[-1][1])
            self._wide = self._high = size
            room = (_WIDTH - 2 * _MARGIN) // size
            rows = -(-most // max(min(math.ceil(math.sqrt(2 * most)), room), 1)) or 1
            self._across = -(-most // rows) or 1
        self._block = max(self._across * self._wide, 40)
        self.right = 0.0
        """Where the last block on the right ends."""

    def draw(self, top: float) -> float:
        """Draw all blocks from here down; where that ends."""
        x, y, below, before = float(_MARGIN), top, top, None
        for block in self._blocks:
            if not block.hosts and not block.name:
                continue
            if block.parent != before:
                before, x, y = block.parent, float(_MARGIN), below
                if before:
                    self._svg.text(x, y + 14, before, "head")
                    y += 22
            if x + self._block > _WIDTH - _MARGIN:
                x, y = float(_MARGIN), below
            below = max(below, self._one(block, x, y))
            self.right = max(self.right, x + self._block + 4)
            x += self._block + 12
        return below

    def _one(self, block: _Block, x: float, y: float) -> float:
        name = fitting(block.name, self._block, 11)
        self._svg.open(f"{block.name}: {counted(len(block.hosts), 'host')}")
        self._svg.text(x, y + 11, name, "on muted")
        rows = -(-len(block.hosts) // self._across) or 1
        height = rows * self._high
        self._svg.rect(x - 2, y + 14, self._block + 4, height + 4, "frame", round_=2)
        places = [
            (host, x + at % self._across * self._wide, y + 16 + at // self._across * self._high)
            for at, host in enumerate(block.hosts)
        ]
        if self._named:
            for host, left, top in places:
                self._bar(host, left, top)
        else:
            self._cells(places)
        self._svg.close()
        return y + 16 + height + 14

    def _bar(self, host: _Host, x: float, y: float) -> None:
        wide, high = self._wide, self._high
        self._svg.open(f"{host.name}: {host.said}")
        self._svg.rect(x, y + 1, wide, high - 2, "f0")
        if host.fill == _NONE:
            self._svg.rect(x + 0.5, y + 1.5, wide - 1, high - 3, "none")
        else:
            self._svg.rect(x, y + 1, wide * min(host.fill, _FULL) / _FULL, high - 2, "f3")
        self._marks([(host, x, y + 1, wide, high - 2)])
        percent = "-" if host.fill == _NONE else f"{host.fill}%"
        room = wide - width_of(percent, 11) - 14
        self._svg.marked(x + 5, y + 14, fitting(host.name, room, 11), "on")
        self._svg.marked(x + wide - 5, y + 14, percent, "on", end=True)
        self._svg.close()

    def _cells(self, places: Sequence[tuple[_Host, float, float]]) -> None:
        """Hosts as squares: of one colour together, as there may be many thousands."""
        size = self._wide - 1
        shapes: dict[str, list[str]] = {}
        for host, x, y in places:
            kind = "none" if host.fill == _NONE else f"f{_step(host.fill)}"
            inset = 0.5 if kind == "none" else 0
            shapes.setdefault(kind, []).append(
                box(x + inset, y + inset, size - 2 * inset, size - 2 * inset)
            )
        for kind, some in sorted(shapes.items()):
            self._svg.path("".join(some), kind)
        self._marks([(host, x, y, size, size) for host, x, y in places if host.flags])

    def _marks(self, places: Sequence[tuple[_Host, float, float, float, float]]) -> None:
        """Shapes for the states, so that they can be told without colours."""

        def over(flag: int, without: int = 0) -> Iterator[tuple[float, float, float, float]]:
            for host, *area in places:
                if host.flags & flag and not host.flags & without:
                    x, y, wide, high = area
                    yield x, y, wide, high

        def inner(area: tuple[float, float, float, float]) -> str:
            x, y, wide, high = area
            return box(x + 0.75, y + 0.75, wide - 1.5, high - 1.5)

        def corner(area: tuple[float, float, float, float]) -> str:
            x, y, wide, high = area
            size = min(wide, high) * 0.6
            return f"M{x + wide - size:g} {y:g}h{size:g}v{size:g}z"

        self._svg.path("".join(box(*area) for area in over(_DOWN | _AWAY)), "hatched")
        closed = "".join(cross(*area) for area in over(_CLOSED))
        self._svg.path(closed, "halo")
        self._svg.path(closed, "mark")
        self._svg.path("".join(map(inner, over(_UNSERVED))), "only")
        self._svg.path("".join(map(inner, over(_EXCLUSIVE))), "own")
        self._svg.path("".join(map(inner, over(_OVER))), "alarm")
        self._svg.path("".join(map(corner, over(_BROKEN))), "alarmed")


def _step(fill: int) -> int:
    """The colour of a fill: the first only for what is empty, the last only for what is full."""
    last = len(RAMP) - 1
    if fill == 0 or fill >= _FULL:
        return 0 if fill == 0 else last
    return min(max(round(fill * last / _FULL), 1), last - 1)


def _legend(svg: Svg, blocks: Sequence[_Block], top: float) -> float:
    """What colours and shapes mean, of those that are there."""
    x, y, size = float(_MARGIN), top, 14
    svg.text(x, y + 12, "empty", "on muted")
    x += 40
    for n in range(len(RAMP)):
        svg.rect(x, y + 1, size, size, f"f{n}")
        x += size
    svg.text(x + 6, y + 12, "full", "on muted")
    x += 40
    there = 0
    for block in blocks:
        for host in block.hosts:
            there |= host.flags
    drawing = _Drawing(svg, [])
    for flag, word in _SAID:
        if there & flag and flag != _AWAY:
            said = "down, away" if flag == _DOWN and there & _AWAY else word
            if x + width_of(said, 11) + 40 > _LEAST:
                x, y = float(_MARGIN), y + 22
            svg.rect(x, y + 1, size, size, "f2")
            drawing._marks([(_Host("", 0, flag), x, y + 1, size, size)])  # noqa: SLF001 - the same marks
            svg.text(x + size + 5, y + 12, said, "on muted")
            x += width_of(said, 11) + 40
    return y + 20


def fleet_page(found: Mapping[str, Any]) -> str:
    """The SVG in a page, with a table that says the same for every host."""
    blocks = _blocks(found)
    level, above = found["level"] or "block", found["parents"]["level"]
    heads = [*([above] if above else []), level, "host", "booked", "state"]
    title = escaped(_title(found))
    rows = (
        [*([block.parent] if above else []), block.name, host.name, *_fill_and_state(host)]
        for block in blocks
        for host in block.hosts
    )
    style = styled(
        {
            "body": f"margin:0 auto;max-width:{_WIDTH}px;font:14px system-ui,sans-serif;"
            f"color:{colour(INK)};background:{{#fff|#14181d}}",
            "svg": "max-width:100%;height:auto",
            "table": "border-collapse:collapse;margin:16px",
            "caption": "text-align:left;font-weight:600;padding:4px 0",
            "th,td": f"text-align:left;padding:2px 12px 2px 0;border-bottom:1px solid "
            f"{colour(FAINT)}",
            ".alert": f"color:{colour(ALARM)}",
        }
    )
    return "\n".join(
        [
            "<!DOCTYPE html>",
            '<html lang="en">',
            '<head><meta charset="utf-8"><meta name="color-scheme" content="light dark">',
            '<meta name="viewport" content="width=device-width,initial-scale=1">',
            f"<title>{title}</title>",
            f"<style>{style}</style></head>",
            "<body>",
            fleet_svg(found),
            f"<table><caption>{title}</caption>",
            "<thead><tr>" + "".join(f'<th scope="col">{escaped(h)}</th>' for h in heads),
            "</tr></thead><tbody>",
            *("<tr>" + "".join(f"<td>{escaped(c)}</td>" for c in row) + "</tr>" for row in rows),
            "</tbody></table>",
            "</body></html>",
            "",
        ]
    )


def _fill_and_state(host: _Host) -> tuple[str, str]:
    fill = "-" if host.fill == _NONE else f"{host.fill}%"
    return fill, ", ".join(_words(host.flags)) or "open"
