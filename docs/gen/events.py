"""The page of the types of events, from their registry."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gen.markdown import code, table, text

if TYPE_CHECKING:
    from moorage.domain.events import EventType

ABOUT: Final = """\
What `GET /v1/events` tells and what [subscriptions](../guide/subscriptions.md) have delivered. The
`subject` is the id of the thing in the second column. A field of the body that does not apply is
null. Types are asked for by name, or by pattern: `lease.*`, `*`."""
HEAD: Final = ("Type", "Subject", "Told when", "Body")


def page() -> str:
    """One row per type."""
    from moorage.domain.events import EVENT_TYPES

    return "\n\n".join(["# Events", ABOUT, table(HEAD, map(row, EVENT_TYPES))])


def row(one: EventType) -> tuple[str, ...]:
    """One type."""
    return code(one.name), one.subject, text(one.when), ", ".join(map(code, one.body))
