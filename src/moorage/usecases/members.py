"""Members of an ensemble: list them, let a running server join, let one leave."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING

from moorage.domain.changes import Changeset, DropBookings, PutEnsemble
from moorage.domain.ensembles import Member, MemberName
from moorage.domain.errors import (
    DescriptionMismatch,
    InUse,
    InvalidDescription,
    NotFound,
    WrongState,
)
from moorage.usecases.access import own_ensemble, sees
from moorage.usecases.additions import answered, remembering
from moorage.usecases.change_ensemble import without
from moorage.usecases.compare import Requested, compare
from moorage.usecases.compliance import PolicyViolation, broken_policies
from moorage.usecases.limits import check_member_count
from moorage.usecases.patience import again
from moorage.usecases.standing import MemberStatus, Standing, bookings_of, standing
from moorage.usecases.writing import parting

if TYPE_CHECKING:
    from collections.abc import Mapping

    from moorage.domain.ensembles import Ensemble, Role
    from moorage.engine.snapshot import Snapshot
    from moorage.usecases.parts import Parts
    from moorage.usecases.ports import Caller
    from moorage.usecases.proposal import Naming


class Violated(InUse):
    """A server may not join: it would break required policies, listed in `violations`."""

    def __init__(self, server_id: str, violations: tuple[PolicyViolation, ...]) -> None:
        super().__init__("server", server_id)
        self.message = f"server {server_id} would break {', '.join(v.policy for v in violations)}"
        self.violations = violations


class Oversized(DescriptionMismatch):
    """A server may not join: it takes more than its role describes."""

    def __init__(self, server_id: str, diff: tuple[Mapping[str, object], ...]) -> None:
        super().__init__(f"server {server_id}", diff)
        self.message = f"server {server_id} takes more than the role describes"


@dataclass(frozen=True, slots=True)
class Joined:
    """A member that joined, the policies it breaks, and how its size differs from its role's."""

    member: Member
    ensemble: Ensemble
    violations: tuple[PolicyViolation, ...]
    diff: tuple[Mapping[str, object], ...] = ()
    dry_run: bool = False


@dataclass(frozen=True, slots=True)
class Where:
    """An ensemble with where its members stand."""

    ensemble: Ensemble
    stand: Standing
    snapshot: Snapshot


def list_members(parts: Parts, caller: Caller, ensemble_id: str) -> Where:
    """The members and where they stand.

    Raises:
        NotFound: no such ensemble for this caller.
    """
    ensemble = own_ensemble(parts.store, caller, ensemble_id)
    snapshot = parts.store.snapshot()
    return Where(ensemble, standing(snapshot, ensemble), snapshot)


def join(
    parts: Parts,
    caller: Caller,
    ensemble_id: str,
    joining: Joining,
    naming: Naming,
    *,
    dry_run: bool = False,
) -> Joined:
    """Let a running server join a role; it stands where its allocations are.

    The same request under the same id gets the member that joined before.

    Raises:
        NotFound: no such ensemble, or no such server of this project, for this caller.
        InvalidDescription: no such role, or the server stands on no host.
        InUse: the server is a member already.
        LimitExceeded: the ensemble has as many members as it may.
        WrongState: it joined by this request, and has left since.
        DuplicateName: the id was used by another request.
        Oversized: it takes more than the role describes, and `joining` says to refuse that.
        Violated: it would break required policies, and `joining` says to refuse that.
    """

    def attempt() -> Joined:
        ensemble = own_ensemble(parts.store, caller, ensemble_id)
        if answered(ensemble, naming):
            return _joined_before(parts, ensemble, joining)
        return _join(parts, caller, ensemble, joining, naming, dry_run=dry_run)

    return again(parts, attempt)


def _joined_before(parts: Parts, ensemble: Ensemble, joining: Joining) -> Joined:
    for member in ensemble.members:
        if member.server_id == joining.server_id:
            return Joined(member, ensemble, broken_policies(parts.store.snapshot(), ensemble))
    raise WrongState(f"server {joining.server_id} has left the ensemble since")


def _join(
    parts: Parts,
    caller: Caller,
    ensemble: Ensemble,
    joining: Joining,
    naming: Naming,
    *,
    dry_run: bool,
) -> Joined:
    role = next((one for one in ensemble.roles if one.name == joining.role), None)
    if role is None:
        raise InvalidDescription(f"no role {joining.role}", path="member.name")
    if any(member.server_id == joining.server_id for member in ensemble.members):
        raise InUse("server", joining.server_id)
    check_member_count(parts.limits, len(ensemble.members) + 1)
    snapshot = parts.store.snapshot()
    size = compare(role, _size(parts, caller, snapshot, role, joining.server_id), frozenset())
    index = 1 + max(
        (m.name.index for m in ensemble.members if m.name.role == joining.role), default=-1
    )
    member = Member(MemberName(joining.role, index), parts.ids.uuid(), joining.server_id)
    grown = remembering(ensemble.grown(joining.role, (member,)), naming)
    broken = broken_policies(snapshot, grown)
    before = {one.policy for one in broken_policies(snapshot, ensemble)}
    # What nothing could allow goes first: a server that stands on no host is refused above.
    if size.verdict == "differs" and joining.reject:
        raise Oversized(joining.server_id, size.diff)
    fresh = tuple(one for one in broken if one.required and one.policy not in before)
    if fresh and joining.reject:
        raise Violated(joining.server_id, fresh)
    if not dry_run:
        grown = replace(grown, updated_at=parts.store.now())
        parts.store.commit(Changeset((PutEnsemble(grown, ensemble.generation),)))
        grown = parts.store.ensemble(ensemble.id)
    return Joined(member, grown, broken, size.diff, dry_run)


@dataclass(frozen=True, slots=True)
class Joining:
    """Which server joins which role.

    With `reject`, only if it is no larger than the role describes and breaks no required policy.
    """

    role: str
    server_id: str
    reject: bool = True


def leave(
    parts: Parts,
    caller: Caller,
    ensemble_id: str,
    name: MemberName,
    *,
    keep_resources: bool,
    dry_run: bool = False,
) -> Ensemble:
    """Take a member out. A server's allocations always stay: an end does not stop a server.

    A held place is freed. A place that is claimed for a server being built is freed too,
    unless `keep_resources` says to wait until it is a server; then the member may not leave.

    Raises:
        NotFound: no such ensemble, or member of it, for this caller.
        InUse: its server is being built, and its resources are to be kept.
    """

    def attempt() -> Ensemble:
        ensemble = own_ensemble(parts.store, caller, ensemble_id)
        member = ensemble.member(name)
        now = parts.store.now()
        # Read before its standing is judged: a claim made in between moves the decision.
        ended = tuple(parting(parts.store, ensemble, {name}, now))
        stand = standing(parts.store.snapshot(), ensemble)
        if keep_resources and stand.of(name) is MemberStatus.BUILDING:
            raise InUse("member", str(name), "its server is still being built")
        smaller = replace(without(ensemble, {name}), updated_at=now)
        if dry_run:
            return replace(smaller, updated_at=ensemble.updated_at)
        drop = DropBookings(frozenset({member.uuid}))
        parts.store.commit(Changeset((PutEnsemble(smaller, ensemble.generation), drop, *ended)))
        return parts.store.ensemble(ensemble_id)

    return again(parts, attempt)


def _size(
    parts: Parts, caller: Caller, snapshot: Snapshot, role: Role, server_id: str
) -> Requested:
    """What a running server takes. Of traits it says nothing, so the role's are taken for its own.

    Raises:
        NotFound: no such server for this caller, or it stands nowhere.
    """
    found = parts.store.consumer(server_id)
    bookings = bookings_of(snapshot, server_id)
    if found is None or not sees(caller, found[0].project_id) or not bookings:
        raise NotFound("server", server_id)
    taken = Counter[str]()
    for booking in bookings:
        taken.update(booking.amounts)
    # Bookings do not say which group they are of: what the role's groups take is theirs.
    for group in role.groups:
        taken.subtract(group.resources)
    return Requested(
        MappingProxyType({name: amount for name, amount in taken.items() if amount}),
        frozenset(role.required),
        role.forbidden,
        "resources",
    )
