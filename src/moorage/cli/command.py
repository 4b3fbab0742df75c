"""The base class of commands: arguments, action, output.

cliff asks for a class to inherit from; this is that class and the only one. A command writes
`options` and `act`; parsing, formats, errors and exit statuses are settled here once.
"""

from __future__ import annotations

import argparse
import os
import textwrap
from contextlib import contextmanager
from typing import TYPE_CHECKING, ClassVar

from cliff import command

from moorage.cli.output import (
    CELLS,
    FORMAT_HELP,
    FORMATS,
    OK,
    SHOWING,
    NoColumn,
    chosen,
    show,
    without_words,
    write,
)
from moorage.cli.parser import Parser
from moorage.cli.times import RelativePeriod, RelativeTime
from moorage.domain.period import parse_instant

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from moorage.cli.output import Shown
    from moorage.client.discovery import Access, Wishes
    from moorage.client.moorage import Moorage
    from moorage.domain.period import Instant


class Command(command.Command):
    """A verb of the command line.

    The docstring is its help; its first line, its summary. `examples` are shown below.
    """

    examples: ClassVar[str] = ""
    options: ClassVar[Sequence[Callable[[argparse.ArgumentParser], None]]] = ()
    """Each declares an option or argument, or several; see `Option`."""

    def _load_hooks(self) -> None:
        """Load no plug-ins: the table of commands is complete, and help stays quick."""
        self._hooks = []

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """The parser with the formats that every command has."""
        parser = Parser(
            prog=prog_name,
            description=textwrap.dedent(self.get_description()),
            epilog=self._epilogue(),
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )
        self.arguments(parser)
        self.formats(parser)
        self.usage_error = parser.error
        if prog_name.rpartition(" ")[2] in SHOWING:
            parser.add_argument(
                "-c",
                "--column",
                action="append",
                metavar="COLUMN",
                dest="columns",
                help="show only this column or field; repeatable",
            )
        return parser

    def _epilogue(self) -> str | None:
        if not self.examples:
            return None
        return "examples:\n" + textwrap.indent(textwrap.dedent(self.examples).strip("\n"), "  ")

    def arguments(self, parser: argparse.ArgumentParser) -> None:
        """Declare the command's own arguments; overridden where some exclude each other."""
        for declare in self.options:
            declare(parser)

    def formats(self, parser: argparse.ArgumentParser) -> None:
        """Declare `-f`; overridden where it has another meaning."""
        parser.add_argument(
            "-f",
            "--format",
            choices=FORMATS,
            default="table",
            dest="form",
            help=FORMAT_HELP,
        )

    def act(self, args: argparse.Namespace) -> Shown | None:
        """Run the command. None: it has printed everything itself."""
        raise NotImplementedError

    def take_action(self, parsed_args: argparse.Namespace) -> int:
        """Run the command and print its output; errors are printed by the application."""
        self._resolve_times(parsed_args)
        shown = self.act(parsed_args)
        if shown is None:
            return OK
        if getattr(parsed_args, "columns", None):
            try:
                shown = chosen(shown, parsed_args.columns)
            except NoColumn as error:
                self.usage_error(f"argument -c/--column: {error}")
        elif parsed_args.form in CELLS and (self.cmd_name or "").endswith(" list"):
            shown = without_words(shown)
        if parsed_args.form in CELLS:
            write(shown.text, parsed_args.form, self.app.stdout)
        else:
            show(shown, parsed_args.form, self.app.stdout)
        return shown.status

    def now(self, args: argparse.Namespace) -> Instant:  # noqa: ARG002 - others need them
        """The time that relative times refer to: the service's."""
        with self.client() as client:
            return parse_instant(client.now())

    def _resolve_times(self, args: argparse.Namespace) -> None:
        """Make relative times among the arguments absolute.

        Raises:
            InvalidDescription: one lies beyond the times that may be given.
        """
        kinds = RelativeTime | RelativePeriod
        relative = {name: one for name, one in vars(args).items() if isinstance(one, kinds)}
        if relative:
            now = self.now(args)
            for name, one in relative.items():
                setattr(args, name, one.since(now))

    def wishes(self) -> Wishes:
        """Endpoint and identity in the global options."""
        from moorage.client.discovery import Wishes

        given = self.app.options
        return Wishes(given.endpoint, given.token, given.project, given.role, given.os_cloud)

    def access(self) -> Access:
        """The endpoint and identity to use."""
        from moorage.client.discovery import find

        return find(self.wishes(), os.environ)

    @contextmanager
    def client(self) -> Iterator[Moorage]:
        """A client for that endpoint, closed afterwards."""
        from moorage.client.moorage import connect

        with connect(self.access()) as client:
            yield client
