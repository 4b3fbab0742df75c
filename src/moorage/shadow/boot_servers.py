"""Servers that were written for the first time through a shadow, by the request that made them."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_MOST: Final = 1_000
"""Requests that are remembered until they are taken; the oldest are forgotten."""


class CreatedServers:
    """Requests with the servers that got allocations in them. Safe for threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._found: OrderedDict[str, tuple[float, dict[str, None]]] = OrderedDict()

    def note(self, request_id: str, servers: Iterable[str], now: float) -> None:
        """Remember servers of a request, at an instant of the monotonic clock."""
        with self._lock:
            _, known = self._found.pop(request_id, (now, {}))
            self._found[request_id] = (now, {**known, **dict.fromkeys(servers)})
            while len(self._found) > _MOST:
                self._found.popitem(last=False)

    def take(self, before: float) -> Mapping[str, tuple[str, ...]]:
        """Request id -> servers, of requests without a new server since `before`; forgets them."""
        with self._lock:
            done = [id_ for id_, (last, _) in self._found.items() if last <= before]
            return {id_: tuple(self._found.pop(id_)[1]) for id_ in done}
