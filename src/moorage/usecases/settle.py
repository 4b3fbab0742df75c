"""Read, decide, commit: the loop behind every joint decision.

An answer that a concurrent commit overtook is judged again on the newer snapshot, and solved
again only if it broke. Nothing is locked while thinking.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from moorage.domain.changes import Changeset
from moorage.domain.errors import (
    Busy,
    CapacityExceeded,
    ConstraintViolated,
    InvalidDescription,
    ProviderConflict,
)
from moorage.domain.period import FOREVER, Period
from moorage.engine.build import state
from moorage.engine.terrain import survey
from moorage.usecases.deciding import Answer, bounded, decision_for
from moorage.usecases.explain import refusal
from moorage.usecases.joint import find, request_for, still_holds
from moorage.usecases.kept import kept_hosts
from moorage.usecases.limits import hold_within, time_limit_within
from moorage.usecases.patience import Patience
from moorage.usecases.proposal import Settled
from moorage.usecases.reliance import reliance
from moorage.usecases.standing import MemberStatus, standing
from moorage.usecases.writing import changes_for, current_decision

if TYPE_CHECKING:
    from collections.abc import Callable

    from moorage.domain.ensembles import Ensemble, MemberName
    from moorage.domain.period import Duration
    from moorage.domain.requests import EnsembleRequest
    from moorage.engine.build import Built
    from moorage.engine.snapshot import Snapshot
    from moorage.usecases.joint import Ask, Found
    from moorage.usecases.parts import Parts
    from moorage.usecases.proposal import Naming, Proposal
    from moorage.usecases.standing import Standing

BUSY_HOST: Final = "contention"
"""Reason id of hosts that others are busy with; such hosts are only avoided, never refused."""


def unplaced_or_held(ensemble: Ensemble) -> Callable[[Standing], frozenset[MemberName]]:
    """Place every member anew that no server has or is being built for."""
    keeps = {MemberStatus.BUILDING, MemberStatus.ACTIVE}
    return lambda stand: frozenset(
        m.name for m in ensemble.members if stand.of(m.name) not in keeps
    )


def unplaced(ensemble: Ensemble) -> Callable[[Standing], frozenset[MemberName]]:
    """Place only members that stand nowhere."""
    return lambda stand: frozenset(m.name for m in ensemble.members if m.name not in stand.places)


def settle(parts: Parts, proposal: Proposal, ask: Ask, naming: Naming, *, dry_run: bool) -> Settled:
    """Decide and hold, all or nothing.

    What others commit meanwhile matters only where the answer depends on it (see `reliance`). An
    answer that is overtaken is judged anew after a pause, and looked for anew only if it broke;
    if that happens again, then away from the hosts that others are busy with, where possible.

    Raises:
        Infeasible: no placement meets the request; the explanation is stored, unless
            this is a dry run.
        InvalidDescription: `max_additional` names no role with members.
        LimitExceeded: the hold, or the project's held places.
        HoldExpired: the hold to go on with has lapsed meanwhile.
        Busy: time ran out, or the ledger moved too often.
        ConcurrentUpdate: the ensemble or its decision changed meanwhile.
    """
    _check_roles(proposal.ensemble, ask)
    hold = hold_within(parts.limits, ask.hold)
    search = _Search(parts, ask, time_limit_within(parts.limits, ask.time_limit))
    patience = Patience(parts, search.time_limit)
    while True:
        keepers = parts.store.keepers()
        before = current_decision(parts.store, proposal.ensemble)
        snapshot = parts.store.snapshot()
        stand = standing(snapshot, proposal.ensemble)
        kept = kept_hosts(keepers.ensembles, snapshot, proposal.ensemble)
        request = _request(proposal, ask, snapshot, stand)
        built = state(request, survey(snapshot, request), closed={**proposal.barred, **kept})
        found = search.answer(built)
        if found is None:
            stored = naming.explained or not dry_run
            raise refusal(
                parts, built, snapshot, naming.within or naming, seed=ask.seed, stored=stored
            )
        answer = Answer(snapshot, stand, found, before)
        decision = decision_for(parts, proposal, ask, answer, naming, hold)
        if dry_run:
            return Settled(decision, proposal.ensemble, snapshot, dry_run=True)
        changes = (
            *changes_for(parts.store, proposal, decision, answer),
            *bounded(parts, decision, answer),
        )
        relied = reliance(snapshot, found, stand)
        try:
            parts.store.commit(
                Changeset(
                    changes,
                    relies_on=relied.relies_on,
                    seen=relied.seen,
                    standing=relied.standing,
                    topology_revision=snapshot.topology_revision,
                    keepers_revision=keepers.revision,
                )
            )
        except (ProviderConflict, CapacityExceeded, ConstraintViolated) as overtaken:
            search.learn(overtaken, snapshot)
            if not patience.pause():
                raise Busy("the ledger moved too often while deciding") from overtaken
            continue
        return Settled(
            parts.store.decision(decision.id),
            parts.store.ensemble(proposal.ensemble.id),
            parts.store.snapshot(),
        )


def _request(proposal: Proposal, ask: Ask, snapshot: Snapshot, stand: Standing) -> EnsembleRequest:
    anew = proposal.anew(stand)
    period = Period(snapshot.taken_at, FOREVER)
    request = request_for(proposal.ensemble, stand, anew, period, ask.objective)
    return replace(
        request,
        roles=proposal.roles or request.roles,
        own_consumers=request.own_consumers | proposal.freed,
        released=request.released | proposal.freed,
        restated=proposal.restated,
    )


@dataclass(eq=False)
class _Search:
    """Looks for answers to one request, and keeps what overtaken ones have taught."""

    parts: Parts
    ask: Ask
    time_limit: Duration
    found: Found | None = None
    busy: frozenset[str] = frozenset()
    """Hosts (UUIDs) on which others were quicker."""
    broken: int = 0
    """How many answers no longer held."""

    def answer(self, built: Built) -> Found | None:
        """The last answer if it still holds, or else a new one; None if there is none."""
        if self.found is not None:
            self.found = still_holds(self.found, built)
            self.broken += self.found is None
        if self.found is None and self.broken > 1 and self.busy:
            closed = {**built.closed, BUSY_HOST: self.busy}
            self.found = self._find(state(built.request, built.terrain, closed=closed))
        if self.found is None:
            self.found = self._find(built)
        return self.found

    def _find(self, built: Built) -> Found | None:
        return find(self.parts.solver, built, time_limit=self.time_limit, seed=self.ask.seed)

    def learn(
        self,
        overtaken: ProviderConflict | CapacityExceeded | ConstraintViolated,
        snapshot: Snapshot,
    ) -> None:
        """Note the host that somebody else was quicker on."""
        provider = (
            overtaken.subject if isinstance(overtaken, ProviderConflict) else overtaken.provider
        )
        row = snapshot.row_of.get(provider)
        if row is not None:
            self.busy |= {snapshot.uuids[int(snapshot.root[row])]}


def _check_roles(ensemble: Ensemble, ask: Ask) -> None:
    """Let `max_additional` pass when it names roles with members."""
    for name in ask.additional:
        if not any(member.name.role == name for member in ensemble.members):
            raise InvalidDescription(f"no role {name} with members", path="max_additional")
