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
        body = json.dumps(message.body, separators=(",", ":")).encode()
        headers = {
            "Content-Type": "application/json",
            "Idempotency-Key": message.id,
            "User-Agent": "moorage",
        }
        if self.secret:
            headers[SIGNATURE] = signature(self.secret, body)
        where = _host(self.url)
        try:
            status = within(
                self.timeout, where, lambda: _post(self.url, body, headers, self.timeout)
            )
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise OutwardFailure(f"{where}: {str(error) or type(error).__name__}") from error
        if status not in _GOOD:
            raise OutwardFailure(f"{where} answered {status}")
        return f"{where} answered {status}"


def signature(secret: str, body: bytes) -> str:
    """What a receiver computes, too, and compares."""
    return "sha256=" + hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()


def _host(url: str) -> str:
    """Where the URL leads, without the secrets that its path or query may hold."""
    parts = urlsplit(url)
    return f"{parts.hostname}:{parts.port}" if parts.port else str(parts.hostname)


def _post(url: str, body: bytes, headers: dict[str, str], timeout: float) -> int:
    """The answer's status. Its body is not read, and where it leads elsewhere nobody follows."""
    with (
        httpx.Client(timeout=timeout, follow_redirects=False, trust_env=False) as client,
        client.stream("POST", url, content=body, headers=headers) as answer,
    ):
        return answer.status_code
