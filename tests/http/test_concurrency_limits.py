"""So many requests of one client at once: the others find threads left."""

import io
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
from tests.http.conftest import Client, Reply

from moorage.domain.errors import Busy
from moorage.http.auth import noauth2
from moorage.http.kernel import LARGE_BODY, Kernel, Mount, RequestLimits
from moorage.http.system_routes import SystemRoutes
from moorage.http.wsgi import Application, Environ, StartResponse
from moorage.settings import configure, read

ANN = {"HTTP_X_AUTH_TOKEN": "ann:project-a"}
BOB = {"HTTP_X_AUTH_TOKEN": "bob:project-b"}
NOVA = {"HTTP_X_AUTH_TOKEN": "nova:service", "HTTP_X_ROLES": "service"}
PATIENCE = 100.0


@dataclass
class Slow:
    """A dialect whose requests below `/slow` last until they are let go."""

    begun: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    go: threading.Event = field(default_factory=threading.Event)

    def __call__(self, environ: Environ, start_response: StartResponse) -> Any:
        start_response("200 OK", [])
        if environ["PATH_INFO"] == "/slow":
            self.begun.release()
            assert self.go.wait(PATIENCE)
        if environ["PATH_INFO"] == "/error":
            raise OSError("broken")
        return iter([b"o", b"k"]) if environ["PATH_INFO"] == "/parts" else [b"ok"]


@dataclass
class Served:
    """The kernel over the slow dialect, with two requests of one project or address at once."""

    slow: Slow
    send: Client

    def get(self, path: str, who: Mapping[str, Any], address: str = "192.0.2.1") -> Reply:
        return self.send("GET", f"/v1{path}", environ={**who, "REMOTE_ADDR": address})

    @contextmanager
    def under_way(self, number: int, who: Mapping[str, Any], **more: Any) -> Iterator[None]:
        """While so many requests are worked on."""
        threads = [
            threading.Thread(target=self.get, args=("/slow", who), kwargs=more, daemon=True)
            for _ in range(number)
        ]
        for thread in threads:
            thread.start()
        for _ in threads:
            assert self.slow.begun.acquire(timeout=PATIENCE)
        yield
        self.slow.go.set()
        for thread in threads:
            thread.join(PATIENCE)
        self.slow.go.clear()


def served(*, forward: Application | None = None, **bounds: Any) -> Served:
    slow = Slow()
    mount = Mount("native", "/v1", slow)
    system_routes = SystemRoutes(version="0", places={}, checks={})
    return Served(
        slow,
        Client(
            Kernel(
                [mount],
                authenticate=noauth2,
                system_routes=system_routes,
                bounds=RequestLimits(**bounds),
                forward=forward,
            )
        ),
    )


def test_a_project_has_its_share_and_others_have_theirs() -> None:
    here = served(running=8, of_one_project=2)
    with here.under_way(2, ANN):
        refused = here.get("/x", ANN, "192.0.2.9")
        assert (refused.status, refused.headers["retry-after"]) == (429, "1")
        [error] = refused.json["errors"]
        assert error["code"] == "http.too_many_requests"
        assert "requests_per_project" in error["detail"]
        assert here.get("/x", BOB).status == 200
        with here.under_way(3, NOVA):
            assert here.get("/x", NOVA).status == 200
    for path in ("/x", "/parts", "/error") * 3:
        assert here.get(path, ANN).status == (500 if path == "/error" else 200)


def test_bodies_of_a_project_under_way_are_weighed() -> None:
    here = served(running=8, of_one_project=4, body=100)
    half, rest = {**ANN, "wsgi.input": io.BytesIO(b"x" * 100), "CONTENT_LENGTH": "100"}, b"y" * 100

    def send(who: dict[str, str]) -> Reply:
        return here.send("PUT", "/v1/x", body=rest, environ={**who, "REMOTE_ADDR": "192.0.2.1"})

    with here.under_way(1, half):
        assert send(ANN).status == 200
    halves = [
        {**ANN, "wsgi.input": io.BytesIO(b"x" * 100), "CONTENT_LENGTH": "100"} for _ in range(2)
    ]
    with here.under_way(1, halves[0]), here.under_way(1, halves[1]):
        refused = send(ANN)
        assert (refused.status, refused.headers["retry-after"]) == (429, "1")
        assert "twice body_limit" in refused.json["errors"][0]["detail"]
        assert send(BOB).status == 200
        assert send(NOVA).status == 200
    assert send(ANN).status == 200


def test_what_is_sent_in_parts_counts_until_it_is_sent() -> None:
    here = served(of_one_project=1)
    environ: Environ = {
        "REQUEST_METHOD": "GET",
        "PATH_INFO": "/v1/parts",
        "QUERY_STRING": "",
        "SERVER_PROTOCOL": "HTTP/1.1",
        **ANN,
    }
    body: Any = here.send.app(environ, lambda *_: None)  # type: ignore[arg-type]
    assert here.get("/x", ANN).status == 429
    assert b"".join(body) == b"ok"
    body.close()
    assert here.get("/x", ANN).status == 200


def test_a_tenants_large_body_is_decoded_elsewhere() -> None:
    given: list[str | None] = []

    def forward(environ: Environ, start_response: StartResponse) -> list[bytes]:
        given.append(environ["moorage.caller"].project_id)
        if environ["PATH_INFO"] == "/busy":
            raise Busy("no planner became free in time", retry_after=2)
        start_response("201 Created", [("x-said", "1")])
        return [b"made"]

    here = served(forward=forward)
    large, small = b"x" * LARGE_BODY, b"x" * (LARGE_BODY - 1)
    made = here.send("PUT", "/v1/x", body=large, environ={**ANN})
    assert (made.status, made.headers["x-said"], made.body) == (201, "1", b"made")
    for who, body in ((ANN, small), (NOVA, large)):
        assert here.send("PUT", "/v1/x", body=body, environ={**who}).body == b"ok"
    busy = here.send("PUT", "/v1/busy", body=large, environ={**ANN})
    assert (busy.status, busy.headers["retry-after"]) == (503, "2")
    assert given == ["project-a"] * 2


def test_an_address_has_its_share_whoever_asks_unless_it_is_a_proxys() -> None:
    here = served(of_one_project=8, of_one_address=2, proxies=("198.51.100.0/24",))
    nobody = {"HTTP_X_AUTH_TOKEN": "x:y"}
    with here.under_way(2, NOVA):
        refused = here.get("/x", nobody)
        assert (refused.status, refused.headers["retry-after"]) == (429, "1")
        assert "requests_per_address" in refused.json["errors"][0]["detail"]
        assert here.get("/x", nobody, "::ffff:192.0.2.1").status == 429, "the same address"
        assert here.get("/x", nobody, "192.0.2.2").status == 200
        assert here.send("GET", "/healthz", token=None).status == 200
    with here.under_way(3, NOVA, address="198.51.100.7"):
        assert here.get("/x", nobody, "198.51.100.7").status == 200


@pytest.mark.parametrize(
    ("given", "expected"),
    [({}, 12), ({"threads": "40"}, 30), ({"requests_per_project": "3"}, 3)],
)
def test_the_default_leaves_a_quarter_of_the_threads(given: dict[str, str], expected: int) -> None:
    bounds = configure(read(given, {}, ())).server.bounds
    assert (bounds.of_one_project, bounds.of_one_address) == (expected, None)
