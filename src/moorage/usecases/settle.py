"""Read, decide, commit: the loop behind every joint decision.

An answer that a concurrent commit overtook is judged again on the newer snapshot, and solved
again only if it broke. Nothing is locked while thinking.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from moorage.domain.changes import BoundHeld, Changeset
from moorage.domain.decisions import Decision, DecisionState, DecisionStep, Solve, decision_after
from moorage.domain.errors import (
    Busy,
    CapacityExceeded,
    InvalidDescription,
    LimitExceeded,
    ProviderConflict,
)
from moorage.domain.period import FOREVER, Period
from moorage.engine.build import build
from moorage.usecases.additional import additional
from moorage.usecases.explain import refusal
from moorage.usecases.joint import find, request_for, still_holds
from moorage.usecases.kept import kept_hosts
from moorage.usecases.limits import hold_within, time_limit_within
from moorage.usecases.standing import MemberStatus, standing
from moorage.usecases.writing import changes_for

if TYPE_CHECKING:
    from collections.abc import Callable

    from moorage.domain.changes import Change
    from moorage.domain.ensembles import Ensemble, MemberName, Role
    from moorage.domain.period import Duration, Instant
    from moorage.engine.build import Built
    from moorage.engine.snapshot import Snapshot
    from moorage.usecases.joint import Ask, Found
    from moorage.usecases.parts import Parts
    from moorage.usecases.standing import Standing


@dataclass(frozen=True, slots=True)
class Proposal:
    """An ensemble as it shall be stored, and which of its members are placed anew."""

    ensemble: Ensemble
    generation: int | None
    """The stored generation it replaces; None for a new ensemble."""
    anew: Callable[[Standing], frozenset[MemberName]]
    barred: frozenset[str] = frozenset()
    """Hosts (UUIDs) that may not be used."""
    also: Callable[[Decision], tuple[Change, ...]] = lambda decision: ()  # noqa: ARG005 - nothing
    """Further changes for the same transaction."""
    roles: tuple[Role, ...] | None = None
    """Roles to search with where they differ from the ensemble's for once."""
    freed: frozenset[str] = frozenset()
    """Consumers of members that are no more; their holds are dropped."""
    dropped_claims: frozenset[str] = frozenset()
    """Claims of the decision before that do not go on under the new one."""


@dataclass(frozen=True, slots=True)
class Naming:
    """What the decision is called, and the fingerprint of the request that asked for it."""

    id: str
    digest: str = ""
    explained: bool = False
    """Store the explanation of a refusal even of a dry run: somebody asked why."""
    within: Naming | None = None
    """The request that the decision is a part of, where it is not one of its own."""


@dataclass(frozen=True, slots=True)
class Settled:
    """A decision, with the ensemble it is about; with `dry_run` nothing was written."""

    decision: Decision
    ensemble: Ensemble
    snapshot: Snapshot
    dry_run: bool = False


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

    Raises:
        Infeasible: no placement meets the request; the explanation is stored, unless
            this is a dry run.
        InvalidDescription: `max_additional` names no role with members.
        LimitExceeded: the hold, or the project's held places.
        Busy: time ran out, or the ledger moved too often.
        ConcurrentUpdate: the ensemble or its decision changed meanwhile.
    """
    _check_roles(proposal.ensemble, ask)
    hold = hold_within(parts.limits, ask.hold)
    time_limit = time_limit_within(parts.limits, ask.time_limit)
    found: Found | None = None
    for _ in range(parts.limits.attempts):
        keepers = parts.store.keepers()
        snapshot = parts.store.snapshot()
        stand = standing(snapshot, proposal.ensemble)
        kept = kept_hosts(keepers.ensembles, snapshot, proposal.ensemble)
        built = _state(proposal, ask, snapshot, stand, kept)
        found = None if found is None else still_holds(found, built)
        if found is None:
            found = find(parts.solver, built, time_limit=time_limit, seed=ask.seed)
        if found is None:
            stored = naming.explained or not dry_run
            raise refusal(
                parts, built, snapshot, naming.within or naming, seed=ask.seed, stored=stored
            )
        answer = _Answer(snapshot, stand, found)
        decision = _decision(parts, proposal, ask, answer, naming)
        decision = _held_from(parts.store.now(), hold, decision)
        if dry_run:
            return Settled(decision, proposal.ensemble, snapshot, dry_run=True)
        changes = (
            *changes_for(parts.store, proposal, decision, found, stand),
            *_bounded(parts, decision, found, stand),
        )
        try:
            parts.store.commit(
                Changeset(
                    changes,
                    relies_on=_relied(snapshot, found),
                    topology_revision=snapshot.topology_revision,
                    keepers_revision=keepers.revision,
                )
            )
        except (ProviderConflict, CapacityExceeded):
            continue
        return Settled(
            parts.store.decision(decision.id),
            parts.store.ensemble(proposal.ensemble.id),
            parts.store.snapshot(),
        )
    raise Busy("the ledger moved too often while deciding")


def _state(
    proposal: Proposal, ask: Ask, snapshot: Snapshot, stand: Standing, kept: frozenset[str]
) -> Built:
    anew = proposal.anew(stand)
    period = Period(snapshot.taken_at, FOREVER)
    request = request_for(proposal.ensemble, stand, anew, period, ask.objective)
    request = replace(
        request,
        roles=proposal.roles or request.roles,
        own_consumers=request.own_consumers | proposal.freed,
        released=request.released | proposal.freed,
    )
    return build(request, snapshot, kept=kept | proposal.barred)


@dataclass(frozen=True, slots=True)
class _Answer:
    """What one round of the loop saw and found."""

    snapshot: Snapshot
    stand: Standing
    found: Found


def _held_from(now: Instant, hold: Duration, decision: Decision) -> Decision:
    """The hold counts from when the answer is there, not from when it was asked for."""
    return replace(decision, hold=hold, expires_at=now + hold, created_at=now, updated_at=now)


def _decision(
    parts: Parts, proposal: Proposal, ask: Ask, answer: _Answer, naming: Naming
) -> Decision:
    snapshot, stand, found = answer.snapshot, answer.stand, answer.found
    request, outcome = found.built.request, found.outcome
    ensemble = proposal.ensemble
    fresh = {name for name in request.members if name not in request.fixed}
    held = _to_hold(found, stand)
    _check_quota(parts, ensemble, held, released=_held(stand))
    return Decision(
        id=naming.id,
        ensemble_id=ensemble.id,
        project_id=ensemble.project_id,
        ensemble_generation=(proposal.generation or 0) + 1,
        state=_first_state(held > 0, MemberStatus.BUILDING in stand.status.values()),
        period=request.period,
        expires_at=snapshot.taken_at,
        hold=0,
        objective=ask.objective,
        solve=Solve(
            solver=outcome.solver,
            value=outcome.value,
            bound=outcome.bound,
            proven=outcome.proven,
            wall_ms=outcome.wall_ms,
            seed=ask.seed,
        ),
        places=MappingProxyType(
            {
                name: found.place(name) if name in fresh else stand.places[name]
                for name in request.members
            }
        ),
        policies=found.policies,
        revision=snapshot.revision,
        **_additional(parts, found, ask),
        digest=naming.digest,
        created_at=snapshot.taken_at,
        updated_at=snapshot.taken_at,
    )


def _first_state(held: bool, building: bool) -> DecisionState:  # noqa: FBT001 - two facts
    """A decision that holds nothing new has nothing to confirm."""
    if held:
        return DecisionState.HELD
    confirmed = decision_after(DecisionState.HELD, DecisionStep.CONFIRM)
    return confirmed if building else decision_after(confirmed, DecisionStep.CLOSE)


def _check_roles(ensemble: Ensemble, ask: Ask) -> None:
    """Let `max_additional` pass when it names roles with members."""
    for name in ask.additional:
        if not any(member.name.role == name for member in ensemble.members):
            raise InvalidDescription(f"no role {name} with members", path="max_additional")


_SHARE: Final = 5
"""Counting what more would fit may take this part of a solve's time, all roles together."""


def _additional(parts: Parts, found: Found, ask: Ask) -> dict[str, Any]:
    """The fields of a decision that say how many more members fit."""
    limits = parts.limits
    rooms = {
        name: additional(
            parts.solver,
            found,
            next(one for one in found.built.request.roles if one.name == name),
            most=limits.additional,
            time_limit=limits.time_limit // (_SHARE * len(ask.additional)),
        )
        for name in ask.additional
    }
    return {
        "max_additional": MappingProxyType({name: room.count for name, room in rooms.items()}),
        "at_least": frozenset(name for name, room in rooms.items() if not room.exact),
    }


def _to_hold(found: Found, stand: Standing) -> int:
    """How many members have their place held by the decision: placed now, or held before."""
    request = found.built.request
    stay = sum(stand.of(name) is MemberStatus.HELD for name in request.fixed)
    return len(request.members) - len(request.fixed) + stay


def _bounded(parts: Parts, decision: Decision, found: Found, stand: Standing) -> tuple[Change, ...]:
    """What is held, judged once more in the commit: others hold at the same time."""
    wanted = _to_hold(found, stand)
    limit = parts.limits.held_members
    return (BoundHeld(decision.project_id, limit, wanted),) if wanted else ()


def _held(stand: Standing) -> int:
    return sum(status is MemberStatus.HELD for status in stand.status.values())


def _check_quota(parts: Parts, ensemble: Ensemble, wanted: int, *, released: int) -> None:
    limit = parts.limits.held_members
    used = parts.store.held(ensemble.project_id) - released
    if used + wanted > limit:
        raise LimitExceeded("places held", limit=limit, used=max(used, 0), requested=wanted)


def _relied(snapshot: Snapshot, found: Found) -> dict[str, int]:
    """Revisions of all providers of the hosts the answer depends on; others may change."""
    trees = [snapshot.tree(snapshot.row_of[uuid]) for uuid in found.relied]
    return {
        snapshot.uuids[row]: int(snapshot.revisions[row]) for tree in trees for row in tree.tolist()
    }
