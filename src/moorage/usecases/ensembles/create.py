"""Create an ensemble; with `DecisionOptions`, also decide and hold it in the same transaction.

An ensemble that could not be placed even on an empty fleet is refused.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

from moorage.domain.changes import Changeset, PutEnsemble
from moorage.domain.ensembles import Ensemble, Member, Role
from moorage.domain.errors import DuplicateName, Infeasible
from moorage.domain.member_names import MemberName
from moorage.domain.period import FOREVER, SECOND, Period
from moorage.domain.quotas import QuotaName
from moorage.domain.requests import Objective
from moorage.engine.explain.conflicts import Oracle
from moorage.engine.explain.elements import on_empty_hosts
from moorage.engine.joint.build import build
from moorage.usecases.decide.loop import decide_proposal, unplaced_or_held
from moorage.usecases.decide.member_places import locate_members
from moorage.usecases.decide.request import Proposal, RefusalReader, RequestIdentity
from moorage.usecases.decide.solution import request_for
from moorage.usecases.decide.writes import current_decision
from moorage.usecases.ensembles.consent import check_consent, offers, owned_role
from moorage.usecases.ensembles.names import check_unique_name, unique_name_condition
from moorage.usecases.ensembles.policy_checks import check_names, check_policies
from moorage.usecases.ensembles.references import with_references
from moorage.usecases.refusals.explanation import NOW, answer_once, explain_static, refusal
from moorage.usecases.shared.access import made_by_request
from moorage.usecases.shared.limits import check_member_count, check_roles, check_size
from moorage.usecases.shared.quotas import bound_stored, check_stored
from moorage.usecases.shared.role_resolution import names_for, resolve
from moorage.usecases.waitlist_turn import turn_of_stay

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from moorage.domain.changes import Change
    from moorage.domain.decisions import Decision
    from moorage.domain.describe import EnsembleDescription
    from moorage.domain.describe_members import RoleDescription
    from moorage.domain.period import Instant
    from moorage.engine.state.snapshot import Snapshot
    from moorage.usecases.decide.solution import DecisionOptions
    from moorage.usecases.environment import UseCaseEnvironment
    from moorage.usecases.ports import Caller, Ids


_FIRST_HALF: Final = len("xxxxxxxx-xxxx-4xxx")
"""Characters of a UUID before its last two groups."""


def check_feasible(env: UseCaseEnvironment, ensemble: Ensemble, identity: RequestIdentity) -> None:
    """Refuse an ensemble that would not fit this fleet even if it were empty.

    Raises:
        Infeasible: that is proved; the explanation's stage is `static`.
    """
    if not ensemble.members:
        return
    snapshot = env.store.snapshot()
    period = Period(snapshot.taken_at, FOREVER)
    everyone = frozenset(member.name for member in ensemble.members)
    member_places = locate_members(snapshot, ensemble)
    built = build(
        request_for(ensemble, member_places, everyone, period, Objective.SPREAD), snapshot
    )
    budget = env.limits.explanation_budget / SECOND
    oracle = Oracle(env.solver, lambda: budget)
    empty = on_empty_hosts(built.request, built)
    if oracle.feasible(empty.problem) is False:
        why = explain_static(env, built, snapshot, seed=0, helps=NOW)
        raise refusal(env, empty, why, identity, ensemble=ensemble)


@dataclass(frozen=True, slots=True)
class EnsembleResult:
    """An ensemble and its decision, if one was made."""

    ensemble: Ensemble
    decision: Decision | None
    snapshot: Snapshot | None = None
    """That of the decision, if one was made; see `DecisionResult`."""
    written: bool = True
    """See `Committed`."""
    to_resize: tuple[MemberName, ...] = ()
    """Members whose servers keep the size that their role had before."""


def create_ensemble(
    env: UseCaseEnvironment,
    caller: Caller,
    description: EnsembleDescription,
    options: DecisionOptions | None,
    identity: RequestIdentity,
) -> EnsembleResult:
    """Create an ensemble; if `options` are given, also place and hold it.

    The same request with the same id gets the same answer: the ensemble, or the refusal.

    Raises:
        UnknownName, UnknownPolicy, InvalidDescription: the description names unknown things.
        Contradiction: policies that cannot be met together; they are named.
        Infeasible: the ensemble cannot be placed now, or without `options` not even on this fleet
            when empty; nothing was created.
        NameTaken: another ensemble of the project has the name.
        DuplicateName: the id was used by another request.
        LimitExceeded: the ensemble is too large, or too many places are held.
        QuotaExceeded: the project has as many ensembles as it may.
        ConsentMissing: with `options`, and a role of another project.
    """

    def answer() -> EnsembleResult:
        ensemble = described_ensemble(env, caller, description, identity)
        check_unique_name(env.store, ensemble)
        check_stored(env, ensemble.project_id, QuotaName.ENSEMBLES)
        return _store(env, caller, ensemble, options, identity)

    made_before = partial(_made_before, env, identity)
    races = (DuplicateName, Infeasible)
    return answer_once(env, caller, identity, made_before, answer, races)


def new_members(ids: Ids, names: Iterable[MemberName]) -> tuple[Member, ...]:
    """New members, each with a new consumer UUID.

    The first half is the same in all of them: so they stand side by side in the indexes of the
    database, and a commit changes a few pages instead of one for each member.
    """
    first = ids.uuid()[:_FIRST_HALF]
    return tuple(Member(name, first + ids.uuid()[_FIRST_HALF:]) for name in names)


def with_more_members(ids: Ids, ensemble: Ensemble, role: str, more: int) -> Ensemble:
    """The ensemble with `more` new members of a role, which get the lowest free indexes."""
    taken = {one.name.index for one in ensemble.members if one.name.role == role}
    free = [index for index in range(len(taken) + more) if index not in taken]
    names = (MemberName(role, index) for index in free[:more])
    return ensemble.grown(role, new_members(ids, names))


def _store(
    env: UseCaseEnvironment,
    caller: Caller,
    ensemble: Ensemble,
    options: DecisionOptions | None,
    identity: RequestIdentity,
) -> EnsembleResult:
    conditions = (
        *unique_name_condition(ensemble),
        bound_stored(env, ensemble.project_id, QuotaName.ENSEMBLES),
    )
    if options is not None:
        check_consent(ensemble, stored=False)
        proposal = stay_proposal(env, caller, ensemble, None, options.until, conditions)
        own = RequestIdentity(env.ids.uuid(), within=identity)
        settled = decide_proposal(env, proposal, options, own)
        return EnsembleResult(settled.ensemble, settled.decision, settled.snapshot, settled.written)
    check_feasible(env, ensemble, identity)
    done = env.store.commit(
        Changeset((PutEnsemble(ensemble, None), *conditions, *offers(env, ensemble)))
    )
    return EnsembleResult(env.store.ensemble(ensemble.id), None, written=done.written)


def stay_proposal(
    env: UseCaseEnvironment,
    caller: Caller,
    ensemble: Ensemble,
    generation: int | None,
    until: Instant | None,
    conditions: tuple[Change, ...],
) -> Proposal:
    """The proposal to place all unplaced and held members for a stay; `conditions` are written."""
    turn, reader = turn_of_stay(env, ensemble, until), RefusalReader(operator=caller.operator)
    return Proposal(
        ensemble,
        generation,
        (unplaced_or_held(ensemble),),
        waitlist_gate=turn,
        further_changes=lambda _: conditions,
        reader=reader,
    )


def _made_before(env: UseCaseEnvironment, identity: RequestIdentity) -> EnsembleResult | None:
    known = made_by_request("ensemble", identity, env.store.ensemble)
    if known is None:
        return None
    return EnsembleResult(known, current_decision(env.store, known))


def described_ensemble(
    env: UseCaseEnvironment,
    caller: Caller,
    description: EnsembleDescription,
    identity: RequestIdentity | None = None,
    *,
    compiled: frozenset[str] = frozenset(),
) -> Ensemble:
    """The ensemble of a description, with its policies checked; not stored.

    Without `identity` it gets a new id. Policies named in `compiled` were not written by the
    caller.

    Raises:
        UnknownName, UnknownPolicy, InvalidDescription: the description names unknown things.
        Contradiction: policies that cannot be met together on any fleet.
        LimitExceeded: the ensemble is too large.
    """
    ensemble = ensemble_from_description(
        env, caller, description, identity or RequestIdentity(env.ids.uuid())
    )
    ensemble = with_references(env.store, ensemble)
    snapshot = env.store.snapshot()
    check_policies(snapshot.topology, ensemble, own=not compiled)
    check_names(env, caller, snapshot, ensemble, compiled=compiled)
    return ensemble


def ensemble_from_description(
    env: UseCaseEnvironment,
    caller: Caller,
    description: EnsembleDescription,
    identity: RequestIdentity,
) -> Ensemble:
    """The ensemble of a description, with flavors resolved; not stored.

    Raises:
        UnknownName: an unknown flavor, resource class or trait.
        InvalidDescription: a role names the caller's own project.
        LimitExceeded: the ensemble is too large.
    """
    check_roles(env.limits, len(description.roles))
    resolved = resolve(names_for(env.store, caller), description.roles, env.limits.nova)
    roles = tuple(
        owned_role(env.ids, role, one, caller.project_id, one.path)
        for role, one in zip(resolved, description.roles, strict=True)
    )
    now = env.store.now()
    ensemble = Ensemble(
        id=identity.id,
        project_id=caller.project_id,
        user_id=caller.user_id,
        name=description.name,
        roles=roles,
        members=members_of(env, description.roles, roles),
        policies=description.policies,
        metadata=description.metadata,
        salt=env.ids.salt(),
        digest=identity.digest,
        created_at=now,
        updated_at=now,
        template=description.template,
    )
    check_size(env.limits, ensemble)
    return ensemble


def members_of(
    env: UseCaseEnvironment, descriptions: Sequence[RoleDescription], roles: Sequence[Role]
) -> tuple[Member, ...]:
    """New members of the described roles, as many as their counts.

    Raises:
        LimitExceeded: more members than one ensemble may have.
    """
    count = sum(role.count for role in descriptions)
    check_member_count(env.limits, count)
    return new_members(
        env.ids,
        (
            MemberName(role.name, index)
            for one, role in zip(descriptions, roles, strict=True)
            for index in range(one.count)
        ),
    )
