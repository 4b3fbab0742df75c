"""Sends a request to the followed service as it came, and returns the answer as it came."""

from __future__ import annotations

import http.client
import ssl
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final
from urllib.parse import quote, urlsplit

from moorage.domain.errors import MoorageError
from moorage.shadow.exchange import Reply

if TYPE_CHECKING:
    from collections.abc import Sequence

    from moorage.http.wsgi import Environ

HOP_BY_HOP: Final = frozenset(
    {
        *("connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "te"),
        *("trailer", "trailers", "transfer-encoding", "upgrade"),
    }
)
"""Headers of one connection, not of the message."""


class NoReply(MoorageError):
    """The followed service cannot be reached, or does not answer in time; says why."""


def check_url(url: str) -> None:
    """Return if requests can be sent below a URL.

    Raises:
        ValueError: they cannot.
    """
    parts = urlsplit(url)
    if parts.scheme not in {"http", "https"} or not parts.hostname or parts.query:
        raise ValueError(f"{url} is no URL such as http://controller:8778/placement")
    _ = parts.port  # raises it where the port is no number


@dataclass(frozen=True)
class Upstream:
    """The followed service; each request has a connection of its own. Safe for threads."""

    url: str
    timeout: float
    """Seconds for a connection, and for each part of an answer."""

    def send(self, environ: Environ, path: str, body: bytes) -> Reply:
        """The answer to a request, whatever it is.

        Raises:
            NoReply: there is none.
        """
        connection = self._connection()
        query = environ.get("QUERY_STRING", "")
        target = urlsplit(self.url).path.rstrip("/") + quote(
            path.encode("latin-1"), safe="/:~!*'(),"
        )
        try:
            connection.putrequest(
                environ["REQUEST_METHOD"],
                (target or "/") + (f"?{query}" if query else ""),
                skip_accept_encoding=True,
            )
            for name, value in _headers(environ):
                connection.putheader(name, value)
            if body or environ.get("CONTENT_LENGTH"):
                connection.putheader("Content-Length", str(len(body)))
            connection.endheaders(body or None)
            answer = connection.getresponse()
            content = answer.read()
            headers = _end_to_end(answer.getheaders())
            return Reply(answer.status, answer.reason, headers, content)
        except (OSError, http.client.HTTPException) as error:
            raise NoReply(
                f"no answer of {self.url}: {str(error) or type(error).__name__}"
            ) from error
        finally:
            connection.close()

    def _connection(self) -> http.client.HTTPConnection:
        parts = urlsplit(self.url)
        assert parts.hostname is not None, "checked when it was made"
        if parts.scheme == "http":
            return http.client.HTTPConnection(parts.hostname, parts.port, timeout=self.timeout)
        context = ssl.create_default_context()
        return http.client.HTTPSConnection(
            parts.hostname, parts.port, timeout=self.timeout, context=context
        )


def _headers(environ: Environ) -> list[tuple[str, str]]:
    """The request's headers for the next server, except the host's name."""
    found = [
        (key.removeprefix("HTTP_").replace("_", "-").title(), str(value))
        for key, value in environ.items()
        if key.startswith("HTTP_") and key not in {"HTTP_HOST", "HTTP_CONTENT_LENGTH"}
    ]
    if environ.get("CONTENT_TYPE"):
        found.append(("Content-Type", environ["CONTENT_TYPE"]))
    return [(name, value) for name, value in found if name.lower() not in HOP_BY_HOP]


def _end_to_end(headers: Sequence[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    return tuple((name, value) for name, value in headers if name.lower() not in HOP_BY_HOP)
