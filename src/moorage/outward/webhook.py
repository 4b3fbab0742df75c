"""Tell a URL: POST with JSON, signed where there is a secret."""

from __future__ import annotations

import hashlib
import hmac
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

import httpx

from moorage.outward.bounded import within
from moorage.usecases.effects import OutwardFailure

if TYPE_CHECKING:
    from collections.abc import Mapping

    from moorage.usecases.effects import Message

SIGNATURE: Final = "X-Moorage-Signature"
"""`sha256=` and the HMAC of the body, in hexadecimal."""

_GOOD: Final = range(200, 300)


@dataclass(frozen=True, slots=True)
class Webhook:
    """A URL that is told. What it answers with a status of 200 to 299 counts as heard."""

    url: str
    secret: str
    timeout: float
    """Seconds for all of it: name, connection, request and answer."""

    def __call__(self, message: Message) -> str:
        """Tell it.

        Raises:
            OutwardFailure: it was not reached, took too long, or answered anything else.
        """
        status, _ = posted(
            self.url, message.body, {"Idempotency-Key": message.id}, self.secret, self.timeout
        )
        place = where(self.url)
        if status not in _GOOD:
            raise OutwardFailure(f"{place} answered {status}")
        return f"{place} answered {status}"


def posted(
    url: str,
    told: Mapping[str, object],
    named: Mapping[str, str],
    secret: str,
    timeout: float,
    keep: int = 0,
) -> tuple[int, bytes]:
    """Post JSON: the status of the answer, and its beginning.

    Args:
        url: where to.
        told: the body.
        named: headers, beside the usual ones.
        secret: what to sign with; empty: not signed.
        timeout: seconds for all of it.
        keep: how many bytes of the answer are read, more or less.

    Raises:
        OutwardFailure: nobody was reached, or it took too long.
    """
    body = json.dumps(told, separators=(",", ":")).encode()
    headers = {"Content-Type": "application/json", "User-Agent": "moorage", **named}
    if secret:
        headers[SIGNATURE] = signature(secret, body)
    place = where(url)
    try:
        return within(timeout, place, lambda: _post(url, body, headers, timeout, keep))
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise OutwardFailure(f"{place}: {str(error) or type(error).__name__}") from error


def signature(secret: str, body: bytes) -> str:
    """What a receiver computes, too, and compares."""
    return "sha256=" + hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()


def where(url: str) -> str:
    """Where the URL leads, without the secrets that its path or query may hold."""
    parts = urlsplit(url)
    return f"{parts.hostname}:{parts.port}" if parts.port else str(parts.hostname)


def _post(
    url: str, body: bytes, headers: dict[str, str], timeout: float, keep: int
) -> tuple[int, bytes]:
    """The answer's status and beginning. Where it leads elsewhere nobody follows."""
    answer = b""
    with (
        httpx.Client(timeout=timeout, follow_redirects=False, trust_env=False) as client,
        client.stream("POST", url, content=body, headers=headers) as reply,
    ):
        parts = reply.iter_bytes() if keep else ()
        for part in parts:
            answer += part
            if len(answer) >= keep:
                break
        return reply.status_code, answer
