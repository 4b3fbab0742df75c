"""`moorage fleet export`: writes the present fleet as a fleet file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from moorage.cli.command import Command
from moorage.cli.output import Shown
from moorage.cli.parser import Flag, Option
from moorage.cli.progress import progress

if TYPE_CHECKING:
    import argparse

    from moorage.client.fleet_export import Exported


class Export(Command):
    """Write the present fleet as a fleet file.

    Hosts with all below them, shared stores, trees, flavors, and what is allocated, as `fleet load`
    and `sim start` read it: a simulation of your own cloud. Read request by request, so it takes
    as long as a listing of all providers, and is the fleet of one instant: what is written in the
    meantime is read again. Ensembles, holds and leases are not written, nor flavors in Nova's
    terms (`moorage flavor load` takes them from Nova). Allocations beyond a capacity are written as
    they are, and refused where the file is loaded.
    """

    examples = """
        moorage fleet export > cloud.yaml
        moorage sim start --fleet cloud.yaml
        moorage fleet export --topology > racks.yaml
    """
    options = (
        Flag("--topology", "write the trees and the places of hosts only, for topology load"),
        Option("--fleet-name", default="exported", metavar="NAME", help="default: exported"),
    )

    def act(self, args: argparse.Namespace) -> Shown:
        from moorage.client.fleet_export import fleet_lines, is_novas, topology_lines

        found = self._read(args)
        if args.topology:
            return _written(list(topology_lines(found)))
        if left := sorted(one.name for one in found.flavors if is_novas(one)):
            self.app.stderr.write(
                f"not written, since they are Nova's: flavors {', '.join(left)}\n"
            )
        return _written(list(fleet_lines(found)))

    def _read(self, args: argparse.Namespace) -> Exported:
        from moorage.client.fleet_export import Exported
        from moorage.client.placement_source import read_service

        with self.client() as client, progress(self.app.stderr) as tell:
            if args.topology:
                return Exported(args.fleet_name, client.topology.show().value)
            content = read_service(client.placement, connections=4, advance=tell)
            flavors = client.flavors.all().value
            return Exported(args.fleet_name, client.topology.show().value, content, flavors)


def _written(lines: list[str]) -> Shown:
    text = "\n".join(lines)
    return Shown({"fleet_file": text}, text)
