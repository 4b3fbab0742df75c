"""End the claims of servers that are deleted."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from moorage.domain.changes import PutClaim
from moorage.domain.decisions import ClaimState, ClaimStep, claim_after
from moorage.usecases.paging import Page

if TYPE_CHECKING:
    from moorage.domain.decisions import Claim, Decision
    from moorage.domain.period import Instant
    from moorage.usecases.ports import Store


@dataclass(slots=True)
class ServerClaims:
    """The claims of the servers that one changeset deletes. They are read once per ensemble."""

    store: Store
    now: Instant
    ended: list[PutClaim] = field(default_factory=list)
    _active: dict[str, dict[str, Claim]] = field(default_factory=dict)
    """By ensemble id and the server's UUID: those that have not ended."""

    def end(self, decision: Decision, server: str) -> None:
        """End the claim of a deleted server, if it has one; its place of the decision is left."""
        claim = self._of(decision).pop(server, None)
        if claim is None:
            return
        ended = replace(claim, state=claim_after(claim.state, ClaimStep.END), updated_at=self.now)
        self.ended.append(PutClaim(ended, claim.state.value))

    def _of(self, decision: Decision) -> dict[str, Claim]:
        if decision.ensemble_id not in self._active:
            self._active[decision.ensemble_id] = _active_claims(self.store, decision)
        return self._active[decision.ensemble_id]


def _active_claims(store: Store, decision: Decision) -> dict[str, Claim]:
    """Server -> its active claim of the decision's ensemble: the newest decision has them all."""
    newest = store.decisions(
        project_id=decision.project_id, ensemble_id=decision.ensemble_id, page=Page(limit=1)
    )[0]
    claims = store.claims(decision_id=newest.id)
    active = (one for one in claims if one.state is ClaimState.ACTIVE)
    return {one.server_id: one for one in active if one.server_id is not None}
