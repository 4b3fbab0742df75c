"""The decision that repairs a lease, and the proposal if it cannot be repaired."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from moorage.domain.changes import PutLease
from moorage.domain.errors import Busy, Infeasible
from moorage.usecases.decide.loop import DecisionResult, decide_proposal
from moorage.usecases.decide.member_places import MemberStatus
from moorage.usecases.decide.request import (
    DecisionHooks,
    Proposal,
    RefusalDetail,
    RefusalReader,
    RequestIdentity,
)
from moorage.usecases.decide.solution import DecisionOptions
from moorage.usecases.relocation.lease_health import NOTHING, health_notice, with_missing
from moorage.usecases.relocation.lease_promise import unchanged_promise

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from moorage.domain.changes import Change
    from moorage.domain.decisions import Decision
    from moorage.domain.ensembles import (
        Ensemble,
        EnsembleChange,
        MemberName,
        PolicyStatement,
    )
    from moorage.domain.leases import Lease
    from moorage.usecases.decide.environment import DecideEnvironment
    from moorage.usecases.decide.member_places import MemberPlaces

_NOBODY: frozenset[MemberName] = frozenset()
_UNREAD: Final = RefusalReader(detail=RefusalDetail.UNSTORED)
PLACEABLE: Final = frozenset({MemberStatus.HELD, MemberStatus.UNPLACED})
"""States of members without a server that would have to move."""


def left_out(lost: frozenset[MemberName], changes: Sequence[EnsembleChange]) -> set[MemberName]:
    """Members to leave unplaced, if a relaxation removes only some of the missing members."""
    for one in changes:
        if _leaves_out(one):
            number = int(str(one.before)) - int(str(one.after))
            mine = sorted((name for name in lost if name.role == one.name), reverse=True)
            return set(mine[:number])
    return set()


@dataclass(frozen=True, slots=True)
class LeaseRepair:
    """A lease with members that need other places."""

    env: DecideEnvironment
    lease: Lease
    ensemble: Ensemble
    decision: Decision
    servers: frozenset[str]

    def place(
        self, members: frozenset[MemberName], *, without: frozenset[MemberName] = _NOBODY
    ) -> None:
        """Place members anew on the lease's terms, and notify its owner.

        Args:
            members: members that must move; the other unclaimed members move if that helps.
            without: members that keep their failed places, and count as missing.

        Raises:
            Infeasible: there is no room; the explanation has the relaxations.
            Busy, ConcurrentUpdate: as for every decision.
        """
        proposal = Proposal(
            self.ensemble,
            self.ensemble.generation,
            (
                lambda member_places: _placeable(members, member_places),
                lambda member_places: (
                    (_unclaimed(member_places) | _placeable(members, member_places)) - without
                ),
            ),
            promise=replace(unchanged_promise(self.lease, self.decision), gives_back=True),
            hooks=DecisionHooks(
                further_changes=partial(self._further_changes, len(without)), reader=_UNREAD
            ),
        )
        self._settled(proposal, dry_run=False)

    def proposed(
        self, changes: Sequence[EnsembleChange], lost: frozenset[MemberName]
    ) -> Mapping[str, object]:
        """The smallest relaxation as a proposal; see `Lease.proposal`."""
        best = _best(changes)
        if best is None:
            return NOTHING
        places = self._places(best, lost)
        found = asdict(best) | ({"places": places} if places else {})
        return MappingProxyType(found)

    def _places(self, change: EnsembleChange, lost: frozenset[MemberName]) -> dict[str, str]:
        """The hosts of missing members after a policy change: member -> host."""
        policies = tuple(_changed(one, change) for one in self.ensemble.policies)
        if change.subject != "policy":
            return {}
        proposal = Proposal(
            replace(self.ensemble, policies=policies),
            self.ensemble.generation,
            (lambda member_places: _placeable(lost, member_places),),
            promise=unchanged_promise(self.lease, self.decision),
            restated=frozenset({change.name}),
            hooks=DecisionHooks(reader=_UNREAD),
        )
        try:
            places = self._settled(proposal, dry_run=True).decision.places
        except (Busy, Infeasible):
            return {}  # it takes that others move, or too long
        return {str(name): places[name].host for name in sorted(lost)}

    def _settled(self, proposal: Proposal, *, dry_run: bool) -> DecisionResult:
        options = DecisionOptions(objective=self.decision.objective, seed=self.decision.solve.seed)
        identity = RequestIdentity(self.env.ids.uuid())
        return decide_proposal(self.env, proposal, options, identity, dry_run=dry_run)

    def _further_changes(self, missing: int, made: Decision) -> tuple[Change, ...]:
        """The lease with its new placement, and the notice to its owner."""
        before, now = self.decision.places, made.updated_at
        moved = [
            str(name)
            for name, place in sorted(made.places.items())
            if name not in before or before[name].host != place.host
        ]
        missing += len(self.servers)
        placed = replace(with_missing(self.lease, missing, NOTHING, now), decision_id=made.id)
        return (
            PutLease(placed, self.lease.generation),
            health_notice(placed, now, moved, self.servers),
        )


def _changed(policy: PolicyStatement, change: EnsembleChange) -> PolicyStatement:
    """The policy as it is after a change."""
    if policy.name != change.name:
        return policy
    if change.field == "strength":
        return replace(policy, weight=1)
    parameters = {**policy.parameters, change.field: change.after}
    return replace(policy, parameters=MappingProxyType(parameters))


def _unclaimed(member_places: MemberPlaces) -> frozenset[MemberName]:
    return frozenset(n for n, status in member_places.status.items() if status is MemberStatus.HELD)


def _placeable(
    members: frozenset[MemberName], member_places: MemberPlaces
) -> frozenset[MemberName]:
    return frozenset(name for name in members if member_places.of(name) in PLACEABLE)


def _best(changes: Sequence[EnsembleChange]) -> EnsembleChange | None:
    """The first change that keeps all members; if there is none, the first of all."""
    keeping = (one for one in changes if not _leaves_out(one))
    return next(keeping, changes[0] if changes else None)


def _leaves_out(change: EnsembleChange) -> bool:
    before, after = change.before, change.after
    return (
        (change.subject, change.field) == ("member", "count")
        and isinstance(before, int)
        and isinstance(after, int)
        and after < before
    )
