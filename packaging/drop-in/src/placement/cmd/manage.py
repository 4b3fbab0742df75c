"""`placement-manage db sync|version|online_data_migrations`."""

from __future__ import annotations

import argparse
import sys

from moorage.domain.errors import MoorageError
from moorage.store.database_status import database_status
from placement.configuration import DropInConfiguration, configuration
from placement.ledger_import import import_once

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
    made = argparse.ArgumentParser(prog="placement-manage")
    made.add_argument("--config-file", action="append", default=[], metavar="PATH")
    groups = made.add_subparsers(required=True, metavar="{db}")
    commands = groups.add_parser("db").add_subparsers(required=True, metavar="COMMAND")
    sync = commands.add_parser("sync", help="create the database, and import the old one once")
    sync.set_defaults(act=_sync)
    version = commands.add_parser("version", help="print the version of the schema")
    version.set_defaults(act=_version)
    online = commands.add_parser("online_data_migrations", help="none is ever left to do")
    online.add_argument("--max-count", metavar="NUMBER")
    online.set_defaults(act=_migrations)
    return made


def main() -> None:
    """Run the command; the exit status is 1 where it fails."""
    args = parser().parse_args()
    try:
        status = args.act(configuration(args.config_file), args)
    except MoorageError as error:
        sys.exit(error.message)
    sys.exit(status)
