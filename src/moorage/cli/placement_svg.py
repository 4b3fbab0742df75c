"""Where an ensemble's members are as SVG: domains as columns, members as chips on their hosts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from moorage.cli.placement_map import HOST, NOWHERE, column_level, grouped
from moorage.cli.svg import FAINT, INK, MUTED, RAMP, Svg, box, colour, cross, fitting, width_of
from moorage.domain.words import counted
from moorage.wire.decisions import Assignment

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from moorage.wire.members import Member

_WIDTH: Final = 1000
_MARGIN: Final = 16
_COLUMN: Final = 180
_GAP: Final = 14
_CHIP: Final = 20
_CLASSES: Final = {
    ".domain": f"fill:none;stroke:{colour(MUTED)}",
    ".host": f"fill:{colour(RAMP[0])};stroke:{colour(FAINT)}",
    ".active": f"fill:{colour(RAMP[4])}",
    ".building": f"fill:{colour(RAMP[2])};stroke:{colour(RAMP[6])}",
    ".held": f"fill:none;stroke:{colour(INK)};stroke-dasharray:4 3",
    ".chip": "font-size:11px",
}
_SAID: Final = (("active", "active"), ("building", "building"), ("held", "held"))


def placement_svg(name: str, members: Sequence[Member]) -> str:
    """The map of an ensemble's members; those without a place are named below it."""
    placed = {one.name: one for one in members if one.domains}
    some = [Assignment(one.name, one.kind, one.domains, None) for one in placed.values()]
    level = column_level(some)
    domains = grouped(some, level)
    title = f"{name}: {counted(len(placed), 'member')} on {counted(len(domains), level)}"
    svg = Svg(title, _description(level, domains), _CLASSES)
    svg.text(_MARGIN, 28, title, "title")
    bottom = _columns(svg, domains, placed, "" if level == HOST else level)
    bottom = _legend(svg, placed.values(), bottom + 6)
    absent = [one.name for one in members if not one.domains]
    if absent:
        room = _WIDTH - 2 * _MARGIN
        svg.text(_MARGIN, bottom + 14, fitting(f"not placed: {', '.join(absent)}", room))
        bottom += 20
    return svg.written(_WIDTH, bottom + _MARGIN)


def _description(level: str, domains: Mapping[str, Mapping[str, Sequence[str]]]) -> str:
    said = (
        f"{level} {domain}: {', '.join(member for some in hosts.values() for member in some)}"
        for domain, hosts in domains.items()
    )
    return f"{'; '.join(said)}."


def _columns(
    svg: Svg,
    domains: Mapping[str, Mapping[str, Sequence[str]]],
    placed: Mapping[str, Member],
    level: str,
) -> float:
    """The domains side by side, in as many rows as they need; where that ends."""
    x, y, below = float(_MARGIN), 44.0, 44.0
    for domain, hosts in domains.items():
        if x + _COLUMN > _WIDTH - _MARGIN:
            x, y = float(_MARGIN), below + _GAP
        head = domain if domain == NOWHERE or not level else f"{level} {domain}"
        svg.open(f"{head}: {counted(sum(map(len, hosts.values())), 'member')}")
        svg.text(x + 8, y + 17, fitting(head, _COLUMN - 16), "head")
        top = y + 26
        for host, names in hosts.items():
            top = _host(svg, "" if not level else host, [placed[one] for one in names], x + 8, top)
        svg.rect(x, y, _COLUMN, top - y + 2, "domain", round_=4)
        svg.close()
        below = max(below, top + 2)
        x += _COLUMN + _GAP
    return below


def _host(svg: Svg, name: str, members: Sequence[Member], x: float, y: float) -> float:
    wide = _COLUMN - 16
    lines, at = [0.0], 6.0
    places = []
    for one in members:
        size = min(width_of(one.name, 11) + 14, wide - 12)
        if at + size > wide - 6 and at > 6:  # noqa: PLR2004 - the margin
            lines.append(0)
            at = 6
        places.append((one, at, len(lines) - 1, size))
        at += size + 5
    head = 16 if name else 4
    height = head + len(lines) * (_CHIP + 4) + 4
    svg.rect(x, y, wide, height, "host", round_=3)
    if name:
        svg.text(x + 6, y + 12, fitting(name, wide - 12, 10), "small muted")
    for one, left, row, size in places:
        _chip(svg, one, x + left, y + head + 2 + row * (_CHIP + 4), size)
    return y + height + 6


def _chip(svg: Svg, one: Member, x: float, y: float, wide: float) -> None:
    out = one.out_of_service is True
    svg.open(f"{one.name}: {one.status}{', out of service' if out else ''}")
    svg.rect(x, y, wide, _CHIP, _kind(one), round_=_CHIP / 2)
    if out:
        svg.path(cross(x + 3, y + 3, wide - 6, _CHIP - 6), "alarm")
    svg.text(x + 7, y + 14, fitting(one.name, wide - 12, 11), "chip")
    svg.close()


def _kind(one: Member) -> str:
    return one.status if one.status in {"active", "building"} else "held"


def _legend(svg: Svg, members: Collection[Member], top: float) -> float:
    x = float(_MARGIN)
    there = {_kind(one) for one in members}
    for kind, said in _SAID:
        if kind in there:
            svg.rect(x, top + 6, 26, 14, kind, round_=7)
            svg.text(x + 32, top + 17, said, "muted")
            x += 32 + width_of(said) + 20
    if any(one.out_of_service is True for one in members):
        svg.path(box(x, top + 6, 26, 14), "host")
        svg.path(cross(x + 3, top + 8, 20, 10), "alarm")
        svg.text(x + 32, top + 17, "out of service", "muted")
    return top + 24
