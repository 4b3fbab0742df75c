"""Servers that are there still when their declared end has come.

An end does not stop a server. Past it its booking counts as open-ended; owner and operator are
told once, and whoever ends servers here is asked to.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from moorage.domain.changes import Changeset
from moorage.domain.effects import EffectKind, EffectState
from moorage.domain.errors import DuplicateName
from moorage.domain.period import MINUTE, format_instant
from moorage.usecases.leases import evict, facts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from moorage.domain.changes import Change
    from moorage.domain.period import Instant
    from moorage.usecases.parts import Parts
    from moorage.usecases.ports import Overrun

PAGE: Final = 500
"""Servers looked at in one round."""

_BACK: Final = 10 * MINUTE
"""How far a new round looks back beyond the one before, should clocks disagree."""


@dataclass(frozen=True, slots=True)
class Seen:
    """How far a worker has looked: a worker that is new to it looks from the beginning."""

    after: tuple[Instant, str] = (0, "")
    found: int = 0
    """Servers that were told of in this round."""
    more: bool = False
    """Whether there are more to be looked at, at once."""


def look(parts: Parts, seen: Seen) -> Seen:
    """Tell of those whose end has come since."""
    now = parts.store.now()
    after = seen.after
    if not seen.more:
        after = (max(min(after[0], now) - max(_BACK, 2 * parts.limits.notice), 0), "")
    page = parts.store.overrun(after, PAGE)
    found = sum(_tell(parts, one, now) for one in page)
    if len(page) == PAGE:
        last = page[-1]
        return Seen((last.end, last.consumer.uuid), found, more=True)
    return Seen((now, ""), found)


def _tell(parts: Parts, one: Overrun, now: Instant) -> bool:
    """Tell of one, unless it was told before; whether it was told now.

    One that yields to a lease is ended first: it is told of when the lease needs its place.
    """
    if one.yields_to is not None and now < one.end + parts.limits.notice:
        return _evict(parts, one, now)
    server, project = one.consumer.uuid, one.consumer.project_id
    details = {
        "server": server,
        "user_id": one.consumer.user_id,
        "ended": format_instant(one.end),
        "yields_to": one.yields_to,
    }
    told = facts.fact(
        EffectKind.OVERRUN,
        server,
        project,
        due=one.end,
        now=now,
        details=details,
        same=(server, one.end),
    )
    earlier = parts.store.effects(server)
    if any(effect.id == told.effect.id for effect in earlier):
        return False
    changes: list[Change] = [told]
    if not any(
        effect.kind is EffectKind.DELETE and effect.state is EffectState.PENDING
        for effect in earlier
    ):
        changes.append(facts.deletion(server, project, "it is overrun", one.end, now))
    return _write(parts, changes)


def _evict(parts: Parts, one: Overrun, now: Instant) -> bool:
    asked = evict.deletion(one.consumer.uuid, one.consumer.project_id, one.end, now)
    if any(effect.id == asked.effect.id for effect in parts.store.effects(one.consumer.uuid)):
        return False
    return _write(parts, [asked])


def _write(parts: Parts, changes: Sequence[Change]) -> bool:
    try:
        parts.store.commit(Changeset(tuple(changes)))
    except DuplicateName:
        return False  # another worker was quicker
    return True
