"""`moorage ensemble topology`: where each member is, for software that places data by racks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from moorage.cli.command import Command
from moorage.cli.decision_text import widest_first
from moorage.cli.output import Shown
from moorage.cli.parser import ENSEMBLE, Option
from moorage.client.boot_requests import server_name
from moorage.client.errors import Missing
from moorage.domain.topology import HOST
from moorage.domain.words import natural

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from moorage.wire.members import Member

HDFS: Final = "hdfs"


class Topology(Command):
    """Show the rack of each placed member, for the software that runs in the members.

    A tenant's racks have labels that are valid within the ensemble: they tell which members share
    a rack, and nothing else. Format hdfs is a table for Hadoop's topology script: a server's name,
    as `moorage ensemble boot` names it, and its rack.
    """

    examples = """
        moorage ensemble topology hadoop > topology.data
        moorage ensemble topology hadoop --format yaml
        moorage ensemble topology hadoop --level zone
    """
    options = (
        ENSEMBLE,
        Option("--level", metavar="LEVEL", help="of the racks (default: the lowest above hosts)"),
    )

    def formats(self, parser: argparse.ArgumentParser) -> None:
        """Declare the format: a table of Hadoop's by default."""
        parser.add_argument(
            "-f", "--format", choices=(HDFS, "yaml", "json"), default=HDFS, dest="form"
        )

    def act(self, args: argparse.Namespace) -> Shown:
        with self.client() as client:
            ensemble_id = client.ensembles.find(args.ensemble)
            name = client.ensembles.show(ensemble_id).value.name
            members = client.ensembles.members(ensemble_id).value
        placed = sorted((one for one in members if one.domains), key=lambda one: natural(one.name))
        if not placed:
            raise Missing("placed member in ensemble", name)
        level = args.level or _lowest(placed)
        racked = [one for one in placed if level in one.domains]
        if not racked:
            raise Missing("level of domains", level)
        body = {
            "topology": [
                {
                    "member": one.name,
                    "name": server_name(name, one.name),
                    "server_id": one.server_id,
                    "domain": one.domains[level],
                }
                for one in racked
            ]
        }
        text = "\n".join(f"{server_name(name, one.name)} /{one.domains[level]}" for one in racked)
        if args.form == HDFS:
            args.form = "table"
        return Shown(body, text)


def _lowest(members: Sequence[Member]) -> str:
    """The lowest level above hosts of the tree of locations; hosts themselves without any."""
    levels = {level for one in members for level in one.domains if "/" not in level}
    return [HOST, *widest_first(levels - {HOST})][-1]
