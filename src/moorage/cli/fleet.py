"""`moorage fleet load|show`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from moorage.cli.command import Command
from moorage.cli.output import Shown, console
from moorage.cli.shipped import read_text, reading
from moorage.domain.errors import InvalidDescription
from moorage.domain.words import counted

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping, Sequence
    from typing import TextIO

    from moorage.client.moorage import Moorage
    from moorage.domain.fleet_expansion import ExpandedFleet


def expanded(name: str) -> ExpandedFleet:
    """A fleet file, read and spelled out.

    Raises:
        Unreadable, InvalidDescription: as reading and expanding say.
    """
    from moorage.client.fleet_file import read_fleet
    from moorage.domain.fleet_expansion import expand

    with reading(name):
        return expand(read_fleet(read_text(name)))


def load(client: Moorage, fleet: ExpandedFleet, progress: TextIO) -> list[Any]:
    """Send a fleet part by part, with a bar on a terminal; return the answers."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    from moorage.client.fleet_body import body
    from moorage.domain.fleet_parts import parts

    answers = []
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    target = console(progress)
    with Progress(
        *columns, console=target, transient=True, disable=not target.is_terminal
    ) as drawn:
        task = drawn.add_task(f"loading {fleet.name}", total=len(fleet.providers))
        for part in parts(fleet):
            answers.append(client.fleet.load(body(part)).body)
            drawn.advance(task, len(part.providers))
    return answers


def summary(fleet: ExpandedFleet) -> str:
    """`three-racks: 9 hosts, 4 domains, 4 flavors, load of 3 consumers`."""
    parts = (
        counted(len(fleet.class_of), "host"),
        counted(len(fleet.topology.domains), "domain"),
        counted(len(fleet.flavors), "flavor"),
        f"load of {counted(len(fleet.load), 'consumer')}",
    )
    return f"{fleet.name}: {', '.join(parts)}"


def loaded(answers: Sequence[Mapping[str, Any]]) -> str:
    """`loaded`; where something was there already: `unchanged`, or how much was new."""
    new = sum(one["hosts"] + one["consumers"] + one["flavors"] for one in answers)
    known = sum(one["unchanged"] for one in answers)
    if not known:
        return "loaded"
    return f"loaded {new} of {new + known}, the rest was there:" if new else "unchanged"


class Load(Command):
    """Load a fleet file: hosts, topology, flavors and load.

    A fleet is sent in parts, each one transaction. Loading the same file again changes
    nothing; one that contradicts what is there is refused. Shipped fleets are found by name.
    """

    examples = """
        moorage fleet load three-racks.yaml
        moorage fleet load thousand-hosts.yaml
    """

    def arguments(self, parser: argparse.ArgumentParser) -> None:
        """From where."""
        parser.add_argument("file", metavar="FILE", help="a fleet file, or a shipped one's name")

    def act(self, args: argparse.Namespace) -> Shown:
        """Load."""
        fleet = expanded(args.file)
        with self.client() as client:
            answers = load(client, fleet, self.app.stderr)
        return Shown({"parts": answers}, f"{loaded(answers)} {summary(fleet)}")


class Show(Command):
    """Draw zones, racks and hosts with their fill.

    Booked is everything live: allocations and holds, at the fullest instant to come.
    """

    examples = """
        moorage fleet show
        moorage fleet show --resource MEMORY_MB
    """

    def arguments(self, parser: argparse.ArgumentParser) -> None:
        """What of it."""
        parser.add_argument("--resource", metavar="CLASS", help="draw this class, not VCPU")

    def act(self, args: argparse.Namespace) -> Shown:
        """Draw."""
        from moorage.cli.fleet_map import picture

        with self.client() as client:
            answer = client.fleet.show()
        if not answer.value["hosts"]:
            return Shown(answer.body, "no hosts yet; moorage fleet load FILE brings some")
        known = sorted({name for host in answer.value["hosts"] for name in host["resources"]})
        if args.resource and args.resource not in known:
            raise InvalidDescription(
                f"no host has {args.resource}; there are: {', '.join(known)}", path="--resource"
            )
        return Shown(answer.body, picture(answer.value, args.resource, {}))
