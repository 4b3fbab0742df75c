"""Members of an ensemble: list and add members, add a running server, remove a member."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING

from moorage.domain.changes import Changeset, DropBookings, PutEnsemble, PutEvent
from moorage.domain.derived_events import removed_member
from moorage.domain.describe import read_role
from moorage.domain.ensembles import Member
from moorage.domain.errors import (
    ConcurrentUpdate,
    DescriptionMismatch,
    Infeasible,
    InUse,
    InvalidDescription,
    NotFound,
    QuotaExceeded,
    StaleGeneration,
    WrongState,
)
from moorage.domain.member_names import MemberName
from moorage.usecases.claims.comparison import RequestedServer, compare
from moorage.usecases.compliance.judgement import BreaksPolicies, PolicyViolation, broken_policies
from moorage.usecases.decide.loop import DecisionFlow, run_decision
from moorage.usecases.decide.member_places import (
    MemberPlaces,
    MemberStatus,
    bookings_of,
    locate_members,
)
from moorage.usecases.decide.writes import current_decision, member_departure_changes
from moorage.usecases.ensembles.change import (
    ChangeRequest,
    already_added,
    change_flow,
    with_addition_recorded,
    without_members,
)
from moorage.usecases.ensembles.create import EnsembleResult
from moorage.usecases.ensembles.names import reclaimed_name_condition
from moorage.usecases.ensembles.policy_checks import why_refused
from moorage.usecases.ensembles.size_changes import check_min_available
from moorage.usecases.shared.access import own_ensemble, sees
from moorage.usecases.shared.limits import check_member_count
from moorage.usecases.shared.retry import retry
from moorage.usecases.shared.role_access import check_unshared, seen_ensemble

if TYPE_CHECKING:
    from collections.abc import Mapping

    from moorage.domain.ensembles import Ensemble, Role
    from moorage.engine.state.snapshot import Snapshot
    from moorage.usecases.decide.request import RequestIdentity
    from moorage.usecases.decide.solution import DecisionOptions
    from moorage.usecases.environment import UseCaseEnvironment
    from moorage.usecases.ports import Caller


@dataclass(frozen=True, slots=True)
class MemberAddition:
    """A new role's description, or a present role's name and a count; and options for placing."""

    described: Mapping[str, object]
    options: DecisionOptions | None = None


def add_members(
    env: UseCaseEnvironment,
    caller: Caller,
    ensemble_id: str,
    adding: MemberAddition,
    identity: RequestIdentity,
) -> EnsembleResult:
    """Add `count` members to a new role, or to a present one given by its name.

    They are placed at once if the ensemble is placed; the present members keep their places. The
    same request with the same id adds nothing more: it gets the ensemble as it is.

    Raises:
        NotFound: no such ensemble for this caller.
        InvalidDescription: the description is not valid, or describes a present role again.
        Infeasible: the members cannot be placed; nothing was added.
        DuplicateName: the id was used by another request.
    """

    def attempt() -> DecisionFlow[EnsembleResult]:
        ensemble = own_ensemble(env.store, caller, ensemble_id)
        if already_added(ensemble, identity):
            return EnsembleResult(ensemble, current_decision(env.store, ensemble))
        change = _change(ensemble, adding.described, identity)
        try:
            return (yield from change_flow(env, caller, ensemble_id, change, adding.options))
        except StaleGeneration as moved:
            # The caller did not give this generation: read the ensemble again.
            raise ConcurrentUpdate(moved.message, subject=moved.subject) from moved
        except (Infeasible, QuotaExceeded):
            # The same request may have been granted on another connection: give the same answer.
            ensemble = own_ensemble(env.store, caller, ensemble_id)
            if already_added(ensemble, identity):
                return EnsembleResult(ensemble, current_decision(env.store, ensemble))
            raise

    return run_decision(env, attempt)


def _change(
    ensemble: Ensemble, described: Mapping[str, object], identity: RequestIdentity
) -> ChangeRequest:
    name = described.get("name")
    change: Mapping[str, object] = described
    if any(role.name == name for role in ensemble.roles):
        if set(described) - {"name", "count"}:
            raise InvalidDescription(
                f"role {name} is described already: say only how many more", path="member.role"
            )
        # `read_role` needs a size, which is not used; it checks the other fields.
        more = read_role({**described, "resources": {"VCPU": 1}}, "member.role").count
        change = {"name": name, "count": ensemble.count(str(name)) + more}
    return ChangeRequest(members=(change,), generation=ensemble.generation, identity=identity)


class JoinBreaksPolicies(BreaksPolicies):
    """A server may not join: it would break required policies."""

    def __init__(self, server_id: str, violations: tuple[PolicyViolation, ...]) -> None:
        names = ", ".join(one.policy for one in violations)
        super().__init__("server", server_id, f"server {server_id} would break {names}", violations)


class ServerTooLarge(DescriptionMismatch):
    """A server may not join: it takes more than its role describes."""

    def __init__(self, server_id: str, diff: tuple[Mapping[str, object], ...]) -> None:
        super().__init__(f"server {server_id}", diff)
        self.message = f"server {server_id} takes more than the role describes"


@dataclass(frozen=True, slots=True)
class JoinResult:
    """A member that joined, the policies it breaks, and how its size differs from its role's."""

    member: Member
    ensemble: Ensemble
    violations: tuple[PolicyViolation, ...]
    diff: tuple[Mapping[str, object], ...] = ()


@dataclass(frozen=True, slots=True)
class LeaveResult:
    """A member that left, whether its place was freed, and the policies that break by it."""

    name: MemberName
    freed: bool
    violations: tuple[PolicyViolation, ...]
    refusal: str = ""
    """Why no further change passes until the policies change; see `why_refused`."""


@dataclass(frozen=True, slots=True)
class MemberListing:
    """An ensemble with its members' places."""

    ensemble: Ensemble
    member_places: MemberPlaces
    snapshot: Snapshot


def list_members(env: UseCaseEnvironment, caller: Caller, ensemble_id: str) -> MemberListing:
    """The members of an ensemble with their places.

    Raises:
        NotFound: no such ensemble for this caller.
    """
    ensemble = seen_ensemble(env.store, caller, ensemble_id)
    snapshot = env.store.snapshot()
    return MemberListing(ensemble, locate_members(snapshot, ensemble), snapshot)


def join(
    env: UseCaseEnvironment,
    caller: Caller,
    ensemble_id: str,
    joining: JoinRequest,
    identity: RequestIdentity,
) -> JoinResult:
    """Add a running server as a member of a role; its place is its allocations.

    The same request with the same id gets the member that joined before.

    Raises:
        NotFound: no such ensemble, or no such server of this project, for this caller.
        InvalidDescription: no such role, or the server is on no host.
        InUse: the server is a member already.
        LimitExceeded: the ensemble has as many members as it may.
        WrongState: the server joined by this request, and has left since; or the role belongs to
            another project.
        NameTaken: no member had a place, and another ensemble took the name since.
        DuplicateName: the id was used by another request.
        ServerTooLarge: the server takes more than the role describes, and `joining.reject` is set.
        JoinBreaksPolicies: it would break required policies, and `joining.reject` is set.
    """

    def attempt() -> JoinResult:
        ensemble = own_ensemble(env.store, caller, ensemble_id)
        if already_added(ensemble, identity):
            return _joined_before(env, ensemble, joining)
        return _join(env, caller, ensemble, joining, identity)

    return retry(env, attempt)


def _joined_before(env: UseCaseEnvironment, ensemble: Ensemble, joining: JoinRequest) -> JoinResult:
    for member in ensemble.members:
        if member.server_id == joining.server_id:
            return JoinResult(member, ensemble, broken_policies(env.store.snapshot(), ensemble))
    raise WrongState(f"server {joining.server_id} has left the ensemble since")


def _join(
    env: UseCaseEnvironment,
    caller: Caller,
    ensemble: Ensemble,
    joining: JoinRequest,
    identity: RequestIdentity,
) -> JoinResult:
    role = next((one for one in ensemble.roles if one.name == joining.role), None)
    if role is None:
        raise InvalidDescription(f"no role {joining.role}", path="member.name")
    if any(member.server_id == joining.server_id for member in ensemble.members):
        raise InUse("server", joining.server_id)
    check_unshared(ensemble, role.name)
    check_member_count(env.limits, len(ensemble.members) + 1)
    snapshot = env.store.snapshot()
    size = compare(role, _size(env, caller, snapshot, role, joining.server_id), frozenset())
    index = 1 + max(
        (m.name.index for m in ensemble.members if m.name.role == joining.role), default=-1
    )
    member = Member(MemberName(joining.role, index), env.ids.uuid(), joining.server_id)
    grown = with_addition_recorded(ensemble.grown(joining.role, (member,)), identity)
    broken = broken_policies(snapshot, grown)
    before = {one.policy for one in broken_policies(snapshot, ensemble)}
    # `broken_policies` has refused a server on no host: `reject` must not hide that error.
    if size.verdict == "differs" and joining.reject:
        raise ServerTooLarge(joining.server_id, size.diff)
    fresh = tuple(one for one in broken if one.required and one.policy not in before)
    if fresh and joining.reject:
        raise JoinBreaksPolicies(joining.server_id, fresh)
    grown = replace(grown, updated_at=env.store.now())
    named = reclaimed_name_condition(env.store, ensemble)
    env.store.commit(Changeset((PutEnsemble(grown, ensemble.generation, ensemble), *named)))
    return JoinResult(member, env.store.ensemble(ensemble.id), broken, size.diff)


@dataclass(frozen=True, slots=True)
class JoinRequest:
    """The server that joins, and its role.

    With `reject`, only if it is no larger than the role describes and breaks no required policy.
    """

    role: str
    server_id: str
    reject: bool = True


def leave(
    env: UseCaseEnvironment,
    caller: Caller,
    ensemble_id: str,
    name: MemberName,
    *,
    keep_resources: bool,
) -> LeaveResult:
    """Remove a member. If it has a server, the server keeps its allocations.

    A held place is freed. A place that is claimed for a server being built is freed too, unless
    `keep_resources` is set; then the member cannot be removed. Policies that break by it are in the
    result and in an event; they do not keep it.

    Raises:
        NotFound: no such ensemble, or member of it, for this caller.
        InUse: the member's server is being built, and `keep_resources` is set.
        BelowMinAvailable: fewer members of its role would remain than must be up.
        WrongState: the member is another project's.
    """

    def attempt() -> LeaveResult:
        ensemble = own_ensemble(env.store, caller, ensemble_id)
        member = ensemble.member(name)
        check_unshared(ensemble, name.role)
        check_min_available(ensemble, {name.role: ensemble.count(name.role) - 1})
        now = env.store.now()
        # Read before the member's status: a claim in between changes the decision's generation.
        ended = tuple(member_departure_changes(env.store, ensemble, {name}, now))
        snapshot = env.store.snapshot()
        member_places = locate_members(snapshot, ensemble)
        if keep_resources and member_places.of(name) is MemberStatus.BUILDING:
            raise InUse("member", str(name), "its server is still being built")
        smaller = replace(without_members(ensemble, {name}), updated_at=now)
        broken = _newly_broken(snapshot, ensemble, smaller)
        freed = member_places.of(name) in {MemberStatus.HELD, MemberStatus.BUILDING}
        topology = snapshot.topology
        refusal = why_refused(topology, smaller) if not why_refused(topology, ensemble) else ""
        drop = DropBookings(frozenset({member.uuid}))
        told = removed_member(ensemble, member, sorted({one.policy for one in broken}))
        changes = (PutEnsemble(smaller, ensemble.generation), drop, *ended, PutEvent(told))
        env.store.commit(Changeset(changes))
        return LeaveResult(name, freed, broken, refusal)

    return retry(env, attempt)


def _newly_broken(
    snapshot: Snapshot, ensemble: Ensemble, smaller: Ensemble
) -> tuple[PolicyViolation, ...]:
    """The violations of policies that hold for the present members, and not without one of them."""
    try:
        before = {one.policy for one in broken_policies(snapshot, ensemble)}
        return tuple(one for one in broken_policies(snapshot, smaller) if one.policy not in before)
    except InvalidDescription:  # a server is on no host, of which no policy can be judged
        return ()


def _size(
    env: UseCaseEnvironment, caller: Caller, snapshot: Snapshot, role: Role, server_id: str
) -> RequestedServer:
    """The amounts that a running server has allocated, with the role's traits.

    Raises:
        NotFound: no such server for this caller, or it has no allocations.
    """
    found = env.store.consumer(server_id)
    bookings = bookings_of(snapshot, server_id)
    if found is None or not sees(caller, found[0].project_id) or not bookings:
        raise NotFound("server", server_id)
    taken = Counter[str]()
    for booking in bookings:
        taken.update(booking.amounts)
    # Bookings do not record their groups: subtract the amounts that the role's groups take.
    for group in role.groups:
        taken.subtract(group.resources)
    return RequestedServer(
        MappingProxyType({name: amount for name, amount in taken.items() if amount}),
        frozenset(role.required),
        role.forbidden,
        "resources",
    )
