"""`placement-status upgrade check`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from oslo_upgradecheck.upgradecheck import Code, Result

from moorage.cli.admin_upgrade_checks import UpgradeChecks
from moorage.domain.errors import MoorageError
from placement import command_line
from placement.configuration import DropInConfiguration, configuration
from placement.ledger_import import require_import

if TYPE_CHECKING:
    from moorage.settings import Effective


class Checks(UpgradeChecks):
    """Moorage's own checks, and whether the old content was imported."""

    def __init__(self, found: DropInConfiguration) -> None:
        """Check this configuration."""
        super().__init__({})
        self._effective = found.effective

        def imported(_: object) -> Result:
            try:
                require_import(found)
            except MoorageError as error:
                return Result(Code.FAILURE, error.message)
            return Result(Code.SUCCESS)

        self._upgrade_checks = (*self._upgrade_checks, ("Import from Placement", imported))

    def read_settings(self) -> Effective:
        """The settings that placement.conf says."""
        return self._effective


def main() -> None:
    """Print the table of checks; 0: all succeeded, 1: a warning, 2: a failure."""
    parser = command_line.parser("placement-status")
    groups = parser.add_subparsers(required=True, metavar="{upgrade}")
    groups.add_parser("upgrade").add_subparsers(required=True).add_parser("check")
    args = parser.parse_args()
    try:
        sys.exit(int(Checks(configuration(command_line.named_files(args))).check()))
    except MoorageError as error:
        print(error.message, file=sys.stderr)
        sys.exit(int(Code.FAILURE))
