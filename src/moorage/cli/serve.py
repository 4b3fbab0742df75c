"""`moorage serve`: run the service."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

from moorage.cli.command import Command
from moorage.cli.output import OK, USAGE
from moorage.cli.parser import CONFIG_DIR, CONFIG_FILE

if TYPE_CHECKING:
    import argparse

    from moorage.cli.output import Shown
    from moorage.settings import Effective

_YES = "true"


class Serve(Command):
    """Run the service.

    Opens the port, starts HTTP workers, planners and solver processes, replaces those that die, and
    prints where it serves when it is ready. SIGTERM or Ctrl-C ends it with all its processes.
    SIGHUP reads the settings again and replaces one process after the other; no request is refused
    meanwhile.

    Every option is also a key of the configuration file (section [DEFAULT], ./moorage.conf or
    /etc/moorage/moorage.conf, and *.conf in moorage.conf.d beside it) and an environment variable
    MOORAGE_<NAME>; the command line wins over the environment, the environment over the files.
    """

    examples = """
        moorage serve
        moorage serve --port 8780 --mount placement=/ --database sqlite:////srv/moorage.db
        moorage serve --show-config
    """

    def formats(self, parser: argparse.ArgumentParser) -> None:
        """No `-f`: a server has no output to format."""

    def arguments(self, parser: argparse.ArgumentParser) -> None:
        from moorage.options import SETTINGS

        CONFIG_FILE(parser)
        CONFIG_DIR(parser)
        parser.add_argument(
            "--show-config",
            action="store_true",
            help="print every setting with the source of its value, and exit",
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
        """Serve until SIGTERM."""
        from moorage import settings
        from moorage.domain.errors import BadConfiguration

        given = {name: value for name, value in vars(parsed_args).items() if value is not None}

        def read() -> Effective:
            return settings.read(given, os.environ)

        try:
            effective = read()
            settings.configure(effective)
        except BadConfiguration as error:
            self.app.stderr.write(f"moorage: {error.message}\n")
            return USAGE
        for variable in settings.strange_variables(os.environ):
            self.app.stderr.write(f"moorage: ignored {variable}: there is no such setting\n")
        for sentence in effective.ignored:
            self.app.stderr.write(f"moorage: ignored {sentence}\n")
        if parsed_args.show_config:
            self.app.stdout.write("\n".join(effective.lines()) + "\n")
            return OK
        from moorage.service import serve

        try:
            return serve(effective, _say, read)
        except BadConfiguration as error:
            self.app.stderr.write(f"moorage: {error.message}\n")
            return USAGE

    def act(self, args: argparse.Namespace) -> Shown | None:
        raise NotImplementedError


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()
