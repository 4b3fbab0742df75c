"""What bytes become as requests, however they are cut, and what they do not become."""

import tracemalloc
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.http.transport.request_parser import LONGEST_HEAD, RequestParser
from moorage.http.transport.wsgi_environ import HOSTS, KEYS

SEVERAL = (
    b"GET /a?b=1 HTTP/1.1\r\nHost: h\r\nX-A: 1\r\n\r\n"
    b"PUT /b%20c HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nhello"
    b"POST /c HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"
    b"3\r\nabc\r\n4;x=y\r\ndefg\r\n0\r\nX-Late: 1\r\n\r\n"
    b"DELETE /d HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n"
)


LONGEST = 1_000_000_000
PARTS = [*[b"ab"] * 5000, b"c" * 2000, *[b"de"] * 5000, b"f" * 2000]


def understood(*pieces: bytes) -> tuple[list[Any], int | None]:
    """The requests in these pieces, and the status of a refusal."""
    incoming = RequestParser({"REMOTE_ADDR": "x"}, LONGEST)
    for piece in pieces:
        incoming.feed(piece)
    taken = list(iter(incoming.take, None))
    if incoming.arriving is not None:
        taken.append(incoming.take_unfinished())
    requests = [
        (environ, request.keeps, request.complete, b"".join(request.body), request.size)
        for environ, request in taken
    ]
    return requests, incoming.refusal and incoming.refusal.value


def only(head: bytes) -> dict[str, Any]:
    [(environ, *_)], refusal = understood(head + b"\r\n\r\n")
    assert refusal is None
    return dict(environ)


def test_requests_that_follow_each_other_are_told_apart() -> None:
    requests, refusal = understood(SEVERAL)
    assert refusal is None
    assert [(e["REQUEST_METHOD"], e["PATH_INFO"], e["QUERY_STRING"]) for e, *_ in requests] == [
        ("GET", "/a", "b=1"),
        ("PUT", "/b c", ""),
        ("POST", "/c", ""),
        ("DELETE", "/d", ""),
    ]
    assert [(body, complete) for _, _, complete, body, _ in requests] == [
        (b"", True),
        (b"hello", True),
        (b"abcdefg", True),
        (b"", True),
    ]
    assert [keeps for _, keeps, *_ in requests] == [True, True, True, False]
    assert not any("HTTP_X_LATE" in environ for environ, *_ in requests)


CHANGE = b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n"


@pytest.mark.parametrize(
    "body",
    [
        b"Content-Length: 5\r\n\r\nhello",
        b"Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
    ],
)
@pytest.mark.parametrize("size", [1, 7, 1000])
def test_who_would_change_the_protocol_is_understood_in_this_one(body: bytes, size: int) -> None:
    put = b"PUT /a HTTP/1.1\r\nHost: h\r\n" + CHANGE + body
    get = b"GET /b HTTP/1.1\r\nHost: h\r\n" + CHANGE + b"\r\n"
    data = put + get + put
    requests, refusal = understood(*(data[at : at + size] for at in range(0, len(data), size)))
    assert refusal is None
    assert [
        (environ["PATH_INFO"], environ["HTTP_UPGRADE"], keeps, complete, found)
        for environ, keeps, complete, found, _ in requests
    ] == [
        ("/a", "h2c", True, True, b"hello"),
        ("/b", "h2c", True, True, b""),
        ("/a", "h2c", True, True, b"hello"),
    ]


def test_a_request_to_change_is_refused_for_what_others_are() -> None:
    head = b"GET / HTTP/1.1\r\nHost: h\r\n" + CHANGE
    both = b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n"
    assert understood(head + both) == ([], 400)
    assert understood(head + b"Host: other\r\n\r\n") == ([], 400)
    [(_, keeps, *_)], refusal = understood(head + b"Connection: close\r\n\r\nmore")
    assert (keeps, refusal) == (False, 400)


@given(st.lists(st.integers(0, len(SEVERAL)), max_size=12))
def test_where_bytes_are_cut_changes_nothing(cuts: list[int]) -> None:
    places = sorted({0, *cuts, len(SEVERAL)})
    assert understood(*(SEVERAL[a:b] for a, b in pairwise(places))) == understood(SEVERAL)


@given(st.integers(0, len(SEVERAL)), st.sampled_from([b"\r\n", b""]))
def test_another_protocol_is_refused_wherever_it_begins_and_is_cut(cut: int, blank: bytes) -> None:
    kept = SEVERAL[: SEVERAL.index(b"DELETE")]
    data = kept + blank + b"OPTIONS /e RTSP/1.1\r\nHost: h\r\n\r\n"
    at = len(data) - cut
    assert understood(data[:at], data[at:]) == (understood(kept)[0], 400)


def test_blank_lines_and_raw_targets_may_come_in_pieces() -> None:
    data = "\r\n\r\nGET /\u00e9 HTTP/1.1\r\nHost: h\r\n\r\n".encode() * 2
    requests, refusal = understood(*(data[at : at + 1] for at in range(len(data))))
    assert refusal is None
    assert [environ["PATH_INFO"] for environ, *_ in requests] == ["/\xc3\xa9"] * 2


def test_heads_that_were_sent_ahead_stay_bytes() -> None:
    data = b"GET / HTTP/1.1\r\nHost:\r\n\r\n" * 2600
    incoming = RequestParser({}, LONGEST)
    tracemalloc.start()
    try:
        incoming.feed(data)
        assert incoming.take() is not None
        assert incoming.has_more()
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert kept < 2 * len(data)
    assert len(list(iter(incoming.take, None))) == 2599


def test_headers_become_keys_as_wsgi_has_them() -> None:
    environ = only(
        b"GET / HTTP/1.1\r\nhost: h\r\nX-A: 1\r\nx-a: 2\r\nX_Auth_Token: stolen\r\n"
        b"Cookie: a=1\r\nCookie: b=2\r\nContent-Type: t\r\nX-Latin: \xe9"
    )
    assert {key: value for key, value in environ.items() if key.isupper()} == {
        "REMOTE_ADDR": "x",
        "HTTP_HOST": "h",
        "HTTP_X_A": "1,2",
        "HTTP_COOKIE": "a=1; b=2",
        "CONTENT_TYPE": "t",
        "HTTP_X_LATIN": "\xe9",
        "SERVER_PROTOCOL": "HTTP/1.1",
        "REQUEST_METHOD": "GET",
        "PATH_INFO": "/",
        "QUERY_STRING": "",
    }
    assert "stolen" not in environ.values()


def test_space_around_a_value_is_no_part_of_it() -> None:
    environ = only(b"PUT / HTTP/1.1\r\nHost: h\r\nX-A: \t a b \t \r\nX-B: \r\nContent-Length: 0 ")
    assert (environ["HTTP_X_A"], environ["HTTP_X_B"]) == ("a b", "")
    assert environ["CONTENT_LENGTH"] == "0"


@pytest.mark.parametrize(
    ("target", "path", "query"),
    [
        (b"/a%2Fb//c?d=%20&e", "/a/b//c", "d=%20&e"),
        (b"/%C3%A9", "/\xc3\xa9", ""),
        ("/\u00e9?n=\u00e9".encode(), "/\xc3\xa9", "n=%C3%A9"),
        (b"http://elsewhere:1/a?b", "/a", "b"),
        (b"http://elsewhere", "/", ""),
        (b"*", "*", ""),
        (b"/?", "/", ""),
        (b"/a?b?c", "/a", "b?c"),
        (b"/%zz", "/%zz", ""),
    ],
)
def test_targets(target: bytes, path: str, query: str) -> None:
    method = b"OPTIONS" if target == b"*" else b"GET"
    environ = only(method + b" " + target + b" HTTP/1.1\r\nHost: h")
    assert (environ["PATH_INFO"], environ["QUERY_STRING"]) == (path, query)


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (b"\x00\x01 nonsense\r\n\r\n", 400),
        (b"BREW /pot HTTP/1.1\r\nHost: h\r\n\r\n", 501),
        (b"GET / HTTP/2.0\r\nHost: h\r\n\r\n", 505),
        (b"GET / HTTP/9.9\r\nHost: h\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: h\r\nContent-Length: hi mom\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", 400),
        (
            b"GET / HTTP/1.1\r\nHost:\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
            400,
        ),
        (b"GET / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: gzip\r\n\r\n", 400),
        (b"PUT / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", 501),
        (
            b"GET / HTTP/1.1\r\nHost:\r\nTransfer-Encoding:x\r\nTransfer-Encoding:chunked\r\n\r\n",
            501,
        ),
        (b"GET / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: h\r\nX-Bad: a\x00b\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: h\r\nX-Folded: a\r\n b\r\n\r\n", 400),
        (b"GET /\x01 HTTP/1.1\r\nHost: h\r\n\r\n", 400),
        (b"OPTIONS * RTSP/1.0\r\n\r\n", 400),
        (b"\r\nGET /a RTSP/1.1\r\nHost: h\r\n\r\n", 400),
        (b"SOURCE /x ICE/1.0\r\n\r\n", 400),
        (b"GET /\r\n\r\n", 400),
        (b"CONNECT h:1 HTTP/1.1\r\nHost: h\r\n\r\n", 400),
        (b"CONNECT http://h:1/ HTTP/1.1\r\nHost: h\r\n\r\n", 400),
    ],
)
def test_what_is_no_request_is_refused(data: bytes, status: int) -> None:
    assert understood(data) == ([], status)


def test_a_request_of_1_1_has_one_host_and_one_of_1_0_may_go_without() -> None:
    assert understood(b"GET / HTTP/1.1\r\n\r\n") == ([], 400)
    assert understood(b"GET / HTTP/1.1\r\n" + CHANGE + b"\r\n") == ([], 400)
    assert "HTTP_HOST" not in only(b"GET / HTTP/1.0")
    for version in (b"1.0", b"1.1"):
        head = b"GET / HTTP/" + version
        for several in (b"a", b"b", b""):
            double = b"\r\nHost: a\r\nHost: %b\r\n\r\n" % several
            assert understood(head + double) == ([], 400)


@pytest.mark.parametrize(
    "host",
    [
        *("", "h", "h:8778", "h:", "127.0.0.1:8778", "[::1]", "[fe80::1%25eth0]:8778", "[v1.a:b]"),
        *("one_two.example", "xn--e1afmkfd.example.", "a%2Fb", "x" * 300),
    ],
)
def test_hosts(host: str) -> None:
    for _ in range(2):
        assert only(f"GET / HTTP/1.1\r\nHost: {host}".encode())["HTTP_HOST"] == host


@pytest.mark.parametrize(
    "host",
    ["a b", "a,b", "a/b", "u@h", "http://h", "h:http", "h:80:80", "::1", "[::1", "a%2", "\u00e9"],
)
def test_what_is_no_host_is_refused(host: str) -> None:
    for version in ("1.0", "1.1"):
        head = f"GET / HTTP/{version}\r\nHost: {host}\r\n\r\n".encode()
        assert [understood(head) for _ in range(2)] == [([], 400)] * 2


def test_long_hosts_are_not_remembered() -> None:
    host = "long." * 1000
    assert only(f"GET / HTTP/1.1\r\nHost: {host}".encode())["HTTP_HOST"] == host
    assert host not in HOSTS


@pytest.mark.parametrize("line", [b"\r\n", b"\n"])
@pytest.mark.parametrize("size", [1, 3, 4, 1000])
def test_a_few_empty_lines_may_come_before_each_request(line: bytes, size: int) -> None:
    request = b"PUT / HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\nhi"
    data = (line * 8 + request) * 3
    requests, refusal = understood(*(data[at : at + size] for at in range(0, len(data), size)))
    assert ([body for *_, body, _ in requests], refusal) == ([b"hi"] * 3, None)
    data = request + line * 17 + request
    requests, refusal = understood(*(data[at : at + size] for at in range(0, len(data), size)))
    assert ([body for *_, body, _ in requests], refusal) == ([b"hi"], 400)


def test_what_follows_the_last_request_is_not_taken_for_one() -> None:
    requests, refusal = understood(b"GET / HTTP/1.1\r\nHost: h\r\n\r\nrubbish\r\n\r\n")
    assert (len(requests), refusal is None) == (1, False)


def test_a_head_without_end_is_refused_and_one_of_decent_length_is_not() -> None:
    line = b"X-Long: " + b"x" * 8000 + b"\r\n"
    head = b"GET / HTTP/1.1\r\nHost: h\r\n"
    fits = LONGEST_HEAD // len(line) - 1
    assert understood(head, *[line] * fits, b"\r\n")[1] is None
    assert understood(head, *[line] * (fits + 3)) == ([], 431)


@pytest.mark.parametrize("start", [b"0\r\nX-Late: ", b"5;"])
def test_what_comes_with_a_body_and_is_none_has_an_end(start: bytes) -> None:
    head = b"PUT / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"
    piece = b"x" * 8192
    fits = LONGEST_HEAD // len(piece) - 1
    assert understood(head, start, *[piece] * fits)[1] is None
    assert understood(head, start, *[piece] * (fits + 3)) == ([], 431)


def test_what_a_large_body_earns_is_not_for_what_follows_it() -> None:
    head = b"PUT / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"
    large = b"100000\r\n" + b"x" * 0x100000 + b"\r\n"
    assert understood(head, large, b"0\r\nX-Late: ", *[b"x" * 8192] * 40) == ([], 431)


def test_chunks_of_a_byte_may_be_as_many_as_there_are_bytes() -> None:
    head = b"PUT / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"
    [(*_, size)], refusal = understood(head, *[b"1\r\nx\r\n" * 10_000] * 20)
    assert (size, refusal) == (200_000, None)


def test_what_stands_around_chunks_is_in_proportion_to_them() -> None:
    head = b"PUT / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"
    chunk = b"1;x=" + b"y" * 1000 + b"\r\nx\r\n"
    fits = LONGEST_HEAD // len(chunk)
    assert understood(head, *[chunk] * fits)[1] is None
    assert understood(head, *[chunk] * fits * 2) == ([], 431)
    large = b"1000\r\n" + b"x" * 0x1000 + b"\r\n"
    assert understood(head, *[large, *[chunk] * 20] * fits)[1] is None


def test_a_body_in_small_chunks_takes_little_more_than_its_size() -> None:
    head = b"PUT / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"
    chunks = [b"%x\r\n%b\r\n" % (len(part), part) for part in PARTS]
    incoming = RequestParser({}, LONGEST)
    incoming.feed(head + b"".join(chunks))
    _, request = incoming.take_unfinished()
    assert b"".join(request.body) == b"".join(PARTS)
    assert len(request.body) == 5


def test_bodies_of_any_bytes_are_left_as_they_are() -> None:
    like_a_request = "PUT /\u00e9 HTTP/1.1\r\n".encode()
    head = b"PUT / HTTP/1.1\r\nHost: h\r\nContent-Length: %d\r\n\r\n" % len(like_a_request)
    [(_, _, complete, body, _)], _ = understood(head, like_a_request)
    assert (complete, body) == (True, like_a_request)


@pytest.mark.parametrize(
    ("head", "keeps"),
    [
        (b"GET / HTTP/1.1\r\nHost: h", True),
        (b"GET / HTTP/1.1\r\nHost: h\r\nConnection: close", False),
        (b"GET / HTTP/1.0", False),
        (b"GET / HTTP/1.0\r\nConnection: keep-alive", True),
    ],
)
def test_whether_the_client_goes_on(head: bytes, *, keeps: bool) -> None:
    [(_, found, *_)], _ = understood(head + b"\r\n\r\n")
    assert found is keeps


def test_long_names_of_headers_are_not_remembered() -> None:
    name = b"X-" + b"long" * 1000
    assert only(b"GET / HTTP/1.1\r\nHost: h\r\n" + name + b": 1")["HTTP_X_" + "LONG" * 1000] == "1"
    assert name not in KEYS
