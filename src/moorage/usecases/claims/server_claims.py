"""End the claims of servers that are deleted."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from moorage.domain.changes import PutClaim
from moorage.domain.decisions import ClaimState, ClaimStep, claim_after
from moorage.usecases.ports import Page

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from moorage.domain.decisions import Claim, Decision
    from moorage.domain.ensembles import MemberName
    from moorage.domain.period import Instant
    from moorage.domain.placement import Place
    from moorage.usecases.ports import Store


@dataclass(slots=True)
class ServerClaims:
    """The claims of the servers that one changeset deletes. They are read once per ensemble."""

    store: Store
    now: Instant
    ended: list[PutClaim] = field(default_factory=list)
    _active: dict[str, _ActiveClaims] = field(default_factory=dict)
    """By ensemble id: those that have not ended."""

    def end(
        self, decision: Decision, consumer: str, left: Place, stands: Callable[[str], bool]
    ) -> None:
        """End the claim of a deleted server.

        Args:
            decision: the decision whose place is left.
            consumer: the server; or a migration of it that is deleted after it: then the server is
                the only one without allocations whose place was on that host.
            left: the place.
            stands: whether a server has allocations afterwards.
        """
        active = self._of(decision)
        if consumer not in active.by_server:
            gone = [one for one in active.on(left.host) if not stands(one)]
            if len(gone) != 1:
                return
            (consumer,) = gone
        claim = active.by_server.pop(consumer)
        ended = replace(claim, state=claim_after(claim.state, ClaimStep.END), updated_at=self.now)
        self.ended.append(PutClaim(ended, claim.state.value))

    def elsewhere(
        self, decision: Decision, left: Place, unbound: Callable[[str], bool]
    ) -> str | None:
        """The server whose place was left by its migration, if it is the only one.

        Args:
            decision: the decision whose place is left.
            left: the place.
            unbound: whether a server has allocations, and all of them outside of any decision.
        """
        moved = [one for one in self._of(decision).on(left.host) if unbound(one)]
        return moved[0] if len(moved) == 1 else None

    def _of(self, decision: Decision) -> _ActiveClaims:
        if decision.ensemble_id not in self._active:
            self._active[decision.ensemble_id] = _active_claims(self.store, decision)
        return self._active[decision.ensemble_id]


@dataclass(frozen=True, slots=True)
class _ActiveClaims:
    """The active claims of an ensemble."""

    places: Mapping[MemberName, Place]
    by_server: dict[str, Claim]
    """By the UUID of the server."""

    def on(self, host: str) -> list[str]:
        """The servers whose places are planned on a host."""
        return [
            server
            for server, one in self.by_server.items()
            if one.member in self.places and self.places[one.member].host == host
        ]


def _active_claims(store: Store, decision: Decision) -> _ActiveClaims:
    """The active claims of a decision's ensemble: its newest decision has them all."""
    newest = store.decisions(
        project_id=decision.project_id, ensemble_id=decision.ensemble_id, page=Page(limit=1)
    )[0]
    claims = store.claims(decision_id=newest.id)
    active = (one for one in claims if one.state is ClaimState.ACTIVE)
    return _ActiveClaims(
        newest.places, {one.server_id: one for one in active if one.server_id is not None}
    )
