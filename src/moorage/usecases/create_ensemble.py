"""Create an ensemble, and with an `Ask` decide and hold it in the same transaction."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from moorage.domain.changes import Changeset, PutEnsemble
from moorage.domain.ensembles import Ensemble, Member, MemberName, Role
from moorage.domain.errors import DuplicateName, Infeasible, NotFound
from moorage.usecases.access import sees
from moorage.usecases.digest import same_request
from moorage.usecases.explain import known_refusal
from moorage.usecases.impossible import refuse_the_impossible
from moorage.usecases.limits import check_member_count
from moorage.usecases.proposal import Naming, Proposal
from moorage.usecases.roles import resolve
from moorage.usecases.settle import settle, unplaced_or_held
from moorage.usecases.soundness import check_names, check_policies
from moorage.usecases.waitlist.turn import turn_of_stay
from moorage.usecases.writing import current_decision

if TYPE_CHECKING:
    from collections.abc import Sequence

    from moorage.domain.decisions import Decision
    from moorage.domain.describe import EnsembleDescription, RoleDescription
    from moorage.usecases.joint import Ask
    from moorage.usecases.parts import Parts
    from moorage.usecases.ports import Caller, Ids


@dataclass(frozen=True, slots=True)
class Made:
    """An ensemble, and the decision made with it, if any."""

    ensemble: Ensemble
    decision: Decision | None
    dry_run: bool = False


def create_ensemble(
    parts: Parts,
    caller: Caller,
    description: EnsembleDescription,
    ask: Ask | None,
    naming: Naming,
    *,
    dry_run: bool = False,
) -> Made:
    """Create an ensemble; placed and held at once where `ask` says how.

    The same request under the same id gets the answer it got before: the ensemble, or why not.

    Raises:
        UnknownName, UnknownPolicy, InvalidDescription: it names what is not there.
        Contradiction: policies that cannot be met together; they are named.
        Infeasible: it cannot be placed now, or without `ask` never on this fleet, however
            empty; nothing was created.
        DuplicateName: the id was used by another request.
        LimitExceeded: too many members or held places.
    """
    if (made := _made_before(parts, caller, naming)) is not None:
        return made
    if not dry_run and (refused := known_refusal(parts, caller, naming)) is not None:
        raise refused
    ensemble = described(parts, caller, description, naming)
    snapshot = parts.store.snapshot()
    check_policies(snapshot.topology, ensemble)
    check_names(parts.store, caller, snapshot, ensemble)
    try:
        return _store(parts, caller, ensemble, ask, naming, dry_run=dry_run)
    except (DuplicateName, Infeasible):
        # The same request on another connection was quicker (and took the room): one answer.
        if naming.digest and (made := _made_before(parts, caller, naming)) is not None:
            return made
        raise


def new_members(ids: Ids, role: str, indexes: Sequence[int]) -> tuple[Member, ...]:
    """Members of a role, each with a consumer of its own."""
    return tuple(Member(MemberName(role, index), ids.uuid()) for index in indexes)


def _store(
    parts: Parts,
    caller: Caller,
    ensemble: Ensemble,
    ask: Ask | None,
    naming: Naming,
    *,
    dry_run: bool,
) -> Made:
    if ask is not None:
        anew = unplaced_or_held(ensemble)
        turn = turn_of_stay(parts, ensemble, ask.until)
        proposal = Proposal(ensemble, None, anew, operator=caller.operator, turn=turn)
        own = Naming(parts.ids.uuid(), within=naming)
        settled = settle(parts, proposal, ask, own, dry_run=dry_run)
        return Made(settled.ensemble, settled.decision, dry_run)
    refuse_the_impossible(parts, ensemble, naming, dry_run=dry_run)
    if dry_run:
        return Made(ensemble, None, dry_run=True)
    parts.store.commit(Changeset((PutEnsemble(ensemble, None),)))
    return Made(parts.store.ensemble(ensemble.id), None)


def _made_before(parts: Parts, caller: Caller, naming: Naming) -> Made | None:
    if not naming.digest:  # an id that nobody gave, and nobody has
        return None
    try:
        known = parts.store.ensemble(naming.id)
    except NotFound:
        return None
    if not sees(caller, known.project_id):
        # Somebody else's id tells nothing: it is merely taken.
        raise DuplicateName("ensemble", naming.id)
    same_request("ensemble", naming.id, stored=known.digest, given=naming.digest)
    return Made(known, current_decision(parts.store, known))


def described(
    parts: Parts, caller: Caller, description: EnsembleDescription, naming: Naming
) -> Ensemble:
    """The ensemble a description means, with flavors resolved; not stored.

    Raises:
        UnknownName: a flavor, resource class or trait that is not known here.
        LimitExceeded: too many members.
    """
    roles = resolve(parts.store, description.roles)
    now = parts.store.now()
    return Ensemble(
        id=naming.id,
        project_id=caller.project_id,
        user_id=caller.user_id,
        name=description.name,
        roles=roles,
        members=members_of(parts, description.roles, roles),
        policies=description.policies,
        metadata=description.metadata,
        salt=parts.ids.salt(),
        digest=naming.digest,
        created_at=now,
        updated_at=now,
        template=description.template,
    )


def members_of(
    parts: Parts, descriptions: Sequence[RoleDescription], roles: Sequence[Role]
) -> tuple[Member, ...]:
    """The members that described roles count.

    Raises:
        LimitExceeded: more than one ensemble may have.
    """
    wanted = sum(role.count for role in descriptions)
    check_member_count(parts.limits, wanted)
    return tuple(
        member
        for role, one in zip(roles, descriptions, strict=True)
        for member in new_members(parts.ids, role.name, range(one.count))
    )
