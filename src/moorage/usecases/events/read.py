"""Read events by cursor, waiting a while if there are none."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from moorage.domain.disclosure import actor_seen_by
from moorage.domain.events import BEGINNING, EVERYTHING, OPERATORS_ONLY, EventCursor
from moorage.domain.period import SECOND
from moorage.usecases.event_ports import EventPage
from moorage.usecases.shared.access import visible_project

if TYPE_CHECKING:
    from collections.abc import Mapping

    from moorage.domain.actors import Actor
    from moorage.domain.events import Event, EventFilter
    from moorage.domain.period import Duration
    from moorage.usecases.environment import UseCaseEnvironment
    from moorage.usecases.ports import Caller

LONGEST_WAIT: Final = 30 * SECOND
_PAUSE: Final = 0.25
"""Seconds between two reads of a waiting request."""


@dataclass(frozen=True, slots=True)
class EventQuery:
    """A query of events; `after` None: from now on."""

    after: EventCursor | None = BEGINNING
    event_filter: EventFilter = EVERYTHING
    limit: int = 100
    wait: Duration = 0
    """How long to wait if there are none yet, at most `LONGEST_WAIT`."""
    project_id: str | None = None
    all_projects: bool = False


def read_events(env: UseCaseEnvironment, caller: Caller, query: EventQuery) -> EventPage:
    """The next events after a cursor, in the order of the ledger.

    If too many requests wait already (`Admission.waiting`), this one is answered at once.

    Raises:
        Forbidden: a tenant asked for another project's events.
        EventsLost: some events after the cursor are deleted, or the cursor is another ledger's.
    """
    project = visible_project(caller, all_projects=query.all_projects, project_id=query.project_id)
    if not caller.operator:
        query = replace(query, event_filter=replace(query.event_filter, hidden=OPERATORS_ONLY))
    log = env.store.event_log
    if query.after is None:
        return EventPage((), log.newest(), more=False)
    found = log.page(project, query.after, query.event_filter, query.limit)
    if query.after == BEGINNING and (lost := log.oldest(project)).position:
        found = replace(found, lost=lost)
    waiting = env.admission.waiting
    if found.events or found.more or not query.wait or not waiting.acquire(blocking=False):
        return found
    try:
        deadline = env.stopwatch() + min(query.wait, LONGEST_WAIT) / SECOND
        while not found.events and not found.more:
            left = deadline - env.stopwatch()
            if left <= 0:
                break
            env.pause(min(_PAUSE, left))
            further = log.page(project, found.cursor, query.event_filter, query.limit)
            found = replace(further, lost=found.lost)
    finally:
        waiting.release()
    return found


def disclosed_actor(env: UseCaseEnvironment, caller: Caller, event: Event) -> Actor:
    """Who caused an event, as the caller may see it."""
    del env
    return event.actor if caller.operator else actor_seen_by(event.actor, event.project_id)


def disclosed_body(env: UseCaseEnvironment, caller: Caller, event: Event) -> Mapping[str, object]:
    """An event's body as the caller may see it.

    A tenant also reads events of subscriptions that an operator has created in its project: their
    counts are rounded for it, and events about the whole cloud have no body.
    """
    body = event.body
    if caller.operator:
        return body
    if event.type in OPERATORS_ONLY:
        return {}
    if event.type != "ensemble.max_additional":
        return body
    counts = {name: body.get(name) for name in ("before", "now")}
    told = {
        name: env.limits.told_additional(int(count))
        for name, count in counts.items()
        if isinstance(count, int | float)
    }
    return {**body, **told}
