"""`placement-manage db sync|version|stamp|online_data_migrations`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from moorage.domain.errors import MoorageError
from moorage.store.database_status import database_status
from placement import command_line
from placement.configuration import DropInConfiguration, configuration
from placement.ledger_import import import_once

if TYPE_CHECKING:
    import argparse

MIGRATIONS = ("set_root_provider_ids", "create_incomplete_consumers")
"""The reference's; what they repair, an import reads as they would leave it."""
_BAD_INPUT = 127


def _sync(found: DropInConfiguration, _args: argparse.Namespace) -> int:
    for line in import_once(found):
        print(line)
    return 0


def _version(found: DropInConfiguration, _args: argparse.Namespace) -> int:
    status = database_status(found.new.render_as_string(hide_password=False))
    print(status.reached or None)
    return 0


def _stamp(_found: DropInConfiguration, _args: argparse.Namespace) -> int:
    print(
        "the ledger's versions are Moorage's own, and none is set by hand: `placement-manage db"
        " sync` upgrades the schema",
        file=sys.stderr,
    )
    return 1


def _migrations(_found: DropInConfiguration, args: argparse.Namespace) -> int:
    if args.max_count is not None and not (args.max_count.isdigit() and int(args.max_count)):
        print("Must supply a positive value for max_count")
        return _BAD_INPUT
    print(f"{'Migration':<30}{'Total Found':>12}{'Completed':>12}")
    for name in MIGRATIONS:
        print(f"{name:<30}{0:>12}{0:>12}")
    return 0


def parser() -> argparse.ArgumentParser:
    """The command line of the reference."""
    made = command_line.parser("placement-manage")
    made.set_defaults(act=None, shown=made, status=1)
    databases = made.add_subparsers(metavar="{db}").add_parser("db", help="database commands")
    databases.set_defaults(shown=databases, status=0)
    commands = databases.add_subparsers(metavar="COMMAND")
    sync = commands.add_parser("sync", help="create the database, and import the old one once")
    sync.set_defaults(act=_sync)
    version = commands.add_parser("version", help="print the version of the schema")
    version.set_defaults(act=_version)
    stamp = commands.add_parser("stamp", help="refused: versions are not set by hand")
    stamp.add_argument("version")
    stamp.set_defaults(act=_stamp)
    online = commands.add_parser("online_data_migrations", help="none is ever left to do")
    online.add_argument("--max-count", metavar="NUMBER")
    online.set_defaults(act=_migrations)
    return made


def main() -> None:
    """Run the command; the exit status is 1 where it fails, or where none is named."""
    args = parser().parse_args()
    if args.act is None:
        args.shown.print_help()
        sys.exit(args.status)
    try:
        status = args.act(configuration(command_line.named_files(args)), args)
    except MoorageError as error:
        sys.exit(error.message)
    sys.exit(status)
