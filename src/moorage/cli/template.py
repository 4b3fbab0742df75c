"""`moorage template create|revise|list|show|delete|instantiate`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from moorage.cli import decision_text
from moorage.cli.columns import columns, pairs
from moorage.cli.command import Command
from moorage.cli.ensemble_create import decide_arguments, decide_body
from moorage.cli.ensemble_source import parameter_argument
from moorage.cli.files import find, read_text, reading
from moorage.cli.output import FORMATS, Shown, fields, listing
from moorage.cli.parser import Flag, Option, new_name

if TYPE_CHECKING:
    import argparse

    from moorage.wire.templates import Template


def file_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options for a template's file."""
    add = parser.add_argument
    add("-f", "--file", required=True, metavar="FILE", help="the template; - reads stdin")
    add("--hot", action="store_true", help="FILE is a Heat template")
    add("-e", "--environment", metavar="FILE", help="with --hot: its environment file")
    add("--shared", action="store_true", help="for every project (operators)")
    add("--dry-run", action="store_true", help="check it, write nothing")


def written(args: argparse.Namespace) -> dict[str, Any]:
    """The fields of the body that the file gives."""
    if args.hot:
        from moorage.client.hot_files import gather

        text = read_text(args.file)
        path = Path(args.file) if args.file == "-" else find(args.file)
        gathered = gather(path, text, [] if args.environment is None else [find(args.environment)])
        source: dict[str, Any] = {
            "template": text,
            "environment_files": list(gathered.environments),
            "files": dict(gathered.files),
        }
        return {"format": "hot", "source": source, "shared": args.shared}

    from moorage.heat.yaml_tree import parse

    with reading(args.file):
        top = parse(read_text(args.file))
        if isinstance(top.value, dict) and set(top.value) == {"template"}:
            top = top.value["template"]
        described = top.plain()
        if not isinstance(described, dict):
            raise top.invalid("a template starts with parameters, members and policies")
    return {"format": "moorage", "source": described, "shared": args.shared}


TEMPLATE = Option("template", metavar="TEMPLATE", help="its name or id")
TEMPLATE_VERSION = Option("template", metavar="TEMPLATE", help="its name or id; upf@2: a version")


class Keeping(Command):
    """A command that stores a template: `-f` is its file, the format is `--format`."""

    def formats(self, parser: argparse.ArgumentParser) -> None:
        """Declare the format; `-f` is the file here."""
        parser.add_argument("--format", choices=FORMATS, default="table", dest="form")


class Create(Keeping):
    """Store a template: a description with parameters, or a Heat template."""

    examples = """
        moorage template create upf -f upf.yaml
        moorage template create shop -f shop-hot.yaml --hot -e env.yaml
    """
    options = (Option("name", metavar="NAME"), file_arguments)

    def act(self, args: argparse.Namespace) -> Shown:
        body = {"name": args.name, **written(args)}
        with self.client() as client:
            answer = client.templates.create(body, dry_run=args.dry_run)
        return Shown(answer.body, _line(answer.value, dry_run=args.dry_run))


class Revise(Keeping):
    """Store the next version of a template; earlier ones stay."""

    examples = """
        moorage template revise upf -f upf.yaml    # the next version of upf
    """
    options = (TEMPLATE, file_arguments)

    def act(self, args: argparse.Namespace) -> Shown:
        with self.client() as client:
            answer = client.templates.revise(args.template, written(args), dry_run=args.dry_run)
        return Shown(answer.body, _line(answer.value, dry_run=args.dry_run))


class List(Command):
    """List templates, each in its newest version."""

    def act(self, args: argparse.Namespace) -> Shown:  # noqa: ARG002 - the shape of every act
        with self.client() as client:
            answer = client.templates.all()
        cells = {
            **columns("name #version format"),
            "parameters": lambda one: ", ".join(one.parameters),
            **columns("shared:yes id"),
        }
        return Shown(answer.body, listing(cells, answer.value))


class Show(Command):
    """Show a template: its parameters and what it describes."""

    options = (TEMPLATE_VERSION,)

    def act(self, args: argparse.Namespace) -> Shown:
        with self.client() as client:
            answer = client.templates.show(args.template)
        one = answer.value
        said = [(f"{{{name}}}", _parameter(what)) for name, what in one.parameters.items()]
        found = [*pairs(one, "name id version format shared:yes?"), *said]
        return Shown(answer.body, fields(found))


class Delete(Command):
    """Delete every version of a template; its ensembles stay."""

    options = (TEMPLATE,)

    def act(self, args: argparse.Namespace) -> Shown:
        with self.client() as client:
            client.templates.delete(args.template)
        return Shown({"deleted": args.template}, f"deleted {args.template}")


class Instantiate(Command):
    """Create an ensemble from a template, place it jointly and hold the places."""

    examples = """
        moorage template instantiate upf --param count=4 --dry-run
        moorage template instantiate upf@2 --name upf-north --hold 10m
    """
    options = (
        TEMPLATE_VERSION,
        parameter_argument,
        Option("--name", type=new_name, help="the ensemble's name (default: the template's)"),
        Flag("--describe-only", "do not place it yet"),
        decide_arguments,
    )

    def act(self, args: argparse.Namespace) -> Shown:
        body: dict[str, Any] = {"parameters": dict(args.param)}
        if args.name:
            body["name"] = args.name
        if not args.describe_only:
            body["decide"] = decide_body(args, [])
        with self.client() as client:
            answer = client.templates.instantiate(args.template, body, dry_run=args.dry_run)
        made = answer.value
        if args.dry_run and made.decision:
            return Shown(answer.body, decision_text.dry_run(made.decision))
        return Shown(answer.body, decision_text.created(made))


def _line(one: Template, *, dry_run: bool) -> str:
    if dry_run:
        return f"{one.name} version {one.version} can be stored"
    return f"{one.name} version {one.version}  id {one.id}"


def _parameter(what: dict[str, Any]) -> str:
    bounds = [f"{word} {what[word]:g}" for word in ("min", "max") if word in what]
    allowed = [f"one of {', '.join(map(str, what['allowed']))}"] if "allowed" in what else []
    default = [f"default {what['default']}"] if "default" in what else ["no default"]
    return ", ".join([str(what.get("type", "string")), *bounds, *allowed, *default])
