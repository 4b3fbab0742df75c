"""`/v1/events`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from moorage.api.native import reading
from moorage.api.native.call import Call, Reply
from moorage.api.native.formats import plain
from moorage.domain.errors import InvalidDescription
from moorage.domain.events import BEGINNING, EventCursor, EventFilter, check_pattern
from moorage.domain.period import SECOND, format_instant
from moorage.usecases.events.read import LONGEST_WAIT, EventQuery, disclosed_body, read_events
from moorage.wire import events as wire

if TYPE_CHECKING:
    from moorage.domain.events import Event
    from moorage.domain.period import Duration

NOW = "now"
"""The cursor for events from now on."""


def listing(call: Call) -> Reply:
    """GET: the page after a cursor; with `wait` it waits for events."""
    query = call.query
    patterns = tuple(filter(None, query.get("type", "").split(",")))
    event_filter = EventFilter(
        tuple(check_pattern(one, "type") for one in patterns), query.get("subject") or None
    )
    ask = EventQuery(
        after=_after(query.get("after")),
        event_filter=event_filter,
        limit=call.page().limit if "limit" in query else 100,
        wait=_wait(query.get("wait")),
        project_id=query.get("project_id"),
        all_projects=call.flag("all_projects"),
    )
    found = call.perform(read_events, ask)
    return Reply(
        wire.Events([event_view(call, one) for one in found.events], str(found.cursor), found.more)
    )


def event_view(call: Call, one: Event) -> wire.Event:
    """An event as the caller may see it."""
    return wire.Event(
        id=one.id,
        type=one.type,
        at=format_instant(one.at),
        project_id=one.project_id,
        subject=one.subject,
        generation=one.generation,
        body=plain(call.perform(disclosed_body, one)),
    )


def _after(text: str | None) -> EventCursor | None:
    if text is None:
        return BEGINNING
    return None if text == NOW else EventCursor.parse(text)


def _wait(text: str | None) -> Duration:
    """Read `20`, `20s` or `PT20S`."""
    if text is None or text in {"0", "0s", "PT0S"}:
        return 0
    found = reading.duration(f"{text}s" if text.isascii() and text.isdigit() else text, "wait")
    if found is None or found > LONGEST_WAIT:
        raise InvalidDescription(f"at most {LONGEST_WAIT // SECOND} seconds", path="wait")
    return found
