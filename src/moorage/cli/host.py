"""`moorage host list|show|close|open`: the state of hosts, their bookings, and closing them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from moorage.cli.command import Command
from moorage.cli.compliance import begun
from moorage.cli.host_text import closed_for, state_and_why, why
from moorage.cli.output import Shown, stack, table
from moorage.cli.parser import DRY_RUN, Flag, Option
from moorage.cli.times import minute
from moorage.domain.words import natural

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping

    from rich.console import RenderableType


HOST = Option("host", metavar="HOST", help="its name or UUID")


class List(Command):
    """List hosts with their state and bookings, and why one is closed.

    Nothing new is placed on a closed host; what is there may still run. It is closed while its
    compute service is disabled, while nothing is left after what is reserved, or by an operator.

    What is on a host that is down does not run: its compute service is down, a planned window has
    begun, or it has no inventory. Providers that share with hosts are listed as shared.
    """

    examples = """
        moorage host list
        moorage host list --closed
    """
    options = (Flag("--closed", "only hosts that are closed, or will be"),)

    def act(self, args: argparse.Namespace) -> Shown:
        with self.client() as client:
            found = client.hosts.all()
        found = [one for one in found if one["closed"] or not args.closed]
        found.sort(key=lambda one: natural(one["name"]))
        rows = [(one["name"], _state(one), one["consumers"], until(one), why(one)) for one in found]
        columns = ["host", "state", "#consumers", "until", "why"]
        return Shown(
            {"hosts": found},
            table(columns, rows) if rows else "no closed hosts" if args.closed else "no hosts",
        )


class Show(Command):
    """Show a host and its bookings.

    Bookings are the allocations, holds and reservations in its tree, each with its project,
    ensemble and member.
    """

    examples = """
        moorage host show n2
        moorage host show n2 -f json
    """
    options = (HOST,)

    def act(self, args: argparse.Namespace) -> Shown:
        with self.client() as client:
            host = client.hosts.show(args.host)
        return Shown({"host": host}, _drawn(host))


class Close(Command):
    """Close a host: nothing new is placed there, by decisions or by Nova.

    What is there may still run. Members that hold a place there and have no server get other places
    with `moorage decision create`; leases get them by themselves.
    """

    examples = """
        moorage host close n2 --reason "memory errors"
    """
    options = (
        HOST,
        Option("--reason", required=True, metavar="TEXT", help="why; operators see it"),
        DRY_RUN,
    )

    def act(self, args: argparse.Namespace) -> Shown:
        with self.client() as client:
            body = client.hosts.close(args.host, args.reason, dry_run=args.dry_run)
        lines = [_state_line(body["host"], dry_run=args.dry_run)]
        lines += begun(body.get("breaks"), dry_run=args.dry_run)
        return Shown(body, "\n".join(lines))


class Open(Command):
    """Open a host that an operator has closed.

    What else closes it still does, and is listed.
    """

    examples = "moorage host open n2"
    options = (HOST, DRY_RUN)

    def act(self, args: argparse.Namespace) -> Shown:
        with self.client() as client:
            host = client.hosts.open(args.host, dry_run=args.dry_run)
        return Shown({"host": host}, _state_line(host, dry_run=args.dry_run))


def _state_line(host: Mapping[str, Any], *, dry_run: bool) -> str:
    told = state_and_why(host["state"], why(host))
    return f"{host['name']} {'would be' if dry_run else 'is'} {told}"


def until(host: Mapping[str, Any]) -> str:
    """The end of a host's last booking."""
    if not host["consumers"]:
        return "-"
    return "no end" if host["until"] is None else minute(host["until"])


def _state(host: Mapping[str, Any]) -> str:
    if host["shares"]:
        return "shared"
    return str(host.get("state", "open" if host["open"] else "closed"))


def _drawn(host: Mapping[str, Any]) -> RenderableType:
    place = ", ".join(f"{level} {name}" for level, name in host["domains"].items())
    lines = [f"{host['name']}  {_state(host)}{f'  {place}' if place else ''}"]
    lines += [closed_for(one) for one in host["closed"]]
    if not host["bookings"]:
        return stack(*lines, "no bookings")
    columns = ["consumer", "project", "state", "from", "until", "amounts", "for"]
    return stack(*lines, "", table(columns, [_row(one) for one in host["bookings"]]))


def _row(one: Mapping[str, Any]) -> tuple[object, ...]:
    amounts = " ".join(f"{name}={amount}" for name, amount in sorted(one["amounts"].items()))
    end = "no end" if one["end"] is None else minute(one["end"])
    if one["state"] in {"held", "claimed"} and one["lapses_at"] is not None:
        end += f", held until {minute(one['lapses_at'])}"
    whose = " ".join(str(part) for part in (one["ensemble_name"], one["member"]) if part)
    lease = f"lease {one['lease'][:8]}" if one["lease"] else ""
    purpose = ", ".join(part for part in (whose, lease) if part) or "-"
    start = minute(one["start"])
    return one["consumer"], one["project_id"], one["state"], start, end, amounts, purpose
