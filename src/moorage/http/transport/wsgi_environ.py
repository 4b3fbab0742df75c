"""WSGI environ keys and values from request heads: headers, path and query."""

from __future__ import annotations

import ipaddress
import re
from typing import Final
from urllib.parse import unquote_to_bytes

from httptools import parse_url


def own_address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    """The IP address of a peer from the text its socket gives.

    A socket for both families shows an IPv4 client as ::ffff:10.0.0.1.

    Raises:
        ValueError: the text is no address.
    """
    found = ipaddress.ip_address(text)
    mapped = found.ipv4_mapped if isinstance(found, ipaddress.IPv6Address) else None
    return mapped or found


_RAW: Final = re.compile(rb"[\x80-\xff]")
_MOST_KNOWN: Final = 1024
"""Spellings of header names that are remembered, and as many hosts."""
_LONGEST_KNOWN: Final = 64
"""Bytes of one that is remembered: what is made up could be as long as a head."""
_PLAIN: Final = {"CONTENT-TYPE": "CONTENT_TYPE", "CONTENT-LENGTH": "CONTENT_LENGTH"}
NOWHERE: Final = ""
"""The key of headers that no environ has."""
KEYS: Final[dict[bytes, str]] = {}
"""A cache of `key_of`."""
_HOST: Final = re.compile(
    r"(?:\[[0-9A-Za-z:._~%-]+\]|(?:[0-9A-Za-z._~!$&'()*+;=-]|%[0-9A-Fa-f]{2})*)(?::[0-9]*)?"
)
"""`uri-host [":" port]`, without the comma: it stands between the values of several headers."""
HOSTS: Final = {""}
"""What `is_host` found good before, and what names no host, as a target without one has it."""


def key_of(name: bytes) -> str:
    """The environ key of a header.

    A proxy distinguishes names with an underscore from the same with a hyphen, WSGI does not: they
    are left out, as proxies do.
    """
    text = name.decode("latin-1").upper()
    key = NOWHERE if "_" in text else _PLAIN.get(text) or f"HTTP_{text.replace('-', '_')}"
    if len(KEYS) < _MOST_KNOWN and len(name) <= _LONGEST_KNOWN:
        KEYS[name] = key
    return key


def is_host(text: str) -> bool:
    """Whether this is a valid value of one Host header (RFC 9112, 3.2)."""
    good = _HOST.fullmatch(text) is not None
    if good and len(HOSTS) < _MOST_KNOWN and len(text) <= _LONGEST_KNOWN:
        HOSTS.add(text)
    return good


def encoded(data: bytes) -> bytes:
    """The beginning of a request with its target percent-encoded to ASCII.

    llhttp refuses raw UTF-8 there, in accordance with RFC 3986; users type it all the same.
    """
    line, end, rest = data.partition(b"\r\n")
    return _RAW.sub(lambda found: b"%%%02X" % found[0][0], line) + end + rest


def split(target: bytes) -> tuple[str, str]:
    """The path as WSGI has it, its decoded bytes as Latin-1, and the query as it came.

    Raises:
        HttpParserInvalidURLError: it is no target of a request.
    """
    if target[:1] != b"/" and target != b"*":  # with scheme and host, as for a proxy
        found = parse_url(target)
        target = b"%b?%b" % (found.path or b"/", found.query or b"")
    target = target.partition(b"#")[0]
    path, _, query = target.partition(b"?")
    if b"%" in path:
        path = unquote_to_bytes(path)
    return path.decode("latin-1"), query.decode("latin-1")
