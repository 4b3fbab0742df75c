"""Cross-origin requests: who gets the permission, and that nobody else notices."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pytest

from moorage.http.cors import CorsConfig, with_cors
from moorage.http.wsgi import Environ, Headers, StartResponse

pytestmark = pytest.mark.filterwarnings("ignore:'cgi' is deprecated:DeprecationWarning")

HOME, STRANGER = "https://home.example", "https://stranger.example"
CONFIG = CorsConfig(frozenset({HOME}), allow_headers=frozenset({"x-auth-token"}))


def app(environ: Environ, start_response: StartResponse) -> list[bytes]:
    start_response("404 Not Found", [("vary", "accept")])
    return [b"told"]


def ask(config: CorsConfig, method: str, **environ: str) -> tuple[str, dict[str, str], bytes]:
    seen: dict[str, Any] = {}

    def start_response(
        status: str, headers: list[tuple[str, str]], exc_info: object = None
    ) -> Callable[[bytes], object]:
        seen.update(status=status, headers=headers)
        return lambda _: None

    request = {"REQUEST_METHOD": method, "PATH_INFO": "/", "wsgi.url_scheme": "http", **environ}
    request |= {"SERVER_NAME": "moorage.example", "SERVER_PORT": "80"}
    body = b"".join(with_cors(app, config)(request, start_response))
    return seen["status"], {name.lower(): text for name, text in seen["headers"]}, body


def preflight(origin: str, method: str = "PUT", headers: str = "") -> dict[str, str]:
    _, found, body = ask(
        CONFIG,
        "OPTIONS",
        HTTP_ORIGIN=origin,
        HTTP_ACCESS_CONTROL_REQUEST_METHOD=method,
        HTTP_ACCESS_CONTROL_REQUEST_HEADERS=headers,
    )
    assert body == b""
    return found


def test_a_preflight_is_answered_in_front_of_the_application() -> None:
    found = preflight(HOME, headers="Content-Type, X-Auth-Token")
    assert found["access-control-allow-origin"] == HOME
    assert found["access-control-allow-methods"] == "PUT"
    assert found["access-control-allow-headers"] == "Content-Type,X-Auth-Token"
    assert "access-control-allow-credentials" not in found


@pytest.mark.parametrize(
    "asked", [(STRANGER, "PUT", ""), (HOME, "TRACE", ""), (HOME, "PUT", "x-secret")]
)
def test_what_is_not_allowed_gets_no_permission(asked: tuple[str, str, str]) -> None:
    assert not [name for name in preflight(*asked) if name.startswith("access-control")]


def test_answers_are_shared_with_allowed_origins_only() -> None:
    status, found, body = ask(CONFIG, "GET", HTTP_ORIGIN=HOME)
    assert (status, found["access-control-allow-origin"], body) == ("404 Not Found", HOME, b"told")
    _, found, _ = ask(CONFIG, "GET", HTTP_ORIGIN=STRANGER)
    assert found == {"vary": "accept"}
    _, found, _ = ask(CorsConfig(frozenset({"*"}), allow_credentials=True), "GET", HTTP_ORIGIN="x")
    assert found["access-control-allow-origin"] == "*"
    assert "access-control-allow-credentials" not in found, "never together with any origin"


def test_options_that_the_application_refuses_is_answered_as_by_the_reference() -> None:
    assert ask(CONFIG, "OPTIONS") == ("200 OK", {"content-length": "0"}, b"")
    status, found, _ = ask(CONFIG, "OPTIONS", HTTP_ORIGIN=HOME)
    assert (status, found) == ("200 OK", {"content-length": "0"})


def test_an_answer_in_parts_stays_one() -> None:
    closed: list[bool] = []

    class Parts:
        def __iter__(self) -> Iterator[bytes]:
            yield from (b"one", b"two")

        def close(self) -> None:
            closed.append(True)

    def streamed(environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        start_response("200 OK", [])
        return Parts()

    request = {"REQUEST_METHOD": "GET", "PATH_INFO": "/", "wsgi.url_scheme": "http"}
    request |= {"SERVER_NAME": "h", "SERVER_PORT": "80", "HTTP_ORIGIN": HOME}
    started: list[str] = []

    def start_response(
        status: str, headers: Headers, exc_info: object = None, /
    ) -> Callable[[bytes], object]:
        started.append(status)
        return lambda _: None

    answer: Any = with_cors(streamed, CONFIG)(request, start_response)
    assert list(answer) == [b"one", b"two"]
    answer.close()
    assert (started, closed) == (["200 OK"], [True])


def test_without_allowed_origins_the_application_stands_alone() -> None:
    assert with_cors(app, CorsConfig()) is app


def test_the_settings_reach_the_whole_application(whole: Any) -> None:
    given = {
        "cors_allowed_origin": [HOME],
        "cors_allow_header": ["OpenStack-API-Version", "X-Auth-Token"],
        "cors_expose_header": ["X-OpenStack-Request-Id"],
        "cors_max_age": "60",
    }
    client = whole(**given)
    path = "/placement/resource_providers"
    asked = {
        "HTTP_ORIGIN": HOME,
        "HTTP_ACCESS_CONTROL_REQUEST_METHOD": "GET",
        "HTTP_ACCESS_CONTROL_REQUEST_HEADERS": "openstack-api-version",
    }
    allowed = client("OPTIONS", path, token=None, environ=asked)
    assert (allowed.status, allowed.headers["access-control-allow-origin"]) == (200, HOME)
    assert allowed.headers["access-control-max-age"] == "60"
    assert allowed.headers["access-control-allow-credentials"] == "true"
    refused = client("OPTIONS", path, token=None, environ=asked | {"HTTP_ORIGIN": STRANGER})
    assert refused.status == 200
    assert not [name for name in refused.headers if name.startswith("access-control")]
    unknown = client("GET", path, token=None, environ={"HTTP_ORIGIN": HOME})
    assert (unknown.status, unknown.headers["access-control-allow-origin"]) == (401, HOME)
    assert unknown.headers["access-control-expose-headers"] == "X-OpenStack-Request-Id"
    ordinary = client("OPTIONS", path, environ={"HTTP_ORIGIN": HOME})
    assert (ordinary.status, ordinary.body) == (200, b"")


def test_without_the_settings_options_is_an_ordinary_method(whole: Any) -> None:
    client = whole()
    asked = {"HTTP_ORIGIN": HOME, "HTTP_ACCESS_CONTROL_REQUEST_METHOD": "GET"}
    assert client("OPTIONS", "/placement/resource_providers", environ=asked).status == 405
