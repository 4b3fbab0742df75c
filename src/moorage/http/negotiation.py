"""Content negotiation: Accept and Content-Type (RFC 9110, sections 8.3 and 12.5.1)."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

JSON_TYPE: Final = "application/json"

_KEPT: Final = 256
"""Headers whose meaning is kept: clients send few different ones."""

_SPACE: Final = r"[ \t]*"
_WORD: Final = r"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
_QUOTED: Final = r'"(?:[\t \x21\x23-\x5b\x5d-\x7e\x80-\xff]|\\[\t \x21-\x7e\x80-\xff])*"'
_VALUE: Final = f"(?:{_WORD}|{_QUOTED})"
_PARAMETERS: Final = f"(?:{_SPACE};{_SPACE}(?![qQ]=){_WORD}={_VALUE})*"
_QUALITY: Final = r"0(?:\.[0-9]{0,3})?|1(?:\.0{0,3})?"
_EXTENSIONS: Final = f"(?:{_SPACE};{_SPACE}{_WORD}(?:={_VALUE})?)*"
_RANGE: Final = re.compile(
    f"(?P<type>{_WORD})/(?P<subtype>{_WORD})(?P<parameters>{_PARAMETERS})"
    f"(?:{_SPACE};{_SPACE}[qQ]=(?P<quality>{_QUALITY}){_EXTENSIONS})?"
)
_BETWEEN: Final = re.compile(r"[ \t,]*")
_PLAIN: Final = re.sub(r"\?P<[a-z]+>", "?:", _RANGE.pattern)
_LIST: Final = re.compile(f"(?:,|{_PLAIN})(?:{_SPACE},(?:{_SPACE}{_PLAIN})?)*")


@lru_cache(maxsize=_KEPT)
def accepts(accept: str | None, media_type: str) -> bool:
    """Whether the client accepts `media_type`; without a readable header it accepts everything.

    The most exact range that covers the type decides. One with parameters of its own, such as
    `application/json;version=1`, covers no type that has none.
    """
    if not accept or _LIST.fullmatch(accept) is None:
        return True
    main, _, sub = media_type.partition("/")
    covering = [
        ((kind != "*") + (subkind != "*"), quality)
        for kind, subkind, parameters, quality in _ranges(accept)
        if not (parameters and "*" not in {kind, subkind})
        and (kind, subkind) in {("*", "*"), (main, "*"), (main, sub)}
    ]
    return bool(covering) and max(covering, key=lambda one: one[0])[1] > 0


def _ranges(accept: str) -> list[tuple[str, str, str, float]]:
    """Type, subtype, parameters and quality of each media range of a list of them."""
    found = []
    one = _RANGE.match(accept, _after(accept, 0))
    while one is not None:
        kind, subkind = one["type"].lower(), one["subtype"].lower()
        found.append((kind, subkind, one["parameters"], float(one["quality"] or 1)))
        one = _RANGE.match(accept, _after(accept, one.end()))
    return found


def _after(accept: str, position: int) -> int:
    """Where the next range begins."""
    between = _BETWEEN.match(accept, position)
    return position if between is None else between.end()


@lru_cache(maxsize=_KEPT)
def media_type(content_type: str | None) -> str:
    """The bare media type of a Content-Type header, lower case, without parameters."""
    return (content_type or "").split(";")[0].strip().lower()


_CODING: Final = re.compile(
    rf"(?P<name>{_WORD}){_SPACE}(?:;{_SPACE}[qQ]=(?P<quality>{_QUALITY}))?{_SPACE}"
)


@lru_cache(maxsize=_KEPT)
def accepts_gzip(accept_encoding: str | None) -> bool:
    """Whether the client takes a gzipped body (RFC 9110, 12.5.3); not one that says nothing."""
    qualities: dict[str, float] = {}
    for coding in (accept_encoding or "").split(","):
        match = _CODING.fullmatch(coding.strip())
        if match is not None:
            qualities[match["name"].lower()] = float(match["quality"] or 1)
    return qualities.get("gzip", qualities.get("*", 0.0)) > 0
