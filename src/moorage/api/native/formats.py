"""Values that bodies of several nouns write alike: times, alternatives, plain JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from moorage.domain.period import FOREVER, format_instant
from moorage.wire import groups

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from moorage.domain.period import Instant
    from moorage.domain.request_groups import Group


def instant(when: Instant) -> str | None:
    """An instant on the wire; null for never."""
    return None if when == FOREVER else format_instant(when)


def wall(clock: datetime) -> str:
    """A local time; seconds only where there are any."""
    whole = not (clock.second or clock.microsecond)
    return clock.isoformat(timespec="minutes" if whole else "auto")


def any_of(alternatives: Iterable[frozenset[str]]) -> list[str | list[str]]:
    """Alternatives on the wire: a single name, or a nested list."""
    return [next(iter(some)) if len(some) == 1 else sorted(some) for some in alternatives]


def group_view(group: Group) -> groups.Group:
    """A request group on the wire."""
    return groups.Group(
        name=group.name,
        resources=dict(group.resources),
        required=any_of(group.required),
        forbidden=sorted(group.forbidden),
        member_of=any_of(group.member_of),
        same_subtree=group.beside,
    )


def plain(value: Any) -> Any:  # noqa: ANN401 - whatever a policy's parameters hold
    """Parameters as JSON values: sets as sorted lists."""
    if isinstance(value, frozenset | set):
        return sorted(value)
    if isinstance(value, tuple | list):
        return [plain(one) for one in value]
    if hasattr(value, "items"):
        return {name: plain(one) for name, one in value.items()}
    return value
