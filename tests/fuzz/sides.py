"""Both servers in this process, each a WSGI application over an empty SQLite ledger."""

import json
import logging
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote_to_bytes

from falcon.testing import StartResponseMock, create_environ

from moorage.app import create_app
from moorage.http.wsgi import Application
from moorage.settings import configure, read
from moorage.testing.ledger_copy import private_ledger

HEADERS: Final[tuple[str, ...]] = (
    *("allow", "cache-control", "content-type", "last-modified", "location"),
    *("openstack-api-version", "vary", "x-openstack-request-id"),
)
"""The headers clients look at."""


@dataclass(frozen=True)
class Call:
    """One request by an admin."""

    method: str
    path: str
    """With its query, percent-encoded."""
    version: str | None = "1.39"
    body: object = None
    raw: bytes | None = None
    """The bytes to send instead of a body."""
    headers: Mapping[str, str | None] = field(default_factory=dict)
    """More headers, or None for one to be left out."""

    @property
    def bare_path(self) -> str:
        """Without the query."""
        return self.path.partition("?")[0]

    @property
    def data(self) -> bytes:
        """What is sent as body."""
        if self.raw is not None:
            return self.raw
        return b"" if self.body is None else json.dumps(self.body).encode()

    def with_header(self, name: str, value: str | None) -> "Call":
        """The same with another header."""
        return replace(self, headers={**self.headers, name: value})

    def __str__(self) -> str:
        sent = self.data.decode("latin-1")
        more = f" {dict(self.headers)}" if self.headers else ""
        return f"{self.method} {self.path} @{self.version}{more} {sent}".rstrip()


@dataclass(frozen=True)
class Answer:
    """What came back."""

    status: int
    headers: Mapping[str, str]
    """Those of `HEADERS` that were there."""
    raw: bytes

    @property
    def json(self) -> Any:
        """The decoded body; None if it is no JSON."""
        if not self.headers.get("content-type", "").startswith("application/json"):
            return None
        return json.loads(self.raw)


def send(app: Application, call: Call) -> Answer:
    """One request, as a WSGI server would hand it over."""
    path, _, query = call.path.partition("?")
    data = call.data
    sent = {
        "x-auth-token": "admin",
        "openstack-api-version": call.version and f"placement {call.version}",
        "content-type": "application/json" if data else None,
        **call.headers,
    }
    headers = {name: value for name, value in sent.items() if value is not None}
    environ = create_environ(
        query_string=query, method=call.method, headers=headers, body=data, host="placement.test"
    )
    environ["PATH_INFO"] = unquote_to_bytes(path).decode("latin-1")
    started = StartResponseMock()
    chunks = app(environ, started)
    raw = b"".join(chunks)
    closing = getattr(chunks, "close", None)
    if closing is not None:
        closing()
    found = {name.lower(): value for name, value in started.headers or ()}
    kept = {name: found[name] for name in HEADERS if name in found}
    return Answer(int(str(started.status).split(maxsplit=1)[0]), kept, raw)


@contextmanager
def ours(**given: str) -> Iterator[Application]:
    """Moorage with Placement at the root and these settings, over a new ledger in memory."""
    store = private_ledger()
    settings = configure(read({"mount": ["placement=/"], **given}, {}, ()))
    try:
        yield create_app(settings, store=store, solver=_no_solver())
    finally:
        store.close()


def _no_solver() -> Any:
    """Placement never asks for one."""
    return None


class Reference:
    """openstack-placement; the database is its process's, so there can be one at a time."""

    def __init__(self, folder: Path) -> None:
        from oslo_config import cfg
        from oslo_policy import opts

        with warnings.catch_warnings(action="ignore"):
            from placement import conf, db_api, deploy

        logging.getLogger("placement").setLevel(logging.CRITICAL)
        logging.getLogger("oslo_policy").setLevel(logging.CRITICAL)
        settings = cfg.ConfigOpts()
        conf.register_opts(settings)
        opts.set_defaults(settings)
        (folder / "placement.conf").write_text(
            "[api]\nauth_strategy = noauth2\n[oslo_policy]\nenforce_new_defaults = false\n"
            "[placement_database]\nsync_on_startup = true\n"
            f"connection = sqlite:///{folder}/placement.db?check_same_thread=false\n"
        )
        settings([], default_config_files=[str(folder / "placement.conf")])
        db_api.configure(settings)
        self.app: Application = deploy.loadapp(settings)
        self._settings = settings
        self._engine = db_api.get_placement_engine()

    def bound_candidates(self, most: int, strategy: str = "breadth-first") -> None:
        """Generate that many candidates at most, or any number (-1)."""
        name = "allocation_candidates_generation_strategy"
        self._settings.set_override("max_allocation_candidates", most, "placement")
        self._settings.set_override(name, strategy, "placement")

    def empty(self) -> None:
        """Back to the standard classes and traits."""
        with self._engine.begin() as connection:
            for table in _tables():
                connection.exec_driver_sql(f"DELETE FROM {table}")
            for table in ("resource_classes", "traits"):
                connection.exec_driver_sql(f"DELETE FROM {table} WHERE name LIKE 'CUSTOM%'")

    def close(self) -> None:
        """Let go of the database."""
        self._engine.dispose()


def _tables() -> list[str]:
    from placement.db.sqlalchemy.models import BASE

    known = [str(table.name) for table in reversed(BASE.metadata.sorted_tables)]
    return [name for name in known if name not in {"resource_classes", "traits"}]
