"""A whole Placement in one process: kernel, dialect and a real ledger in SQLite."""

import io
import json
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pytest

from moorage.api.placement import create_app
from moorage.api.placement.access import DEFAULT
from moorage.http.access_rules import Access
from moorage.http.auth import noauth2
from moorage.http.kernel import Kernel, Mount
from moorage.http.response import unauthorized_bare
from moorage.http.system_routes import SystemRoutes
from moorage.testing.ledger_copy import private_ledger
from moorage.usecases.ports import Store


@dataclass(frozen=True)
class Answer:
    status: int
    headers: Mapping[str, str]
    raw: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.raw)

    @property
    def detail(self) -> str:
        return str(self.json["errors"][0]["detail"])


class RandomIds:
    def uuid(self) -> str:
        return str(uuid.uuid4())

    def salt(self) -> str:
        return uuid.uuid4().hex


class Wire:
    """Calls the application as a WSGI server would."""

    def __init__(self, store: Store, access: Access, prefix: str) -> None:
        self.store = store
        self.prefix = prefix
        app = create_app(store, RandomIds(), access=access)
        mount = Mount("placement", prefix, app, unauthorized=unauthorized_bare)
        self.kernel = Kernel([mount], authenticate=noauth2, system_routes=SystemRoutes("0", {}, {}))

    def __call__(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        version: str | None = "latest",
        headers: Mapping[str, str | None] | None = None,
        raw: bytes | None = None,
    ) -> Answer:
        """One request by an admin; a header of None is left out."""
        data = raw if raw is not None else b"" if body is None else json.dumps(body).encode()
        path, _, query = path.partition("?")
        sent: dict[str, str | None] = {
            "x-auth-token": "admin",
            "openstack-api-version": version and f"placement {version}",
            "content-type": "application/json" if data else None,
            "content-length": str(len(data)) if data else None,
            "host": "placement.example",
            **(headers or {}),
        }
        environ: dict[str, Any] = {
            "REQUEST_METHOD": method,
            "SCRIPT_NAME": "",
            "PATH_INFO": (self.prefix + path).encode().decode("latin-1"),
            "QUERY_STRING": query,
            "SERVER_NAME": "localhost",
            "SERVER_PORT": "80",
            "SERVER_PROTOCOL": "HTTP/1.1",
            "wsgi.url_scheme": "http",
            "wsgi.input": io.BytesIO(data),
        }
        for name, value in sent.items():
            if value is not None:
                key = name.upper().replace("-", "_")
                environ[key if key.startswith("CONTENT_") else f"HTTP_{key}"] = value
        return self._answer(environ)

    def _answer(self, environ: dict[str, Any]) -> Answer:
        seen: dict[str, Any] = {}

        def start_response(
            status: str, headers: list[tuple[str, str]], exc_info: object = None
        ) -> Callable[[bytes], object]:
            seen.update(status=int(status.split(maxsplit=1)[0]), headers=dict(headers))
            return lambda _: None

        chunks = self.kernel(environ, start_response)
        return Answer(raw=b"".join(chunks), status=seen["status"], headers=seen["headers"])

    # --- what many tests need ---------------------------------------------------------------

    def provider(self, name: str, parent: str | None = None, **inventories: int) -> str:
        """A provider with traitless inventories, by total."""
        body = {"name": name, "uuid": str(uuid.uuid4()), "parent_provider_uuid": parent}
        made = self("POST", "/resource_providers", body)
        assert made.status == 200, made.raw
        own = str(made.json["uuid"])
        for resource_class, total in inventories.items():
            content = {"resource_class": resource_class, "total": total}
            answer = self("POST", f"/resource_providers/{own}/inventories", content)
            assert answer.status == 201, answer.raw
        return own

    def generation(self, provider: str) -> int:
        return int(self("GET", f"/resource_providers/{provider}").json["generation"])

    def allocate(self, consumer: str, allocations: Mapping[str, Mapping[str, int]]) -> Answer:
        """Write at 1.12, which knows no consumer generation."""
        body = {
            "allocations": {one: {"resources": given} for one, given in allocations.items()},
            "project_id": "p",
            "user_id": "u",
        }
        return self("PUT", f"/allocations/{consumer}", body, version="1.12")


@pytest.fixture
def store() -> Iterator[Store]:
    ledger = private_ledger()
    yield ledger
    ledger.close()


@pytest.fixture
def wire(store: Store) -> Wire:
    return Wire(store, DEFAULT, "/placement")


@pytest.fixture
def wire_with(store: Store) -> Callable[[Access], Wire]:
    return lambda access: Wire(store, access, "")
