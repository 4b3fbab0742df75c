"""`moorage explanation list|show`."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from moorage.cli.command import Command
from moorage.cli.explanation_text import explained
from moorage.cli.listing import part_of
from moorage.cli.output import Shown, moment, short, table
from moorage.cli.parser import Flag, Option
from moorage.cli.progress import waiting
from moorage.cli.times import TIME_HELP, time_of
from moorage.domain.explain import Stage

if TYPE_CHECKING:
    import argparse

_EVERY: Final = 0.5
"""Seconds between two looks at an explanation that is waited for."""
STAGES: Final = tuple(one.value for one in Stage)


class List(Command):
    """List explanations of refused requests, newest first."""

    examples = """
        moorage explanation list --ensemble shop
        moorage explanation list --stage policy --since 2026-12-07T08:00Z
        moorage explanation list --since -1h         # of the last hour
        moorage explanation list --all-projects      # operators
    """
    options = (
        Option("--ensemble", metavar="ENSEMBLE", help="id or name of the refused ensemble"),
        Option("--stage", choices=STAGES, help="only refusals at this stage"),
        Option("--since", type=time_of, metavar="T", help=f"only refusals since then, {TIME_HELP}"),
        Option(
            "--of", metavar="PROJECT", dest="project_id", help="those of this project (operators)"
        ),
        Flag("--all-projects", "those of all projects (operators)"),
    )

    def act(self, args: argparse.Namespace) -> Shown:
        with self.client() as client:
            answer = client.explanations.all(
                ensemble=args.ensemble,
                stage=args.stage,
                since=args.since,
                project_id=args.project_id,
                all_projects=args.all_projects,
                part=part_of(args, {"at": "computed_at"}),
            )
        rows = [
            (
                moment(one["computed_at"]),
                *((one["project_id"],) if args.all_projects else ()),
                one.get("ensemble") or "-",
                one["why"],
                short(one["id"]),
            )
            for one in answer.value
        ]
        whose = ["project"] if args.all_projects else []
        return Shown(answer.body, table(["at", *whose, "ensemble", "why", "explanation"], rows))


class Show(Command):
    """Show why a request was refused, and changes with which it would be granted."""

    examples = """
        moorage explanation show 6f0c
        moorage explanation show 6f0c --wait         # until all that may help is tried
    """
    options = (
        Option("explanation", metavar="EXPLANATION", help="its id, or the beginning"),
        Flag("--wait", "wait while changes that help are still searched for"),
        Flag("--instance", "with -f json: also the problem, which `moorage replay` solves again"),
    )

    def act(self, args: argparse.Namespace) -> Shown:
        with self.client() as client:
            id_ = client.explanations.find(args.explanation)
            answer = client.explanations.show(id_, instance=args.instance)
            with waiting("searching for changes that help"):
                while args.wait and answer.value.get("pending"):
                    time.sleep(_EVERY)
                    answer = client.explanations.show(id_, instance=args.instance)
        return Shown(answer.body, f"{explained(answer.value)}\nexplanation {id_}")
