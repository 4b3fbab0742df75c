"""Requests as bytes, and what a server may answer to each by RFC 9110 and RFC 9112.

After each the trial sends a probe, `GET /query?probe`, on the same connection. Where the case is
refused, or must be the last one, an answer to the probe is an error: it could be another's request.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

GET: Final = b"GET /query?a HTTP/1.1\r\n"
PUT: Final = b"PUT /echo HTTP/1.1\r\n"
HOST: Final = b"Host: h\r\n"
SMUGGLED: Final = b"GET /query?smuggled HTTP/1.1\r\nHost: h\r\n\r\n"
FRAMING, HEADS, TARGETS, PIPELINES, ANSWERS, SIZES = (
    *("framing", "heads", "targets", "pipelining", "answers", "sizes"),
)


@dataclass(frozen=True)
class Case:
    """One exchange: the outcomes that are right. None stands for the end without any answer."""

    group: str
    name: str
    data: bytes
    answers: tuple[tuple[int, bytes | None], ...] = ()
    """Status and body (None: any) of each answer where the case is understood."""
    goes_on: bool = True
    """Whether the probe after it is to be answered."""
    refused: bool = False
    """Whether it may be refused: one answer of 400 or more, or none, and the end."""
    method: str = "GET"

    @property
    def must_refuse(self) -> bool:
        """Whether nothing but a refusal is right."""
        return self.refused and not self.answers


def sha(body: bytes) -> bytes:
    """What `/echo` answers."""
    return hashlib.sha256(body).hexdigest()[:8].encode()


def _no(group: str, name: str, data: bytes) -> Case:
    return Case(group, name, data, refused=True)


def _ok(group: str, name: str, data: bytes, body: bytes | None = b"a", status: int = 200) -> Case:
    return Case(group, name, data, ((status, body),))


def _either(group: str, name: str, data: bytes, body: bytes | None = b"a") -> Case:
    return Case(group, name, data, ((200, body),), refused=True)


def _last(group: str, name: str, data: bytes, body: bytes | None) -> Case:
    """Refused, or answered and then the end."""
    return Case(group, name, data, ((200, body),), goes_on=False, refused=True)


def _heads() -> Iterator[Case]:
    get = GET + HOST
    for char in '()<>@,;:\\"/[]?={} \t':
        if char == ":":
            continue
        name = f"X{char}Y".encode()
        yield _no(HEADS, f"{char!r} in the name of a header", get + name + b": 1\r\n\r\n")
    yield _no(HEADS, "space before a colon", GET + b"Host : h\r\n\r\n")
    yield _no(HEADS, "tab before a colon", GET + b"Host\t: h\r\n\r\n")
    yield _no(HEADS, "header without a colon", get + b"nonsense\r\n\r\n")
    yield _no(HEADS, "header without a name", get + b": v\r\n\r\n")
    yield _no(HEADS, "space before the first header", GET + b" X: 1\r\n" + HOST + b"\r\n")
    for what, byte in (("NUL", b"\0"), ("bare CR", b"\r"), ("BEL", b"\7"), ("DEL", b"\x7f")):
        yield _no(HEADS, f"{what} in a value", get + b"X: a" + byte + b"b\r\n\r\n")
        yield _no(HEADS, f"{what} in a name", get + b"X" + byte + b"Y: 1\r\n\r\n")
    yield _either(HEADS, "folded header", get + b"X: a\r\n b\r\n\r\n")
    yield _either(HEADS, "lines that end in LF", b"GET /query?a HTTP/1.1\nHost: h\n\n")
    yield _no(HEADS, "no Host", GET + b"\r\n")
    yield _no(HEADS, "two Hosts", get + b"Host: g\r\n\r\n")
    yield _no(HEADS, "the same Host twice", get + HOST + b"\r\n")
    for host in ("a b", "a,b", "a/b", "u@h", "http://h", "h:http", "h:80:80", "[::1", "a%2"):
        yield _no(HEADS, f"Host: {host}", GET + f"Host: {host}\r\n\r\n".encode())
    for host in ("", "h:8778", "127.0.0.1:8778", "[::1]", "one_two.example", "x" * 300):
        yield _ok(HEADS, f"Host: {host[:20]}", GET + f"Host: {host}\r\n\r\n".encode())
    value = b"GET /header?HTTP_X_A HTTP/1.1\r\nHost: h\r\n"
    yield _ok(HEADS, "space around a value", value + b"X-A: \t a b \t\r\n\r\n", b"'a b'")
    yield _ok(HEADS, "a header twice", value + b"X-A: 1\r\nx-a: 2\r\n\r\n", None)
    yield _ok(HEADS, "an underscore is no hyphen", value + b"X_A: 1\r\n\r\n", b"None")
    yield _ok(HEADS, "neither beside one", value + b"X-A: 1\r\nX_A: 2\r\n\r\n", b"'1'")
    yield _ok(HEADS, "Latin-1 in a value", value + b"X-A: \xe9\r\n\r\n", None)


def _framing() -> Iterator[Case]:
    put = PUT + HOST
    hello = sha(b"hello")
    for length in ("hi", "-5", "+5", "0x5", "5 5", "5,6", "1e1", "5.0", "5_0", "\u0665", ""):
        sent = put + f"Content-Length: {length}\r\n\r\n".encode() + b"hello"
        yield _no(FRAMING, f"Content-Length: {length!a}", sent)
    yield _no(FRAMING, "a length of 40 digits", put + b"Content-Length: " + b"9" * 40 + b"\r\n\r\n")
    two = b"Content-Length: 5\r\nContent-Length: %d\r\n\r\nhello"
    yield _no(FRAMING, "two lengths", put + two % 6)
    yield _either(FRAMING, "the same length twice", put + two % 5, hello)
    yield _either(
        FRAMING, "Content-Length: 5, 5", put + b"Content-Length: 5, 5\r\n\r\nhello", hello
    )
    yield _ok(
        FRAMING, "a length with leading zeros", put + b"Content-Length: 005\r\n\r\nhello", hello
    )
    yield _no(FRAMING, "space before a length's colon", put + b"Content-Length : 5\r\n\r\nhello")
    chunked, chunks = b"Transfer-Encoding: chunked\r\n", b"5\r\nhello\r\n0\r\n\r\n"
    header = b"Content-Length: %d\r\n" % len(chunks)
    for what, heads in (
        ("length, then chunks", header + chunked),
        ("chunks, then length", chunked + header),
        ("chunks and a short length", chunked + b"Content-Length: 4\r\n"),
        ("chunks and a length that hides a request", chunked + b"Content-Length: 60\r\n"),
    ):
        yield _last(FRAMING, what, put + heads + b"\r\n" + chunks, hello)
    for coding in (
        *("gzip", "identity", "chunked, gzip", "chunked, identity", "xchunked", "chunkedx"),
        *("chunked, chunked", "chunked;a=b", "\x0bchunked", "chunked\x0c", '"chunked"', "chun ked"),
        *("gzip, chunked", "chunked,", "\xa0chunked", "c\0hunked"),
    ):
        sent = put + f"Transfer-Encoding: {coding}\r\n\r\n".encode("latin-1") + chunks
        made = _last if coding in {"chunked,", "gzip, chunked"} else None
        name = f"Transfer-Encoding: {coding!a}"
        yield _last(FRAMING, name, sent, hello) if made else _no(FRAMING, name, sent)
    for coding in ("Chunked", " chunked ", "\tchunked"):
        sent = put + f"Transfer-Encoding:{coding}\r\n\r\n".encode() + chunks
        yield _ok(FRAMING, f"Transfer-Encoding:{coding!a}", sent, hello)
    yield _no(FRAMING, "chunked twice", put + chunked * 2 + b"\r\n" + chunks)
    yield _no(
        FRAMING, "space before a coding's colon", put + chunked.replace(b":", b" :") + b"\r\n"
    )
    yield _no(
        FRAMING,
        "a coding on the next line",
        put + b"Transfer-Encoding:\r\n chunke\r\n\r\n" + chunks,
    )
    yield _last(
        FRAMING, "chunks in HTTP/1.0", b"PUT /echo HTTP/1.0\r\n" + chunked + b"\r\n" + chunks, hello
    )
    under = b"Transfer_Encoding: chunked\r\nContent-Length: %d\r\n\r\n" % len(chunks)
    yield _ok(FRAMING, "an underscore frames nothing", put + under + chunks, sha(chunks))
    get = b"GET /query?a HTTP/1.1\r\nHost: h\r\nContent-Length: %d\r\n\r\n" % len(SMUGGLED)
    yield _ok(FRAMING, "a body of a GET is no request", get + SMUGGLED)
    yield _ok(
        FRAMING, "a body that nobody reads is no request", get.replace(b"GET", b"POST") + SMUGGLED
    )
    yield from _chunks(put + chunked + b"\r\n")


def _chunks(head: bytes) -> Iterator[Case]:
    hello = sha(b"hello")
    for name, body in (
        ("a size that is no number", b"g\r\nhello\r\n0\r\n\r\n"),
        ("a negative size", b"-5\r\nhello\r\n0\r\n\r\n"),
        ("a size with a plus", b"+5\r\nhello\r\n0\r\n\r\n"),
        ("0x before a size", b"0x5\r\nhello\r\n0\r\n\r\n"),
        ("an underscore in a size", b"0_5\r\nhello\r\n0\r\n\r\n"),
        ("space before a size", b" 5\r\nhello\r\n0\r\n\r\n"),
        ("no size", b"\r\nhello\r\n0\r\n\r\n"),
        ("a size beyond 64 bits", b"10000000000000005\r\nhello\r\n0\r\n\r\n"),
        ("data longer than its size", b"5\r\nhelloX\r\n0\r\n\r\n"),
        ("two other bytes after data", b"5\r\nhelloXY0\r\n\r\n"),
        ("data without an end", b"5\r\nhello0\r\n\r\n"),
        ("bare CR in an extension", b"5;a\rb\r\nhello\r\n0\r\n\r\n"),
        ("bare CR after a size", b"5\rXhello\r\n0\r\n\r\n"),
        ("NUL in an extension", b"5;a\0\r\nhello\r\n0\r\n\r\n"),
    ):
        yield _no(FRAMING, f"chunk: {name}", head + body)
    for name, body in (
        ("an extension", b"5;a=b\r\nhello\r\n0\r\n\r\n"),
        ("an extension without a value", b"5;a\r\nhello\r\n0\r\n\r\n"),
        ("a quoted extension", b'5;a="b;c"\r\nhello\r\n0\r\n\r\n'),
        ("an extension of the last one", b"5\r\nhello\r\n0;a\r\n\r\n"),
        ("leading zeros", b"0005\r\nhello\r\n000\r\n\r\n"),
        ("two of them", b"2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n"),
        ("a trailer", b"5\r\nhello\r\n0\r\nX-Late: 1\r\n\r\n"),
    ):
        yield _ok(FRAMING, f"chunk: {name}", head + body, hello)
    ten = b"A\r\n0123456789\r\n0\r\n\r\n"
    for name, body in (("capital hex", ten), ("small hex", ten.lower())):
        yield _ok(FRAMING, f"chunk: {name}", head + body, sha(b"0123456789"))
    yield _either(FRAMING, "chunk: space after a size", head + b"5 \r\nhello\r\n0\r\n\r\n", hello)
    yield _either(FRAMING, "chunk: a line that ends in LF", head + b"5\nhello\r\n0\r\n\r\n", hello)
    framed = b"5\r\nhello\r\n0\r\nContent-Length: 9\r\n\r\n"
    yield _either(FRAMING, "chunk: a length among trailers", head + framed, hello)
    late = b"PUT /header?HTTP_X_LATE HTTP/1.1\r\n" + head.partition(b"\r\n")[2]
    sent = late + b"5\r\nhello\r\n0\r\nX-Late: 1\r\n\r\n"
    yield _ok(FRAMING, "chunk: a trailer is no header", sent, b"None")


def _targets() -> Iterator[Case]:
    rest = b" HTTP/1.1\r\nHost: h\r\n\r\n"
    for target, found in (
        ("http://elsewhere:1/query?a", b"a"),
        ("https://elsewhere/query?a", b"a"),
        ("HTTP://elsewhere/query?a", b"a"),
        ("/path%2Fb//c?d=%20&e", b"/path/b//c d=%20&e"),
        ("/path/%C3%A9", b"/path/\xc3\xa9 "),
        ("/path?b?c", b"/path b?c"),
        ("/path/?", b"/path/ "),
        ("//query?a", None),
    ):
        yield _ok(TARGETS, target, b"GET " + target.encode() + rest, found)
    yield _ok(TARGETS, "http://elsewhere", b"GET http://elsewhere?a" + rest, None)
    yield _ok(TARGETS, "OPTIONS *", b"OPTIONS *" + rest, None)
    for name, line in (
        ("no protocol", b"GET /\r\n" + HOST + b"\r\n"),
        ("a target without a slash", b"GET query" + rest),
        ("a control character in a target", b"GET /query?\x01" + rest),
        ("a space in a target", b"GET /query? a" + rest),
        ("another protocol", b"OPTIONS * RTSP/1.0\r\n\r\n"),
        ("one more", b"SOURCE /x ICE/1.0\r\n\r\n"),
        ("the protocol in small letters", b"GET / http/1.1\r\nHost: h\r\n\r\n"),
        ("HTTP/9.9", b"GET / HTTP/9.9\r\nHost: h\r\n\r\n"),
        ("HTTP/2.0", b"GET / HTTP/2.0\r\nHost: h\r\n\r\n"),
        ("HTTP/1.1x", b"GET / HTTP/1.1x\r\nHost: h\r\n\r\n"),
        ("HTTP/1", b"GET / HTTP/1\r\nHost: h\r\n\r\n"),
        ("HTTP/11.1", b"GET / HTTP/11.1\r\nHost: h\r\n\r\n"),
        ("a bracket in a method", b"G(T / HTTP/1.1\r\nHost: h\r\n\r\n"),
        ("no method", b" / HTTP/1.1\r\nHost: h\r\n\r\n"),
        ("bytes that are no text", b"\x00\x01\x02 nonsense\r\n\r\n"),
        ("a TLS greeting", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n"),
        ("CONNECT", b"CONNECT h:1 HTTP/1.1\r\nHost: h:1\r\n\r\n"),
    ):
        yield _no(TARGETS, name, line)
    yield _either(TARGETS, "two spaces", b"GET  /query?a" + rest)
    yield _either(TARGETS, "a method nobody knows", b"BREW /query?a" + rest)
    yield _either(TARGETS, "a fragment", b"GET /query?a#b" + rest, None)
    yield _either(TARGETS, "raw UTF-8", "GET /path/\u00e9".encode() + rest, None)
    yield Case(
        *(TARGETS, "HTTP/1.0 without Host", b"GET /query?a HTTP/1.0\r\n\r\n", ((200, b"a"),)),
        goes_on=False,
    )
    kept = b"GET /query?a HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"
    yield _ok(TARGETS, "HTTP/1.0 that goes on", kept)


def _pipelines() -> Iterator[Case]:
    one = b"GET /query?%d HTTP/1.1\r\nHost: h\r\n\r\n"
    for count in (2, 10, 100):
        sent = b"".join(one % number for number in range(count))
        found = tuple((200, b"%d" % number) for number in range(count))
        yield Case(PIPELINES, f"{count} at once", sent, found)
    put = PUT + HOST + b"Content-Length: 5\r\n\r\nhello"
    chunked = PUT + HOST + b"Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"
    hello = (200, sha(b"hello"))
    yield Case(PIPELINES, "bodies", put + chunked + put, (hello,) * 3)
    yield Case(PIPELINES, "a body and none", put + one % 1, (hello, (200, b"1")))
    mixed = one % 1 + b"GET /stream?1 HTTP/1.1\r\nHost: h\r\n\r\n" + one % 2
    yield Case(PIPELINES, "a stream between", mixed, ((200, b"1"), (200, None), (200, b"2")))
    end = GET + HOST + b"Connection: close\r\n\r\n" + SMUGGLED
    yield Case(PIPELINES, "nothing after the last", end, ((200, b"a"),), goes_on=False)
    yield _ok(PIPELINES, "an empty line before", b"\r\n" + GET + HOST + b"\r\n")
    change = b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n"
    yield _ok(PIPELINES, "an upgrade that nobody offers", GET + HOST + change + b"\r\n")
    length = b"Content-Length: 5\r\n\r\nhello"
    yield Case(PIPELINES, "one with a body", PUT + HOST + change + length, (hello,))
    yield Case(
        *(PIPELINES, "nonsense after one", GET + HOST + b"\r\nnonsense\r\n\r\n"),
        ((200, b"a"),),
        goes_on=False,
    )


def _answers() -> Iterator[Case]:
    for path in ("/query?a", "/size?1", "/stream?2", "/path"):
        sent = f"HEAD {path} HTTP/1.1\r\nHost: h\r\n\r\n".encode()
        yield Case(ANSWERS, f"HEAD {path}", sent, ((200, b""),), method="HEAD")
    for status in (204, 304):
        sent = b"GET /nothing?%d HTTP/1.1\r\nHost: h\r\n\r\n" % status
        yield Case(ANSWERS, f"{status} has no body", sent, ((status, b""),))
    get = "GET {} HTTP/1.1\r\nHost: h\r\n\r\n"
    yield _ok(ANSWERS, "a stream", get.format("/stream?2").encode(), b"s" * (2 << 16))
    sent = get.format("/short").encode()
    yield Case(ANSWERS, "a short body ends the connection", sent, ((-1, None),), goes_on=False)
    sent = get.format("/breaks").encode()
    yield Case(ANSWERS, "a broken stream looks broken", sent, ((-1, None),), goes_on=False)
    sent = b"GET /stream?2 HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"
    whole = ((200, b"s" * (2 << 16)),)
    yield Case(ANSWERS, "a stream for HTTP/1.0", sent, whole, goes_on=False)


def _sizes() -> Iterator[Case]:
    get = GET + HOST
    yield _ok(SIZES, "a header of 8 kB", get + b"X: " + b"x" * 8000 + b"\r\n\r\n")
    yield _ok(SIZES, "a header of 60 kB", get + b"X: " + b"x" * 60_000 + b"\r\n\r\n")
    yield _ok(SIZES, "90 headers", get + b"".join(b"X-%d: 1\r\n" % n for n in range(90)) + b"\r\n")
    yield _ok(
        SIZES,
        "a target of 8 kB",
        b"GET /path?" + b"x" * 8000 + b" HTTP/1.1\r\nHost: h\r\n\r\n",
        None,
    )
    yield _no(SIZES, "a header of 1 MB", get + b"X: " + b"x" * (1 << 20) + b"\r\n\r\n")
    many = b"".join(b"X-%d: %b\r\n" % (n, b"x" * 100) for n in range(10_000))
    yield _no(SIZES, "10,000 headers", get + many + b"\r\n")
    yield _no(
        SIZES, "a target of 1 MB", b"GET /" + b"x" * (1 << 20) + b" HTTP/1.1\r\nHost: h\r\n\r\n"
    )
    chunked = PUT + HOST + b"Transfer-Encoding: chunked\r\n\r\n"
    yield _no(
        SIZES,
        "an extension of 1 MB",
        chunked + b"5;" + b"x" * (1 << 20) + b"\r\nhello\r\n0\r\n\r\n",
    )
    late = b"5\r\nhello\r\n0\r\nX: " + b"x" * (1 << 20) + b"\r\n\r\n"
    yield _no(SIZES, "a trailer of 1 MB", chunked + late)
    yield _no(SIZES, "blank lines without end", b"\r\n" * 50_000)


CASES: Final = (*_heads(), *_framing(), *_targets(), *_pipelines(), *_answers(), *_sizes())
