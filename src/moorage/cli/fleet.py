"""`moorage fleet load|show`, and the map of a fleet: zones, racks and hosts, with their fill.

A few hosts are drawn one by one; many are drawn as one cell each, a rack to a line. Marks show
fill without colour, so a pipe and a terminal show the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Final

from moorage.cli.command import Command
from moorage.cli.files import read_text, reading
from moorage.cli.fleet_reading import Taking, tell_left_out
from moorage.cli.host_text import closed_for, state_and_why
from moorage.cli.output import Shown, stack, table
from moorage.cli.parser import Option, WrongUsage
from moorage.cli.placement_map import NOWHERE
from moorage.cli.progress import Adder, progress
from moorage.cli.times import time_of
from moorage.domain.errors import InvalidDescription
from moorage.domain.words import counted, natural

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable, Mapping, Sequence
    from typing import TextIO

    from rich.console import RenderableType
    from rich.text import Text

    from moorage.client.moorage import Moorage
    from moorage.domain.fleet_expansion import ExpandedFleet


CELLS: Final = "·▁▂▃▄▅▆▇█"
"""From empty to full; anything booked at all shows at least the second."""
CLOSED: Final = "x"
"""Of a host that is not in service: nothing is placed there now."""
BAR: Final = 10
ONE_BY_ONE: Final = 40
"""More hosts than this are drawn as cells."""
_WARM, _HOT = 0.7, 0.9
_PREFERRED: Final = ("VCPU", "PCPU", "MEMORY_MB", "DISK_GB")


@dataclass(frozen=True, slots=True)
class Bar:
    """One host: its domains and its fill of the drawn class."""

    name: str
    place: tuple[str, ...]
    used: int
    capacity: int
    closed: str = ""
    """Its state and why, if it is not in service."""

    @property
    def fill(self) -> float:
        """From 0 to 1, or more after an inventory has shrunk."""
        return self.used / self.capacity if self.capacity else 1.0


def picture(
    fleet: Mapping[str, Any], resource_class: str | None, marked: Mapping[str, str]
) -> RenderableType:
    """The whole map. `marked` hosts are followed by a note (their members)."""
    shown = resource_class or main_class(fleet["hosts"])
    levels = list(fleet["levels"].get("location", ()))
    bars = [_bar(host, levels, shown) for host in fleet["hosts"] if not host.get("shares")]
    stores = [_shared(host) for host in fleet["hosts"] if host.get("shares")]
    bars.sort(key=lambda bar: ([natural(part) for part in bar.place], natural(bar.name)))
    closed = sum(bool(bar.closed) for bar in bars)
    hosts = counted(len(bars), "host") + (f" ({closed} out of service)" if closed else "")
    heading = f"{hosts}, {shown} {_percent(bars)} booked, revision {fleet['revision']}"
    below = ["", *stores] if stores else []
    if len(bars) <= ONE_BY_ONE:
        return stack(heading, "", _one_by_one(bars, levels, shown, marked), *below)
    legend = (
        f"each cell a host: {CELLS} empty to full{f', {CLOSED} out of service' if closed else ''}"
    )
    return stack(heading, legend, "", _cells(bars, levels), *below)


def main_class(hosts: Iterable[Mapping[str, Any]]) -> str:
    """The resource class to draw: VCPU if any host has it."""
    known = {name for host in hosts for name in host["resources"]}
    return next((name for name in _PREFERRED if name in known), min(known, default="VCPU"))


def _bar(host: Mapping[str, Any], levels: Sequence[str], resource_class: str) -> Bar:
    fill = host["resources"].get(resource_class) or {"capacity": 0, "booked": 0, "allocated": 0}
    place = tuple(host["domains"].get(level, NOWHERE) for level in levels)
    reasons = [closed_for(one) for one in host.get("closed", ()) if one["why"] != "planned"]
    # Services of 0.1 say why, and not the state.
    state = host.get("state", "closed" if reasons else "open")
    closed = "" if state == "open" else state_and_why(state, "; ".join(reasons))
    return Bar(host["name"], place, fill["booked"], fill["capacity"], closed)


def _shared(host: Mapping[str, Any]) -> str:
    """The fill of sharing providers: `shared: nfs  DISK_GB 20/1000`."""
    amounts = (
        f"{name} {fill['booked']}/{fill['capacity']}"
        for name, fill in sorted(host["resources"].items())
    )
    return f"shared: {host['name']}  {', '.join(amounts)}"


def _percent(bars: Iterable[Bar]) -> str:
    """The fill of the hosts in service: another one is neither free nor full."""
    some = [bar for bar in bars if not bar.closed]
    capacity = sum(bar.capacity for bar in some)
    return f"{100 * sum(bar.used for bar in some) / capacity:.0f}%" if capacity else "0%"


def _style(fill: float) -> str:
    if fill >= _HOT:
        return "red"
    return "yellow" if fill >= _WARM else "green"


def drawn_bar(bar: Bar) -> Text:
    """A host's bar: `██████░░░░  10/16`."""
    from rich.text import Text

    if bar.closed:
        return Text(CLOSED * BAR, style="dim")
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
    closed = any(bar.closed for bar in bars)
    if closed:
        made.add_column("out of service")
    if marked:
        made.add_column("members")
    before: tuple[str, ...] = ()
    for bar in bars:
        place = [
            part if bar.place[: n + 1] != before[: n + 1] else ""
            for n, part in enumerate(bar.place)
        ]
        note = [bar.closed] if closed else []
        note += [marked.get(bar.name, "")] if marked else []
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
    if bar.closed:
        return CLOSED
    if not bar.used:
        return CELLS[0]
    return CELLS[max(1, min(len(CELLS) - 1, round(bar.fill * (len(CELLS) - 1))))]


def expanded(name: str, terminal: TextIO) -> ExpandedFleet:
    """A fleet file, read and expanded; the terminal is told what of it does not count.

    Raises:
        Unreadable, InvalidDescription: as reading and expanding say.
    """
    from moorage.client.fleet_file import read_fleet
    from moorage.domain.fleet_expansion import expand

    with reading(name):
        fleet = read_fleet(read_text(name), name=PurePath(name).stem)
        tell_left_out(name, fleet, Taking(all_sections=True), terminal)
        return expand(fleet)


def load(client: Moorage, fleet: ExpandedFleet, terminal: TextIO) -> list[Any]:
    """Send a fleet in parts, with a progress bar on a terminal; return the answers."""
    from moorage.client.fleet_body import body
    from moorage.domain.fleet_parts import parts

    answers = []
    with progress(terminal) as show:
        bar = Adder(show, f"loading {fleet.name}", len(fleet.providers))
        for part in parts(fleet):
            answers.append(client.fleet.load(body(part)).body)
            bar.advance(len(part.providers))
    return answers


def summary(fleet: ExpandedFleet) -> str:
    """A fleet in brief: `three-racks: 9 hosts, 4 domains, 4 flavors, load of 3 consumers`."""
    parts = (
        counted(len(fleet.class_of), "host"),
        counted(len(fleet.topology.domains), "domain"),
        counted(len(fleet.flavors), "flavor"),
        f"load of {counted(len(fleet.load), 'consumer')}",
    )
    return f"{fleet.name}: {', '.join(parts)}"


def loaded(answers: Sequence[Mapping[str, Any]]) -> str:
    """The result of loading: `loaded`, `unchanged`, or how much was new."""
    new = sum(one["hosts"] + one["consumers"] + one["flavors"] for one in answers)
    known = sum(one["unchanged"] for one in answers)
    if not known:
        return "loaded"
    return f"loaded {new} of {new + known}, the rest was there already:" if new else "unchanged"


class Load(Command):
    """Load a fleet file: hosts, topology, flavors and load.

    A fleet is sent in parts, each in one transaction. Loading the same file again changes
    nothing; a file that contradicts the ledger is refused. Shipped fleets are found by name.
    """

    examples = """
        moorage fleet load three-racks.yaml
        moorage fleet load thousand-hosts.yaml
    """
    options = (Option("file", metavar="FILE", help="a fleet file, or a shipped one's name"),)

    def act(self, args: argparse.Namespace) -> Shown:
        fleet = expanded(args.file, self.app.stderr)
        with self.client() as client:
            answers = load(client, fleet, self.app.stderr)
        return Shown({"parts": answers}, f"{loaded(answers)} {summary(fleet)}")


class Show(Command):
    """Draw zones, racks and hosts with their use.

    Booked are allocations, holds and reservations, at the fullest instant from now on. Pictures
    (-f svg or html) are of one instant: now, or --at.
    """

    examples = """
        moorage fleet show
        moorage fleet show --resource MEMORY_MB
        moorage fleet show -f svg > fleet.svg
        moorage fleet show --at +7d -f html > next-week.html
    """
    drawn = ("svg", "html")
    options = (
        Option("--resource", metavar="CLASS", help="the class to draw (default: VCPU)"),
        Option("--at", type=time_of, metavar="T", help="with -f svg or html: at that time"),
    )

    def act(self, args: argparse.Namespace) -> Shown:
        if args.form in self.drawn:
            return self._picture(args)
        if args.at:
            raise WrongUsage("--at: only with -f svg or html")
        with self.client() as client:
            answer = client.fleet.show()
        if not answer.value["hosts"]:
            return Shown(answer.body, "no hosts; load some with: moorage fleet load FILE")
        known = sorted({name for host in answer.value["hosts"] for name in host["resources"]})
        if args.resource and args.resource not in known:
            raise InvalidDescription(
                f"no host has {args.resource}; there are: {', '.join(known)}", path="--resource"
            )
        return Shown(answer.body, picture(answer.value, args.resource, {}))

    def _picture(self, args: argparse.Namespace) -> Shown:
        asked = {"class": args.resource, "at": args.at}
        with self.client() as client:
            found = client.fleet.map(**{name: one for name, one in asked.items() if one})

        def drawn(form: str) -> str:
            from moorage.cli.fleet_svg import fleet_page, fleet_svg

            return fleet_svg(found.value) if form == "svg" else fleet_page(found.value)

        return Shown(found.body, "", drawn=drawn)
