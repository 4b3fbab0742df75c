"""`moorage member list|add|remove`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from moorage.cli import decision_text
from moorage.cli.command import Command
from moorage.cli.compliance import begun, with_begun
from moorage.cli.ensemble_create import decide_arguments, decide_body
from moorage.cli.output import Shown, short, table
from moorage.cli.parser import DRY_RUN, ENSEMBLE, Flag, Option, WrongUsage
from moorage.domain.words import natural

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from rich.console import RenderableType

    from moorage.wire.members import Member


def listed(members: Sequence[Member]) -> RenderableType:
    """Members as a table, with a column of ends if any has one."""
    ordered = sorted(members, key=lambda one: natural(one.name))
    title, places = decision_text.places([one.domains for one in ordered])
    rows = [
        (
            *(one.name, _status(one), place, one.server_id or "-"),
            *((decision_text.until(one),) if decision_text.ends(members) else ()),
        )
        for one, place in zip(ordered, places, strict=True)
    ]
    more = ("until",) if decision_text.ends(members) else ()
    return table(["member", "status", title, "server", *more], rows)


def _status(one: Member) -> str:
    more = (", overrun" if one.overrun else "") + (
        ", host out of service" if one.out_of_service else ""
    )
    return f"{one.status or '-'}{more}"


class List(Command):
    """List an ensemble's members.

    The status is unplaced, held, building or active; a server that still runs after its end
    is overrun. Where stays have an end, it is shown with its reason: a lease that takes the place,
    or the end of its own lease.

    A held place cannot be claimed while its host is out of service, and a server may not run there.
    """

    options = (ENSEMBLE,)

    def act(self, args: argparse.Namespace) -> Shown:
        with self.client() as client:
            answer = client.ensembles.members(client.ensembles.find(args.ensemble))
        return Shown(answer.body, listed(answer.value))


class Add(Command):
    """Add a running server to a role, or describe further members.

    The server stays where it is. If it is larger than the role describes, or breaks a required
    policy, it is refused unless --on-violation says otherwise.
    """

    examples = """
        moorage member add b1d7 --server 8d0a7a8e-5ad0-4c5e-9b0e-4f3d6a1d2c3b --role web
        moorage member add b1d7 --role cache --flavor m1.small --count 2   # a new role
        moorage member add b1d7 --role web --count 2                       # more of one
    """

    def arguments(self, parser: argparse.ArgumentParser) -> None:
        ENSEMBLE(parser)
        parser.add_argument("--role", required=True, help="the role to join, or a new one")
        who = parser.add_mutually_exclusive_group()
        who.add_argument("--server", metavar="UUID", help="a running server")
        who.add_argument("--flavor", help="the flavor of a new role")
        parser.add_argument(
            "--count",
            type=int,
            metavar="N",
            help="number of new members (default: 1); not with --server",
        )
        parser.add_argument(
            "--on-violation",
            choices=("reject", "accept_and_report"),
            help="with --server: what to do if it breaks a policy (default: reject)",
        )
        decide_arguments(parser)

    def act(self, args: argparse.Namespace) -> Shown:
        member: dict[str, Any]
        if args.server and args.count is not None:
            raise WrongUsage("not with --server, which is one member", path="--count")
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
        if made.decision:
            placed = (
                decision_text.dry_run(made.decision)
                if args.dry_run
                else decision_text.created(made)
            )
            return Shown(answer.body, with_begun(placed, answer.body, dry_run=args.dry_run))
        newcomer = args.server or f"{member['role']['count']} more"
        lines = [f"{newcomer} {'would join' if args.dry_run else 'joins'} {args.role}"]
        lines += [
            f"{one['path']}: the role describes {one.get('described', 0)},"
            f" the server takes {one.get('requested', 0)}"
            for one in answer.body.get("diff") or ()
        ]
        return Shown(answer.body, with_begun("\n".join(lines), answer.body, dry_run=args.dry_run))


class Remove(Command):
    """Remove a member from its ensemble.

    Its held place is freed, and that of a server being built; a running server is not touched.
    Policies that hold with it and not without it are named; look before with --dry-run.
    """

    examples = """
        moorage member remove shop 'db[1]' --dry-run
        moorage member remove shop 'db[1]'
    """
    options = (
        ENSEMBLE,
        Option("member", metavar="MEMBER", help="such as 'db[1]', quoted for the shell"),
        Flag("--keep-resources", "refuse a member whose server is being built"),
        DRY_RUN,
    )

    def act(self, args: argparse.Namespace) -> Shown:
        with self.client() as client:
            ensemble_id = client.ensembles.find(args.ensemble)
            answer = client.ensembles.remove_member(
                ensemble_id,
                args.member,
                keep_resources=args.keep_resources,
                dry_run=args.dry_run,
            )
        removed = answer.value
        done = "would be removed" if removed.dry_run else "removed"
        freed = ", its place is freed" if removed.freed else ""
        lines = [f"{removed.member} {done} from {short(ensemble_id)}{freed}"]
        lines += begun(answer.body.get("breaks"), dry_run=removed.dry_run)
        if removed.further_changes:
            lines.append(f"further changes will be refused: {removed.further_changes}")
        return Shown(answer.body, "\n".join(lines))
