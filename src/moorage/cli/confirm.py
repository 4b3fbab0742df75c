"""The confirmation before a decision with unclaimed places is closed."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, TextIO

from moorage.cli.output import short
from moorage.cli.placement_map import summed
from moorage.domain.errors import Conflict, MoorageError

if TYPE_CHECKING:
    import argparse

    from moorage.client.moorage import Moorage
    from moorage.wire.decisions import Decision


class Unconfirmed(Conflict):
    """Closing would free places, and was not confirmed."""


class Declined(MoorageError):
    """The user answered no."""


def yes_argument(parser: argparse.ArgumentParser) -> None:
    """Declare `--yes`."""
    parser.add_argument(
        "-y", "--yes", action="store_true", help="free unclaimed places without asking"
    )


def ask(client: Moorage, decision: Decision, out: TextIO) -> None:
    """Ask for confirmation if closing would free places; return on yes.

    Raises:
        Unconfirmed: places would be freed, and there is no terminal to ask at.
        Declined: the answer was not yes.
    """
    freed = client.decisions.confirm(str(decision.id), dry_run=True).value["released_members"]
    if not freed:
        return
    total = len(decision.assignments)
    count = f"{len(freed)} of {total} places are unclaimed and would be freed ({summed(freed)})"
    if not sys.stdin.isatty():
        keep = f"to keep them held: moorage decision renew {short(str(decision.id))} --hold 10m"
        raise Unconfirmed(f"{count}; repeat with --yes to close the decision   {keep}")
    out.write(f"{count}. Close the decision? [y/N] ")
    out.flush()
    if sys.stdin.readline().strip().lower() not in {"y", "yes"}:
        raise Declined("nothing was changed")
