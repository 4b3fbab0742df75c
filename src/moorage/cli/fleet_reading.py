"""The sections of a fleet file that a command takes, and what it says of the others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from moorage.cli.files import read_text, reading

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import TextIO

    from moorage.domain.fleet import Fleet
    from moorage.domain.topology_rules import TopologyRules


@dataclass(frozen=True, slots=True)
class Taking:
    """What a command takes besides the topology, the places of hosts, and rules."""

    all_sections: bool = False
    nova: bool = False
    """Whether rules may ask for what Nova says of hosts."""
    revision: bool = False


def placing(name: str, taking: Taking, terminal: TextIO) -> tuple[TopologyRules, int | None]:
    """What a fleet file says of places, and the revision of the topology that it is made from.

    Raises:
        Unreadable, InvalidDescription: as reading says, or the file has no topology.
    """
    from moorage.client.fleet_file import read_fleet, with_topology
    from moorage.domain.fleet_places import rules_of

    with reading(name):
        fleet = with_topology(read_fleet(read_text(name)))
        tell_left_out(name, fleet, taking, terminal)
        return rules_of(fleet), fleet.revision


def tell_left_out(name: str, fleet: Fleet, taking: Taking, terminal: TextIO) -> None:
    """Name the sections of a file that do not count."""
    if some := list(_left_out(fleet, taking)):
        terminal.write(f"{name}: not taken here: {', '.join(some)}\n")


def _left_out(fleet: Fleet, taking: Taking) -> Iterator[str]:
    if not taking.all_sections:
        for section in ("hosts", "sharing", "flavors", "load"):
            if getattr(fleet, section):
                places = section in {"hosts", "sharing"}
                yield f"{section} (but their places are)" if places else section
    if not taking.nova and any(one.zone or one.metadata for one in fleet.rules):
        yield "rules by availability_zone or metadata, which Nova knows (admin sync nova)"
    if not taking.revision and fleet.revision is not None:
        yield "revision (topology load takes it)"
