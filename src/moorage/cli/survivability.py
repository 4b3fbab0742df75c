"""`moorage survivability`: what the fleet survives."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from moorage.cli.command import Command
from moorage.cli.output import Shown, stack, table
from moorage.cli.parser import Option
from moorage.cli.times import span
from moorage.domain.words import counted

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Mapping


class Survivability(Command):
    """Say for the loss of each rack, or other domain, which ensembles have too few members left.

    Too few are left where a role has less than its min_available, or none, or a survive policy of
    that level keeps fewer than it is to. For each loss it is tried whether the lost members of all
    these ensembles can be placed again now, together. The worst loss comes first.
    """

    examples = """
        moorage survivability                          # any one rack, or the lowest level there is
        moorage survivability --level host
        moorage survivability --level power:feed
        moorage survivability --lose 2                 # any two racks
        moorage survivability --domains r1,r7          # these two
    """
    options = (
        Option(
            "--level",
            metavar="LEVEL",
            help="host, rack, power:feed (default: the lowest level above the hosts)",
        ),
        Option("--lose", type=int, metavar="N", help="so many together: 1 (default) or 2"),
        Option("--domains", metavar="A,B", help="only the loss of all of these together"),
        Option("--time-limit", type=span, metavar="5s", help="longest time of all searches"),
    )

    def act(self, args: argparse.Namespace) -> Shown:
        with self.client() as client:
            answer = client.survivability.show(
                args.level,
                lose=args.lose,
                domains=args.domains.split(",") if args.domains else (),
                time_limit=args.time_limit,
            )
        found = answer.body["survivability"]
        lines = list(_told(found))
        if not found["losses"]:
            return Shown(answer.body, "\n".join(lines))
        rows = [
            (
                " + ".join(one["domains"]),
                one["members"],
                one["ensembles"],
                one["without_quorum"],
                _again(one),
                _worst(one),
            )
            for one in found["losses"]
        ]
        columns = ["lost", "#members", "#ensembles", "#without quorum", "re-placeable now", "worst"]
        more = [f"and {found['fatal'] - len(rows)} more"] if found["fatal"] > len(rows) else []
        return Shown(answer.body, stack("\n".join(lines), "", table(columns, rows), *more))


def _told(found: Mapping[str, Any]) -> Iterator[str]:
    many = (
        f"{found['level']}s" if found["lose"] == 1 else f"sets of {found['lose']} {found['level']}s"
    )
    ensembles = counted(found["ensembles"], "ensemble")
    yield (
        f"{found['fatal']} of {found['considered']} {many} leave some of {ensembles} without quorum"
        " if lost"
    )
    if found["already"]:
        yield f"{counted(found['already'], 'ensemble')} without quorum as it is"


def _again(one: Mapping[str, Any]) -> str:
    """How many of the ensembles without quorum can be placed again."""
    if one["placed"] == one["without_quorum"]:
        return "all"
    parts = [f"{one['placed']} of {one['without_quorum']}"]
    if one["undecided"]:
        parts.append(f"{one['undecided']} undecided")
    return ", ".join(parts)


def _worst(one: Mapping[str, Any]) -> str:
    """The ensemble that misses most: `shop db keeps 0 of 2, needs 1`; one that stays so first."""
    lost = sorted(one["lost"], key=lambda each: each["again"] == "placed")
    first = lost[0]
    few = first["too_few"][0]
    whom = few["role"] or f"policy {few['policy']}"
    return (
        f"{first['ensemble']} {whom} keeps {few['left']} of {few['total']}, needs {few['needed']}"
    )
