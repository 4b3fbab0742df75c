"""`moorage serve`: run the service."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

from moorage.cli.command import Command
from moorage.cli.output import OK, USAGE

if TYPE_CHECKING:
    import argparse

    from moorage.cli.output import Shown

_YES = "true"


class Serve(Command):
    """Run the service.

    Opens the port, starts HTTP workers and solver processes, replaces those that die, and says
    in one line when it answers. SIGTERM or Ctrl-C ends it with all its processes.

    Every option is also a key of the configuration file (section [DEFAULT], ./moorage.conf or
    /etc/moorage/moorage.conf) and an environment variable MOORAGE_<NAME>; the command line wins
    over the environment, the environment over the file.
    """

    examples = """
        moorage serve
        moorage serve --port 8780 --mount placement=/ --database sqlite:////srv/moorage.db
        moorage serve --show-config
    """

    def formats(self, parser: argparse.ArgumentParser) -> None:
        """No `-f`: a server has no answer to show."""

    def arguments(self, parser: argparse.ArgumentParser) -> None:
        """One option per setting."""
        from moorage.options import SETTINGS

        parser.add_argument("--config-file", metavar="FILE", help="read this file and no other")
        parser.add_argument(
            "--show-config",
            action="store_true",
            help="print the values in force and where each came from, and end",
        )
        for setting in SETTINGS:
            more: dict[str, Any] = {"metavar": setting.metavar}
            if setting.multi:
                more["action"] = "append"
            elif setting.metavar == "BOOL":
                more |= {"nargs": "?", "const": _YES}
            default = f" (default {setting.written_default})" if setting.default else ""
            parser.add_argument(
                f"--{setting.name.replace('_', '-')}",
                help=(setting.help + default).replace("%", "%%"),
                **more,
            )

    def take_action(self, parsed_args: argparse.Namespace) -> int:
        """Serve until told to stop."""
        from moorage import settings

        given = {name: value for name, value in vars(parsed_args).items() if value is not None}
        try:
            effective = settings.read(given, os.environ)
            settings.configure(effective)
        except settings.BadSetting as error:
            self.app.stderr.write(f"moorage: {error.message}\n")
            return USAGE
        for variable in settings.strange_variables(os.environ):
            self.app.stderr.write(f"moorage: there is no setting for {variable}: ignored\n")
        if parsed_args.show_config:
            self.app.stdout.write("\n".join(effective.lines()) + "\n")
            return OK
        from moorage.service import BadCertificate, serve

        try:
            return serve(effective, _say)
        except BadCertificate as error:
            self.app.stderr.write(f"moorage: {error.message}\n")
            return USAGE

    def act(self, args: argparse.Namespace) -> Shown | None:
        """Never reached: `take_action` is this command's own."""
        raise NotImplementedError


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()
