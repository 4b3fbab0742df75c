"""`moorage config show`: what the service on this machine would work with, and why."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from moorage.cli.command import Command
from moorage.cli.output import Shown, table
from moorage.domain.errors import InvalidDescription

if TYPE_CHECKING:
    import argparse


class Show(Command):
    """Show every setting with its value, where that came from, and the default.

    Reads what `moorage serve` would read here: the environment and the configuration file. Values
    that do not go together are refused as there; passwords are not shown.
    """

    examples = """
        moorage config show
        moorage config show database workers --config-file /etc/moorage/moorage.conf
    """

    def arguments(self, parser: argparse.ArgumentParser) -> None:
        """Which, and of which file."""
        parser.add_argument("name", nargs="*", metavar="NAME", help="only these settings")
        parser.add_argument("--config-file", metavar="FILE", help="read this file and no other")

    def act(self, args: argparse.Namespace) -> Shown:
        """Read, judge and show."""
        from moorage import settings

        given = {"config_file": args.config_file} if args.config_file else {}
        effective = settings.read(given, os.environ)
        settings.configure(effective)
        found = list(effective.described())
        strange = sorted(set(args.name) - {one["name"] for one in found})
        if strange:
            raise InvalidDescription(f"there is no setting {', '.join(strange)}")
        wanted = [one for one in found if not args.name or one["name"] in args.name]
        columns = ("name", "value", "source", "default")
        rows = [[one[column] for column in columns] for one in wanted]
        return Shown({"settings": wanted}, table(columns, rows))
