"""`moorage hot place`: places the servers of a Heat template jointly."""

from __future__ import annotations

import os
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from moorage.cli import decision_text
from moorage.cli.command import Command
from moorage.cli.ensemble_create import decide_arguments, decide_body
from moorage.cli.files import Unreadable, find, read_text
from moorage.cli.output import Shown, short, stack, table
from moorage.cli.parser import Option, Repeated, WrongUsage, new_name
from moorage.client.errors import NotMoorage
from moorage.domain.errors import InvalidDescription
from moorage.domain.words import counted
from moorage.heat.file_names import is_nested

if TYPE_CHECKING:
    import argparse
    from collections.abc import Collection, Iterable

    from rich.console import RenderableType

    from moorage.wire.decisions import Assignment
    from moorage.wire.hot import Hot

STDIN = "-"


class Place(Command):
    """Place the servers of a Heat template jointly.

    Parameters, nested templates and groups are expanded first; then all servers are placed in
    one decision, or none. Policies are written in `metadata: {moorage: {policies: [...]}}`, which
    Heat ignores. With --ensemble no decision is made: the template's members are found in that
    ensemble by their names, and its decision is used. With --emit the template is written with
    the decision and the environment's values in it, for Heat to create; the files that it names
    are written beside it.
    """

    examples = """
        moorage hot place shop-hot.yaml -e env.yaml                      # decide and hold
        moorage hot place shop-hot.yaml -e env.yaml -P web_count=5 --dry-run
        moorage hot place shop-hot.yaml -e env.yaml --ensemble b1d7 --emit placed.yaml
    """
    options = (
        Option("template", metavar="TEMPLATE", help="a HOT file; - reads stdin"),
        Repeated(
            "-e",
            "--environment",
            metavar="ENV",
            help="environment file; repeatable, later ones win",
        ),
        Repeated(
            "-P",
            "--parameter",
            metavar="NAME=VALUE",
            help="a parameter's value; as in Heat, environment files win over it",
        ),
        Repeated(
            "--parameter-file",
            metavar="NAME=FILE",
            help="a parameter's value is the text of a file",
        ),
        Option(
            "--name",
            type=new_name,
            help="the stack's name, and the ensemble's (default: the file's name)",
        ),
        Option("--ensemble", metavar="ID", help="use the decision of this ensemble"),
        Option("--emit", metavar="FILE", help="write the template with its decision; - is stdout"),
        Option(
            "--bind",
            choices=("hints", "flavors", "none"),
            default="hints",
            help="how the written template takes the held places (default: hints)",
        ),
        decide_arguments,
    )

    def act(self, args: argparse.Namespace) -> Shown | None:
        if args.emit is not None and args.dry_run:
            raise WrongUsage(
                "a dry run has no decision to write; leave out --emit or --dry-run", path="--emit"
            )
        if args.emit not in {None, STDIN}:
            _writable(Path(args.emit))
        request = {**requested(args), "bind": args.bind, "emit": args.emit is not None}
        if args.emit is not None:
            beside = set(request["files"]) - set(request["environment_files"])
            _check_files(args, beside)
        with self.client() as client:
            if args.ensemble:
                request["ensemble_id"] = client.ensembles.find(args.ensemble)
            else:
                request["decide"] = decide_body(args, ())
            answer = client.hot.place(request, dry_run=args.dry_run)
        if args.emit is not None:
            if args.emit == STDIN:
                self.app.stdout.write(answer.value.template)
                return None
            _write(Path(args.emit), answer.value)
        return Shown(answer.body, pictured(answer.value, args))


def _check_files(args: argparse.Namespace, files: Collection[str]) -> None:
    """Check that the template's files have a directory other than that of the originals.

    Raises:
        InvalidDescription: they have none.
    """
    if not files:
        return
    if args.emit == STDIN:
        raise InvalidDescription(
            f"the template needs {counted(len(files), 'file')} beside it, and they cannot go to"
            " standard output; give a file",
            path="--emit",
        )
    here = Path() if args.template == STDIN else find(args.template).parent
    nested = sorted(name for name in files if is_nested(name))
    if nested and here.resolve() == Path(args.emit).parent.resolve():
        raise InvalidDescription(
            f"nested templates are written too, and would replace {', '.join(nested)};"
            " give a file in another directory",
            path="--emit",
        )


def _write(path: Path, placed: Hot) -> None:
    """Write the template and its files.

    Raises:
        NotMoorage: a name that leads out of the template's directory.
    """
    for name, text in placed.files.items():
        relative = PurePosixPath(name)
        if relative.is_absolute() or ".." in relative.parts:
            raise NotMoorage(
                f"the service answered with a file outside the template's directory: {name}"
            )
        target = path.parent / relative
        target.parent.mkdir(parents=True, exist_ok=True)
        if not (target.exists() and target.read_bytes() == text.encode()):
            target.write_text(text, encoding="utf-8")
    path.write_text(placed.template, encoding="utf-8")


def _writable(path: Path) -> None:
    """Check that the result can be written, before places are held.

    Raises:
        Unreadable: it cannot.
    """
    if path.is_dir():
        raise Unreadable(f"{path}: is a directory")
    if not path.parent.is_dir():
        raise Unreadable(f"{path}: no such directory")
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise Unreadable(f"{path}: cannot be written")


def requested(args: argparse.Namespace) -> dict[str, Any]:
    """The body to send, with the text of every file.

    Raises:
        Unreadable, InvalidDescription: a file that cannot be read, or a parameter that is none.
    """
    from moorage.client.hot_files import file_parameters, gather, parameters

    text = read_text(args.template)
    path = Path(args.template) if args.template == STDIN else find(args.template)
    gathered = gather(path, text, [find(name) for name in args.environment])
    return {
        "template": text,
        "environment_files": list(gathered.environments),
        "parameters": {**file_parameters(args.parameter_file), **parameters(args.parameter)},
        "files": dict(gathered.files),
        "name": args.name or ("stack" if args.template == STDIN else path.stem),
    }


def pictured(placed: Hot, args: argparse.Namespace) -> RenderableType:
    """The placement, the resources without a place, and the decision."""
    decision = placed.decision
    levels = _levels(decision.assignments)
    rows = [
        (
            one.member,
            placed.keys.get(one.member, ""),
            *(one.domains.get(level, "-") for level in levels),
        )
        for one in decision.assignments
    ]
    parts: list[RenderableType] = [table(["member", "resource", *levels], rows)]
    parts += _growth(placed)
    if placed.not_placed:
        listed = ", ".join(f"{one.path} ({one.type})" for one in placed.not_placed)
        parts += ["", f"not placed: {listed}"]
    parts += [f"note: {note}" for note in placed.notes]
    said = decision_text.dry_run(decision) if args.dry_run else _line(placed)
    if args.emit is not None:
        beside = f" and {counted(len(placed.files), 'file')} beside it" if placed.files else ""
        said += f"  written to {args.emit}{beside}"
    return stack(*parts, "", said)


def _growth(placed: Hot) -> list[RenderableType]:
    """How far scaling groups may grow, and how many more of their members fit."""
    lines: list[RenderableType] = []
    for role, group in placed.scaling.items():
        room = placed.decision.max_additional.get(role)
        fits = ""
        if room is not None:
            steps = decision_text.in_steps(room.count, room.step)
            fits = f", {'' if room.exact else 'at least '}{room.count} more fit{steps}"
        lines.append(f"{role}: {group.desired} of {group.least} to {group.most}{fits}")
    return ["", *lines] if lines else []


def _line(placed: Hot) -> str:
    return decision_text.SEPARATOR.join(
        [f"id {short(placed.ensemble.id)}", decision_text.held(placed.decision)[0]]
    )


def _levels(assignments: Iterable[Assignment]) -> list[str]:
    """Every level at which some member has a label, the widest first."""
    return decision_text.widest_first({level for one in assignments for level in one.domains})
