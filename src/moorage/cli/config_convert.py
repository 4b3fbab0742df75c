"""`moorage config convert`: a configuration file from openstack-placement's."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from moorage.cli.command import Command
from moorage.cli.output import CONFLICT, OK, Shown, stack, table
from moorage.cli.parser import Flag, Option, WrongUsage
from moorage.domain.words import counted

if TYPE_CHECKING:
    import argparse

    from moorage.settings.placement_conversion import Conversion


class Convert(Command):
    """Make a configuration file of this service from placement.conf.

    Every option is carried over, renamed, or listed with the reason why it is not needed. What
    somebody has to decide is listed as `by hand`; then the exit status is 4. Several files are read
    in order. The result holds the passwords of the original: only its owner may read it.
    """

    examples = """
        moorage config convert /etc/placement/placement.conf -o /etc/moorage/moorage.conf
        moorage config convert placement.conf -o moorage.conf --database postgresql://m@db/moorage
    """
    options = (
        Option("file", nargs="+", metavar="FILE", help="placement.conf; a later one wins"),
        Option("-o", "--output", required=True, metavar="FILE", help="the file to write"),
        Option("--database", metavar="URL", help="the database of the ledger"),
        Flag("--force", "replace the output if it exists"),
    )

    def act(self, args: argparse.Namespace) -> Shown:
        from moorage.settings.placement_conversion import Outcome, convert

        target = Path(args.output)
        if target.exists() and not args.force:
            raise WrongUsage(f"{target} exists: --force replaces it", path="output")
        found = convert(args.file, args.database)
        without_ignored_options(found)
        _write(target, "\n".join(found.lines()) + "\n")
        _check(found, target)
        rows = [(one.option, one.outcome.value, one.detail) for one in found.options]
        body = {
            "file": str(target),
            "options": [
                {"option": option, "outcome": outcome, "detail": detail}
                for option, outcome, detail in rows
            ],
        }
        left = sum(one.outcome is Outcome.BY_HAND for one in found.options)
        verdict = f"wrote {target}: {counted(len(rows), 'option')}"
        verdict += f", {left} to do by hand" if left else ""
        shown = stack(table(("option", "outcome", "detail"), rows), verdict)
        return Shown(body, shown, CONFLICT if left else OK)


def without_ignored_options(found: Conversion) -> None:
    """Leave out options that keystonemiddleware ignores, and this service would refuse."""
    from moorage.domain.errors import InvalidDescription
    from moorage.http.auth_strategy import auth_strategy
    from moorage.http.config import CallersConfig
    from moorage.settings.placement_conversion import Outcome

    if found.settings["auth"][0] != ("keystone",):
        return
    while True:
        try:
            auth_strategy("keystone", CallersConfig(keystone=dict(found.keystone)))
        except InvalidDescription as error:
            path = error.path or ""
            ignored = "has no such option" in error.message and path in found.keystone
            outcome = Outcome.NOT_NEEDED if ignored else Outcome.BY_HAND
            spelled = f"[keystone_authtoken] {path}".rstrip()
            found.options = [one for one in found.options if one.option != spelled]
            found.note(spelled, outcome, error.message)
            if not ignored:
                return
            del found.keystone[path]
        else:
            return


def _check(found: Conversion, target: Path) -> None:
    """Read the result as the service would, with the rules of its policy file."""
    from moorage import settings
    from moorage.api.access_rules import known_rules
    from moorage.api.native import rules as native_rules
    from moorage.domain.errors import InvalidDescription
    from moorage.settings.placement_conversion import Outcome

    try:
        made = settings.configure(settings.read({"config_file": [str(target)]}, {}))
    except InvalidDescription as error:
        found.note(str(target), Outcome.BY_HAND, error.message)
        return
    known = known_rules(new_defaults=made.rules.new_defaults)
    try:
        native_rules.access_by(made.rules, known)
    except InvalidDescription as error:
        found.note("policy file", Outcome.BY_HAND, error.message)


def _write(target: Path, text: str) -> None:
    """Replace the file whole; only its owner may read it, whoever could read the old one."""
    handle, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    beside = Path(name)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(target)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise
