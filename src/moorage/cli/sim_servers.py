"""`moorage sim move|load`: a member's server that moves, and servers of others that arrive."""

from __future__ import annotations

import argparse
import uuid
from typing import TYPE_CHECKING, Any, Final

from moorage.cli.command import Command
from moorage.cli.output import CONFLICT, OK, Shown
from moorage.cli.parser import Flag, Option, Repeated, WrongUsage
from moorage.cli.sim import SIMULATION, running
from moorage.client.discovery import Access
from moorage.client.errors import Ambiguous, Conflict, Missing
from moorage.domain.errors import Conflict as Refused
from moorage.domain.words import counted, natural

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from moorage.client.fleets import Placement
    from moorage.client.moorage import Moorage
    from moorage.wire.members import Member

_OTHERS: Final = "sim-load"
"""The project of the load."""
_LOAD: Final = uuid.UUID("6d6f6f72-6167-4000-8000-6c6f61640000")
"""Ids of consumers of the load are made with it, so that they are found again."""


class MoveRefused(Refused):
    """Policies forbid the move of a member's server."""


class Move(Command):
    """Move a member's server to another host of a simulation, as a live migration of Nova's does.

    Its allocations go to a migration, then the server gets the same on the other host. A move that
    policies of its ensemble refuse is refused, with the reason; one that they only report is made.
    """

    examples = """
        moorage sim move --member 'db[1]' --next-to 'db[0]'
        moorage sim move --member 'db[1]' --host h3 --ensemble shop
    """

    def arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--member", required=True, metavar="MEMBER", help="such as db[1]")
        to = parser.add_mutually_exclusive_group(required=True)
        to.add_argument("--host", metavar="NAME", help="where it moves to, by name or UUID")
        to.add_argument("--next-to", metavar="MEMBER", help="to the host of this member")
        parser.add_argument(
            "--ensemble",
            metavar="ENSEMBLE",
            help="the members' ensemble (default: the one that has such a member)",
        )
        SIMULATION(parser)

    def act(self, args: argparse.Namespace) -> Shown:
        from moorage.client.moorage import connect

        found = running(args.name)
        with connect(Access(found.endpoint, found.token)) as client:
            ensemble = (
                client.ensembles.find(args.ensemble)
                if args.ensemble
                else _ensemble_with(client, args.member)
            )
            member = _placed(client, ensemble, args.member)
            if member.server_id is None:
                raise MoveRefused(
                    f"{member.name} has no server yet: claim its place, and report its server with"
                    " moorage claim set CLAIM --active --server UUID"
                )
            wanted = args.host or str(_placed(client, ensemble, args.next_to).host)
            source, target = _host(client, str(member.host)), _host(client, wanted)
            if source["uuid"] == target["uuid"]:
                raise MoveRefused(f"{member.name} is on {target['name']} already")
            reason = client.hosts.refused_move(target["uuid"], member.server_id)
            if reason is not None:
                raise MoveRefused(f"{member.name} may not move to {target['name']}: {reason}")
            there = dict(_mapped(client.placement, member.allocations or {}, source, target))
            client.placement.move(member.server_id, there, str(uuid.uuid4()))
        body = {
            "move": {
                "ensemble": ensemble,
                "member": member.name,
                "server": member.server_id,
                "from": source["name"],
                "to": target["name"],
            }
        }
        return Shown(body, f"{member.name} moved from {source['name']} to {target['name']}")


def _ensemble_with(client: Moorage, member: str) -> str:
    """The id of the one ensemble that has such a member with a place.

    Raises:
        Missing, Ambiguous: none has, or several do.
    """
    role = member.partition("[")[0]
    fitting = []
    for one in client.ensembles.each(all_projects=True):
        if any(each.name == role for each in one.members):
            members = client.ensembles.each_member(one.id)
            if any(each.name == member and each.domains for each in members):
                fitting.append(one.id)
    if not fitting:
        raise Missing("placed member called", member)
    if len(fitting) > 1:
        raise Ambiguous("ensemble with", member, tuple(fitting))
    return fitting[0]


def _placed(client: Moorage, ensemble: str, name: str) -> Member:
    """A member that has a place. Raises Missing: it has none."""
    found = client.ensembles.member(ensemble, name).value
    if not found.host:
        raise Missing("placed member called", name)
    return found


def _host(client: Moorage, wanted: str) -> Mapping[str, Any]:
    """A host by name or UUID. Raises Missing."""
    every: list[Mapping[str, Any]] = client.hosts.all()
    for one in every:
        if wanted in {one["name"], one["uuid"]} and not one["shares"]:
            return one
    raise Missing("host called", wanted)


def _mapped(
    placement: Placement,
    allocations: Mapping[str, Mapping[str, int]],
    source: Mapping[str, Any],
    target: Mapping[str, Any],
) -> Iterator[tuple[str, Mapping[str, int]]]:
    """The allocations on the providers of the target that are called like those of the source.

    What is on providers that hosts share stays there.

    Raises:
        Missing: the target has no such provider.
    """
    before = {one.uuid: one.name for one in placement.in_tree(source["uuid"])}
    after = {one.name: one.uuid for one in placement.in_tree(target["uuid"])}
    for provider, amounts in allocations.items():
        if provider not in before:
            yield provider, amounts
            continue
        name = before[provider].replace(source["name"], target["name"], 1)
        if name not in after:
            raise Missing(f"provider in host {target['name']} called", name)
        yield after[name], amounts


def _amount(text: str) -> tuple[str, int]:
    """Read `VCPU=9`."""
    name, _, number = text.partition("=")
    if not (name and number.isascii() and number.isdigit() and int(number[:9])):
        raise argparse.ArgumentTypeError(f"write CLASS=N, such as VCPU=9, not {text}")
    return name, int(number)


class Load(Command):
    """Let servers of others arrive on hosts of a simulation: one on each host that is named.

    Exits 4 if some host has no room for its one; those on others are there.
    """

    examples = """
        moorage sim load --fill r4 --vcpu 9
        moorage sim load --fill h3 --amount VCPU=4 --amount MEMORY_MB=8192
        moorage sim load --clear
    """
    options = (
        Option("--fill", metavar="NAME", help="a host, or a domain such as a rack: all its hosts"),
        Option("--vcpu", type=int, metavar="N", help="as --amount VCPU=N"),
        Repeated(
            "--amount", type=_amount, metavar="CLASS=N", dest="amounts", help="on each; repeatable"
        ),
        Flag("--clear", "delete all that `sim load` has brought"),
        SIMULATION,
    )

    def act(self, args: argparse.Namespace) -> Shown:
        from moorage.client.moorage import connect

        amounts = dict(args.amounts) | ({"VCPU": args.vcpu} if args.vcpu else {})
        if args.clear == bool(args.fill or amounts) or (args.fill and not amounts):
            raise WrongUsage("say --fill NAME with --vcpu or --amount, or --clear")
        found = running(args.name)
        with connect(Access(found.endpoint, found.token)) as client:
            hosts = [one for one in client.hosts.all() if not one["shares"]]
            hosts.sort(key=lambda one: natural(one["name"]))
            if args.clear:
                gone = sum(_clear(client.placement, one["uuid"]) for one in hosts)
                return Shown({"deleted": gone}, f"deleted {counted(gone, 'server')} of others")
            chosen = [
                one
                for one in hosts
                if args.fill in {one["name"], one["uuid"], *one["domains"].values()}
            ]
            if not chosen:
                raise Missing("host or domain called", args.fill)
            full = [one["name"] for one in chosen if not _add(client.placement, one, amounts)]
        done = [one["name"] for one in chosen if one["name"] not in full]
        said = " ".join(f"{name}={amount}" for name, amount in amounts.items())
        lines = [f"{said} on {', '.join(done)}"] if done else []
        lines += [f"no room for {said} on {', '.join(full)}"] if full else []
        body = {"load": {"amounts": amounts, "hosts": done, "full": full}}
        return Shown(body, "\n".join(lines), CONFLICT if full else OK)


def _consumers(placement: Placement, host: str) -> Iterator[tuple[str, bool]]:
    """The consumers of the load of a host, without end: each, and whether it is there."""
    number = 0
    while True:
        consumer = str(uuid.uuid5(_LOAD, f"{host}/{number}"))
        yield consumer, bool(placement.allocations(consumer).get("allocations"))
        number += 1


def _clear(placement: Placement, host: str) -> int:
    """Delete the load of a host; return how many consumers it was."""
    gone = 0
    for consumer, there in _consumers(placement, host):
        if not there:
            break
        placement.delete_allocations(consumer)
        gone += 1
    return gone


def _add(placement: Placement, host: Mapping[str, Any], amounts: Mapping[str, int]) -> bool:
    """Add a consumer to a host; False: there is no room for it.

    Raises:
        Missing: the host has not got one of the classes.
    """
    providers: dict[str, dict[str, int]] = {}
    tree = [one.uuid for one in placement.in_tree(host["uuid"])]
    tree.sort(key=lambda one: one != host["uuid"])
    stocks: Sequence[tuple[str, Mapping[str, Any]]] = [
        (one, placement.inventories(one)) for one in tree
    ]
    for name, amount in amounts.items():
        having = next((one for one, stock in stocks if name in stock), None)
        if having is None:
            raise Missing(f"inventory in host {host['name']} of class", name)
        providers.setdefault(having, {})[name] = amount
    consumer = next(one for one, there in _consumers(placement, host["uuid"]) if not there)
    try:
        placement.allocate(consumer, providers, project=_OTHERS)
    except Conflict:
        return False
    return True
