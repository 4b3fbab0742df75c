"""`moorage server provider set|show|list|delete`, `moorage server provider slice list|set`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from moorage.cli.columns import columns, pairs
from moorage.cli.command import Command
from moorage.cli.flavor import amount
from moorage.cli.output import Shown, fields, listing, short
from moorage.cli.parser import ALL_PROJECTS, DRY_RUN, Flag, Option, Repeated, WrongUsage
from moorage.client.lookup import UUID, pick

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping

    from rich.console import RenderableType

    from moorage.wire.server_providers import ServerProvider

SERVER = Option(
    "server", metavar="SERVER", help="its UUID or the id in the list, or the beginning of either"
)


class Set(Command):
    """Say what a server offers to slices, and to whom.

    This replaces what it has offered before; the first time it takes the whole UUID. Resource
    classes and traits are custom ones, which are created, or for traits also standard ones. Only
    projects that are named, or all with --public, may place slices there besides the server's own.
    """

    examples = """
        moorage server provider set 5c0f... CUSTOM_SESSION=200
        moorage server provider set 5c0f... CUSTOM_SESSION=200 CUSTOM_VNIC_SLICE=8 \\
            --trait CUSTOM_TENANT_PROXY --share-with nfv --share-with voice
    """
    options = (
        SERVER,
        Option("resources", nargs="+", type=amount, metavar="CLASS=AMOUNT"),
        Repeated("--trait", metavar="TRAIT", help="repeatable"),
        Repeated("--share-with", metavar="PROJECT", help="its id; repeatable"),
        Flag("--public", "share it with every project"),
        DRY_RUN,
    )

    def act(self, args: argparse.Namespace) -> Shown:
        if args.public and args.share_with:
            raise WrongUsage("--public shares with every project: leave --share-with out")
        shared = "everyone" if args.public else args.share_with or "nobody"
        with self.client() as client:
            answer = client.server_providers.put(
                client.server_providers.find(args.server),
                dict(args.resources),
                traits=args.trait,
                shared_with=shared,
                dry_run=args.dry_run,
            )
        return Shown(answer.body, _described(answer.value))


class Show(Command):
    """Show what a server of the project offers."""

    examples = "moorage server provider show 5c0f..."
    options = (SERVER,)

    def act(self, args: argparse.Namespace) -> Shown:
        with self.client() as client:
            answer = client.server_providers.show(client.server_providers.find(args.server))
        return Shown(answer.body, _described(answer.value))


class List(Command):
    """List what servers offer: the project's own, and those shared with it.

    Of another project's the server is not shown, and totals are rounded down.
    """

    examples = "moorage server provider list"
    options = (ALL_PROJECTS,)

    def act(self, args: argparse.Namespace) -> Shown:
        with self.client() as client:
            answer = client.server_providers.all(all_projects=args.all_projects)
        cells = {
            **columns("id:short"),
            "server": lambda one: "-" if one.server_id is None else short(one.server_id),
            **columns("status"),
            "resources": _resources,
            **columns("traits offered_by"),
            "shared with": _sharing,
        }
        return Shown(answer.body, listing(cells, answer.value))


class Delete(Command):
    """Let a server offer nothing any more.

    While slices are there it is refused; with --force they end, and their owners get events.
    """

    examples = """
        moorage server provider delete 5c0f...
        moorage server provider delete 5c0f... --force
    """
    options = (SERVER, Flag("--force", "end the slices that are there"))

    def act(self, args: argparse.Namespace) -> Shown:
        with self.client() as client:
            server = client.server_providers.find(args.server)
            client.server_providers.delete(server, force=args.force)
        return Shown({"deleted": server}, f"server {short(server)}  offers nothing any more")


class SliceList(Command):
    """List the slices on a server of the project that are building or active.

    Those of other projects have the project only where the server is shared with it by its id.
    """

    examples = "moorage server provider slice list 5c0f..."
    options = (SERVER,)

    def act(self, args: argparse.Namespace) -> Shown:
        with self.client() as client:
            answer = client.server_providers.slices(client.server_providers.find(args.server))
        cells = {
            **columns("id:short status slice=slice_id:or_dash"),
            "resources": lambda one: _amounts(one.resources),
            **columns("project=project_id:or_dash"),
        }
        return Shown(answer.body, listing(cells, answer.value))


class SliceSet(Command):
    """Report what became of a claimed slice, as the owner of its server.

    Active: it is there, and its place becomes its allocation. Failed: it could not be made. Ended:
    it is gone. Its own project may report the same by `moorage claim set`.
    """

    examples = """
        moorage server provider slice set 5c0f... c2f0 --active --slice 8d0a7a8e-5ad0-...
        moorage server provider slice set 5c0f... c2f0 --failed --reason 'no proxy answers'
        moorage server provider slice set 5c0f... c2f0 --ended
    """

    def arguments(self, parser: argparse.ArgumentParser) -> None:
        SERVER(parser)
        parser.add_argument("id", metavar="ID", help="its id in the list, or the beginning")
        what = parser.add_mutually_exclusive_group(required=True)
        for status, means in (
            ("active", "it is there; needs --slice"),
            ("failed", "it could not be made"),
            ("ended", "it is gone"),
        ):
            what.add_argument(
                f"--{status}", action="store_const", const=status, dest="status", help=means
            )
        parser.add_argument("--slice", metavar="UUID", help="its id, such as its port's")
        parser.add_argument("--reason", metavar="TEXT", help="with --failed: why")

    def act(self, args: argparse.Namespace) -> Shown:
        said = {"status": args.status, "slice_id": args.slice, "reason": args.reason}
        change = {name: value for name, value in said.items() if value is not None}
        with self.client() as client:
            id_, server = args.id, client.server_providers.find(args.server)
            if not UUID.fullmatch(id_):
                every = client.server_providers.slices(server).value
                id_ = pick("slice", id_, [{"id": one.id} for one in every])
            answer = client.server_providers.report(server, id_, change)
        one = answer.value
        text = f"slice {short(one.id)}  {_amounts(one.resources)}  {one.status}"
        return Shown(answer.body, text + (f"  {one.slice_id}" if one.slice_id else ""))


def _described(one: ServerProvider) -> RenderableType:
    return fields(
        [
            *pairs(one, "id server=server_id project=project_id status host"),
            ("resources", _resources(one)),
            *pairs(one, "traits?"),
            ("shared with", _sharing(one)),
            *pairs(one, "created=created_at:moment"),
        ]
    )


def _resources(one: ServerProvider) -> str:
    return " ".join(
        f"{name}={found.total}" + (f" ({found.used} used)" if found.used else "")
        for name, found in one.resources.items()
    )


def _amounts(resources: Mapping[str, int]) -> str:
    return " ".join(f"{name}={amount}" for name, amount in resources.items())


def _sharing(one: ServerProvider) -> str:
    if one.shared_with is None:
        return "-"
    return one.shared_with if isinstance(one.shared_with, str) else " ".join(one.shared_with)
