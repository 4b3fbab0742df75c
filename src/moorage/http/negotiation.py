"""What a client accepts and what it sends: just enough of RFC 9110, sections 8.3 and 12.5.1."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

JSON_TYPE: Final = "application/json"

_KEPT: Final = 256
"""Headers whose meaning is kept: clients send few different ones."""


@dataclass(frozen=True, slots=True)
class MediaRange:
    """One entry of an Accept header."""

    type: str
    subtype: str
    quality: float

    def matches(self, media_type: str) -> bool:
        """Whether the range covers a media type such as `application/json`."""
        main, _, sub = media_type.partition("/")
        return self.type in {"*", main} and self.subtype in {"*", sub}

    @property
    def precision(self) -> int:
        """How exact the range is; a more exact one decides."""
        return (self.type != "*") + (self.subtype != "*")


def media_ranges(accept: str) -> Iterator[MediaRange]:
    """Read an Accept header; entries that are no media range are passed over."""
    for entry in accept.split(","):
        name, *parameters = (part.strip() for part in entry.split(";"))
        main, slash, sub = name.lower().partition("/")
        if not slash or not main or not sub:
            continue
        quality = 1.0
        for parameter in parameters:
            key, _, value = parameter.partition("=")
            if key.strip().lower() == "q":
                try:
                    quality = float(value)
                except ValueError:
                    quality = 0.0
        yield MediaRange(main, sub, quality)


@lru_cache(maxsize=_KEPT)
def accepts(accept: str | None, media_type: str) -> bool:
    """Whether an answer of `media_type` is welcome; without a usable header everything is."""
    if not accept:
        return True
    ranges = [one for one in media_ranges(accept) if one.matches(media_type)]
    if not ranges:
        return False
    best = max(ranges, key=lambda one: one.precision)
    return best.quality > 0


@lru_cache(maxsize=_KEPT)
def media_type(content_type: str | None) -> str:
    """The bare media type of a Content-Type header, lower case, without parameters."""
    return (content_type or "").split(";")[0].strip().lower()
