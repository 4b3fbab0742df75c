"""`moorage config show`: the effective settings on this machine, and their sources."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from moorage.cli.command import Command
from moorage.cli.output import Shown, table
from moorage.cli.parser import CONFIG_DIR, CONFIG_FILE, Option, WrongUsage
from moorage.domain.words import did_you_mean

if TYPE_CHECKING:
    import argparse


class Show(Command):
    """Show every setting with its value, the source of the value, and the default.

    Reads the environment and the configuration file as `moorage serve` does on this machine, and
    refuses invalid values as it does. Passwords are not shown.
    """

    examples = """
        moorage config show
        moorage config show database workers --config-file /etc/moorage/moorage.conf
    """
    options = (
        Option("name", nargs="*", metavar="NAME", help="only these settings"),
        CONFIG_FILE,
        CONFIG_DIR,
    )

    def act(self, args: argparse.Namespace) -> Shown:
        from moorage import settings

        given = {"config_file": args.config_file, "config_dir": args.config_dir}
        effective = settings.read(given, os.environ)
        settings.configure(effective)
        found = list(effective.described())
        strange = sorted(set(args.name) - {one["name"] for one in found})
        if strange:
            hint = did_you_mean(strange[0], {one["name"] for one in found})
            told = hint or "; to see all: moorage config show"
            raise WrongUsage(f"there is no setting {', '.join(strange)}{told}")
        for sentence in effective.ignored:
            self.app.stderr.write(f"moorage: ignored {sentence}\n")
        wanted = [one for one in found if not args.name or one["name"] in args.name]
        columns = ("name", "value", "source", "default")
        rows = [[one[column] for column in columns] for one in wanted]
        return Shown({"settings": wanted}, table(columns, rows))
