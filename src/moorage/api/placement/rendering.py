"""Encodes answers as bytes and headers."""

from __future__ import annotations

import time
from email.utils import formatdate
from functools import lru_cache
from html import escape
from http import HTTPStatus
from typing import TYPE_CHECKING, Final, TypeAlias

import msgspec

from moorage.api.placement.refusals import UNDEFINED
from moorage.http.negotiation import JSON_TYPE, accepts
from moorage.http.transport.body_parts import BodyParts, packed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from moorage.api.placement.refusals import Refusal
    from moorage.domain.period import Instant
    from moorage.http.microversion import JSON, Response

_STOCK: Final = {
    400: "The server could not comply with the request since it is either malformed or otherwise "
    "incorrect.",
    403: "Access was denied to this resource.",
    404: "The resource could not be found.",
    406: "The resource could not be generated that was acceptable to your browser (content of "
    "type {accept}).",
    409: "There was a conflict when trying to complete your request.",
    415: "The request media type {content_type} is not supported by this server.",
    500: "The server has either erred or is incapable of performing the requested operation.",
    503: "The server is currently unavailable. Please try again at a later time.",
}
"""The sentence each status opens with, as the reference's framework words it."""

MICROSECONDS: Final = 1_000_000


def success_headers(
    response: Response, body: Sequence[bytes] | BodyParts, base: str
) -> list[tuple[str, str]]:
    """Headers of a handler's answer; `base` is scheme, host and mount point."""
    headers = []
    if response.body is not None:
        headers.append(("content-type", JSON_TYPE))
    length = body.size if isinstance(body, BodyParts) else sum(map(len, body))
    headers.append(("content-length", str(length)))
    if response.location is not None:
        headers.append(("location", base + response.location))
    if response.modified is not None:
        if not response.undated:
            headers.append(("last-modified", _http_date(response.modified // MICROSECONDS)))
        headers.append(("cache-control", "no-cache"))
    return headers


def just_now() -> Instant:
    """The `last-modified` of records without a known time: now, as the reference has it.

    By this machine's clock, as every date of HTTP: the ledger's is asked of its database.
    """
    return time.time_ns() // 1000


@lru_cache(maxsize=256)
def _http_date(seconds: int) -> str:
    return formatdate(seconds, usegmt=True)


Text: TypeAlias = bytes | memoryview
"""Some of a body, perhaps seen inside of a longer text."""


class Assembled(tuple[Text, ...]):
    """A JSON body joined from texts, which are copied once, as they are sent."""

    __slots__ = ()


def assembled(*texts: bytes | Sequence[Text]) -> Assembled:
    """The body of these texts and sequences of texts."""
    parts: list[Text] = []
    for one in texts:
        if isinstance(one, bytes):
            parts.append(one)
        else:
            parts.extend(one)
    return Assembled(parts)


def encoded(body: JSON) -> list[bytes] | BodyParts:
    """A body as texts to send in order; none for no body."""
    if body is None:
        return []
    return packed(body) if isinstance(body, Assembled) else [msgspec.json.encode(body)]


def detail(status: int, message: str, *, method: str, accept: str, content_type: str) -> str:
    """The stock sentence, then the message. Line breaks in it become spaces."""
    stock = _STOCK.get(status, "").format(accept=accept, content_type=content_type)
    if status == HTTPStatus.METHOD_NOT_ALLOWED:
        stock = f"The method {method} is not allowed for this resource."
    return f"{stock}\n\n " + message.replace("\n", " ")


def refusal_body(
    refusal: Refusal,
    text: str,
    request_id: str,
    *,
    has_codes: bool,
    versions: tuple[str, str] | None = None,
) -> JSON:
    """The error document; `versions` (minimum, maximum) only when none could be agreed on."""
    error: dict[str, object] = {
        "status": refusal.status,
        "title": HTTPStatus(refusal.status).phrase,
        "detail": text,
    }
    if has_codes:
        error["code"] = refusal.code or UNDEFINED
    error["request_id"] = request_id
    if versions is not None:
        error["min_version"], error["max_version"] = versions
    return {"errors": [error]}


def refusal_page(accept: str | None, status: int, text: str, document: JSON) -> tuple[str, bytes]:
    """Content type and bytes of an error: JSON, unless only HTML or plain text is accepted."""
    if accepts(accept, JSON_TYPE):
        return JSON_TYPE, b"".join(encoded(document))
    title = f"{status} {HTTPStatus(status).phrase}"
    if accepts(accept, "text/html"):
        page = (
            f"<html>\n <head>\n  <title>{title}</title>\n </head>\n <body>\n"
            f"  <h1>{title}</h1>\n  {escape(text)}\n </body>\n</html>"
        )
        return "text/html; charset=UTF-8", page.encode()
    return "text/plain; charset=UTF-8", f"{title}\n\n{text}".encode()
