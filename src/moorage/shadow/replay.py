"""Answers a forwarded request once more, from the ledger."""

from __future__ import annotations

import io
import json
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from moorage.http.kernel import CALLER
from moorage.http.response import REQUEST_ID, new_request_id
from moorage.http.wsgi import ROUTE
from moorage.shadow.comparison import Answered
from moorage.usecases.ports import Caller

if TYPE_CHECKING:
    from collections.abc import Callable

    from moorage.http.wsgi import Application, Environ
    from moorage.shadow.exchange import Exchange

OPERATOR: Final = Caller(
    user_id="shadow", project_id="shadow", roles=frozenset({"admin", "service"})
)
"""The followed service has judged the real caller; what it let through is answered here too."""
_PROVIDERS: Final = "/resource_providers"


@dataclass(frozen=True, slots=True)
class Replay:
    """The Placement API over the ledger, asked by an operator."""

    own: Application

    def __call__(self, exchange: Exchange) -> tuple[str, Answered]:
        """The template of the path that answers, and the answer."""
        environ = _environ(exchange)
        statuses: list[int] = []

        def start_response(status: str, *_: Any) -> Callable[[bytes], object]:  # noqa: ANN401 - WSGI's
            statuses.append(int(status[:3]))
            return lambda _: None

        chunks = self.own(environ, start_response)
        try:
            body = b"".join(chunks)
        finally:
            close = getattr(chunks, "close", None)
            if close is not None:
                close()
        return environ.get(ROUTE, exchange.path), Answered(statuses[-1], body)


def _environ(exchange: Exchange) -> Environ:
    """The request once more, from a caller who may do everything."""
    body = _with_uuid(exchange)
    return {
        "REQUEST_METHOD": exchange.method,
        "SCRIPT_NAME": "",
        "PATH_INFO": exchange.path,
        "QUERY_STRING": exchange.query,
        "SERVER_NAME": "shadow.invalid",
        "SERVER_PORT": "80",
        "SERVER_PROTOCOL": "HTTP/1.1",
        "CONTENT_LENGTH": str(len(body)),
        "wsgi.version": (1, 0),
        "wsgi.url_scheme": "http",
        "wsgi.input": io.BytesIO(body),
        "wsgi.errors": sys.stderr,
        "wsgi.multithread": True,
        "wsgi.multiprocess": True,
        "wsgi.run_once": False,
        REQUEST_ID: new_request_id(),
        CALLER: OPERATOR,
        **exchange.headers,
    }


def _with_uuid(exchange: Exchange) -> bytes:
    """The body; for a new provider without a UUID, with the one that it got there."""
    if exchange.method != "POST" or exchange.path != _PROVIDERS:
        return exchange.body
    body = Answered(0, exchange.body).document
    uuid = exchange.reply.header("location").rpartition("/")[2]
    if not isinstance(body, dict) or body.get("uuid") or not uuid:
        return exchange.body
    return json.dumps({**body, "uuid": uuid}).encode()
