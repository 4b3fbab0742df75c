"""One line per request: method, path, status, milliseconds. No query, no header, no token.

Queries and headers may carry secrets, so neither is written, and what looks like a token in a
path is left out. Paths are percent-encoded again: no byte a client sends can start a line of its
own. The ids of the request are on every line of the log (`moorage.logs`).
"""

from __future__ import annotations

import logging
import re
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from moorage.logs.formatter import FIELDS

if TYPE_CHECKING:
    from moorage.http.wsgi import Environ

_access = logging.getLogger("moorage.access")

LEVELS: Final = ("debug", "info", "warning", "error")

_SHOWN: Final = "***"
_TOKEN_HEADERS: Final = ("HTTP_X_AUTH_TOKEN", "HTTP_X_SERVICE_TOKEN", "HTTP_X_SUBJECT_TOKEN")
_SHORTEST_SECRET: Final = 12
"""Letters a sent token has before a path is searched for it; `admin` is no secret."""
_LOOKS_SECRET: Final = re.compile(
    # Keystone's (Fernet, JWS), our own static ones.
    r"(gAAAA|eyJ)[A-Za-z0-9_.=-]{8,}|moorage\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]{8,}",
    re.ASCII,
)


def write(environ: Environ, path: str, status: int, seconds: float) -> None:
    """Log one answered request; status 499 means the client left before it was answered."""
    if not _access.isEnabledFor(logging.INFO):
        return
    method = quote(str(environ.get("REQUEST_METHOD", "-")), safe="")
    shown = quote(_without_tokens(environ, path), safe="/:*", encoding="latin-1", errors="replace")
    milliseconds = round(seconds * 1000, 1)
    _access.info(
        "%s %s %d %.1fms",
        method,
        shown,
        status,
        milliseconds,
        extra={
            FIELDS: {
                "method": method,
                "path": shown,
                "status": status,
                "milliseconds": milliseconds,
            }
        },
    )


def _without_tokens(environ: Environ, path: str) -> str:
    for header in _TOKEN_HEADERS:
        sent = environ.get(header, "")
        if len(sent) >= _SHORTEST_SECRET and sent in path:
            path = path.replace(sent, _SHOWN)
    return _LOOKS_SECRET.sub(_SHOWN, path)
