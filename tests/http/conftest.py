"""A client that calls a WSGI application in this process, and a dialect that shows what it got."""

import io
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from moorage.app import create_app
from moorage.http.auth import noauth2
from moorage.http.kernel import Kernel, Mount, RequestLimits
from moorage.http.system_routes import SystemRoutes
from moorage.http.wsgi import Application, Environ, Headers, StartResponse
from moorage.settings import configure, read
from moorage.testing.ledger_copy import private_ledger


@dataclass
class Reply:
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass
class Client:
    """Sends one request; `environ` adds or replaces keys."""

    app: Application
    seen: list[Environ] = field(default_factory=list)

    def __call__(
        self,
        method: str,
        path: str,
        *,
        token: str | None = "admin",
        body: bytes = b"",
        environ: Mapping[str, Any] | None = None,
    ) -> Reply:
        path, _, query = path.partition("?")
        request: Environ = {
            "REQUEST_METHOD": method,
            "SCRIPT_NAME": "",
            "PATH_INFO": path.encode().decode("latin-1"),
            "QUERY_STRING": query,
            "SERVER_PROTOCOL": "HTTP/1.1",
            "SERVER_NAME": "moorage.example",
            "SERVER_PORT": "80",
            "wsgi.url_scheme": "http",
            "wsgi.input": io.BytesIO(body),
            "wsgi.errors": io.StringIO(),
            "CONTENT_LENGTH": str(len(body)) if body else "",
        }
        if token is not None:
            request["HTTP_X_AUTH_TOKEN"] = token
        request.update(environ or {})
        started: list[tuple[str, Headers]] = []

        def start(status: str, headers: Headers, exc_info: object = None, /) -> Any:
            started.append((status, headers))

        chunks = self.app(request, start)
        try:
            whole = b"".join(chunks)
        finally:
            close = getattr(chunks, "close", None)
            if close is not None:
                close()
        [(status, headers)] = started
        return Reply(int(status[:3]), {name.lower(): value for name, value in headers}, whole)


def show(environ: Environ, start_response: StartResponse) -> list[bytes]:
    """The dialect of these tests: it answers with what it was given."""
    caller = environ.get("moorage.caller")
    document = {
        "script": environ["SCRIPT_NAME"],
        "path": environ["PATH_INFO"],
        "body": environ["wsgi.input"].read().decode(),
        "length": environ.get("CONTENT_LENGTH"),
        "request_id": environ["moorage.request_id"],
        "global": environ.get("moorage.global_request_id"),
        "user": caller.user_id if caller else None,
        "project": caller.project_id if caller else None,
        "roles": sorted(caller.roles) if caller else None,
    }
    start_response("200 OK", [("content-type", "application/json")])
    return [json.dumps(document).encode()]


MakeClient = Callable[..., Client]


@pytest.fixture
def client() -> MakeClient:
    """Make a client of a kernel: `client({"/v1": app}, bounds=…, checks=…)`."""

    def make(
        apps: Mapping[str, Application] | None = None,
        *,
        bounds: RequestLimits | None = None,
        checks: Mapping[str, Callable[[], object]] | None = None,
        **mount: Any,
    ) -> Client:
        given = {"/v1": show} if apps is None else apps
        places = {prefix or "root": prefix or "/" for prefix in given}
        system_routes = SystemRoutes(version="1", places=places, checks=checks or {})
        mounts = [Mount(prefix or "root", prefix, app, **mount) for prefix, app in given.items()]
        return Client(
            Kernel(
                mounts,
                authenticate=noauth2,
                system_routes=system_routes,
                bounds=bounds or RequestLimits(),
            )
        )

    return make


@pytest.fixture
def whole() -> Iterator[Callable[..., Client]]:
    """Make a client of the whole application, by settings: `whole(auth="token-file", …)`."""
    ledger = private_ledger()

    def make(config_file: str | None = None, **given: Any) -> Client:
        files = () if config_file is None else (config_file,)
        return Client(create_app(configure(read(given, {}, files)), store=ledger))

    yield make
    ledger.close()
