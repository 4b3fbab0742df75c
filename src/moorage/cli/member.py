"""`moorage member list|add|remove`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from moorage.cli import told
from moorage.cli.command import Command
from moorage.cli.ensemble_create import decide_arguments, decide_body
from moorage.cli.output import Shown, short, table
from moorage.cli.placement_map import natural
from moorage.domain.errors import InvalidDescription

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from rich.console import RenderableType

    from moorage.client.structs import Member


def listed(members: Sequence[Member]) -> RenderableType:
    """Members as a table; with the ends of their stays where some have one."""
    ordered = sorted(members, key=lambda one: natural(one.name))
    title, places = told.places([one.domains for one in ordered])
    rows = [
        (
            *(one.name, _status(one), place, one.server_id or "-"),
            *((told.until(one),) if told.ends(members) else ()),
        )
        for one, place in zip(ordered, places, strict=True)
    ]
    more = ("until",) if told.ends(members) else ()
    return table(["member", "status", title, "server", *more], rows)


def _status(one: Member) -> str:
    return f"{one.status}, overrun" if one.overrun else one.status or "-"


class List(Command):
    """List an ensemble's members.

    The status is unplaced, held, building or active; a server that is there still after its end
    is overrun. Where stays have an end it is told until
    when each member may stay, and whether it makes way for a lease then or its own lease ends.
    """

    def arguments(self, parser: argparse.ArgumentParser) -> None:
        """Whose."""
        parser.add_argument(
            "ensemble", metavar="ENSEMBLE", help="id, its beginning, a name, or its lease: L3"
        )

    def act(self, args: argparse.Namespace) -> Shown:
        """List."""
        with self.client() as client:
            answer = client.ensembles.members(client.ensembles.find(args.ensemble))
        return Shown(answer.body, listed(answer.value))


class Add(Command):
    """Let an existing server join a role, or describe further members.

    The server stays where it is. If it takes more than the role describes, or breaks a required
    policy by it, the service refuses, unless --on-violation says otherwise.
    """

    examples = """
        moorage member add b1d7 --server 8d0a7a8e-5ad0-4c5e-9b0e-4f3d6a1d2c3b --role web
        moorage member add b1d7 --role cache --flavor m1.small --count 2   # a new role
        moorage member add b1d7 --role web --count 2                       # more of one
    """

    def arguments(self, parser: argparse.ArgumentParser) -> None:
        """Who joins."""
        parser.add_argument(
            "ensemble", metavar="ENSEMBLE", help="id, its beginning, a name, or its lease: L3"
        )
        parser.add_argument("--role", required=True, help="the role to join, or a new one")
        who = parser.add_mutually_exclusive_group()
        who.add_argument("--server", metavar="UUID", help="a running server")
        who.add_argument("--flavor", help="the flavor of a new role; one that exists has its own")
        parser.add_argument(
            "--count", type=int, metavar="N", help="so many more (default: 1); not with --server"
        )
        parser.add_argument(
            "--on-violation",
            choices=("reject", "accept_and_report"),
            help="with --server: what to do where it breaks a policy (default: reject)",
        )
        decide_arguments(parser)

    def act(self, args: argparse.Namespace) -> Shown:
        """Add."""
        member: dict[str, Any]
        if args.server and args.count is not None:
            raise InvalidDescription("one server is one member", path="--count")
        if args.server:
            member = {"server_id": args.server, "name": args.role}
            if args.on_violation:
                member["on_violation"] = args.on_violation
        else:
            role = {"name": args.role, "count": 1 if args.count is None else args.count}
            if args.flavor:
                role["flavor"] = args.flavor
            member = {"role": role, "decide": decide_body(args, [args.role])}
        with self.client() as client:
            answer = client.ensembles.add_member(
                client.ensembles.find(args.ensemble), member, dry_run=args.dry_run
            )
        made = answer.value
        if args.dry_run and made.decision is not None:
            return Shown(answer.body, told.dry_run(made.decision))
        if made.decision is not None:
            return Shown(answer.body, told.created(made))
        violations = answer.body.get("violations") or ()
        newcomer = args.server or f"{member['role']['count']} more"
        lines = [f"{newcomer} {'would join' if args.dry_run else 'joins'} {args.role}"]
        lines += [
            f"{one['path']}: the role describes {one.get('described', 0)},"
            f" the server takes {one.get('requested', 0)}"
            for one in answer.body.get("diff") or ()
        ]
        lines += [f"VIOLATED {one['policy']}: {one['text']}" for one in violations]
        return Shown(answer.body, "\n".join(lines))


class Remove(Command):
    """Take a member out of its ensemble.

    Its place is given back unless --keep-resources; a server that runs there is not touched.
    """

    def arguments(self, parser: argparse.ArgumentParser) -> None:
        """Who leaves."""
        parser.add_argument(
            "ensemble", metavar="ENSEMBLE", help="id, its beginning, a name, or its lease: L3"
        )
        parser.add_argument("member", metavar="MEMBER", help="such as db[1]")
        parser.add_argument("--keep-resources", action="store_true", help="leave them booked")

    def act(self, args: argparse.Namespace) -> Shown:
        """Remove."""
        with self.client() as client:
            ensemble_id = client.ensembles.find(args.ensemble)
            body = client.ensembles.remove_member(
                ensemble_id, args.member, keep_resources=args.keep_resources
            ).body
        return Shown(
            body or {"removed": args.member}, f"{args.member} has left {short(ensemble_id)}"
        )
