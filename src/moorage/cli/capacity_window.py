"""`moorage capacity window create|list|show|delete`: planned unavailability of hosts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from moorage.cli import lease_text
from moorage.cli.columns import pairs
from moorage.cli.command import Command
from moorage.cli.compliance import begun
from moorage.cli.output import Shown, fields, short, stack, table
from moorage.cli.parser import Option, WrongUsage
from moorage.cli.times import TIME_HELP, minute, stretch, time_of, time_or_now
from moorage.domain.words import counted

if TYPE_CHECKING:
    import argparse

    from rich.console import RenderableType

    from moorage.wire.capacity import PlannedWindow
    from moorage.wire.leases import Lease


WINDOW = Option("window", metavar="WINDOW", help="its id, or the beginning of it")


class Create(Command):
    """Plan when hosts are unavailable: maintenance, decommission or delivery.

    New placements that would use these hosts in that period are refused. Leases on them that have
    not started get other places; if there are none, the window is refused with the earliest
    possible one. Running servers stay and are listed: move them yourself.
    """

    examples = """
        moorage capacity window create --host n4 --down 2026-12-09T06:00Z/24h --dry-run
        moorage capacity window create --domain r2 --down 2026-12-09T06:00Z/2026-12-10T06:00Z
        moorage capacity window create --host n1 --gone 2027-01-01 --reason "end of life"
        moorage capacity window create --host n9 --host n10 --there 2026-12-15T12:00Z
    """

    def arguments(self, parser: argparse.ArgumentParser) -> None:
        add = parser.add_argument
        add(
            "--host", action="append", default=[], metavar="HOST", help="a name or UUID; repeatable"
        )
        add("--domain", action="append", default=[], metavar="NAME", help="all of its hosts")
        when = parser.add_mutually_exclusive_group(required=True)
        when.add_argument(
            "--down", type=stretch, metavar="FROM/DURATION", help="maintenance; or FROM/TO"
        )
        when.add_argument(
            "--gone", type=time_or_now, metavar="T", help="decommission: from then on, for good"
        )
        when.add_argument(
            "--there", type=time_of, metavar="T", help=f"delivery: unavailable before; {TIME_HELP}"
        )
        add("--reason", default="", help="a note, shown to operators")
        add("--dry-run", action="store_true", help="check it, write nothing")

    def act(self, args: argparse.Namespace) -> Shown:
        if not (args.host or args.domain):
            raise WrongUsage("give --host or --domain")
        window: dict[str, Any] = {
            "hosts": args.host,
            "domains": args.domain,
            "reason": args.reason,
            **_when(args),
        }
        with self.client() as client:
            found = client.capacity.plan(window, dry_run=args.dry_run)
            one = found.value
            moved = [client.leases.show(lease).value for lease in one.moved_leases or ()]
        said = ["would be" if args.dry_run else f"window {short(one.id)}", one.kind]
        said.append(f"{counted(len(one.hosts), 'host')} away {_period(one)}")
        line = "  ".join(said)
        parts: list[RenderableType] = [line]
        if moved:
            who = ", ".join(map(_whose, moved))
            parts.append(f"{'would move' if args.dry_run else 'moved'}: leases {who}")
        broken = begun(found.body.get("breaks"), dry_run=args.dry_run)
        return Shown(found.body, stack(*parts, *_staying(one), *broken))


def _whose(lease: Lease) -> str:
    """A lease with its project, for operators who see all: `L3 shop-week of nfv`."""
    return f"{lease_text.called(lease)} {lease.name} of {lease.project_id}"


def _when(args: argparse.Namespace) -> dict[str, Any]:
    if args.down:
        return {"kind": "maintenance", "start": args.down[0], "end": args.down[1]}
    if args.gone:
        return {"kind": "decommission", "start": None if args.gone == "now" else args.gone}
    return {"kind": "delivery", "end": args.there}


class List(Command):
    """List planned windows."""

    def act(self, args: argparse.Namespace) -> Shown:  # noqa: ARG002 - the shape of every act
        with self.client() as client:
            found = client.capacity.planned()
        rows = [
            (short(one.id), one.kind, one.status, _hosts(one), minute(one.start), _to(one))
            for one in found.value
        ]
        columns = ["id", "kind", "status", "hosts", "from", "to"]
        return Shown(found.body, table(columns, rows) if rows else "no planned windows")


class Show(Command):
    """Show a planned window, and the bookings on its hosts in that period."""

    options = (WINDOW,)

    def act(self, args: argparse.Namespace) -> Shown:
        with self.client() as client:
            found = client.capacity.window(client.capacity.find(args.window))
        one = found.value
        head = [
            *pairs(one, "id kind status hosts:listed"),
            ("away", _period(one)),
            *pairs(one, "reason?"),
        ]
        return Shown(found.body, stack(fields(head), *_staying(one)))


class Delete(Command):
    """Delete a planned window; its hosts are available again."""

    options = (WINDOW,)

    def act(self, args: argparse.Namespace) -> Shown:
        with self.client() as client:
            window = client.capacity.find(args.window)
            client.capacity.drop(window)
        return Shown({"deleted": window}, f"deleted {short(window)}")


def _period(one: PlannedWindow) -> str:
    return f"{minute(one.start)} .. {_to(one)}"


def _to(one: PlannedWindow) -> str:
    return minute(one.end) if one.end else "no end"


def _hosts(one: PlannedWindow) -> str:
    return one.hosts[0] if len(one.hosts) == 1 else counted(len(one.hosts), "host")


def _staying(one: PlannedWindow) -> list[RenderableType]:
    """The bookings that must be moved, or end by themselves."""
    if not one.staying:
        return []
    rows = [
        (
            who.host,
            who.consumer,
            who.project_id,
            who.state,
            "never" if who.end is None else minute(who.end),
        )
        for who in one.staying
    ]
    return [
        "",
        "still booked there in that period:",
        table(["host", "consumer", "project", "state", "ends"], rows),
    ]
