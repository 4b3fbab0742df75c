"""`placement-status upgrade check`."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from oslo_upgradecheck.upgradecheck import Code, Result

from moorage.cli.admin_upgrade_checks import UpgradeChecks
from moorage.domain.errors import MoorageError
from placement.configuration import DropInConfiguration, configuration
from placement.ledger_import import require_import


class Checks(UpgradeChecks):
    """Moorage's own checks, and whether the old content was imported."""

    def __init__(self, found: DropInConfiguration, file: str) -> None:
        """Check this configuration, which is also in a file of Moorage's."""
        super().__init__({"config_file": [file]})

        def imported(_: object) -> Result:
            try:
                require_import(found)
            except MoorageError as error:
                return Result(Code.FAILURE, error.message)
            return Result(Code.SUCCESS)

        self._upgrade_checks = (*self._upgrade_checks, ("Import from Placement", imported))


def main() -> None:
    """Print the table of checks; 0: all succeeded, 1: a warning, 2: a failure."""
    parser = argparse.ArgumentParser(prog="placement-status")
    parser.add_argument("--config-file", action="append", default=[], metavar="PATH")
    groups = parser.add_subparsers(required=True, metavar="{upgrade}")
    groups.add_parser("upgrade").add_subparsers(required=True).add_parser("check")
    args = parser.parse_args()
    try:
        found = configuration(args.config_file)
        with TemporaryDirectory(prefix="moorage-placement-") as folder:
            file = Path(folder) / "moorage.conf"
            file.touch(mode=0o600)
            file.write_text("\n".join(found.options), encoding="utf-8")
            sys.exit(int(Checks(found, str(file)).check()))
    except MoorageError as error:
        print(error.message, file=sys.stderr)
        sys.exit(int(Code.FAILURE))
