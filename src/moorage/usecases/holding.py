"""How much a project holds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from moorage.domain.decisions import DecisionState
from moorage.usecases.ports import Page

if TYPE_CHECKING:
    from collections.abc import Iterator

    from moorage.domain.decisions import Decision
    from moorage.usecases.limits import Limits
    from moorage.usecases.ports import Store

PAGE: Final = 100


def held_members(store: Store, limits: Limits, project_id: str) -> int:
    """Places in the project's decisions that are held now.

    Places already claimed there count as well: the bound is on what was taken at once.
    """
    now = store.now()
    oldest = now - limits.longest_hold * (limits.renewals + 1)
    return sum(
        len(decision.places)
        for decision in _since(store, project_id, oldest)
        if decision.state is DecisionState.HELD and decision.expires_at > now
    )


def _since(store: Store, project_id: str, oldest: int) -> Iterator[Decision]:
    """Newest first, down to the oldest that a hold could still be of."""
    marker: str | None = None
    while page := store.decisions(project_id=project_id, page=Page(PAGE, marker)):
        for decision in page:
            if decision.created_at < oldest:
                return
            yield decision
        if len(page) < PAGE:
            return
        marker = page[-1].id
