"""The native API in this process, over a real ledger: for tests and for trying things out."""

from __future__ import annotations

import json
import time
import uuid
from dataclasses import dataclass, field
from functools import cached_property
from random import Random
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlencode

from falcon.testing import TestClient

from moorage.api.native import create_app
from moorage.domain.period import parse_instant
from moorage.service_environment import with_strategies
from moorage.solver.cpsat import CpSat
from moorage.solver.portfolio import Portfolio
from moorage.store import open_store
from moorage.testing.ledger_copy import OPERATOR, fill, private_ledger
from moorage.usecases.ports import Caller
from moorage.usecases.shared.environment import Environment
from moorage.usecases.shared.limits import Limits

if TYPE_CHECKING:
    from collections.abc import Mapping

    from falcon import App
    from falcon.testing import Result

    from moorage.domain.period import Duration, Instant
    from moorage.store.ledger import Ledger

__all__ = [
    "NINE",
    "OPERATOR",
    "OTHER",
    "READER",
    "TENANT",
    "HandClock",
    "SeededIds",
    "Service",
]

TENANT: Final = Caller("ann", "project-a", frozenset({"member"}))
OTHER: Final = Caller("bob", "project-b", frozenset({"member"}))
READER: Final = Caller("rae", "project-a", frozenset({"reader"}))
NINE: Final = parse_instant("2026-11-21T09:00:00Z")
"""Where tests begin."""


@dataclass
class HandClock:
    """A clock that somebody sets."""

    instant: Instant = NINE

    def now(self) -> Instant:
        """The instant it shows."""
        return self.instant

    def set(self, instant: Instant) -> None:
        """Show another instant."""
        self.instant = instant

    def pass_by(self, duration: Duration) -> None:
        """Move on."""
        self.instant += duration


@dataclass
class SeededIds:
    """Identifiers that repeat with the seed."""

    random: Random = field(default_factory=lambda: Random(0))  # noqa: S311 - repeatable on purpose

    def uuid(self) -> str:
        """See `Ids`."""
        return str(uuid.UUID(int=self.random.getrandbits(128), version=4))

    def salt(self) -> str:
        """See `Ids`."""
        return f"{self.random.getrandbits(128):032x}"


class Service:
    """The application with a clock one sets, and a client that calls as anyone."""

    def __init__(
        self, fleet: str = "", *, limits: Limits | None = None, database: str | None = None
    ) -> None:
        """A service over a database; by default over a private one that is gone afterwards."""
        self.clock = HandClock()
        self.store: Ledger
        if database is None:
            self.store = private_ledger(self.clock, fleet)
        else:
            self.store = open_store(database, clock=self.clock)
            if fleet:
                fill(self.store, fleet)
        self.ids = SeededIds()
        solver = Portfolio(CpSat())
        self.env = with_strategies(
            Environment(
                self.store, solver, self.ids, limits or Limits(), time.monotonic, time.sleep
            )
        )

    def close(self) -> None:
        """Close the ledger."""
        self.store.close()

    @cached_property
    def app(self) -> App[Any, Any]:
        """The application; made when first asked for, as half of its users only use the ledger."""
        return create_app(self.env, clock=self.clock)

    @cached_property
    def _client(self) -> TestClient:
        return TestClient(self.app)

    def call(  # noqa: PLR0913 - what an HTTP request is made of
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        caller: Caller | None = TENANT,
        headers: Mapping[str, str] | None = None,
        raw: bytes | None = None,
        query: Mapping[str, object] | None = None,
    ) -> Result:
        """One request; `raw` sends bytes as they are."""
        data = json.dumps(body).encode() if raw is None and body is not None else raw
        extras: dict[str, Any] = {"moorage.request_id": "req-in-process"}
        if caller is not None:
            extras["moorage.caller"] = caller
        return self._client.simulate_request(
            method,
            path,
            root_path="/v1",
            body=data,
            headers=dict(headers or {}),
            query_string=urlencode(query or {}),
            extras=extras,
        )
