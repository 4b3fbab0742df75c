"""What a command is: arguments, an act, something to show.

cliff asks for a class to inherit from; this is that class and the only one. A command writes
`arguments` and `act`; parsing, formats, errors and exit statuses are settled here once.
"""

from __future__ import annotations

import argparse
import os
import textwrap
from contextlib import contextmanager
from typing import TYPE_CHECKING, ClassVar

from cliff import command

from moorage.cli.columns import SHOWING, NoColumn, chosen
from moorage.cli.output import FORMATS, OK, show
from moorage.cli.parser import Parser

if TYPE_CHECKING:
    from collections.abc import Iterator

    from moorage.cli.output import Shown
    from moorage.client.discovery import Access, Wishes
    from moorage.client.moorage import Moorage


class Command(command.Command):
    """A verb of the command line.

    The docstring is its help; its first line, its summary. `examples` are shown below.
    """

    examples: ClassVar[str] = ""

    def _load_hooks(self) -> None:
        """Look for no plug-ins: the table of commands is all there is, and help stays quick."""
        self._hooks = []

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """The parser, with the formats every command has."""
        parser = Parser(
            prog=prog_name,
            description=textwrap.dedent(self.get_description()),
            epilog=self._epilogue(),
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )
        self.arguments(parser)
        self.formats(parser)
        self._misused = parser.error
        if prog_name.rpartition(" ")[2] in SHOWING:
            parser.add_argument(
                "-c",
                "--column",
                action="append",
                metavar="COLUMN",
                dest="columns",
                help="only this of what is shown; repeatable",
            )
        return parser

    def _epilogue(self) -> str | None:
        if not self.examples:
            return None
        return "examples:\n" + textwrap.indent(textwrap.dedent(self.examples).strip("\n"), "  ")

    def arguments(self, parser: argparse.ArgumentParser) -> None:
        """Declare the command's own arguments; none by default."""

    def formats(self, parser: argparse.ArgumentParser) -> None:
        """Declare `-f`; a command where it means something else says so."""
        parser.add_argument(
            "-f",
            "--format",
            choices=FORMATS,
            default="table",
            dest="form",
            help="table for people (default); json or yaml: the API's own answer",
        )

    def act(self, args: argparse.Namespace) -> Shown | None:
        """Do it. None: everything was said while doing."""
        raise NotImplementedError

    def take_action(self, parsed_args: argparse.Namespace) -> int:
        """Act and show; errors are the application's to tell."""
        shown = self.act(parsed_args)
        if shown is None:
            return OK
        if getattr(parsed_args, "columns", None):
            try:
                shown = chosen(shown, parsed_args.columns)
            except NoColumn as error:
                self._misused(f"argument -c/--column: {error}")
        show(shown, parsed_args.form, self.app.stdout)
        return shown.status

    def wishes(self) -> Wishes:
        """What the global options say about endpoint and identity."""
        from moorage.client.discovery import Wishes

        given = self.app.options
        return Wishes(given.endpoint, given.token, given.project, given.role, given.os_cloud)

    def access(self) -> Access:
        """The endpoint and identity in force."""
        from moorage.client.discovery import find

        return find(self.wishes(), os.environ)

    @contextmanager
    def client(self) -> Iterator[Moorage]:
        """A client for the endpoint in force, closed afterwards."""
        from moorage.client.moorage import connect

        with connect(self.access()) as client:
            yield client
