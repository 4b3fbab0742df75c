"""Health probe of the service over HTTP, as a client would see it."""

from __future__ import annotations

import http.client
import ssl
import time
from http import HTTPStatus
from typing import Final

_TIMEOUT: Final = 60.0
_PAUSE: Final = 0.05

_ANY: Final = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - what they mean, not a place to bind


def wait_for_answer(host: str, port: int, *, encrypted: bool = False) -> None:
    """Return when `GET /healthz` is answered with 200.

    Whose certificate answers does not matter here: it is this service's own port. The port is
    open before a worker serves it, so the first try usually waits there for its turn.
    """
    context = _anybody() if encrypted else None
    while not _answers(_ANY.get(host, host), port, context):
        time.sleep(_PAUSE)


def _anybody() -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def _answers(host: str, port: int, context: ssl.SSLContext | None) -> bool:
    connection = (
        http.client.HTTPConnection(host, port, timeout=_TIMEOUT)
        if context is None
        else http.client.HTTPSConnection(host, port, timeout=_TIMEOUT, context=context)
    )
    try:
        connection.request("GET", "/healthz")
        return connection.getresponse().status == HTTPStatus.OK
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()
