"""The page of the types of events, from their registry."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gen.markdown import code, table, text

if TYPE_CHECKING:
    from moorage.domain.events import EventType

ABOUT: Final = """\
The events of `GET /v1/events` and of [subscriptions](../guide/subscriptions.md). The `subject` is
the id of the object in the second column. A field of the body that does not apply is null. Types
are selected by name, or by pattern: `lease.*`, `*`."""
HEAD: Final = ("Type", "Subject", "Sent when", "Body")


def page() -> str:
    """One row per type."""
    from moorage.domain.events import EVENT_TYPES

    return "\n\n".join(["# Events", ABOUT, table(HEAD, map(row, EVENT_TYPES))])


def row(one: EventType) -> tuple[str, ...]:
    """One type."""
    return code(one.name), one.subject, text(one.when), ", ".join(map(code, one.body))
