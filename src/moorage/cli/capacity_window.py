"""`moorage capacity window create|list|show|delete`: hosts that are to be away."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from moorage.cli import told_lease
from moorage.cli.command import Command
from moorage.cli.output import Shown, fields, short, stack, table
from moorage.cli.times import TIME_HELP, minute, span, time_of, time_or_now
from moorage.domain.errors import InvalidDescription
from moorage.domain.period import format_instant, parse_duration, parse_instant
from moorage.domain.words import counted

if TYPE_CHECKING:
    from rich.console import RenderableType

    from moorage.client.capacity import Planned
    from moorage.client.leases import Lease


def _stretch(text: str) -> tuple[str, str]:
    """`2026-12-09T06:00Z/24h` or `FROM/TO` as two times."""
    start, slash, rest = text.partition("/")
    if not slash:
        raise argparse.ArgumentTypeError("write FROM/DURATION or FROM/TO: 2026-12-09T06:00Z/24h")
    first = time_of(start)
    try:
        length = parse_duration(span(rest))
    except argparse.ArgumentTypeError:
        return first, time_of(rest)
    return first, format_instant(parse_instant(first) + length)


class Create(Command):
    """Plan that hosts are away: maintenance, decommission or delivery.

    From then on nobody gets capacity there that would be needed in that time. Leases in the way
    that have not started get other places; where they have none it is refused, with the earliest
    time at which it would not be. Servers that are there stay, and are listed: they are yours to
    move.
    """

    examples = """
        moorage capacity window create --host n4 --down 2026-12-09T06:00Z/24h --dry-run
        moorage capacity window create --domain r2 --down 2026-12-09T06:00Z/2026-12-10T06:00Z
        moorage capacity window create --host n1 --gone 2027-01-01 --reason "end of life"
        moorage capacity window create --host n9 --host n10 --there 2026-12-15T12:00Z
    """

    def arguments(self, parser: argparse.ArgumentParser) -> None:
        """Which hosts, and when."""
        add = parser.add_argument
        add("--host", action="append", default=[], metavar="HOST", help="its name or UUID")
        add("--domain", action="append", default=[], metavar="NAME", help="all hosts of it")
        when = parser.add_mutually_exclusive_group(required=True)
        when.add_argument(
            "--down", type=_stretch, metavar="FROM/DURATION", help="maintenance; or FROM/TO"
        )
        when.add_argument(
            "--gone", type=time_or_now, metavar="T", help="decommission: gone from then on"
        )
        when.add_argument(
            "--there", type=time_of, metavar="T", help=f"delivery: not there before; {TIME_HELP}"
        )
        add("--reason", default="", help="for people")
        add("--dry-run", action="store_true", help="judge it, write nothing")

    def act(self, args: argparse.Namespace) -> Shown:
        """Plan."""
        if not (args.host or args.domain):
            raise InvalidDescription("say which hosts: --host or --domain")
        window: dict[str, Any] = {
            "hosts": args.host,
            "domains": args.domain,
            "reason": args.reason,
            **_when(args),
        }
        with self.client() as client:
            found = client.capacity.plan(window, dry_run=args.dry_run)
            one = found.value
            moved = [client.leases.show(lease).value for lease in one.moved_leases]
        said = ["would be" if args.dry_run else f"window {short(one.id)}", one.kind]
        said.append(f"{counted(len(one.hosts), 'host')} away {_period(one)}")
        line = "  ".join(said)
        parts: list[RenderableType] = [line]
        if moved:
            who = ", ".join(map(_whose, moved))
            parts.append(f"{'would move' if args.dry_run else 'moved'}: leases {who}")
        return Shown(found.body, stack(*parts, *_staying(one)))


def _whose(lease: Lease) -> str:
    """`L3 shop-week of nfv`: a handle says which of its project's, and operators see all."""
    return f"{told_lease.called(lease)} {lease.name} of {lease.project_id}"


def _when(args: argparse.Namespace) -> dict[str, Any]:
    if args.down:
        return {"kind": "maintenance", "start": args.down[0], "end": args.down[1]}
    if args.gone:
        return {"kind": "decommission", "start": None if args.gone == "now" else args.gone}
    return {"kind": "delivery", "end": args.there}


class List(Command):
    """List when hosts are away."""

    def act(self, args: argparse.Namespace) -> Shown:  # noqa: ARG002 - the shape of every act
        """List."""
        with self.client() as client:
            found = client.capacity.planned()
        rows = [
            (short(one.id), one.kind, one.status, _hosts(one), minute(one.start), _to(one))
            for one in found.value
        ]
        columns = ["id", "kind", "status", "hosts", "from", "to"]
        return Shown(found.body, table(columns, rows) if rows else "no hosts are to be away")


class Show(Command):
    """Show when hosts are away, and who is on them then."""

    def arguments(self, parser: argparse.ArgumentParser) -> None:
        """Which."""
        parser.add_argument("window", metavar="WINDOW", help="its id, or the beginning of it")

    def act(self, args: argparse.Namespace) -> Shown:
        """Show."""
        with self.client() as client:
            found = client.capacity.window(client.capacity.find(args.window))
        one = found.value
        pairs = [
            ("id", one.id),
            ("kind", one.kind),
            ("status", one.status),
            ("hosts", ", ".join(one.hosts)),
            ("away", _period(one)),
            ("reason", one.reason or None),
        ]
        return Shown(found.body, stack(fields(pairs), *_staying(one)))


class Delete(Command):
    """Think better of it: the hosts are there."""

    def arguments(self, parser: argparse.ArgumentParser) -> None:
        """Which."""
        parser.add_argument("window", metavar="WINDOW", help="its id, or the beginning of it")

    def act(self, args: argparse.Namespace) -> Shown:
        """Delete."""
        with self.client() as client:
            window = client.capacity.find(args.window)
            client.capacity.drop(window)
        return Shown({"deleted": window}, f"deleted {short(window)}")


def _period(one: Planned) -> str:
    return f"{minute(one.start)} .. {_to(one)}"


def _to(one: Planned) -> str:
    return minute(one.end) if one.end else "for ever"


def _hosts(one: Planned) -> str:
    return one.hosts[0] if len(one.hosts) == 1 else counted(len(one.hosts), "host")


def _staying(one: Planned) -> list[RenderableType]:
    """Who has to be moved, or ends by himself."""
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
        "there in that time:",
        table(["host", "consumer", "project", "state", "ends"], rows),
    ]
