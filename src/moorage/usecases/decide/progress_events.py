"""Events about the progress of a decision whose search takes long.

They are written beside the decision, by a thread of their own: the search never waits for the
ledger, and an event that cannot be written is left out. No decision relies on them.
"""

from __future__ import annotations

import logging
from threading import Lock, Thread
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from moorage.domain.changes import Changeset, PutEvent
from moorage.domain.events import PROGRESS, DerivedEvent
from moorage.domain.period import SECOND

if TYPE_CHECKING:
    from moorage.domain.period import Duration
    from moorage.domain.search_progress import SearchProgress
    from moorage.usecases.decide.request import Proposal
    from moorage.usecases.shared.environment import Environment

EVERY: Final = 1.0
"""Seconds of a search before its first event, and between two of them."""

_log = logging.getLogger(__name__)


class ProgressEvents:
    """Writes the progress of one decision, as a listener of its searches. Thread-safe."""

    def __init__(self, env: Environment, proposal: Proposal, time_limit: Duration) -> None:
        """The time of the decision begins now."""
        self._env = env
        self._proposal = proposal
        self._time_limit = time_limit
        self._began = self._written_at = env.stopwatch()
        self._written: tuple[int | None, int] | None = None
        self._idle = Lock()
        """Held while an event is being written."""

    def hear(self, progress: SearchProgress) -> None:
        """Write an event if value or bound are others, and the last event is old enough."""
        now, news = self._env.stopwatch(), (progress.value, progress.bound)
        if now - self._written_at < EVERY or news == self._written:
            return
        if not self._idle.acquire(blocking=False):
            return  # the ledger is slow: what comes later says more
        self._written, self._written_at = news, now
        happened = self._event(progress, now - self._began)
        writer = Thread(target=self._write, args=(happened,), name="decision progress", daemon=True)
        try:
            writer.start()
        except RuntimeError:  # the process may have no more threads
            self._idle.release()
            _log.warning("no event about a search for %s", happened.subject, exc_info=True)

    def _event(self, progress: SearchProgress, seconds: float) -> DerivedEvent:
        ensemble, promise = self._proposal.ensemble, self._proposal.promise
        gap = progress.gap
        body = {
            "solver": progress.solver,
            "value": progress.value,
            "bound": progress.bound,
            "gap": None if gap is None else round(gap, 4),
            "elapsed_ms": round(seconds * 1000),
            "time_limit_ms": self._time_limit * 1000 // SECOND,
            "name": ensemble.name,
            "lease": None if promise is None else promise.lease_id,
        }
        return DerivedEvent(
            PROGRESS,
            ensemble.project_id,
            ensemble.id,
            ensemble.generation,
            MappingProxyType(body),
        )

    def _write(self, happened: DerivedEvent) -> None:
        try:
            self._env.store.commit(Changeset((PutEvent(happened),)))
        except Exception:  # noqa: BLE001 - the decision goes on, whatever happens here
            _log.warning("no event about a search for %s", happened.subject, exc_info=True)
        finally:
            self._idle.release()
