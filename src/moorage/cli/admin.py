"""Shared parts of `moorage admin`: the ledger, and connections to other services.

These commands open the service's database themselves, by the settings of `moorage serve`. They
write what no API lets a client write: generations, overages, records as another service has them.
They work with no service running, and beside running ones, which see every commit at once.
"""

from __future__ import annotations

import os
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from moorage.cli.output import table
from moorage.cli.parser import CONFIG_DIR, CONFIG_FILE, WrongUsage
from moorage.domain.actors import Actor
from moorage.domain.errors import InvalidDescription
from moorage.domain.words import first_of
from moorage.usecases.ports import Caller

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Mapping, Sequence

    from moorage.client.placement_wire import PlacementWire
    from moorage.client.session import SessionServices
    from moorage.domain.content import Difference
    from moorage.http.wsgi import Application
    from moorage.settings import Settings
    from moorage.store import Ledger
    from moorage.usecases.environment import UseCaseEnvironment
    from moorage.usecases.ports import Clock

CATALOG: Final = "catalog"
OPERATOR: Final = Caller(user_id="operator", project_id="operator", roles=frozenset({"admin"}))
"""The caller in `moorage admin`: access to the database makes an operator."""


def declare_database(parser: argparse.ArgumentParser) -> None:
    """Declare the options that select the ledger."""
    parser.add_argument(
        "--database",
        metavar="URL",
        help="the ledger's database (default: the service's setting `database`)",
    )
    CONFIG_FILE(parser)
    CONFIG_DIR(parser)


def configured(args: argparse.Namespace) -> Settings:
    """The service's settings.

    Raises:
        BadSetting: they cannot be used.
    """
    from moorage import settings

    given = {name: getattr(args, name) for name in ("database", "config_file", "config_dir")}
    effective = settings.read({k: v for k, v in given.items() if v is not None}, os.environ)
    return settings.configure(effective)


@contextmanager
def ledger(args: argparse.Namespace) -> Iterator[Ledger]:
    """Open the ledger, creating it if absent, and close it in the end.

    Raises:
        BadSetting, InvalidDescription, Busy: it cannot be opened.
    """
    found = configured(args)
    if found.database_directory is not None:
        found.database_directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    with _opened(found) as store:
        yield store


@contextmanager
def present_ledger(args: argparse.Namespace) -> Iterator[Ledger]:
    """Open an existing ledger for reading; a file that does not exist is an error.

    Raises:
        BadSetting, InvalidDescription, Busy: it cannot be opened, or there is none.
    """
    from moorage.store import is_missing

    found = configured(args)
    url = found.database
    if is_missing(url):
        # Of a server not the URL: it may have a password.
        where = f"at {url}" if url.startswith("sqlite:") else "in the database: it is empty"
        raise InvalidDescription(f"there is no ledger {where}{_simulations()}", path="database")
    with _opened(found) as store:
        yield store


def _simulations() -> str:
    """How to name the ledger of the simulation that OS_CLOUD selects, if it selects one."""
    from moorage.cli.sim_process import database_url
    from moorage.client import registry

    name = os.environ.get("OS_CLOUD", "")
    found = registry.known(registry.state_directory(os.environ), name)
    if found is None:
        return ""
    return f"; that of simulation {name}: --database {database_url(Path(found.directory))}"


@contextmanager
def trial_ledger(args: argparse.Namespace) -> Iterator[Ledger]:
    """Open the ledger for a dry run: an empty one in memory if there is none.

    Raises:
        BadSetting, InvalidDescription, Busy: it cannot be opened.
    """
    from moorage.store import is_missing

    found = configured(args)
    with _opened(
        replace(found, database="sqlite://") if is_missing(found.database) else found
    ) as store:
        yield store


@contextmanager
def _opened(found: Settings) -> Iterator[Ledger]:
    from moorage.store import open_store

    store = open_store(found.database, clock=_clock(found))
    try:
        yield store.by(Actor(by="moorage admin"))
    finally:
        store.close()


def _clock(found: Settings) -> Clock | None:
    """The clock that is set, or that of the simulation whose ledger it is; None: the database's."""
    from moorage.cli.sim_process import clock_file, database_url
    from moorage.client import registry
    from moorage.store.settable_clock import SettableClock

    if found.clock_file is not None:
        return SettableClock(found.clock_file)
    for one in registry.registrations(registry.state_directory(os.environ)):
        directory = Path(one.directory)
        if database_url(directory) == found.database:
            return SettableClock(clock_file(directory))
    return None


def placement_over(store: Ledger) -> Application:
    """The Placement API over the ledger, as an application in this process."""
    from moorage.app import create_app
    from moorage.settings import configure, read

    mounts = ["placement=/", "native="]
    return create_app(configure(read({"mount": mounts}, {}, files=())), store=store)


def environment_of(store: Ledger, args: argparse.Namespace) -> UseCaseEnvironment:
    """The environment of use cases, with the limits of the service."""
    from moorage.service_environment import plain_environment

    return plain_environment(configured(args), store)


def declare_access(parser: argparse.ArgumentParser, word: str) -> None:
    """Declare the options for reading a Placement service over REST."""
    declare_credentials(parser, word)
    add = parser.add_argument
    add("--connections", type=int, default=8, metavar="N", help="requests at once (default 8)")


def declare_credentials(parser: argparse.ArgumentParser, word: str) -> None:
    """Declare the options for a connection to any service over REST."""
    add = parser.add_argument
    add(
        f"--{word}-token",
        metavar="TOKEN",
        dest="other_token",
        help="its token (default: $OS_TOKEN, else `admin`, as noauth2 takes it)",
    )
    add(
        "--keystone",
        action="store_true",
        help="log in with Keystone, by OS_CLOUD or the OS_ variables",
    )
    add(
        "--timeout",
        type=float,
        default=60.0,
        metavar="SECONDS",
        help="for each answer (default 60)",
    )


def declare_source(parser: argparse.ArgumentParser) -> None:
    """Declare `--from`, the REST endpoint to read, and the options for the connection to it."""
    parser.add_argument(
        "--from",
        required=True,
        metavar="URL",
        dest="source",
        help="endpoint, or `catalog` to look it up (with --keystone)",
    )
    declare_credentials(parser, "from")


@contextmanager
def service(url: str, args: argparse.Namespace, kind: str = "placement") -> Iterator[PlacementWire]:
    """A connection to a service of that type, by the options of `declare_credentials`.

    Its URL may be `catalog`: then Keystone's catalog gives it.
    """
    from moorage.client.credentials import GivenToken, keystone
    from moorage.client.keystone import from_environment, trust
    from moorage.client.placement_wire import Options, PlacementWire

    credentials: SessionServices | GivenToken
    if args.keystone:
        credentials = keystone(os.environ)
    else:
        token = args.other_token or os.environ.get("OS_TOKEN") or "admin"
        login = from_environment(os.environ)
        credentials = GivenToken(token, trust=True if login is None else trust(login))
    connections = max(getattr(args, "connections", 1), 1)
    options = Options(connections=connections, timeout=args.timeout, service=kind)
    if url == CATALOG:
        if isinstance(credentials, GivenToken):
            raise WrongUsage("an endpoint is looked up in Keystone's catalog: add --keystone")
        url = credentials.endpoint(kind)
    with PlacementWire(url, credentials, options) as wire:
        yield wire


SHOWN: Final = 20
"""The most differences that are listed; `-f json` has them all."""


def as_plain(one: Difference) -> dict[str, str]:
    """A difference, for JSON."""
    return {"kind": one.kind, "subject": one.subject, "way": one.way.value, "detail": one.detail}


def side_by_side(body: Mapping[str, Any]) -> Any:  # noqa: ANN401 - something rich
    """The number of records of each kind in the source and in the ledger."""
    rows = [(name, number, body["ledger"][name]) for name, number in body["source"].items()]
    return table(["", "#source", "#ledger"], rows)


def spelled_out(differences: Sequence[Mapping[str, str]]) -> list[str]:
    """The first differences, a line each, and how many more there are."""
    details = [f": {one['detail']}" if one["detail"] else "" for one in differences]
    lines = [
        f"{one['kind']} {one['subject']} {one['way']}{detail}"
        for one, detail in zip(differences, details, strict=True)
    ]
    return first_of(lines, SHOWN)
