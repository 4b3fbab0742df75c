"""Which request a thread works for: its own id, and the id its caller's request came with.

Whoever begins a request sets its ids; every line that is logged until they are unset has
them, whichever part of the service writes it.
"""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Ids:
    """The ids of one request; both empty where a thread works for nobody."""

    own: str = ""
    """`req-<uuid>`, new for each request."""
    called_by: str = ""
    """The caller's id (OpenStack's global request id), if it sent one."""


NONE: Final = Ids()
CURRENT: Final = ContextVar("moorage_request_ids", default=NONE)
"""The ids of the request that this thread works for; `NONE` ends it."""
