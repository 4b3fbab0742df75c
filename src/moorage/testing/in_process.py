"""The whole application in this process, and the real client on it: no socket, no child.

What a plug-in's tests, or a script that wants to try something, need to talk to a ledger of their
own in one line. The kernel, authentication and every dialect are the real ones.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

import httpx

from moorage.app import create_app
from moorage.client.discovery import OPERATOR_TOKEN, Access
from moorage.client.fleet_body import body
from moorage.client.fleet_file import read_fleet
from moorage.client.moorage import connect
from moorage.domain.fleet_expansion import expand
from moorage.domain.fleet_parts import parts
from moorage.settings import configure, read
from moorage.store import open_store
from moorage.testing.ledger_copy import private_ledger

if TYPE_CHECKING:
    from collections.abc import Iterator

    from moorage.client.moorage import Moorage
    from moorage.http.wsgi import Application
    from moorage.usecases.ports import Clock

ENDPOINT: Final = "http://moorage.invalid"
"""Never looked up: calls go straight to the application."""
OPERATOR: Final = Access(ENDPOINT, OPERATOR_TOKEN)


@contextmanager
def app(
    database: str | None = None, *, clock: Clock | None = None, fleet: str = ""
) -> Iterator[Application]:
    """The WSGI application over a ledger; by default a private one that is gone afterwards.

    Args:
        database: the URL of a ledger that is kept.
        clock: as of `open_store`.
        fleet: the text of a fleet file that a private ledger begins with; empty: no hosts.
    """
    settings = configure(read({"database": database or "sqlite://"}, {}, files=()))
    store = private_ledger(clock, fleet) if database is None else open_store(database, clock=clock)
    try:
        yield create_app(settings, store=store, clock=clock)
    finally:
        store.close()


def tenant(project: str, role: str = "member") -> Access:
    """How a user of a project reaches the application."""
    return Access(ENDPOINT, f"{project}-user:{project}", (role,))


@contextmanager
def client(application: Application, access: Access = OPERATOR) -> Iterator[Moorage]:
    """A client that calls the application directly, by default as its operator."""
    with connect(access, through=httpx.WSGITransport(application)) as found:
        yield found


def load(operator: Moorage, fleet: str) -> None:
    """Load the text of a fleet file."""
    for part in parts(expand(read_fleet(fleet))):
        operator.fleet.load(body(part))
