"""The confirmations before places are freed, and before servers lose their policies."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Final, TextIO

from moorage.cli.output import short
from moorage.cli.placement_map import summed
from moorage.domain.errors import Conflict, MoorageError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from moorage.client.moorage import Moorage
    from moorage.wire.decisions import Decision
    from moorage.wire.members import Member

HELD: Final = "held"
BUILDING: Final = "building"
ACTIVE: Final = "active"


class Unconfirmed(Conflict):
    """It would free places, or take policies from servers, and was not confirmed."""


class Declined(MoorageError):
    """The user answered no."""


def yes_argument(parser: argparse.ArgumentParser) -> None:
    """Declare `--yes`."""
    parser.add_argument("-y", "--yes", action="store_true", help="do it without asking")


def ask_to_close(client: Moorage, decision: Decision, out: TextIO) -> None:
    """Ask for confirmation if closing a decision would free places; return on yes.

    Raises:
        Unconfirmed: places would be freed, and there is no terminal to ask at.
        Declined: the answer was not yes.
    """
    freed = client.decisions.confirm(str(decision.id), dry_run=True).value["released_members"]
    if freed:
        total = len(decision.assignments)
        count = f"{len(freed)} of {total} places are unclaimed and would be freed ({summed(freed)})"
        keep = f"to keep them held: moorage decision renew {short(str(decision.id))} --hold 10m"
        _ask(count, "Close the decision", keep, out)


def ask_to_delete(members: Sequence[Member], out: TextIO) -> None:
    """Ask for confirmation if an ensemble has members with servers; return on yes.

    Raises:
        Unconfirmed: it has some, and there is no terminal to ask at.
        Declined: the answer was not yes.
    """
    by_state = {
        state: summed(one.name for one in members if one.status == state)
        for state in (BUILDING, ACTIVE)
    }
    states = " and ".join(f"{some} {state}" for state, some in by_state.items() if some)
    if states:
        what = f"{states}: their servers stay where they are, without its policies"
        keep = "to free only what is held: moorage ensemble confirm"
        _ask(what, "Delete the ensemble", keep, out)


def _ask(what: str, question: str, instead: str, out: TextIO) -> None:
    if not sys.stdin.isatty():
        verb = question[0].lower() + question[1:]
        raise Unconfirmed(f"{what}; repeat with --yes to {verb}   {instead}")
    out.write(f"{what}. {question}? [y/N] ")
    out.flush()
    if sys.stdin.readline().strip().lower() not in {"y", "yes"}:
        raise Declined("nothing was changed")
