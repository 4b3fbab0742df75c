"""`moorage lease extend|shrink|grow|move|rename`: each changes a lease in one transaction."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from moorage.cli import lease_text
from moorage.cli.command import Command
from moorage.cli.compliance import with_begun
from moorage.cli.lease import LEASE
from moorage.cli.output import Shown
from moorage.cli.parser import DRY_RUN, Option, new_name
from moorage.cli.times import NOW, TIME_HELP, minute, span, time_of, time_or_now
from moorage.domain.period import format_duration, format_instant, parse_duration, parse_instant

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from moorage.wire.leases import Lease


def role_count(text: str) -> tuple[str, int]:
    """Read `web=5`.

    Raises:
        argparse.ArgumentTypeError: another form.
    """
    role, equals, count = text.rpartition("=")
    if not (role and equals and count.isascii() and count.isdigit()):
        raise argparse.ArgumentTypeError(f"write ROLE=COUNT, such as web=5, not {text}")
    return role, int(count)


def _roles(parser: argparse.ArgumentParser, *, required: bool) -> None:
    parser.add_argument(
        "--role",
        action="append",
        type=role_count,
        default=[],
        required=required,
        metavar="ROLE=COUNT",
        help="how many places a role has afterwards; repeatable",
    )


def _changed(
    command: Command, args: argparse.Namespace, change: Callable[[Lease], Mapping[str, Any]]
) -> Shown:
    """Change the lease at its present generation; a concurrent change is a conflict (status 4)."""
    with command.client() as client:
        lease = client.leases.show(client.leases.find(args.lease)).value
        body = {"generation": lease.generation, **change(lease)}
        answer = client.leases.change(lease.id, body, dry_run=args.dry_run)
    text = lease_text.granted(answer.value, dry_run=args.dry_run)
    return Shown(answer.body, with_begun(text, answer.body, dry_run=args.dry_run))


def _wrong_way(lease: Lease, roles: Sequence[tuple[str, int]], *, more: bool) -> str | None:
    """The message for a role whose count would change in the other direction."""
    present = {one.role: one.count or 0 for one in lease.reservations}
    for role, count in roles:
        if role in present and count != present[role] and (count > present[role]) != more:
            verb = "shrink" if more else "grow"
            return f"argument --role: {role} has {present[role]} places; use moorage lease {verb}"
    return None


class Extend(Command):
    """Make a lease end later; its members keep their places."""

    examples = """
        moorage lease extend shop-week --by 2d
        moorage lease extend shop-week --until 2026-12-13T18:00Z --dry-run
    """

    def arguments(self, parser: argparse.ArgumentParser) -> None:
        LEASE(parser)
        new = parser.add_mutually_exclusive_group(required=True)
        new.add_argument("--until", "--end", type=time_of, metavar="T", help=TIME_HELP)
        new.add_argument("--by", type=span, metavar="2d", help="so much longer")
        DRY_RUN(parser)

    def act(self, args: argparse.Namespace) -> Shown:
        return _changed(self, args, lambda lease: self._later_end(lease, args))

    def _later_end(self, lease: Lease, args: argparse.Namespace) -> dict[str, str]:
        end = args.until or _moved(lease.end, args.by, 1)
        if parse_instant(end) <= parse_instant(lease.end):
            self.usage_error(f"it ends at {minute(lease.end)} already; use moorage lease shrink")
        return {"end": end}


class Shrink(Command):
    """Make a lease end earlier, or have fewer places."""

    examples = """
        moorage lease shrink shop-week --end 2026-12-10T18:00Z
        moorage lease shrink shop-week --by 1d
        moorage lease shrink shop-week --role web=2
    """

    def arguments(self, parser: argparse.ArgumentParser) -> None:
        LEASE(parser)
        new = parser.add_mutually_exclusive_group()
        new.add_argument("--end", "--until", type=time_of, metavar="T", help=TIME_HELP)
        new.add_argument("--by", type=span, metavar="1d", help="so much shorter")
        _roles(parser, required=False)
        DRY_RUN(parser)

    def act(self, args: argparse.Namespace) -> Shown:
        if not (args.end or args.by or args.role):
            self.usage_error("give --end, --by or --role")
        return _changed(self, args, lambda lease: self._less(lease, args))

    def _less(self, lease: Lease, args: argparse.Namespace) -> dict[str, Any]:
        change: dict[str, Any] = {}
        if args.end or args.by:
            change["end"] = args.end or _moved(lease.end, args.by, -1)
            if parse_instant(change["end"]) >= parse_instant(lease.end):
                self.usage_error(
                    f"it ends at {minute(lease.end)} already; use moorage lease extend"
                )
        if wrong := _wrong_way(lease, args.role, more=False):
            self.usage_error(wrong)
        return change | ({"counts": dict(args.role)} if args.role else {})


class Grow(Command):
    """Give a lease more places; the present ones are kept."""

    examples = "moorage lease grow shop-week --role web=5"

    def arguments(self, parser: argparse.ArgumentParser) -> None:
        LEASE(parser)
        _roles(parser, required=True)
        DRY_RUN(parser)

    def act(self, args: argparse.Namespace) -> Shown:
        return _changed(self, args, lambda lease: self._more(lease, args))

    def _more(self, lease: Lease, args: argparse.Namespace) -> dict[str, Any]:
        if wrong := _wrong_way(lease, args.role, more=True):
            self.usage_error(wrong)
        return {"counts": dict(args.role)}


class Move(Command):
    """Move a lease that has not started to another period.

    It keeps its length unless an end or a duration is given.
    """

    examples = """
        moorage lease move shop-week --start 2026-12-14T08:00Z
        moorage lease move shop-week --start 2026-12-14 --duration 3d
    """

    def arguments(self, parser: argparse.ArgumentParser) -> None:
        LEASE(parser)
        parser.add_argument("--start", type=time_or_now, required=True, metavar="T", help=TIME_HELP)
        end = parser.add_mutually_exclusive_group()
        end.add_argument("--end", type=time_of, metavar="T", help="default: as long as it was")
        end.add_argument("--duration", type=span, metavar="3d", help="instead of --end")
        DRY_RUN(parser)

    def act(self, args: argparse.Namespace) -> Shown:
        return _changed(self, args, lambda lease: _another_period(lease, args))


class Rename(Command):
    """Rename a lease."""

    examples = "moorage lease rename shop-week shop-december"
    options = (LEASE, Option("name", metavar="NAME", type=new_name, help="its new name"), DRY_RUN)

    def act(self, args: argparse.Namespace) -> Shown:
        return _changed(self, args, lambda _: {"name": args.name})


def _another_period(lease: Lease, args: argparse.Namespace) -> dict[str, str | None]:
    """The new period: as long as before unless the command says otherwise."""
    start = None if args.start == NOW else args.start
    if args.end:
        return {"start": start, "end": args.end}
    length = parse_instant(lease.end) - parse_instant(lease.start)
    return {"start": start, "duration": args.duration or format_duration(length)}


def _moved(instant: str, by: str, sign: int) -> str:
    return format_instant(parse_instant(instant) + sign * parse_duration(by))
