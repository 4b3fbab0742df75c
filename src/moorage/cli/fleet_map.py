"""A fleet as a picture: zones, racks, hosts, and how full each is.

A few hosts are drawn one by one; many are drawn as one cell each, a rack to a line. Marks tell
fill without colour, so a pipe and a terminal show the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from moorage.cli.output import stack, table
from moorage.cli.placement_map import NOWHERE, natural
from moorage.domain.words import counted

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from rich.console import RenderableType
    from rich.text import Text

CELLS: Final = "·▁▂▃▄▅▆▇█"
"""From empty to full; anything booked at all shows at least the second."""
BAR: Final = 10
ONE_BY_ONE: Final = 40
"""More hosts than this are drawn as cells."""
_WARM, _HOT = 0.7, 0.9
_PREFERRED: Final = ("VCPU", "PCPU", "MEMORY_MB", "DISK_GB")


@dataclass(frozen=True, slots=True)
class Bar:
    """One host: its place and its fill of the class that is drawn."""

    name: str
    place: tuple[str, ...]
    used: int
    capacity: int

    @property
    def fill(self) -> float:
        """From 0 to 1, or beyond when overcommitted by a shrunk inventory."""
        return self.used / self.capacity if self.capacity else 1.0


def picture(
    fleet: Mapping[str, Any], resource_class: str | None, marked: Mapping[str, str]
) -> RenderableType:
    """The whole map. `marked` hosts are followed by a note (members that stand there)."""
    shown = resource_class or main_class(fleet["hosts"])
    levels = list(fleet["levels"].get("location", ()))
    bars = [_bar(host, levels, shown) for host in fleet["hosts"]]
    bars.sort(key=lambda bar: ([natural(part) for part in bar.place], natural(bar.name)))
    hosts = counted(len(bars), "host")
    heading = f"{hosts}, {shown} {_percent(bars)} booked, revision {fleet['revision']}"
    if len(bars) <= ONE_BY_ONE:
        return stack(heading, "", _one_by_one(bars, levels, shown, marked))
    return stack(heading, f"each cell a host: {CELLS} empty to full", "", _cells(bars, levels))


def main_class(hosts: Iterable[Mapping[str, Any]]) -> str:
    """The resource class to draw: VCPU where there is any."""
    known = {name for host in hosts for name in host["resources"]}
    return next((name for name in _PREFERRED if name in known), min(known, default="VCPU"))


def _bar(host: Mapping[str, Any], levels: Sequence[str], resource_class: str) -> Bar:
    fill = host["resources"].get(resource_class) or {"capacity": 0, "booked": 0}
    place = tuple(host["domains"].get(level, NOWHERE) for level in levels)
    return Bar(host["name"], place, fill["booked"], fill["capacity"])


def _percent(bars: Iterable[Bar]) -> str:
    some = list(bars)
    capacity = sum(bar.capacity for bar in some)
    return f"{100 * sum(bar.used for bar in some) / capacity:.0f}%" if capacity else "0%"


def _style(fill: float) -> str:
    if fill >= _HOT:
        return "red"
    return "yellow" if fill >= _WARM else "green"


def drawn_bar(bar: Bar) -> Text:
    """`██████░░░░  10/16`."""
    from rich.text import Text

    if not bar.capacity:
        return Text("-".ljust(BAR), style="dim")
    full = min(BAR, round(bar.fill * BAR)) or (1 if bar.used else 0)
    text = Text("█" * full, style=_style(bar.fill))
    return text.append("░" * (BAR - full), style="dim")


def _one_by_one(
    bars: Sequence[Bar], levels: Sequence[str], shown: str, marked: Mapping[str, str]
) -> RenderableType:
    from rich import box
    from rich.table import Table

    made = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, header_style="bold")
    for level in levels:
        made.add_column(level)
    made.add_column("host")
    made.add_column(shown)
    made.add_column("used", justify="right")
    if marked:
        made.add_column("members")
    before: tuple[str, ...] = ()
    for bar in bars:
        place = [
            part if bar.place[: n + 1] != before[: n + 1] else ""
            for n, part in enumerate(bar.place)
        ]
        note = [marked.get(bar.name, "")] if marked else []
        made.add_row(*place, bar.name, drawn_bar(bar), f"{bar.used}/{bar.capacity}", *note)
        before = bar.place
    return made


def _cells(bars: Sequence[Bar], levels: Sequence[str]) -> RenderableType:
    by_place: dict[tuple[str, ...], list[Bar]] = {}
    for bar in bars:
        by_place.setdefault(bar.place, []).append(bar)
    rows = []
    before: tuple[str, ...] = ()
    for place, some in by_place.items():
        shown = [part if place[: n + 1] != before[: n + 1] else "" for n, part in enumerate(place)]
        rows.append([*shown, len(some), _percent(some), _row(some)])
        before = place
    return table([*levels, "#hosts", "#fill", "each host"], rows)


def _row(bars: Iterable[Bar]) -> Text:
    from rich.text import Text

    text = Text()
    for bar in bars:
        text.append(cell(bar), style=_style(bar.fill))
    return text


def cell(bar: Bar) -> str:
    """One character for a host's fill."""
    if not bar.used:
        return CELLS[0]
    return CELLS[max(1, min(len(CELLS) - 1, round(bar.fill * (len(CELLS) - 1))))]
