"""`moorage claim create|show|list|set`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from moorage.cli import decision_text
from moorage.cli.columns import columns, pairs
from moorage.cli.command import Command
from moorage.cli.ensemble import newest_decision
from moorage.cli.lease_text import called
from moorage.cli.output import Shown, fields, listing, short
from moorage.cli.parser import ENSEMBLE, Option, Repeated, WrongUsage
from moorage.cli.times import minute
from moorage.client.lookup import UUID, pick
from moorage.domain.errors import WrongState

if TYPE_CHECKING:
    import argparse

    from moorage.client.moorage import Moorage
    from moorage.wire.decisions import Decision

CURRENT = frozenset({"held", "confirmed", "closed"})
"""States in which a decision says where members stand."""


CLAIM = Option("claim", metavar="CLAIM", help="its id, or the beginning")


class Create(Command):
    """Take a member's held place for the server described.

    The server's description is compared with the member's: an equal or narrower one is accepted,
    any other is refused with the differing fields (exit status 4). The output has the header by
    which the server request presents its claim to the scheduler.
    """

    examples = """
        moorage claim create b1d7 'db[0]' --flavor m1.xlarge --image debian --network shop-net
    """
    options = (
        ENSEMBLE,
        Option("member", metavar="MEMBER", help="such as 'db[0]', quoted for the shell"),
        Option("--flavor", help="the server's flavor; a slice, volume or port has none"),
        Option("--image", help="the server's image; a slice, volume or port has none"),
        Repeated("--network", help="the server's network; repeatable"),
        Option("--lifetime", metavar="1h", help="how long the server may take to build"),
        Option(
            "--on-mismatch",
            choices=("refuse", "redecide_member"),
            help="what to do if the server differs (default: refuse)",
        ),
    )

    def act(self, args: argparse.Namespace) -> Shown:
        server: dict[str, Any] = {"flavorRef": args.flavor} if args.flavor else {}
        if args.image:
            server["imageRef"] = args.image
        if args.network:
            server["networks"] = [{"uuid": network} for network in args.network]
        claim: dict[str, Any] = {"member": args.member, "server": server}
        if args.lifetime:
            claim["lifetime"] = args.lifetime
        if args.on_mismatch:
            claim["on_mismatch"] = args.on_mismatch
        with self.client() as client:
            decision = _in_force(client, args)
            answer = client.claims.create(str(decision.id), claim)
            anew = client.claims.redecision(answer.body)
        text = decision_text.claimed(answer.value, decision if anew is None else anew)
        if anew is not None:
            text += f"\n{decision_text.moved(args.member, anew)}"
        return Shown(answer.body, text)


def _in_force(client: Moorage, args: argparse.Namespace) -> Decision:
    """The decision that the ensemble's current places come from.

    Raises:
        WrongState: there is none, or it is over; says why, and how to get places again.
    """
    decisions = client.decisions.all(ensemble_id=client.ensembles.find(args.ensemble)).value
    for decision in decisions:
        if decision.status in CURRENT:
            return client.decisions.show(str(decision.id)).value
    why = "it was never placed"
    remedy = f"; to place it: moorage decision create {args.ensemble} --hold 10m"
    if decisions:
        why = _over(client, decisions[0], args.member)
        remedy = "" if decisions[0].lease_id else remedy
    raise WrongState(f"{args.ensemble} has no place for {args.member}: {why}{remedy}")


def _over(client: Moorage, last: Decision, member: str) -> str:
    """Why the places of an ensemble's last decision are no longer available."""
    if last.lease_id is None:
        name = f"decision {short(str(last.id))}"
        if last.status == "expired":
            return f"{name} expired at {minute(last.expires_at)}"
        return f"{name} is {last.status}"
    lease = client.leases.show(last.lease_id).value
    if lease.status == "closed":
        return f"lease {called(lease)} has ended"
    return (
        f"lease {called(lease)} expired at {minute(lease.expires_at)} and its unclaimed places were"
        f" freed; `moorage lease grow {called(lease)} --role {member.partition('[')[0]}=N`"
        " adds places"
    )


def find(client: Moorage, text: str) -> str:
    """The id of a claim for an id's beginning, among the claims of current decisions."""
    if UUID.fullmatch(text):
        return text
    claims = [
        {"id": claim.id}
        for decision in client.decisions.all().value
        for claim in client.claims.all(str(decision.id)).value
        if claim.id.startswith(text)
    ]
    return pick("claim", text, claims)


class Show(Command):
    """Show a claim."""

    options = (CLAIM,)

    def act(self, args: argparse.Namespace) -> Shown:
        with self.client() as client:
            answer = client.claims.show(find(client, args.claim))
        one = answer.value
        headers = one.present_as.header.items() if one.present_as else ()
        text = fields(
            [
                *pairs(one, "id member status server=server_id reason decision=decision_id"),
                *pairs(one, "expires=expires_at:moment?"),
                ("present as", ", ".join(f"{name}: {value}" for name, value in headers) or None),
            ]
        )
        return Shown(answer.body, text)


class List(Command):
    """List the claims of an ensemble's newest decision, also when its hold has lapsed."""

    options = (ENSEMBLE,)

    def act(self, args: argparse.Namespace) -> Shown:
        with self.client() as client:
            decision = newest_decision(client, client.ensembles.find(args.ensemble))
            answer = client.claims.all(str(decision.id))
        cells = columns("id:short member status server=server_id:or_dash expires=expires_at:clock")
        return Shown(answer.body, listing(cells, answer.value))


class Set(Command):
    """Report the outcome of a claimed server.

    Active: its hold becomes the server's allocation, in one transaction. Failed: the place
    is released, or with --redecide another one is found for the member. Ended: a slice, volume or
    port is gone, and its allocation with it; a server's ends when Nova deletes the server.
    """

    examples = """
        moorage claim set c2f0 --active --server 8d0a7a8e-5ad0-4c5e-9b0e-4f3d6a1d2c3b
        moorage claim set c2f0 --failed --redecide
        moorage claim set c2f0 --ended
    """

    def arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("claim", metavar="CLAIM", help="its id, or the beginning")
        what = parser.add_mutually_exclusive_group(required=True)
        what.add_argument("--active", action="store_true", help="it is running; needs --server")
        what.add_argument("--failed", action="store_true", help="it could not be built")
        what.add_argument("--ended", action="store_true", help="it is no server, and gone")
        parser.add_argument(
            "--server", metavar="UUID", help="with --active: its id; also a volume's or port's"
        )
        parser.add_argument(
            "--redecide", action="store_true", help="with --failed: find another place"
        )
        parser.add_argument("--reason", metavar="TEXT", help="with --failed: why")

    def act(self, args: argparse.Namespace) -> Shown:
        if args.active != bool(args.server):
            raise WrongUsage("goes with --active only, which needs it", path="--server")
        change: dict[str, Any] = {"status": _status(args)}
        if args.server:
            change["server_id"] = args.server
        if args.reason:
            change["reason"] = args.reason
        if args.redecide:
            change["on_failure"] = "redecide"
        with self.client() as client:
            answer = client.claims.set(find(client, args.claim), change)
            anew = client.claims.redecision(answer.body)
        one = answer.value
        text = f"claim {short(one.id)}  {one.member}  {one.status}"
        text += f"  server {one.server_id}" if one.server_id else ""
        if anew is not None:
            text += f"\n{decision_text.moved(one.member, anew)}"
        return Shown(answer.body, text)


def _status(args: argparse.Namespace) -> str:
    return next(one for one in ("active", "failed", "ended") if getattr(args, one))
