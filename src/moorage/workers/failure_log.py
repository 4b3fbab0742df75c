"""Logs failures of the background loops of a process, each once.

An unreachable database or a full disk is one line when the first loop meets it, and one when every
loop works again. Any other error is logged with its traceback, then with a line for each item it
affects, and not again while it lasts.
"""

from __future__ import annotations

import logging
from threading import Lock

from moorage.domain.errors import Busy, MoorageError
from moorage.logs import Lasting

_log = logging.getLogger(__name__)


class FailureLog:
    """Failures of the loops of one process. Safe for threads."""

    def __init__(self) -> None:
        self._waiting: set[str] = set()
        self._lock = Lock()
        self._lasting = Lasting()

    def failed(self, loop: str, error: Exception, what: str = "") -> None:
        """Record that a round of a loop failed, or the step of it that `what` describes."""
        if isinstance(error, Busy):
            with self._lock:
                begins = not self._waiting
                self._waiting.add(loop)
            if begins:
                _log.warning("background work waits (%s): %s", loop, error)
            return
        failed = what or f"a round of {loop} failed"
        cause = _cause(error)
        is_new, hits_anew = map(self._lasting.is_news, ((loop, *cause), (loop, what, *cause)))
        if is_new and not isinstance(error, MoorageError):
            _log.error(failed, exc_info=error)
        elif hits_anew:
            _log.error("%s: %s: %s", failed, type(error).__name__, error)

    def recovered(self, loop: str) -> None:
        """Record that a round of a loop succeeded."""
        if loop not in self._waiting:
            return
        with self._lock:
            self._waiting.discard(loop)
            if self._waiting:
                return
        _log.warning("background work goes on")


def _cause(error: Exception) -> tuple[str, str, int]:
    """The type of an error and the line it came from."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    place = ("", 0) if trace is None else (trace.tb_frame.f_code.co_filename, trace.tb_lineno)
    return type(error).__qualname__, *place
