"""`moorage admin upgrade check`: whether the service can be started, or upgraded, here."""

from __future__ import annotations

import io
from contextlib import redirect_stdout
from typing import TYPE_CHECKING

from moorage.cli.admin import CATALOG, declare_access, declare_database, service
from moorage.cli.command import Command
from moorage.cli.output import CELLS, Shown, table

if TYPE_CHECKING:
    import argparse

    from moorage.domain.content import Content


class Check(Command):
    """Check that the service can be started or upgraded on this machine; writes nothing.

    Run it with the new version, before the service is restarted. Checked are the settings, the
    database and its schema, access rules and tokens, Keystone, Nova where its credentials are used,
    and the ledger's content; with --from also that an import from a Placement is complete.

    The table and the exit status are those of other OpenStack services: 0, all checks succeeded; 1,
    at least one warning, which needs a look; 2, at least one failure, which stops an upgrade.
    """

    examples = """
        moorage admin upgrade check
        moorage admin upgrade check --from mysql://placement@db.example/placement
    """

    def arguments(self, parser: argparse.ArgumentParser) -> None:
        declare_database(parser)
        parser.add_argument(
            "--from",
            metavar="URL",
            dest="source",
            help="the Placement that was imported: endpoint, database, or `catalog`",
        )
        declare_access(parser, "from")

    def act(self, args: argparse.Namespace) -> Shown:
        from moorage.cli.admin_upgrade_checks import UpgradeChecks

        names = ("database", "config_file", "config_dir")
        given = {name: value for name in names if (value := getattr(args, name))}
        checks = UpgradeChecks(given, (lambda: _content(args)) if args.source else None)
        with redirect_stdout(io.StringIO()) as printed:
            status = checks.check()
        body = {
            "name": checks.display_title,
            "checks": [
                {"check": name, "result": int(result.code), "details": result.details}
                for name, result in checks.results
            ],
        }
        if args.form in CELLS:
            columns = ["check", "result", "details"]
            rows = [[name, one.code.name.lower(), one.details] for name, one in checks.results]
            return Shown(body, table(columns, rows), int(status))
        return Shown(body, printed.getvalue().rstrip("\n"), int(status))


def _content(args: argparse.Namespace) -> Content:
    """All that the source holds."""
    if args.source != CATALOG and not args.source.startswith(("http://", "https://")):
        from moorage.store.placement_database import read_placement

        return read_placement(args.source)
    from moorage.client.placement_source import read_service

    with service(args.source, args) as wire:
        return read_service(wire, connections=args.connections, advance=lambda *_: None)
