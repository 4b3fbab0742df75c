"""Bodies arrive whole and within bounds, or the dialect is not called."""

import io
import threading
from typing import Any

import pytest

from moorage.http.kernel import Bounds
from moorage.http.wsgi import Environ, StartResponse


def test_a_body_arrives_whole(client: Any) -> None:
    reply = client()("POST", "/v1/x", body=b"hello")
    assert (reply.json["body"], reply.json["length"]) == ("hello", "5")


def test_a_body_without_a_length_gets_one(client: Any) -> None:
    chunked = {
        "HTTP_TRANSFER_ENCODING": "chunked",
        "CONTENT_LENGTH": "",
        "wsgi.input": io.BytesIO(b"hello"),
    }
    reply = client()("POST", "/v1/x", environ=chunked)
    assert (reply.json["body"], reply.json["length"]) == ("hello", "5")


@pytest.mark.parametrize("chunked", [False, True])
@pytest.mark.parametrize(("length", "status"), [(10, 200), (11, 413), (1_000_000, 413)])
def test_the_limit_is_exact(client: Any, *, chunked: bool, length: int, status: int) -> None:
    environ: Environ = (
        {"HTTP_TRANSFER_ENCODING": "chunked", "CONTENT_LENGTH": ""} if chunked else {}
    )
    send = client(bounds=Bounds(body=10))
    reply = send("PUT", "/v1/x", body=b"a" * length, environ=environ)
    assert reply.status == status
    if status == 413:
        assert reply.json["errors"][0]["code"] == "http.body_too_large"


@pytest.mark.parametrize("length", ["hi mom", "-1", "1.5", "\u0661", " 1"])
def test_a_length_that_is_no_number_is_refused(client: Any, length: str) -> None:
    reply = client()("PUT", "/v1/x", body=b"a", environ={"CONTENT_LENGTH": length})
    assert reply.status == 400
    assert "content-length header must be an integer" in reply.json["errors"][0]["detail"]


@pytest.mark.parametrize("chunked", [False, True])
def test_half_a_body_reaches_nobody(client: Any, *, chunked: bool) -> None:
    called = []

    def app(environ: Environ, start_response: StartResponse) -> list[bytes]:
        called.append(environ)
        start_response("200 OK", [])
        return []

    class Cut(io.BytesIO):
        def read(self, size: int | None = -1) -> bytes:
            if chunked:
                raise ConnectionResetError
            return super().read(size)

    environ = {
        "CONTENT_LENGTH": "" if chunked else "10",
        "HTTP_TRANSFER_ENCODING": "chunked" if chunked else "",
        "wsgi.input": Cut(b"abc"),
    }
    assert client({"/v1": app})("PUT", "/v1/x", environ=environ).status == 400
    assert called == []


def test_slow_bodies_keep_no_other_request_waiting(client: Any) -> None:
    go = threading.Event()

    class Slow(io.BytesIO):
        def read(self, size: int | None = -1) -> bytes:
            assert go.wait(20)
            return super().read(size)

    class Whole(io.BytesIO):
        is_whole = True

    send = client(bounds=Bounds(readers=1, running=1))
    held: list[int] = []
    environ = {"CONTENT_LENGTH": "3", "wsgi.input": Slow(b"abc")}
    slow = threading.Thread(
        target=lambda: held.append(send("PUT", "/v1/x", environ=environ).status)
    )
    slow.start()
    try:
        refused = None
        while refused is None or refused.status == 200:  # until the reader's place is taken
            refused = send("PUT", "/v1/y", body=b"b")
        assert refused.status == 503
        assert refused.headers["retry-after"] == "1"
        assert send("GET", "/v1/z").status == 200
        environ = {"CONTENT_LENGTH": "1", "wsgi.input": Whole(b"b")}
        assert send("PUT", "/v1/y", environ=environ).status == 200
    finally:
        go.set()
        slow.join(20)
    assert held == [200]
