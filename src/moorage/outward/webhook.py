"""Posts JSON to a webhook, signed if there is a secret."""

from __future__ import annotations

import hashlib
import hmac
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from moorage.client.certificates import trusted_at
from moorage.outward.timeout import call_with_timeout
from moorage.usecases.effect_dispatch import OutwardFailure

if TYPE_CHECKING:
    from collections.abc import Mapping

    from moorage.usecases.effect_dispatch import Message

SIGNATURE: Final = "X-Moorage-Signature"
"""`sha256=` and the HMAC of the body, in hexadecimal."""

_GOOD: Final = range(200, 300)


@dataclass(frozen=True, slots=True)
class WebhookClient:
    """A webhook. A status of 200 to 299 counts as delivered."""

    url: str
    secret: str
    timeout: float
    """Seconds for all of it: name, connection, request and answer."""

    def __call__(self, message: Message) -> str:
        """Post the message.

        Raises:
            OutwardFailure: it was not reached, took too long, or answered anything else.
        """
        status, _ = post_json(
            self.url, message.body, {"Idempotency-Key": message.id}, self.secret, self.timeout
        )
        place = url_origin(self.url)
        if status not in _GOOD:
            raise OutwardFailure(f"{place} answered {status}")
        return f"{place} answered {status}"


def post_json(
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
        OutwardFailure: the target could not be reached, or took too long.
    """
    body = json.dumps(told, separators=(",", ":")).encode()
    headers = {"Content-Type": "application/json", "User-Agent": "moorage", **named}
    if secret:
        headers[SIGNATURE] = signature(secret, body)
    place = url_origin(url)
    import httpx  # noqa: PLC0415 - few services call anybody, and each would start a tenth later

    try:
        return call_with_timeout(timeout, place, lambda: _post(url, body, headers, timeout, keep))
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise OutwardFailure(f"{place}: {str(error) or type(error).__name__}") from error


def signature(secret: str, body: bytes) -> str:
    """The signature that a receiver verifies."""
    return "sha256=" + hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()


def url_origin(url: str) -> str:
    """The URL without path and query, which may hold secrets."""
    parts = urlsplit(url)
    return f"{parts.hostname}:{parts.port}" if parts.port else str(parts.hostname)


def _post(
    url: str, body: bytes, headers: dict[str, str], timeout: float, keep: int
) -> tuple[int, bytes]:
    """The answer's status and beginning. Redirects are not followed."""
    import httpx  # noqa: PLC0415 - as above

    answer = b""
    with (
        httpx.Client(
            timeout=timeout, follow_redirects=False, trust_env=False, verify=trusted_at(url)
        ) as client,
        client.stream("POST", url, content=body, headers=headers) as reply,
    ):
        parts = reply.iter_bytes() if keep else ()
        for part in parts:
            answer += part
            if len(answer) >= keep:
                break
        return reply.status_code, answer
