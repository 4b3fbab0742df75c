"""`moorage admin sync classes`: lets another Placement move servers with flavors of Moorage."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from moorage.cli.admin import SHOWN, declare_access, service
from moorage.cli.command import Command
from moorage.cli.output import CONFLICT, OK, Shown, stack
from moorage.cli.progress import Adder, progress
from moorage.domain.words import counted, first_of

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Mapping, Sequence

    from moorage.client.stand_in_sync import StandInChanges, StandInPlan
    from moorage.domain.stand_ins import TiedServer


class Classes(Command):
    """Let another Placement move servers whose flavors request virtual classes of Moorage.

    Nova keeps a flavor's extra specs for a server's life, and requests their classes whenever the
    server is migrated, evacuated or unshelved. Each host at the other Placement gets a child
    provider with an inventory of every class that some server's flavor requests. Repeated, the
    command adds what new hosts lack, and removes the classes, and in the end the providers, that no
    server requests any more. What is allocated still stays, and the exit status is 4.

    Nova is only read, as an operator; every cell has to answer. Run it after `moorage admin export`
    has handed the ledger over, or give that the option --nova.
    """

    examples = """
        moorage admin sync classes --nova catalog --to catalog --keystone --dry-run
        moorage admin sync classes --nova catalog --to catalog --keystone
    """

    def arguments(self, parser: argparse.ArgumentParser) -> None:
        add = parser.add_argument
        declare_nova(parser, required=True)
        add(
            "--to",
            required=True,
            metavar="URL",
            help="the other Placement, or `catalog` to look it up (with --keystone)",
        )
        declare_access(parser, "to")
        add("--dry-run", action="store_true", help="read and compare, write nothing")

    def act(self, args: argparse.Namespace) -> Shown:
        from moorage.client.stand_in_sync import StandInChanges, carry_out, plan

        tied = read_tied(args)
        requested = frozenset(name for one in tied for name in one.classes)
        with service(args.to, args) as wire:
            planned = plan(wire, requested, connections=args.connections)
            done = StandInChanges()
            if not args.dry_run:
                with progress(self.app.stderr) as tell:
                    adder = Adder(tell, "writing", len(planned.stand_ins))
                    done = carry_out(
                        wire, planned, connections=args.connections, advance=adder.advance
                    )
        body = {"dry_run": args.dry_run, **plain_servers(tied), **_plain(planned, done)}
        return Shown(body, stack(*_told(body)), CONFLICT if done.kept else OK)


def declare_nova(parser: argparse.ArgumentParser, *, required: bool = False) -> None:
    """Declare `--nova`, whose servers are asked what their flavors request."""
    parser.add_argument(
        "--nova",
        required=required,
        metavar="URL",
        help="Nova's endpoint, or `catalog` to look it up (with --keystone)",
    )


def read_tied(args: argparse.Namespace) -> tuple[TiedServer, ...]:
    """Nova's servers whose flavors request virtual classes.

    Raises:
        SourceFailed, InvalidDescription: Nova does not say.
    """
    from moorage.client.nova_source import SERVICE, over, read_servers
    from moorage.domain.stand_ins import tied_servers

    with service(args.nova, args, SERVICE) as wire:
        return tied_servers(read_servers(over(wire)))


def plain_servers(tied: Sequence[TiedServer]) -> dict[str, Any]:
    """The servers, for JSON."""
    return {
        "servers": [
            {
                "id": one.server.uuid,
                "name": one.server.name,
                "status": one.server.status,
                "project_id": one.server.project_id,
                "classes": sorted(one.classes),
            }
            for one in tied
        ]
    }


def server_lines(servers: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """The servers that request virtual classes, as text."""
    if not servers:
        yield "no server's flavor requests a virtual class of Moorage"
        return
    noun = "server has a flavor" if len(servers) == 1 else "servers have flavors"
    yield f"{len(servers)} {noun} with virtual classes of Moorage:"
    lines = [f"{one['id']} {one['name']}: {', '.join(one['classes'])}" for one in servers]
    yield from (f"  {line}" for line in first_of(lines, SHOWN))


def _plain(planned: StandInPlan, done: StandInChanges) -> dict[str, Any]:
    return {
        "added": list(planned.added),
        "removed": [one for one in planned.removed if one not in done.kept],
        "elsewhere": list(planned.elsewhere),
        "kept": sorted(done.kept),
        "hosts": len(planned.stand_ins),
        "created": done.created,
        "changed": done.changed,
        "deleted": done.deleted,
    }


def _told(body: Mapping[str, Any]) -> Iterator[str]:
    yield from server_lines(body["servers"])
    for name in body["elsewhere"]:
        yield f"{name}: other providers have inventories of it; left alone"
    for name in body["kept"]:
        yield f"{name}: no server requests it, but it is allocated still; repeat this later"
    classes = f"classes: {len(body['added'])} added, {len(body['removed'])} removed"
    if body["dry_run"]:
        hosts = counted(body["hosts"], "host")
        yield f"{classes}; providers of {hosts} would be written; nothing was written"
        return
    ways = ", ".join(f"{body[way]} {way}" for way in ("created", "changed", "deleted"))
    yield f"{classes}; providers: {ways}"
