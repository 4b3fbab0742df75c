"""Bodies arrive whole and within bounds, or the dialect is not called."""

import errno
import io
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.http import request_body
from moorage.http.kernel import RequestLimits
from moorage.http.transport.connection import IncompleteBody
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
    send = client(bounds=RequestLimits(body=10))
    reply = send("PUT", "/v1/x", body=b"a" * length, environ=environ)
    assert reply.status == status
    if status == 413:
        assert reply.json["errors"][0]["code"] == "http.body_too_large"


@pytest.mark.parametrize("length", ["hi mom", "-1", "1.5", "\u0661", " 1"])
def test_a_length_that_is_no_number_is_refused(client: Any, length: str) -> None:
    reply = client()("PUT", "/v1/x", body=b"a", environ={"CONTENT_LENGTH": length})
    assert reply.status == 400
    assert "content-length header must be an integer" in reply.json["errors"][0]["detail"]


TEXTS = st.text('ab,:"\\\\{}[]\\né')
VALUES = st.recursive(
    st.none() | st.integers(0, 9) | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
)


def _separators(value: Any) -> int:
    """Commas and colons of a value's JSON that stand in no text."""
    if isinstance(value, dict):
        return sum(map(_separators, value.values())) + max(2 * len(value) - 1, 0)
    if isinstance(value, list):
        return sum(map(_separators, value)) + max(len(value) - 1, 0)
    return 0


@given(VALUES, st.booleans(), st.integers(1, 9))
def test_values_are_counted_and_not_what_stands_in_texts(
    value: Any,
    ascii_only: bool,  # noqa: FBT001 - drawn
    piece: int,
) -> None:
    body, values = json.dumps(value, ensure_ascii=ascii_only).encode(), _separators(value)
    assert request_body.count_values(body, values) == values
    assert request_body.count_values(body, values, piece) == values
    assert request_body.count_values(body, 0, piece) >= min(values, 1)


def test_counting_ends_where_there_are_too_many() -> None:
    body = b'{"a":[%b"b"]}' % (b"1," * request_body.PIECE)
    assert 10 < request_body.count_values(body, 10) < request_body.PIECE


def test_a_body_of_backslashes_is_counted_in_one_piece() -> None:
    text = b'["%b",1,1]' % (b"\\" * (2 * request_body.PIECE))
    assert request_body.count_values(text, 10) == len(b",,")


def test_a_body_of_too_many_values_is_refused_before_it_is_decoded(client: Any) -> None:
    body = b'{"a":{%b"b":1}}' % b"".join(b'"k%d":1,' % n for n in range(150_000))
    tenant, operator = {"HTTP_X_ROLES": "member"}, {"HTTP_X_ROLES": "admin"}
    for who, status in ((tenant, 413), (operator, 200)):
        assert client()("POST", "/v1/x", body=body, environ=who).status == status
    texts = b'{"a":"%b"}' % (b"a, b: " * 200_000)
    assert client()("POST", "/v1/x", body=texts, environ=tenant).status == 200


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


def test_a_body_for_which_there_is_no_room_is_refused_for_now(client: Any) -> None:
    environ = {
        "CONTENT_LENGTH": "3",
        "wsgi.input": IncompleteBody(OSError(errno.ENOBUFS, "no room")),
    }
    reply = client()("PUT", "/v1/x", environ=environ)
    assert (reply.status, reply.headers["retry-after"]) == (503, "1")
    assert reply.json["errors"][0]["code"] == "http.busy"


@pytest.mark.parametrize("before", range(-3, 3))
def test_an_escape_is_found_wherever_it_stands_in_a_large_body(client: Any, before: int) -> None:
    head = b'{"a":"' + b"x" * (request_body.PIECE - 6 + before)
    body = head + b"\\u0000" + b"x" * request_body.PIECE + b'"}'
    reply = client()("POST", "/v1/x", body=body)
    assert reply.status == 400
    assert f"at byte {len(head)}" in reply.json["errors"][0]["detail"]
    whole = body.replace(b"\\u0000", b"\\u0001" * 6_000)
    assert client()("POST", "/v1/x", body=whole).status == 200
