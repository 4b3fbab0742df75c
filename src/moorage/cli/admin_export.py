"""`moorage admin export|replay`: exports the ledger as Placement API requests."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from moorage.cli.admin import (
    as_plain,
    declare_access,
    declare_database,
    present_ledger,
    service,
    spelled_out,
)
from moorage.cli.admin_sync_classes import declare_nova, plain_servers, read_tied, server_lines
from moorage.cli.command import Command
from moorage.cli.files import Unreadable, Unwritable, reading
from moorage.cli.output import CONFLICT, OK, Shown, stack
from moorage.cli.parser import WrongUsage
from moorage.cli.progress import Adder, progress
from moorage.domain.words import counted

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterator, Sequence

    from moorage.client.placement_wire import PlacementWire
    from moorage.domain.content import Content
    from moorage.domain.replay import Request


class Export(Command):
    """Write the ledger back as requests of the Placement API.

    One JSON object a line: method, path, microversion and body, in an order in which an empty
    Placement service accepts them. With --to they are sent to such a service, and its content is
    then compared with the ledger; only generations, which a service counts itself, may differ.
    Overfull inventories are sent as they are. Ensembles, holds and topology are not exported:
    Placement has no requests for them.

    With --nova the servers are listed whose flavors request virtual classes of Moorage, and the
    other service is made able to move them, as `moorage admin sync classes` does later.
    """

    examples = """
        moorage admin export --output cloud.jsonl
        moorage admin export --to http://127.0.0.1:8778 --nova catalog --keystone
    """

    def arguments(self, parser: argparse.ArgumentParser) -> None:
        to = parser.add_mutually_exclusive_group()
        to.add_argument("--output", metavar="FILE", help="default: standard output")
        to.add_argument("--to", metavar="URL", help="an empty Placement service")
        declare_nova(parser)
        declare_access(parser, "to")
        declare_database(parser)

    def act(self, args: argparse.Namespace) -> Shown | None:
        from moorage.domain.replay import requests
        from moorage.domain.stand_ins import with_stand_ins
        from moorage.usecases.ledger.content import ledger_content

        with present_ledger(args) as store:
            content = ledger_content(store)
        tied = read_tied(args) if args.nova else ()
        classes = frozenset(name for one in tied for name in one.classes)
        every = list(requests(with_stand_ins(content, classes)))
        named = plain_servers(tied) if args.nova else {}
        lines = [*server_lines(named["servers"])] if args.nova else [UNKNOWN]
        if args.to:
            with progress(self.app.stderr) as tell, service(args.to, args) as wire:
                found = _send(wire, every, content, tell)
            return _sent({**found, **named}, lines)
        if args.output is None:
            self.app.stderr.writelines(f"{one}\n" for one in lines)
            _write(every, sys.stdout.buffer.write)
            sys.stdout.flush()
            return None
        path = Path(args.output)
        fresh = path.with_name(f".{path.name}.new")
        try:
            with fresh.open("wb") as file:
                _write(every, file.write)
            fresh.replace(path)
        except OSError as error:
            raise Unwritable(f"{path}: {error.strerror or error}") from error
        body = {"file": args.output, "requests": len(every), **named}
        wrote = f"wrote {counted(len(every), 'request')} to {args.output}"
        return Shown(body, stack(*lines, wrote))


def _write(every: Sequence[Request], write: Callable[[bytes], object]) -> None:
    from moorage.client.request_replay import line

    for one in every:
        write(line(one))


UNKNOWN: Final = (
    "servers whose flavors request virtual classes of Moorage cannot be moved there: --nova names"
    " them and makes it possible"
)


def _send(
    wire: PlacementWire,
    every: Sequence[Request],
    content: Content,
    tell: Callable[[str, int, int], None],
) -> dict[str, Any]:
    """The number of requests sent, and the differences of the service from the content."""
    from moorage.client.placement_source import read_service
    from moorage.client.request_replay import check_empty, replay
    from moorage.domain.content import as_exported, differences

    check_empty(wire)
    replay(wire, every, advance=Adder(tell, "sending", len(every)).advance)
    found = read_service(wire, advance=tell)
    unlike = list(differences(as_exported(content), as_exported(found)))
    return {"sent": len(every), "differences": [as_plain(one) for one in unlike]}


def _sent(body: dict[str, Any], lines: Sequence[str]) -> Shown:
    unlike = body["differences"]
    verdict = counted(len(unlike), "difference") if unlike else "all equal"
    sent = f"sent {counted(body['sent'], 'request')}; {verdict}"
    text: Any = stack(*lines, *spelled_out(unlike), sent)
    return Shown(body, text, CONFLICT if unlike else OK)


class Replay(Command):
    """Send the requests of a file to a Placement service, one after the other.

    The file is written by `moorage admin export`, or is the record of an audit's repair. Sending
    stops at the first refused request and prints its number; --start continues from a number.
    """

    examples = """
        moorage admin replay cloud.jsonl --to http://127.0.0.1:8778
    """

    def arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("file", metavar="FILE", help="- reads standard input")
        parser.add_argument("--to", metavar="URL", required=True, help="a Placement service")
        parser.add_argument(
            "--start", type=int, default=1, metavar="N", help="the first request to send"
        )
        declare_access(parser, "to")

    def act(self, args: argparse.Namespace) -> Shown:
        from moorage.client.request_replay import replay

        if args.start < 1:
            raise WrongUsage("requests are counted from 1", path="--start")
        with reading(args.file):
            every = list(_read(args.file))
        with progress(self.app.stderr) as tell, service(args.to, args) as wire:
            wire.negotiate()
            adder = Adder(tell, "sending", max(len(every) - args.start + 1, 0))
            sent = replay(wire, every, start=args.start, advance=adder.advance)
        return Shown({"sent": sent}, f"sent {counted(sent, 'request')}")


def _read(name: str) -> Iterator[Request]:
    from moorage.client.request_replay import read_lines

    if name == "-":
        yield from read_lines(sys.stdin.buffer)
        return
    try:
        with Path(name).open("rb") as file:
            yield from read_lines(file)
    except OSError as error:
        raise Unreadable(f"{name}: {error.strerror or error}") from error
