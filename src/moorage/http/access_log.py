"""One line per request: method, path, status, milliseconds, request id. No query, no header.

Queries and headers may carry secrets, so neither is written. Paths are percent-encoded again:
no byte a client sends can start a line of its own.
"""

from __future__ import annotations

import logging
import sys
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from moorage.http import request_id

if TYPE_CHECKING:
    from moorage.http.wsgi import Environ

_access = logging.getLogger("moorage.access")

LEVELS: Final = ("debug", "info", "warning", "error")


def configure(level: str) -> None:
    """Send the process's log to standard error, from `level` (one of `LEVELS`) up."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        logging.Formatter("%(asctime)s %(process)d %(levelname)s %(name)s %(message)s")
    )
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    # The migration tool and the server tell each of their steps at INFO, at every start.
    quiet = max(logging.WARNING, logging.getLevelNamesMapping()[level.upper()])
    for chatty in ("alembic", "_granian"):
        logging.getLogger(chatty).setLevel(quiet)


def write(environ: Environ, path: str, status: int, seconds: float) -> None:
    """Log one answered request; status 499 means the client left before it was answered."""
    if not _access.isEnabledFor(logging.INFO):
        return
    called_by = environ.get(request_id.GLOBAL_ENVIRON)
    _access.info(
        "%s %s %d %.1fms %s%s",
        quote(str(environ.get("REQUEST_METHOD", "-")), safe=""),
        quote(path, safe="/:", encoding="latin-1"),
        status,
        seconds * 1000,
        environ[request_id.ENVIRON],
        f" for {called_by}" if called_by else "",
    )
