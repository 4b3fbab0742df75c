"""The picture of the first page: the shop placed one server at a time, and jointly.

Both halves are decided when the picture is drawn, by what `moorage sim replay` and
`moorage ensemble create` run. The README shows the copy in `docs/assets`; a test compares them.

    python docs/gen/shop_picture.py docs/assets/shop.svg
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final
from xml.sax.saxutils import escape

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from moorage.testing.service import Service

ROOT: Final = Path(__file__).parents[2]
FLEET: Final = ROOT / "fleets" / "three-racks.yaml"
SHOP: Final = ROOT / "examples" / "shop.yaml"
ORDER: Final = "web,app,db"
FITS: Final = "fits: all policies met, places held"

_WIDTH: Final = 760
_HALF: Final = 380
_MARGIN: Final = 24
_ROW: Final = 24
_TOP: Final = 78
_GAP: Final = 14
"""Pixels between two racks."""
_BAR: Final = 62
"""Where a host's bar begins."""
_UNIT: Final = 10
"""Pixels of one VCPU."""
_COLOURS: Final = {"web": "#3b82c4", "app": "#d98324", "db": "#7a55b5"}
_OTHERS: Final = "#c3c8ce"
_FREE: Final = "#eef0f2"


def picture() -> str:
    """The picture as SVG."""
    from moorage.cli.placement_map import natural
    from moorage.testing.service import Service

    service = Service(FLEET.read_text(encoding="utf-8"))
    try:
        hosts = sorted(_hosts(service), key=lambda one: natural(one[1]))
        one_by_one, refusal = _one_by_one(service)
        jointly = _jointly(service)
    finally:
        service.close()
    height = _TOP + len(hosts) * _ROW + 2 * _GAP + 66
    size = f'width="{_WIDTH}" height="{height}" viewBox="0 0 {_WIDTH} {height}"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img"',
        f' aria-label="{escape(_said(refusal))}">',
        f'<rect width="{_WIDTH}" height="{height}" rx="10" fill="#ffffff"/>',
        *_half(0, "One server at a time, as Nova does", (refusal, "#b3261e"), hosts, one_by_one),
        *_half(_HALF, "Jointly, by Moorage", (FITS, "#1d7a3a"), hosts, jointly),
        f'<line x1="{_HALF}" y1="24" x2="{_HALF}" y2="{height - 24}" stroke="#d5d9dd"/>',
        *_legend(height - 20),
        "</svg>",
    ]
    return "\n".join([*parts, ""])


def _said(refusal: str) -> str:
    return (
        "Two placements of the same application on the same nine hosts in three racks."
        f" One server at a time: {refusal}. All together: every member has a place."
    )


def _hosts(service: Service) -> Iterator[tuple[str, str, int, int]]:
    """Rack, name, VCPU in use by others and in all, of each host."""
    from moorage.testing.service import OPERATOR

    for host in service.call("GET", "/fleet", caller=OPERATOR).json["fleet"]["hosts"]:
        fill = host["resources"]["VCPU"]
        yield host["domains"]["rack"], host["name"], fill["booked"], fill["capacity"]


def _one_by_one(service: Service) -> tuple[Mapping[str, str], str]:
    """Member -> host, and why the next member has none."""
    from moorage.cli.sim_replay import in_order, problem_of, replayed
    from moorage.client.description import read_description

    _, described = read_description(SHOP.read_text(encoding="utf-8"))
    order = in_order(described, ORDER)
    found = replayed(problem_of(service.store, described), described, order, "VCPU")
    replay = found.body()["replay"]
    assert replay["verdict"] == "failed", "the picture shows a refusal"
    why = " and ".join(replay["policies"])
    return replay["placed"], f"refused at {replay['failed']}: {why} leave no host"


def _jointly(service: Service) -> Mapping[str, str]:
    """Member -> host."""
    import yaml

    from moorage.testing.service import OPERATOR

    body = {"ensemble": yaml.safe_load(SHOP.read_text(encoding="utf-8")) | {"decide": {}}}
    made = service.call("POST", "/ensembles", body, caller=OPERATOR).json
    return {one["member"]: one["host"] for one in made["decision"]["assignments"]}


def _half(
    left: int,
    title: str,
    outcome: tuple[str, str],
    hosts: Sequence[tuple[str, str, int, int]],
    placed: Mapping[str, str],
) -> Iterator[str]:
    said, colour = outcome
    x = left + _MARGIN
    yield _text(x, 36, title, colour="#1f2328", more='font-weight="600"', size=17)
    yield _text(x, 58, said, colour=colour, size=14)
    y, before = _TOP, hosts[0][0]
    for rack, name, booked, capacity in hosts:
        if rack != before:
            y, before = y + _GAP, rack
        members = sorted(member for member, host in placed.items() if host == name)
        yield _text(x, y + 14, f"{rack} {name}")
        yield from _bar(x + _BAR, y + 2, booked, capacity, members)
        beside = x + _BAR + capacity * _UNIT + 8
        yield _text(beside, y + 14, " ".join(members), colour="#1f2328")
        y += _ROW


def _bar(x: int, y: int, booked: int, capacity: int, members: Sequence[str]) -> Iterator[str]:
    """What others have on a host, then its members, then what is free."""
    sizes = _sizes()
    yield _box(x, y, capacity * _UNIT, _FREE)
    if booked:
        yield _box(x, y, booked * _UNIT, _OTHERS)
    taken = booked
    for member in members:
        role = member.partition("[")[0]
        yield _box(x + taken * _UNIT, y, sizes[role] * _UNIT, _COLOURS[role], 'stroke="#ffffff"')
        taken += sizes[role]


def _box(x: int, y: int, width: int, colour: str, more: str = "") -> str:
    place = f'x="{x}" y="{y}" width="{width}" height="16"'
    return f'<rect {place} rx="3" fill="{colour}" {more}/>'


def _text(
    x: int, y: int, words: str, *, colour: str = "#57606a", size: int = 12, more: str = ""
) -> str:
    place = f'x="{x}" y="{y}" font-family="system-ui, sans-serif" font-size="{size}"'
    return f'<text {place} fill="{colour}" {more}>{escape(words)}</text>'


def _sizes() -> Mapping[str, int]:
    """VCPU of a member by role."""
    import yaml

    fleet = yaml.safe_load(FLEET.read_text(encoding="utf-8"))
    flavors = {one["name"]: one["resources"]["VCPU"] for one in fleet["flavors"]}
    roles = yaml.safe_load(SHOP.read_text(encoding="utf-8"))["members"]
    return {role["name"]: flavors[role["flavor"]] for role in roles}


def _legend(y: int) -> Iterator[str]:
    x = _MARGIN
    for name, colour in (*_COLOURS.items(), ("others", _OTHERS), ("free", _FREE)):
        yield _box(x, y - 13, 14, colour)
        yield _text(x + 20, y, name)
        x += 42 + 7 * len(name)
    said = "each bar is a host of 16 VCPU"
    yield _text(_WIDTH - _MARGIN, y, said, more='text-anchor="end"')


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(picture(), encoding="utf-8")
