"""Reading events by cursor, waiting a while where there are none."""

from __future__ import annotations

from dataclasses import dataclass
from threading import BoundedSemaphore
from typing import TYPE_CHECKING, Final

from moorage.domain.events import BEGINNING, EVERYTHING, EventCursor
from moorage.domain.period import SECOND
from moorage.usecases.access import visible_project
from moorage.usecases.ports import EventPage

if TYPE_CHECKING:
    from moorage.domain.events import EventFilter
    from moorage.domain.period import Duration
    from moorage.usecases.parts import Parts
    from moorage.usecases.ports import Caller

LONGEST_WAIT: Final = 30 * SECOND
_PAUSE: Final = 0.25
"""Seconds between two looks of who waits."""
_WAITERS: Final = BoundedSemaphore(16)
"""Requests of a process that may wait: each keeps a thread. Who comes then is answered at once."""


@dataclass(frozen=True, slots=True)
class EventAsk:
    """Which events are asked for; `after` None: from now on."""

    after: EventCursor | None = BEGINNING
    wanted: EventFilter = EVERYTHING
    limit: int = 100
    wait: Duration = 0
    """How long to wait where there are none yet, at most `LONGEST_WAIT`."""
    project_id: str | None = None
    all_projects: bool = False


def read_events(parts: Parts, caller: Caller, ask: EventAsk) -> EventPage:
    """The next events after a cursor, in the order of the ledger.

    Raises:
        Forbidden: a tenant asked for another project's.
        EventsLost: some after the cursor are kept no more, or the ledger does not know it.
    """
    project = visible_project(caller, all_projects=ask.all_projects, project_id=ask.project_id)
    told = parts.store.told
    if ask.after is None:
        return EventPage((), told.newest(), more=False)
    found = told.page(project, ask.after, ask.wanted, ask.limit)
    if found.events or found.more or not ask.wait or not _WAITERS.acquire(blocking=False):
        return found
    try:
        deadline = parts.stopwatch() + min(ask.wait, LONGEST_WAIT) / SECOND
        while not found.events and not found.more:
            left = deadline - parts.stopwatch()
            if left <= 0:
                break
            parts.pause(min(_PAUSE, left))
            found = told.page(project, found.cursor, ask.wanted, ask.limit)
    finally:
        _WAITERS.release()
    return found
