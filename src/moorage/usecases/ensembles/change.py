"""Change an ensemble: counts, policies, metadata; a placed one is decided in the same transaction.

A request that added members is recorded, so that a repeat under the same id adds nothing more.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from moorage.domain import plain_values
from moorage.domain.changes import Changeset, DropBookings, PutEnsemble
from moorage.domain.describe import read_role, read_statement
from moorage.domain.describe_members import NOT_PLACING
from moorage.domain.describe_nested import flattened
from moorage.domain.errors import InUse, InvalidDescription
from moorage.domain.leases import LeaseState
from moorage.domain.member_names import MemberName
from moorage.domain.words import counted
from moorage.usecases.decide.loop import (
    DecisionFlow,
    DecisionRequest,
    run_decision,
    unplaced,
    unplaced_or_held,
)
from moorage.usecases.decide.member_places import MemberStatus, locate_members
from moorage.usecases.decide.request import (
    KnownHosts,
    Proposal,
    RefusalReader,
    RequestIdentity,
    resized_from,
)
from moorage.usecases.decide.solution import DecisionOptions
from moorage.usecases.decide.writes import (
    current_decision,
    member_departure_changes,
    options_for_joining,
    options_like,
)
from moorage.usecases.ensembles.consent import check_consent, offers, owned_role
from moorage.usecases.ensembles.create import EnsembleResult, new_members, with_more_members
from moorage.usecases.ensembles.names import reclaimed_name_condition, unique_name_condition
from moorage.usecases.ensembles.policies import merged_statement
from moorage.usecases.ensembles.policy_checks import check_names, check_policies
from moorage.usecases.ensembles.references import with_references
from moorage.usecases.ensembles.role_changes import (
    check_places_may_change,
    keeping_servers,
    placed_otherwise,
    read_change,
    to_place_anew,
    with_changed_places,
)
from moorage.usecases.ensembles.size_changes import check_min_available, check_no_lease
from moorage.usecases.relocation.lease_promise import (
    LeaseContinuation,
    continuation_of,
    unchanged_promise,
)
from moorage.usecases.shared.access import check_generation, own_ensemble, same_request
from moorage.usecases.shared.limits import check_size
from moorage.usecases.shared.role_resolution import names_for, resolve_role
from moorage.usecases.waitlist_turn import turn_of_stay

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from moorage.domain.decisions import Decision
    from moorage.domain.ensembles import Ensemble, Member, PolicyStatement
    from moorage.domain.leases import Lease
    from moorage.usecases.decide.member_places import MemberPlaces
    from moorage.usecases.environment import UseCaseEnvironment
    from moorage.usecases.ports import Caller
    from moorage.usecases.shared.role_resolution import LedgerNames


_NOT_PLACING: Final = NOT_PLACING | {"name"}
KEPT: Final = 100
"""How many requests that added members an ensemble remembers; retries come soon."""


def already_added(ensemble: Ensemble, identity: RequestIdentity) -> bool:
    """Whether this request has already added its members.

    Raises:
        DuplicateName: the id was used with another body.
    """
    stored = dict(ensemble.additions).get(identity.id)
    if stored is None:
        return False
    same_request("request", identity, stored=stored)
    return True


def with_addition_recorded(ensemble: Ensemble, identity: RequestIdentity) -> Ensemble:
    """The ensemble with the request recorded, if the client gave its id."""
    if not identity.digest:
        return ensemble
    known = (*ensemble.additions, (identity.id, identity.digest))
    return replace(ensemble, additions=known[-KEPT:])


@dataclass(frozen=True, slots=True)
class ChangeRequest:
    """A change of an ensemble as the client wrote it: roles and policies are merged by name."""

    name: str | None = None
    metadata: Mapping[str, str] | None = None
    members: Sequence[Mapping[str, object]] = ()
    """`{"name": "db", "count": 4, "server": {...}}`, or a whole new role or group."""
    policies: Sequence[Mapping[str, object]] = ()
    """`{"name": "db-ha", "keep": 3}`, or a whole new policy."""
    remove_policies: frozenset[str] = frozenset()
    generation: int | None = None
    """The expected generation of the ensemble; None: any."""
    identity: RequestIdentity | None = None
    """The identity of a request that adds members; recorded with the ensemble."""

    @property
    def placing(self) -> bool:
        """Whether members or policies change, so that a placed ensemble must be decided again."""
        members = any(set(one) - _NOT_PLACING for one in self.members)
        return bool(members or self.policies or self.remove_policies)


def change_ensemble(
    env: UseCaseEnvironment,
    caller: Caller,
    ensemble_id: str,
    change: ChangeRequest,
    options: DecisionOptions | None,
) -> EnsembleResult:
    """Change an ensemble.

    If it is placed, or `options` are given, new members are placed beside the present ones in the
    same transaction, and held as long as those are. What changes only roles of other projects is
    offered to them, and not decided yet. New and changed policies must hold for the present
    members too; violations of unchanged policies by present members are accepted. A smaller
    count removes members without a server, the highest index first. If a role asks for other
    places, its members without a server are decided anew, on their present hosts where they can;
    if they have no room beside the others, all without a server are. If the ensemble has a lease,
    its members cannot change here: no member is placed, and the lease continues.

    Raises:
        NotFound: no such ensemble for this caller.
        StaleGeneration: the ensemble has another generation.
        InvalidDescription, UnknownName, UnknownPolicy, Contradiction: as at creation.
        NameTaken: another ensemble of the project has the new name.
        LimitExceeded: the ensemble would become too large.
        InUse: a smaller count would remove members that have a server, or a role that asks for
            other places has a server being built, or headroom.
        BelowMinAvailable: fewer members of a role would remain than must be up.
        WrongState: the ensemble's places belong to a lease, and members would change.
        ConsentMissing: another project has not accepted a role, and it would be decided.
        Infeasible: the changed ensemble cannot be placed; nothing was changed.
    """
    return run_decision(env, lambda: change_flow(env, caller, ensemble_id, change, options))


def change_flow(
    env: UseCaseEnvironment,
    caller: Caller,
    ensemble_id: str,
    change: ChangeRequest,
    options: DecisionOptions | None,
) -> DecisionFlow[EnsembleResult]:
    """The decision flow of `change_ensemble`."""
    stored = own_ensemble(env.store, caller, ensemble_id)
    check_generation(stored, change.generation)
    snapshot = env.store.snapshot()
    member_places = locate_members(snapshot, stored)
    changed = changed_ensemble(env, caller, stored, change, member_places.status)
    if change.identity is not None:
        changed = with_addition_recorded(changed, change.identity)
    check_policies(snapshot.topology, changed, own=False)
    check_names(env, caller, snapshot, changed, stored.policies)
    otherwise = placed_otherwise(stored, changed)
    check_places_may_change(changed, otherwise, member_places)
    anew = to_place_anew(changed, otherwise, member_places)
    keeping = keeping_servers(changed, otherwise, member_places)
    named = unique_name_condition(changed) if changed.name != stored.name else None
    decision = current_decision(env.store, stored)
    offered = tuple(offers(env, changed, stored))
    if offered:
        check_no_lease(env.store, stored)
    if _decides(change, changed, options, placed=bool(member_places.places), offered=bool(offered)):
        condition = reclaimed_name_condition(env.store, stored) if named is None else named
        if decision is not None:
            options = (
                options_like(decision)
                if options is None
                else options_for_joining(options, decision, snapshot.taken_at)
            )
        lease = None if decision is None or change.members else _open_lease(env, decision)
        carried = LeaseContinuation(lease)
        proposal = Proposal(
            changed,
            stored.generation,
            (
                _selections(changed, otherwise, any_held=bool(anew))
                if lease is None
                else (lambda _: frozenset(),)
            ),
            freed=_gone(stored, changed),
            before=stored,
            known_hosts=KnownHosts(preferred=_present_hosts(changed, anew, member_places)),
            restated=frozenset(one.name for one in changed.policies if one not in stored.policies),
            promise=None
            if lease is None or decision is None
            else unchanged_promise(lease, decision),
            waitlist_gate=turn_of_stay(env, changed, None if options is None else options.until),
            further_changes=lambda made: (*condition, *carried.further_changes(made)),
            reader=RefusalReader(
                operator=caller.operator,
                resized_from=resized_from(stored, changed)
                if changed.policies == stored.policies
                else {},
            ),
        )
        settled = yield DecisionRequest(
            proposal, options or DecisionOptions(), RequestIdentity(env.ids.uuid())
        )
        return EnsembleResult(
            settled.ensemble, settled.decision, settled.snapshot, settled.written, keeping
        )
    now = snapshot.taken_at
    gone = {one.name for one in stored.members} - {one.name for one in changed.members}
    done = env.store.commit(
        Changeset(
            (
                PutEnsemble(replace(changed, updated_at=now), stored.generation, stored),
                *(named or ()),
                *member_departure_changes(env.store, stored, gone, now),
                DropBookings(_gone(stored, changed)),
                *offered,
            )
        )
    )
    return EnsembleResult(
        env.store.ensemble(stored.id), None, written=done.written, to_resize=keeping
    )


def _selections(
    changed: Ensemble, otherwise: frozenset[str], *, any_held: bool
) -> tuple[Callable[[MemberPlaces], frozenset[MemberName]], ...]:
    """The members to place: those without a place or placed `otherwise`; then all without a server.

    All others keep their places unless a role is placed otherwise, and that has no room beside
    them. Each is judged by the places that the search starts from: a claim may have come between.

    Raises:
        InUse: by a selection, as of `check_places_may_change`.
    """
    without = unplaced(changed)
    if not any_held:
        return (without,)

    def anew(places: MemberPlaces) -> frozenset[MemberName]:
        check_places_may_change(changed, otherwise, places)
        return without(places) | to_place_anew(changed, otherwise, places).keys()

    return anew, unplaced_or_held(changed)


def _present_hosts(
    changed: Ensemble, anew: Mapping[MemberName, str], places: MemberPlaces
) -> Mapping[MemberName, str]:
    """The hosts that members prefer, if some are placed anew: those on which they are."""
    if not anew:
        return MappingProxyType({})
    there = places.places
    return MappingProxyType(
        {one.name: there[one.name].host for one in changed.members if one.name in there}
    )


def _decides(
    change: ChangeRequest,
    changed: Ensemble,
    options: DecisionOptions | None,
    *,
    placed: bool,
    offered: bool,
) -> bool:
    """Whether a change is decided at once.

    What changes only roles of other projects is stored and offered, whatever `options` say: there
    is nothing to decide before they have accepted it.

    Raises:
        ConsentMissing: it must be decided, and they have not.
    """
    if not change.placing or (options is None and not placed):
        return False
    others = {role.name for role, _ in changed.shared_roles}
    only_others = not (change.policies or change.remove_policies) and all(
        one.get("name") in others for one in change.members if set(one) - _NOT_PLACING
    )
    if offered and only_others:
        return False
    check_consent(changed)
    return True


def _open_lease(env: UseCaseEnvironment, decision: Decision) -> Lease | None:
    """The lease of a decision; None without one, or if it is closed."""
    lease = continuation_of(env, decision).lease
    return None if lease is None or lease.state is LeaseState.CLOSED else lease


def _gone(stored: Ensemble, changed: Ensemble) -> frozenset[str]:
    stay = {member.uuid for member in changed.members}
    return frozenset(member.uuid for member in stored.members) - stay


def changed_ensemble(
    env: UseCaseEnvironment,
    caller: Caller,
    stored: Ensemble,
    change: ChangeRequest,
    status: Mapping[MemberName, MemberStatus],
) -> Ensemble:
    """The ensemble after the change; nothing is placed yet."""
    changed = stored
    known = names_for(env.store, caller)
    flat = flattened({"members": change.members})
    for one in flat.roles:
        role = plain_values.mapping(one.source, one.path)
        changed = _with_role(env, changed, role, known, one.path, status)
    of_groups = tuple(plain_values.mapping(one.source, one.path) for one in flat.policies)
    changed = replace(
        changed,
        name=change.name or stored.name,
        metadata=stored.metadata
        if change.metadata is None
        else MappingProxyType(dict(change.metadata)),
        policies=_policies(stored, replace(change, policies=(*change.policies, *of_groups))),
    )
    changed = with_references(env.store, changed, stored.policies)
    check_size(env.limits, changed, stored)
    return changed


def _with_role(
    env: UseCaseEnvironment,
    ensemble: Ensemble,
    source: Mapping[str, object],
    known: LedgerNames,
    path: str,
    status: Mapping[MemberName, MemberStatus],
) -> Ensemble:
    names = {role.name for role in ensemble.roles}
    if source.get("name") not in names:
        if not {"flavor", "resources"} & set(source):
            raise InvalidDescription(
                f"there is no role {source.get('name')} ({_there_are(names)});"
                " a new one needs a flavor or resources",
                path=f"{path}.name",
            )
        described = read_role(source, path)
        role = resolve_role(described, known, env.limits.nova, path)
        role = owned_role(env.ids, role, described, ensemble.project_id, path)
        if role.share is not None and ensemble.paths is not None:
            raise InvalidDescription(
                "the ensemble of a Heat stack has no roles of other projects",
                path=f"{path}.project",
            )
        wider = replace(ensemble, roles=(*ensemble.roles, role))
        added = (MemberName(role.name, index) for index in range(described.count))
        return wider.grown(role.name, new_members(env.ids, added))
    name = str(source["name"])
    role, count = ensemble.role(name), ensemble.count(name)
    described = read_change(role, source, count, path)
    anew = with_changed_places(role, described, source, known, env.limits.nova, path)
    if "server" in source:
        anew = replace(anew, server=described.server)
    if "min_available" in source:
        anew = replace(anew, min_available=described.min_available)
    changed = ensemble.with_role(anew)
    if "count" in source:
        check_min_available(changed, {name: described.count})
        changed = _with_count(env, changed, name, described.count, status)
    if role.share is not None and changed != ensemble:
        share = role.share.offered_anew(env.ids.uuid())
        changed = changed.with_role(replace(changed.role(name), share=share))
    return changed


def _with_count(
    env: UseCaseEnvironment,
    ensemble: Ensemble,
    role: str,
    count: int,
    status: Mapping[MemberName, MemberStatus],
) -> Ensemble:
    present = sorted(m.name.index for m in ensemble.members if m.name.role == role)
    if count >= len(present):
        return with_more_members(env.ids, ensemble, role, count - len(present))
    free = [i for i in present if status.get(MemberName(role, i)) not in _BUSY]
    surplus = len(present) - count
    if surplus > len(free):
        raise InUse("role", role, f"{counted(len(present) - len(free), 'member')} with a server")
    gone = {MemberName(role, i) for i in free[-surplus:]}
    return without_members(ensemble, gone)


_BUSY = {MemberStatus.BUILDING, MemberStatus.ACTIVE}


def without_members(ensemble: Ensemble, gone: set[MemberName]) -> Ensemble:
    """The ensemble without the members `gone`."""
    stay: tuple[Member, ...] = tuple(m for m in ensemble.members if m.name not in gone)
    return replace(ensemble, members=stay)


def _policies(stored: Ensemble, change: ChangeRequest) -> tuple[PolicyStatement, ...]:
    found = {one.name: one for one in stored.policies}
    for name in change.remove_policies:
        if found.pop(name, None) is None:
            raise InvalidDescription(f"no policy {name}", path="remove_policies")
    for index, source in enumerate(change.policies):
        path = f"policies[{index}]"
        named = source.get("name")
        before = found.get(named) if isinstance(named, str) else None
        if before is None:
            if "type" not in source:
                raise InvalidDescription(
                    f"there is no policy {named} ({_there_are(found)}); a new one needs a type",
                    path=f"{path}.name",
                )
            fresh = read_statement(source, path)
            found[fresh.name] = fresh
        else:
            found[before.name] = merged_statement(before, source, path)
    return tuple(found.values())


def _there_are(names: Iterable[str]) -> str:
    return f"there are: {', '.join(sorted(names)) or 'none'}"
