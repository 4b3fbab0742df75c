"""The options that say which ensemble a command places, and how to search for places."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from moorage.cli.command import Command
from moorage.cli.files import read_text, reading
from moorage.cli.output import FORMATS
from moorage.cli.times import seconds, span

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from moorage.client.moorage import Moorage

OBJECTIVES = ("spread", "pack", "balance", "room")


class FileOrFormat(argparse.Action):
    """The action of `-f`: `-f shop.yaml` is the file, `-f json` the format."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: str | Sequence[Any] | None,
        option_string: str | None = None,
    ) -> None:
        """Set the file or the format; a file called `json` is `./json`."""
        target = "form" if values in FORMATS and option_string == "-f" else "file"
        if target == "file" and getattr(namespace, "server", None) is not None:
            parser.error(f"argument {option_string}: not allowed with argument --server")
        setattr(namespace, target, values)


class ServerNotFile(argparse.Action):
    """The action of `--server`: `--server m1.small` takes the place of a file."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: str | Sequence[Any] | None,
        option_string: str | None = None,
    ) -> None:
        """Set the flavor, unless there is a file."""
        if namespace.file is not None:
            parser.error(f"argument {option_string}: not allowed with argument -f/--file")
        namespace.server = values


class FromFile(Command):
    """A command whose `-f` is a file; the output format is `--format`, and also `-f json`."""

    def formats(self, parser: argparse.ArgumentParser) -> None:
        """Declare the format: `-f` is the file here, but `-f json` works too."""
        parser.add_argument(
            "--format", choices=FORMATS, default="table", dest="form", help="also: -f json"
        )


def parameter(text: str) -> tuple[str, str]:
    """Read a parameter, such as `count=4`."""
    name, equals, value = text.partition("=")
    if not (name and equals):
        raise argparse.ArgumentTypeError(f"write PARAMETER=VALUE, such as count=4, not {text}")
    return name, value


def parameter_argument(parser: argparse.ArgumentParser) -> None:
    """Declare the option for a template's parameters."""
    parser.add_argument(
        "--param",
        action="append",
        type=parameter,
        default=[],
        metavar="NAME=VALUE",
        help="a parameter's value; those not given take their defaults",
    )


def search_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of the search for places."""
    add = parser.add_argument
    add(
        "--objective",
        choices=OBJECTIVES,
        help="what is best among placements (default: the service's)",
    )
    add("--seed", type=int, metavar="N", help="seed of the search, to get another equal placement")
    add("--time-limit", type=span, metavar="5s", help="longest time of a search")
    add(
        "--explain-within",
        type=seconds,
        metavar="2s",
        help="if it is refused, wait so long for changes that help; the rest follows:"
        " `moorage explanation show ID --wait` (default: wait for all)",
    )


SEARCH = ("objective", "seed", "time_limit")


def source_arguments(parser: argparse.ArgumentParser, title: str) -> None:
    """Declare the ways to say which ensemble is meant: of these, one is given."""
    what = parser.add_argument_group(title)
    what.add_argument(
        "-f",
        "--file",
        action=FileOrFormat,
        metavar="FILE",
        help="description; - reads stdin. -f table|json|yaml is the output format",
    )
    what.add_argument("--ensemble", metavar="ENSEMBLE", help="id, its beginning, or a name")
    what.add_argument("--flavor", metavar="FLAVOR", help="so many servers of it")
    what.add_argument("--template", metavar="TEMPLATE", help="its name or id; upf@2: a version")
    parser.add_argument("--count", type=int, metavar="N", help="with --flavor (default: 1)")
    parameter_argument(parser)


def check_source(args: argparse.Namespace, usage_error: Callable[[str], Any]) -> None:
    """Refuse none or several of these options, and those that do not go with the one given."""
    what = (args.file, args.ensemble, args.flavor, args.template)
    if sum(one is not None for one in what) != 1:
        usage_error("give one of -f/--file, --ensemble, --flavor and --template")
    if args.count is not None and args.flavor is None:
        usage_error("argument --count: only with --flavor")
    if args.param and args.template is None:
        usage_error("argument --param: only with --template")


def source_body(client: Moorage, args: argparse.Namespace) -> tuple[str, dict[str, Any]]:
    """The ensemble's name, and the ensemble in the API's form."""
    if args.flavor is not None:
        amount = {"flavor": args.flavor, "count": 1 if args.count is None else args.count}
        return args.flavor, {"amount": amount}
    if args.template is not None:
        template = {"name": args.template, "parameters": dict(args.param)}
        return args.template.partition("@")[0], {"template": template}
    if args.ensemble is not None:
        found = client.ensembles.show(client.ensembles.find(args.ensemble)).value
        return found.name, {"ensemble_id": found.id}

    from moorage.client.description import read_description

    with reading(args.file):
        body, described = read_description(read_text(args.file))
    return described.name, {"ensemble": body}
