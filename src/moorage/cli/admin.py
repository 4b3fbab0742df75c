"""What the commands of `moorage admin` share: the ledger at hand, and who they are to it.

These commands open the service's database themselves, by the settings of `moorage serve`: what they
write (generations, overages, records as another service has them) no API offers, on purpose, and
they work before a service runs as well as beside several. Everything is written through the store's
own commits, so that running replicas see it at once.
"""

from __future__ import annotations

import os
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from moorage.domain.errors import InvalidDescription
from moorage.usecases.ports import Caller

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterator
    from typing import TextIO

    from moorage.client.placement_wire import PlacementWire
    from moorage.http.wsgi import Application
    from moorage.settings import Settings
    from moorage.store import Ledger
    from moorage.usecases.parts import Parts

CATALOG: Final = "catalog"
OPERATOR: Final = Caller(user_id="operator", project_id="operator", roles=frozenset({"admin"}))
"""Whoever can open the database."""


def declare_database(parser: argparse.ArgumentParser) -> None:
    """Where the ledger is."""
    parser.add_argument(
        "--database",
        metavar="URL",
        help="the ledger's database; default: as `moorage serve` has it (file, MOORAGE_DATABASE)",
    )
    parser.add_argument("--config-file", metavar="FILE", help="read this file and no other")


def _configured(args: argparse.Namespace) -> Settings:
    from moorage import settings

    given = {name: getattr(args, name) for name in ("database", "config_file")}
    effective = settings.read({k: v for k, v in given.items() if v is not None}, os.environ)
    return settings.configure(effective)


@contextmanager
def ledger(args: argparse.Namespace) -> Iterator[Ledger]:
    """The ledger, opened (made, where there is none) and in the end closed.

    Raises:
        BadSetting, InvalidDescription, Busy: it cannot be opened.
    """
    configured = _configured(args)
    if configured.database_directory is not None:
        configured.database_directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    with _opened(configured.database) as store:
        yield store


@contextmanager
def present_ledger(args: argparse.Namespace) -> Iterator[Ledger]:
    """The ledger for those who only look: a mistyped file must not pass for an empty ledger.

    Raises:
        BadSetting, InvalidDescription, Busy: it cannot be opened, or there is none.
    """
    from moorage.store import is_missing

    url = _configured(args).database
    if is_missing(url):
        # Of a server not the URL: it may have a password.
        where = f"at {url}" if url.startswith("sqlite:") else "in the database: it is empty"
        raise InvalidDescription(f"there is no ledger {where}", path="database")
    with _opened(url) as store:
        yield store


@contextmanager
def trial_ledger(args: argparse.Namespace) -> Iterator[Ledger]:
    """The ledger for a dry run: where there is none, an empty one in memory stands for it.

    Raises:
        BadSetting, InvalidDescription, Busy: it cannot be opened.
    """
    from moorage.store import is_missing

    url = _configured(args).database
    with _opened("sqlite://" if is_missing(url) else url) as store:
        yield store


@contextmanager
def _opened(url: str) -> Iterator[Ledger]:
    from moorage.store import open_store

    store = open_store(url)
    try:
        yield store
    finally:
        store.close()


def placement_over(store: Ledger) -> Application:
    """The Placement API over the ledger, in this process, for whoever calls it here."""
    from moorage.app import create_app
    from moorage.settings import configure, read

    mounts = ["placement=/", "native="]
    return create_app(configure(read({"mount": mounts}, {}, files=())), store=store)


def parts_over(store: Ledger, args: argparse.Namespace) -> Parts:
    """What use cases are given, with the limits of the service."""
    from moorage.app import plain_parts

    return plain_parts(_configured(args), store)


@contextmanager
def progress(stderr: TextIO) -> Iterator[Callable[[str, int, int], None]]:
    """A function that shows what is being done, how far, of how many; only on a terminal."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    from moorage.cli.output import console

    target = console(stderr)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    tasks: dict[str, Any] = {}
    with Progress(
        *columns, console=target, transient=True, disable=not target.is_terminal
    ) as drawn:

        def show(what: str, done: int, of: int) -> None:
            if what not in tasks:
                tasks[what] = drawn.add_task(what, total=of)
            drawn.update(tasks[what], completed=done, total=of)

        yield show


@dataclass
class Adder:
    """Adds up what is done, for a bar."""

    tell: Callable[[str, int, int], None]
    what: str
    of: int
    done: int = 0

    def advance(self, more: int) -> None:
        """So much more is done."""
        self.done += more
        self.tell(self.what, self.done, self.of)


def declare_access(parser: argparse.ArgumentParser, word: str) -> None:
    """How to talk to a Placement service over REST."""
    declare_credentials(parser, word)
    add = parser.add_argument
    add("--connections", type=int, default=8, metavar="N", help="requests at once (default 8)")


def declare_credentials(parser: argparse.ArgumentParser, word: str) -> None:
    """How to talk to any service over REST."""
    add = parser.add_argument
    add(
        f"--{word}-token",
        metavar="TOKEN",
        dest="other_token",
        help="its token (default $OS_TOKEN, else noauth2's admin)",
    )
    add("--keystone", action="store_true", help="get tokens by OS_CLOUD or the variables OS_*")
    add("--timeout", type=float, default=60.0, metavar="SECONDS", help="per answer (default 60)")


@contextmanager
def service(url: str, args: argparse.Namespace, kind: str = "placement") -> Iterator[PlacementWire]:
    """A service of that type, as the options of `declare_credentials` say.

    Its URL may be `catalog`: then Keystone's catalog tells it.
    """
    from moorage.client.credentials import GivenToken, Keystone
    from moorage.client.keystone import from_environment, trust
    from moorage.client.placement_wire import Options, PlacementWire

    credentials: Keystone | GivenToken
    if args.keystone:
        credentials = Keystone(os.environ)
    else:
        token = args.other_token or os.environ.get("OS_TOKEN") or "admin"
        login = from_environment(os.environ)
        credentials = GivenToken(token, trust=True if login is None else trust(login))
    connections = max(getattr(args, "connections", 1), 1)
    options = Options(connections=connections, timeout=args.timeout, service=kind)
    if url == CATALOG:
        if not isinstance(credentials, Keystone):
            raise InvalidDescription("the catalog is Keystone's: say --keystone as well")
        url = credentials.endpoint(kind)
    with PlacementWire(url, credentials, options) as wire:
        yield wire
