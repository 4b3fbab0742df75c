"""Heat stacks: an ensemble with the stack's id, made equal to the stack's template at each update.

An update is one changed decision. Members that stay keep their places; those that have no server
may move if the update has no place otherwise. If a role's description changes, its members without
a server are decided anew. Those with a server keep its place: Heat resizes, rebuilds or replaces it
itself, and the server that comes of it is what the new description is for.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from moorage.domain import deadline
from moorage.domain.changes import Changeset, DropBookings, PutEnsemble
from moorage.domain.decisions import ClaimState, DecisionState
from moorage.domain.errors import (
    Busy,
    ConcurrentUpdate,
    DuplicateName,
    HoldExpired,
    Infeasible,
    InUse,
    InvalidDescription,
    LimitExceeded,
    NotFound,
    WrongState,
)
from moorage.domain.period import SECOND
from moorage.domain.quotas import QuotaName
from moorage.heat.compile import compile_template
from moorage.usecases.claims.hold import renew
from moorage.usecases.decide.loop import (
    DecisionFlow,
    DecisionRequest,
    run_decision,
    unplaced_or_held,
)
from moorage.usecases.decide.member_places import locate_members
from moorage.usecases.decide.request import Proposal, RefusalReader, RequestIdentity
from moorage.usecases.decide.solution import DecisionOptions, HoldEnd
from moorage.usecases.decide.writes import (
    current_decision,
    end_claim,
    member_departure_changes,
    options_for_joining,
)
from moorage.usecases.ensembles.create import ensemble_from_description
from moorage.usecases.ensembles.delete import delete_ensemble
from moorage.usecases.ensembles.headroom import headroom_of, set_headroom
from moorage.usecases.ensembles.heat_templates import counting_growth
from moorage.usecases.ensembles.names import (
    check_unique_name,
    reclaimed_name_condition,
    unique_name_condition,
)
from moorage.usecases.ensembles.policy_checks import check_names, check_policies
from moorage.usecases.ensembles.size_changes import check_no_lease
from moorage.usecases.ensembles.stack_members import member_path
from moorage.usecases.ensembles.stack_update import stack_update
from moorage.usecases.shared.access import sees
from moorage.usecases.shared.limits import check_size, hold_within, time_limit_within
from moorage.usecases.shared.lookup import if_stored
from moorage.usecases.shared.quotas import bound_stored, check_stored
from moorage.usecases.waitlist_turn import turn_of_stay

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from moorage.domain.changes import Change
    from moorage.domain.decisions import Decision
    from moorage.domain.ensembles import Ensemble
    from moorage.domain.member_names import MemberName
    from moorage.domain.period import Instant
    from moorage.heat.compile import CompiledTemplate, Source
    from moorage.heat.expanded_template import UnplacedResource
    from moorage.usecases.decide.member_places import MemberPlaces
    from moorage.usecases.ensembles.stack_update import StackUpdate
    from moorage.usecases.environment import UseCaseEnvironment
    from moorage.usecases.ports import Caller, Store


@dataclass(frozen=True, slots=True)
class StackRequest:
    """A stack as Heat has it."""

    id: str
    """The root stack's id, and the ensemble's."""
    source: Source
    servers: Mapping[str, str]
    """Path in the stack -> the server there, as far as there are any."""
    options: DecisionOptions | None = None


@dataclass(frozen=True, slots=True)
class StackResult:
    """A stack's ensemble and its decision; None for a stack that never had a server."""

    ensemble: Ensemble | None
    decision: Decision | None
    unplaced: tuple[UnplacedResource, ...] = ()
    notes: tuple[str, ...] = ()
    changed: bool = False
    """Whether the ensemble was changed, or decided."""
    written: bool = True
    """See `Committed`."""

    @property
    def keys(self) -> Mapping[MemberName, str]:
        """Member -> its path in the stack."""
        ensemble = self.ensemble
        if ensemble is None:
            return {}
        paths = ensemble.paths or {}
        return {one.name: member_path(paths, one.name) for one in ensemble.members}


def put_stack(env: UseCaseEnvironment, caller: Caller, stack: StackRequest) -> StackResult:
    """Make a stack's ensemble equal to its template, decided and held.

    If nothing changed and every member has a place, nothing is decided; a hold that is given in
    the options is renewed. New and changed policies must hold for present members too; servers of
    a new ensemble are accepted where they stand.

    How many more fit is counted for autoscaling groups. Headroom that the template asks for is kept
    afterwards, if there is room; a note says where there is none. What it does not ask for any more
    is given back.

    Raises:
        InvalidDescription: the template is not valid, with path and line; or `servers` are not.
        UnknownName, UnknownPolicy, Contradiction: as for any ensemble.
        Infeasible: the stack cannot be placed; nothing was changed.
        NameTaken: another ensemble of the project has the stack's name.
        NotFound: the id is another project's ensemble's.
        InUse: the id is that of an ensemble which is no stack's, or a server that would join is a
            member of another ensemble.
        LimitExceeded, QuotaExceeded, Busy, WrongState: as for any decision.
    """
    options = stack.options or DecisionOptions()
    time_limit = time_limit_within(env.limits, options.time_limit)
    with deadline.within(env.stopwatch, time_limit / SECOND):
        compiled = compile_template(stack.source, may_be_empty=True)
        deadline.check()
        try:
            result = run_decision(env, lambda: _flow(env, caller, stack, compiled))
        except InvalidDescription as error:
            raise compiled.with_location(error) from error
    if not result.written:
        return result
    result = _with_headroom(env, caller, compiled, result)
    return result if result.changed else _renewed(env, caller, result, options)


def show_stack(env: UseCaseEnvironment, caller: Caller, stack_id: str) -> StackResult:
    """A stack's ensemble with its decision.

    Raises:
        NotFound: no such stack for this caller.
    """
    ensemble = _own_stack(env.store, caller, stack_id)
    return StackResult(ensemble, current_decision(env.store, ensemble))


def delete_stack(env: UseCaseEnvironment, caller: Caller, stack_id: str) -> None:
    """Release what is held for a stack and delete its ensemble; servers keep their allocations.

    Raises:
        NotFound: no such stack for this caller.
        InUse: the ensemble has a lease that is not closed.
    """
    _own_stack(env.store, caller, stack_id)
    delete_ensemble(env, caller, stack_id, None)


def _own_stack(store: Store, caller: Caller, stack_id: str) -> Ensemble:
    ensemble = if_stored(store.ensemble, stack_id)
    if ensemble is None or ensemble.paths is None or not sees(caller, ensemble.project_id):
        raise NotFound("stack", stack_id)
    return ensemble


def _stored(store: Store, caller: Caller, stack_id: str) -> Ensemble | None:
    """The stack's ensemble; None: there is none yet."""
    stored = if_stored(store.ensemble, stack_id)
    if stored is None:
        return None
    if not sees(caller, stored.project_id):
        raise NotFound("stack", stack_id)
    if stored.paths is None:
        raise InUse("ensemble", stack_id, "it is no stack's")
    return stored


def _flow(
    env: UseCaseEnvironment, caller: Caller, stack: StackRequest, compiled: CompiledTemplate
) -> DecisionFlow[StackResult]:
    stored = _stored(env.store, caller, stack.id)
    if stored is None and not compiled.keys:
        return StackResult(None, None, compiled.unplaced, compiled.notes)
    snapshot = env.store.snapshot()
    described = ensemble_from_description(
        env, caller, compiled.description, RequestIdentity(stack.id)
    )
    update = stack_update(env, stored, described, compiled, stack.servers, snapshot)
    ensemble = update.ensemble
    result = StackResult(ensemble, None, compiled.unplaced, (*compiled.notes, *update.notes))
    check_size(env.limits, ensemble, stored)
    check_policies(snapshot.topology, ensemble)
    check_names(env, caller, snapshot, ensemble, () if stored is None else stored.policies)
    places = locate_members(snapshot, ensemble)
    decision = None if stored is None else current_decision(env.store, stored)
    if not update.differs and len(places.places) == len(ensemble.members):
        return _as_it_is(env, result, update, decision)
    if not ensemble.members:
        return _emptied(env, result, update, snapshot.taken_at)
    options = counting_growth(stack.options or DecisionOptions(), compiled)
    if decision is not None:
        options = options_for_joining(options, decision, snapshot.taken_at)
    request = DecisionRequest(
        _proposal(env, caller, update, options),
        replace(options, hold_end=HoldEnd.AT_LEAST_PRESENT),
        RequestIdentity(env.ids.uuid()),
    )
    try:
        settled = yield request
    except DuplicateName as taken:
        if stored is None and if_stored(env.store.ensemble, stack.id) is not None:
            # Another request made it meanwhile: read it, and make it equal to this template.
            raise ConcurrentUpdate(taken.message, subject=stack.id) from taken
        raise
    return replace(
        result,
        ensemble=settled.ensemble,
        decision=settled.decision,
        changed=True,
        written=settled.written,
    )


def _proposal(
    env: UseCaseEnvironment, caller: Caller, update: StackUpdate, options: DecisionOptions
) -> Proposal:
    stored, ensemble = update.stored, update.ensemble
    conditions = _name_condition(env.store, update)
    if stored is None:
        check_stored(env, ensemble.project_id, QuotaName.ENSEMBLES)
        conditions = (*conditions, bound_stored(env, ensemble.project_id, QuotaName.ENSEMBLES))

    def selected(places: MemberPlaces) -> frozenset[MemberName]:
        return update.anew | {
            one.name for one in ensemble.members if not places.places.get(one.name)
        }

    def with_spares(places: MemberPlaces) -> frozenset[MemberName]:
        return selected(places) | update.spares

    return Proposal(
        ensemble,
        None if stored is None else stored.generation,
        (selected, *([with_spares] if update.spares else []), unplaced_or_held(ensemble)),
        freed=update.freed,
        before=stored,
        restated=update.restated,
        waitlist_gate=turn_of_stay(env, ensemble, options.until),
        further_changes=lambda made: (*conditions, *_ended_claims(env.store, update, made)),
        reader=RefusalReader(operator=caller.operator),
    )


def _name_condition(store: Store, update: StackUpdate) -> tuple[Change, ...]:
    """The commit's condition that the stack's name is unique in its project."""
    stored, ensemble = update.stored, update.ensemble
    if stored is not None and stored.name == ensemble.name:
        return reclaimed_name_condition(store, stored)
    check_unique_name(store, ensemble)
    return unique_name_condition(ensemble)


def _ended_claims(store: Store, update: StackUpdate, made: Decision) -> Iterator[Change]:
    """The ends of claims that are building for members which leave."""
    if update.stored is None:
        return
    before = current_decision(store, update.stored)
    stay = {one.name for one in update.ensemble.members}
    for claim in () if before is None else store.claims(decision_id=before.id):
        if claim.state is ClaimState.BUILDING and claim.member not in stay:
            yield end_claim(claim, made.updated_at)


def _as_it_is(
    env: UseCaseEnvironment,
    result: StackResult,
    update: StackUpdate,
    decision: Decision | None,
) -> StackResult:
    """Nothing to decide; what does not matter for places may still be written otherwise."""
    stored, ensemble = update.stored, update.ensemble
    assert stored is not None, "members of a new ensemble have no places"
    if ensemble == stored:
        return replace(result, decision=decision)
    name = _name_condition(env.store, update)
    put = PutEnsemble(replace(ensemble, updated_at=env.store.now()), stored.generation, stored)
    done = env.store.commit(Changeset((put, DropBookings(update.freed), *name)))
    return replace(
        result,
        ensemble=env.store.ensemble(stored.id),
        decision=decision,
        changed=True,
        written=done.written,
    )


def _emptied(
    env: UseCaseEnvironment, result: StackResult, update: StackUpdate, now: Instant
) -> StackResult:
    """The stack has no server any more: its ensemble stays, without members."""
    stored = update.stored
    assert stored is not None, "a new stack without servers has no ensemble"
    check_no_lease(env.store, stored)
    gone = {one.name for one in stored.members}
    done = env.store.commit(
        Changeset(
            (
                PutEnsemble(replace(update.ensemble, updated_at=now), stored.generation, stored),
                DropBookings(update.freed),
                *member_departure_changes(env.store, stored, gone, now),
            )
        )
    )
    ensemble = env.store.ensemble(stored.id)
    return replace(
        result,
        ensemble=ensemble,
        decision=current_decision(env.store, ensemble),
        changed=True,
        written=done.written,
    )


def _with_headroom(
    env: UseCaseEnvironment, caller: Caller, compiled: CompiledTemplate, result: StackResult
) -> StackResult:
    """The same result, with the headroom that the template asks for."""
    for role, count in compiled.headroom.items():
        ensemble = result.ensemble
        if ensemble is None or headroom_of(ensemble).get(role, 0) == count:
            continue
        try:
            ensemble = set_headroom(env, caller, ensemble.id, role, count).ensemble
        except (Busy, HoldExpired, Infeasible, LimitExceeded, WrongState) as error:
            note = f"no headroom for {count} more of {role}: {error.message}"
            result = replace(result, notes=(*result.notes, note))
        else:
            result = replace(result, ensemble=ensemble, changed=True)
    return result


def _renewed(
    env: UseCaseEnvironment, caller: Caller, result: StackResult, options: DecisionOptions
) -> StackResult:
    """The same result, with the hold renewed if the options give one that ends later."""
    decision, now = result.decision, env.store.now()
    if options.hold is None or decision is None or decision.lease_id is not None:
        return result
    until = now + hold_within(env.limits, options.hold)
    if decision.state_at(now) is not DecisionState.HELD or until <= decision.expires_at:
        return result
    if decision.renewals >= env.limits.renewals:
        note = "the hold was renewed as often as it may be, and ends when it would have ended"
        return replace(result, notes=(*result.notes, note))
    return replace(result, decision=renew(env, caller, decision.id, until, None))
