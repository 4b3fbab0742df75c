"""Mounts, authentication before everything, clean answers whatever happens."""

import logging
import re
from typing import Any

import pytest

from moorage.http.response import unauthorized_bare
from moorage.http.wsgi import Environ, StartResponse

REQUEST_ID = re.compile(r"req-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
SENT = "req-00000000-1111-2222-3333-444444444444"


def test_the_longest_prefix_wins(client: Any) -> None:
    def named(name: bytes) -> Any:
        def app(environ: Environ, start_response: StartResponse) -> list[bytes]:
            start_response("200 OK", [])
            return [
                name,
                b" ",
                environ["SCRIPT_NAME"].encode(),
                b" ",
                environ["PATH_INFO"].encode(),
            ]

        return app

    send = client({"": named(b"root"), "/v1": named(b"v1"), "/v1/deep": named(b"deep")})
    assert send("GET", "/").body == b"root  /"
    assert send("GET", "/resource_providers").body == b"root  /resource_providers"
    assert send("GET", "/v1").body == b"v1 /v1 "
    assert send("GET", "/v1/").body == b"v1 /v1 /"
    assert send("GET", "/v1/ensembles/x").body == b"v1 /v1 /ensembles/x"
    assert send("GET", "/v1x").body == b"root  /v1x"
    assert send("GET", "/v1/deep/er").body == b"deep /v1/deep /er"
    assert send("GET", "/v1/deeper").body == b"v1 /v1 /deeper"


def test_without_a_root_mount_the_house_says_what_is_where(client: Any) -> None:
    send = client()
    found = send("GET", "/", token=None)
    assert found.status == 200
    assert found.json["name"] == "moorage"
    assert found.json["services"] == [{"name": "/v1", "links": [{"rel": "self", "href": "/v1"}]}]
    missing = send("GET", "/nowhere", token=None)
    assert missing.status == 404
    [error] = missing.json["errors"]
    assert error["code"] == "http.not_found"
    assert error["request_id"] == missing.headers["x-openstack-request-id"]
    refused = send("POST", "/", token=None)
    assert (refused.status, refused.headers["allow"]) == (405, "GET, HEAD")


def test_health_pages_stay_reachable_beside_a_root_mount(client: Any) -> None:
    def app(environ: Environ, start_response: StartResponse) -> list[bytes]:
        raise AssertionError("a dialect must not see the health pages")

    send = client({"": app})
    assert send("GET", "/healthz", token=None).json == {"status": "alive"}
    assert send("GET", "/readyz", token=None).json == {"status": "ready", "checks": {}}


def test_readiness_names_the_part_but_not_its_secret(
    client: Any, caplog: pytest.LogCaptureFixture
) -> None:
    def broken() -> None:
        raise OSError("cannot reach postgresql://user:secret@db")

    reply = client(checks={"database": broken, "other": lambda: None})("GET", "/readyz")
    assert reply.status == 503
    assert reply.json["checks"] == {"database": "not ready", "other": "ready"}
    assert b"secret" not in reply.body
    assert "cannot reach" in caplog.text


@pytest.mark.parametrize("method", ["GET", "PUT", "POST", "DELETE", "OPTIONS", "HEAD"])
def test_a_token_is_needed_before_anything_else(client: Any, method: str) -> None:
    reply = client()(method, "/v1/there/is/no/such/route", token=None)
    assert reply.status == 401
    [error] = reply.json["errors"]
    assert (error["code"], error["status"]) == ("http.unauthorized", 401)


@pytest.mark.parametrize("header", ["HTTP_X_AUTH_TOKEN", "HTTP_X_SERVICE_TOKEN"])
def test_a_token_of_any_length_is_answered_with_401(whole: Any, header: str) -> None:
    for length, status in ((16 * 1024, 403), (16 * 1024 + 1, 401), (200_000, 401)):
        token = {"HTTP_X_AUTH_TOKEN": "eve", header: "e" * length}
        for path in ("/placement/resource_providers", "/metrics"):
            reply = whole(metrics_from="10.0.0.1")("GET", path, environ=token)
            assert reply.status == status


def test_reading_the_root_of_a_mount_needs_no_token(client: Any) -> None:
    send = client()
    assert send("GET", "/v1", token=None).status == 200
    assert send("GET", "/v1/", token=None).status == 200
    assert send("POST", "/v1/", token=None).status != 401
    assert send("GET", "/v1//", token=None).status == 401


def test_a_mount_words_its_own_401(client: Any) -> None:
    reply = client(unauthorized=unauthorized_bare)("GET", "/v1/x", token=None)
    assert reply.status == 401
    assert reply.headers["content-type"] == "application/json"
    assert set(reply.json) == {"message", "code", "title"}
    assert (reply.json["code"], reply.json["title"]) == ("401 Unauthorized", "Unauthorized")
    assert "openstack-api-version" not in reply.headers
    assert REQUEST_ID.fullmatch(reply.headers["x-openstack-request-id"])


def test_every_request_gets_an_id_of_its_own(client: Any) -> None:
    send = client()
    first, second = (send("GET", "/v1/x") for _ in range(2))
    assert REQUEST_ID.fullmatch(first.headers["x-openstack-request-id"])
    assert first.json["request_id"] == first.headers["x-openstack-request-id"]
    assert first.json["request_id"] != second.json["request_id"]
    assert first.json["global"] is None


@pytest.mark.parametrize(
    ("sent", "kept"),
    [
        (SENT, SENT),
        (SENT.upper().replace("REQ", "req"), SENT),
        ("req-1", None),
        (SENT[4:], None),
        (SENT + "\n", None),
        (f"{SENT}, {SENT}", None),
    ],
)
def test_the_callers_request_id_is_kept_if_it_is_one(
    client: Any, sent: str, kept: str | None
) -> None:
    reply = client()("GET", "/v1/x", environ={"HTTP_X_OPENSTACK_REQUEST_ID": sent})
    assert reply.json["global"] == kept
    assert reply.headers["x-openstack-request-id"] != sent


@pytest.mark.parametrize(
    "environ",
    [
        {"PATH_INFO": "/v1/caf\xe9"},
        {"PATH_INFO": "/v1/\xff"},
        {"QUERY_STRING": "name=%FF"},
        {"PATH_INFO": "/a\0b"},
        {"QUERY_STRING": "name=a%00b"},
        {"QUERY_STRING": "name=a\0b"},
        {"QUERY_STRING": "name=%C3%28"},
    ],
)
def test_text_that_is_not_utf8_or_has_nul_is_refused(client: Any, environ: Environ) -> None:
    reply = client()("GET", "/v1/x", environ=environ)
    assert reply.status == 400
    assert reply.json["errors"][0]["code"] == "http.bad_request"


def test_unicode_is_welcome(client: Any) -> None:
    reply = client()("GET", "/v1/caf\u00e9?name=%E2%98%83")
    assert reply.status == 200
    assert reply.json["path"].encode("latin-1").decode() == "/caf\u00e9"


@pytest.mark.parametrize("late", [False, True])
def test_an_unexpected_error_tells_nothing_but_the_request_id(
    client: Any, caplog: pytest.LogCaptureFixture, *, late: bool
) -> None:
    def app(environ: Environ, start_response: StartResponse) -> Any:
        start_response("200 OK", [("content-type", "text/plain"), ("x-half", "done")])
        if late:
            return (1 // len(part) for part in [b""])
        raise RuntimeError("password=hunter2")

    reply = client({"/v1": app})("GET", "/v1/x")
    assert reply.status == 500
    assert "x-half" not in reply.headers
    [error] = reply.json["errors"]
    assert error["request_id"] == reply.headers["x-openstack-request-id"]
    assert b"hunter2" not in reply.body
    assert b"Error" not in reply.body.replace(b"Internal Server Error", b"")
    assert error["request_id"] in caplog.text
    assert "Traceback" in caplog.text


def test_an_application_that_never_starts_is_an_error(client: Any) -> None:
    def app(environ: Environ, start_response: StartResponse) -> list[bytes]:
        return [b"?"]

    assert client({"/v1": app})("GET", "/v1/x").status == 500


@pytest.mark.parametrize(
    "header",
    [
        ("location", "/x\r\nset-cookie: a=b"),
        ("x-a", "b\n"),
        ("x-a", "\x00"),
        ("x a", "b"),
        ("x-a", "\u2603"),
    ],
)
def test_a_header_cannot_smuggle_another(client: Any, header: tuple[str, str]) -> None:
    def app(environ: Environ, start_response: StartResponse) -> list[bytes]:
        start_response("201 Created", [header])
        return []

    reply = client({"/v1": app})("GET", "/v1/x")
    assert reply.status == 500
    assert "set-cookie" not in reply.headers


def test_a_streamed_body_is_passed_on_and_closed(client: Any) -> None:
    closed = []

    class Body:
        def __iter__(self) -> Any:
            yield from (b"one ", b"two")

        def close(self) -> None:
            closed.append(True)

    def app(environ: Environ, start_response: StartResponse) -> Any:
        start_response("200 OK", [("content-type", "text/plain")])
        return Body()

    assert client({"/v1": app})("GET", "/v1/x").body == b"one two"
    assert closed == [True]


def test_the_access_log_has_no_secret_and_no_second_line(
    client: Any, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "moorage.access")
    client()("GET", "/v1/x\ny?password=hunter2", token="s3cret:project")
    [record] = [record for record in caplog.records if record.name == "moorage.access"]
    line = record.getMessage()
    assert re.fullmatch(r"GET /v1/x%0Ay 200 \d+\.\dms", line)
    assert "hunter2" not in line
    assert "s3cret" not in line
