"""The base class of commands: arguments, action, output.

cliff asks for a class to inherit from; this is that class and the only one. A command writes
`options` and `act`; parsing, formats, errors and exit statuses are settled here once, and so is
how the service is reached: by the options of `moorage`, or by the session of `openstack`.
"""

from __future__ import annotations

import argparse
import os
import textwrap
import traceback
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ClassVar

from cliff import command

from moorage.cli import listing
from moorage.cli.command_names import MOORAGE, OPENSTACK, as_typed, name_of, running
from moorage.cli.output import (
    CELLS,
    DRAWN_HELP,
    FORMAT_HELP,
    FORMATS,
    LISTING,
    OBJECTS,
    OK,
    SHOWING,
    NoColumn,
    Shown,
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

    from moorage.client.discovery import Wishes
    from moorage.client.moorage import Moorage
    from moorage.client.nova import Nova
    from moorage.domain.period import Instant


class Command(command.Command):
    """A verb of the command line.

    The docstring is its help; its first line, its summary. `examples` are shown below.
    """

    examples: ClassVar[str] = ""
    options: ClassVar[Sequence[Callable[[argparse.ArgumentParser], None]]] = ()
    """Each declares an option or argument, or several; see `Option`."""
    drawn: ClassVar[Sequence[str]] = ()
    """Further forms of its output, for a file: those of `DRAWN_HELP`."""
    auth_required: ClassVar[bool] = True
    """Whether the `openstack` client logs in before it runs the command."""

    def _load_hooks(self) -> None:
        """Load no plug-ins: the table of commands is complete, and help stays quick."""
        self._hooks = []

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """The parser with the formats that every command has."""
        parser = Parser(
            program=self._program,
            prog=prog_name,
            description=textwrap.dedent(self.get_description()),
            epilog=self._epilogue(),
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )
        self.arguments(parser)
        self.formats(parser)
        self.usage_error = parser.error
        if self._verb in SHOWING:
            parser.add_argument(
                "-c",
                "--column",
                action="append",
                metavar="COLUMN",
                dest="columns",
                help="show only this column or field; repeatable",
            )
        if self._verb == LISTING:
            listing.declare(parser)
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
            choices=(*FORMATS, *self.drawn),
            default="table",
            dest="form",
            help="; ".join([FORMAT_HELP, *(DRAWN_HELP[form] for form in self.drawn)]),
        )

    _told: bool = False
    """Whether the user was told which simulation is used."""
    _explain_within: int | None = None
    """Seconds to wait for changes that help; see `Moorage.explain_within`."""

    def act(self, args: argparse.Namespace) -> Shown | None:
        """Run the command. None: it has printed everything itself."""
        raise NotImplementedError

    def run(self, parsed_args: argparse.Namespace) -> int:
        """Run the command, print its output or error, return the exit status."""
        with running(self._program):
            try:
                status = super().run(parsed_args)
                self.app.stdout.flush()
            except BrokenPipeError:
                raise
            except Exception as error:  # noqa: BLE001 - the one place that reports errors
                return self._report(error, getattr(parsed_args, "form", "table"))
        return int(status)

    def _report(self, error: Exception, form: str) -> int:
        from moorage.cli import failures

        if self.app.options.debug:
            traceback.print_exception(error, file=self.app.stderr)
        if form in OBJECTS:
            show(Shown(failures.body(error), ""), form, self.app.stdout)
        else:
            self.app.stdout.flush()
            self.app.stderr.write(as_typed(failures.sentence(error)) + "\n")
        return failures.exit_status(error)

    def take_action(self, parsed_args: argparse.Namespace) -> int:
        """Run the command and print its output."""
        self._resolve_times(parsed_args)
        self._explain_within = getattr(parsed_args, "explain_within", None)
        shown = self.act(parsed_args)
        if shown is None:
            return OK
        if self._verb == LISTING:
            shown = self._arranged(shown, parsed_args)
        if getattr(parsed_args, "columns", None):
            try:
                shown = chosen(shown, parsed_args.columns)
            except NoColumn as error:
                self.usage_error(f"argument -c/--column: {error}")
        elif parsed_args.form in CELLS and self._verb == LISTING:
            shown = without_words(shown)
        if parsed_args.form in DRAWN_HELP:
            if shown.drawn is None:
                self.usage_error(f"argument -f/--format: there is no {parsed_args.form} of this")
            else:
                self.app.stdout.write(shown.drawn(parsed_args.form))
        elif parsed_args.form in CELLS:
            write(shown.text, parsed_args.form, self.app.stdout)
        else:
            show(shown, parsed_args.form, self.app.stdout)
        return shown.status

    def _arranged(self, shown: Shown, args: argparse.Namespace) -> Shown:
        """A listing with the rows and in the order that are asked for."""
        columns, most = args.sort_columns or (), getattr(args, "most", None)
        if args.sort_descending and not columns:
            self.usage_error("argument --sort-descending: needs --sort-column")
        if not columns and most is None:
            return shown
        try:
            found, whole = listing.arranged(shown, columns, most, descending=args.sort_descending)
        except NoColumn as error:
            self.usage_error(f"argument --sort-column: {error}")
        if args.form in OBJECTS and not args.columns and not whole:
            self.usage_error(f"with -f {args.form}: choose the columns, too (-c)")
        return found

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

    @property
    def in_openstack(self) -> bool:
        """Whether the `openstack` client runs the command."""
        return self._manager is not None

    @property
    def _manager(self) -> Any:  # noqa: ANN401 - without types of its own
        """What has the session in the `openstack` client; None in `moorage`."""
        return getattr(self.app, "client_manager", None)

    @property
    def _program(self) -> str:
        return OPENSTACK if self.in_openstack else MOORAGE

    @property
    def _verb(self) -> str:
        """The last word of the command's name, even where a shortened one was typed."""
        return name_of(type(self)).rpartition(" ")[2]

    @contextmanager
    def client(self) -> Iterator[Moorage]:
        """The client of the service, closed afterwards if it is the command's own."""
        if self.in_openstack:
            client: Moorage = self._manager.ensemble
            client.explain_within(self._explain_within)
            yield client
            return
        from moorage.client.discovery import Access, find
        from moorage.client.moorage import connect

        access = find(self._wishes(), os.environ)
        if isinstance(access, Access) and access.simulation and not self._told:
            self._told = True
            self.app.stderr.write(f"on simulation {access.simulation}, as nothing else is named\n")
        with connect(access) as client:
            client.explain_within(self._explain_within)
            yield client

    def nova(self) -> Nova:
        """Nova as the caller reaches it; to be closed after use."""
        if self.in_openstack:
            from moorage.cli.openstack_plugin import make_nova

            return make_nova(self._manager)
        from moorage.client import nova

        return nova.connect(self._wishes(), os.environ)

    def _wishes(self) -> Wishes:
        """Endpoint and identity in the global options of `moorage`."""
        from moorage.client.discovery import Wishes

        given = self.app.options
        return Wishes(given.endpoint, given.token, given.project, given.role, given.os_cloud)
