"""Which request a thread works for: its own id, and the id its caller's request came with.

Whoever begins a request binds its ids; every line that is logged until they are unbound has
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
_CURRENT: Final = ContextVar("moorage_request_ids", default=NONE)


def bind(ids: Ids) -> None:
    """From now on this thread works for the request of these ids; `NONE` ends it."""
    _CURRENT.set(ids)


def current() -> Ids:
    """The ids this thread works for."""
    return _CURRENT.get()
