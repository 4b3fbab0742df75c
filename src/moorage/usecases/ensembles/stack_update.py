"""What an update makes of a stack's ensemble: its roles, policies and members, and what changes."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING

from moorage.domain.ensembles import Selector
from moorage.domain.errors import InUse
from moorage.domain.member_names import MemberName
from moorage.domain.refusal_commands import to_remove_member
from moorage.domain.server_groups import IMPORTED
from moorage.usecases.decide.member_places import (
    MemberStatus,
    bookings_of,
    locate_members,
    place_of,
)
from moorage.usecases.decide.writes import MEMBER_TYPE
from moorage.usecases.ensembles.extend import from_headroom
from moorage.usecases.ensembles.policies import policy_meaning
from moorage.usecases.ensembles.shrink import Reduction, leaving_members
from moorage.usecases.ensembles.size_changes import RoleCounts
from moorage.usecases.ensembles.stack_members import (
    StackServers,
    heats_names,
    members_after,
    role_paths,
    unnumbered_roles,
    with_servers,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from moorage.domain.ensembles import Ensemble, Member, PolicyStatement, Role
    from moorage.engine.state.snapshot import Snapshot
    from moorage.heat.compile import CompiledTemplate
    from moorage.usecases.decide.member_places import MemberPlaces
    from moorage.usecases.environment import UseCaseEnvironment
    from moorage.usecases.ports import Store


@dataclass(frozen=True, slots=True)
class StackUpdate:
    """An ensemble after an update, and what the update changes."""

    stored: Ensemble | None
    """The ensemble before; None: there was none."""
    ensemble: Ensemble
    anew: frozenset[MemberName]
    """Members that hold a place of a description that has changed."""
    spares: frozenset[MemberName]
    """New members that were headroom, and have its places."""
    freed: frozenset[str]
    """Consumers that hold nothing any more: members that left or have a server now, and spares."""
    restated: frozenset[str]
    """Names of new and changed policies."""
    differs: bool
    """Whether anything changed that matters for places."""
    notes: tuple[str, ...]


def stack_update(
    env: UseCaseEnvironment,
    stored: Ensemble | None,
    described: Ensemble,
    compiled: CompiledTemplate,
    servers: Mapping[str, str],
    snapshot: Snapshot,
) -> StackUpdate:
    """The update that makes an ensemble as described by its template.

    `servers` are the paths at which Heat has servers. If nothing is stored, the new ensemble gets
    what `described` has.

    Raises:
        InvalidDescription: a server is named twice.
        InUse: a server that would join is a member of another ensemble.
    """
    names = heats_names(compiled.keys)
    keys = {names[name]: path for name, path in compiled.keys.items()}
    described = _with_names(described, names)
    paths = role_paths(keys, compiled.scaling)
    sorted_servers = StackServers.of(paths, unnumbered_roles(paths, compiled.scaling), servers)
    base = replace(described, members=()) if stored is None else stored
    before = locate_members(snapshot, base)
    scaling = {
        role: (one.least, one.desired, one.most)
        for role, one in compiled.scaling.items()
        if role in sorted_servers.unnumbered
    }
    judged = replace(base, policies=described.policies)
    wanted = [name for name in keys if name.role not in scaling]
    leaving = {}
    for role, sizes in scaling.items():
        some = sorted_servers.unnumbered[role]
        size = _size(base, described, role, sizes, len(some), before)
        wanted += (MemberName(role, index) for index in range(size))
        leaving[role] = _leaving(judged, role, size, some, snapshot)
    members = members_after(env.ids, base.members, wanted, leaving)
    hosts, notes = _hosts(env.store, snapshot, base.project_id, servers)
    _check_unaffiliated(env.store, base, hosts)
    after = replace(
        base,
        name=described.name,
        roles=described.roles,
        policies=described.policies,
        members=with_servers(members, sorted_servers, before, hosts),
        paths=paths,
        scaling=MappingProxyType(scaling),
    )
    changed = frozenset() if stored is None else _changed_roles(stored, after)
    as_before = {role.name for role in after.roles} - changed
    headroom = _headroom(base, compiled)
    after = replace(after, headroom=tuple(one for one in headroom if one.name.role in as_before))
    known = {one.name for one in base.members}
    fresh = (one.name for one in after.members if not (one.name in known or one.server_id))
    after, spares = from_headroom(after, fresh)
    restated = frozenset() if stored is None else _restated(stored, after)
    return StackUpdate(
        stored,
        after,
        anew=frozenset(
            one.name
            for one in after.members
            if one.name.role in changed
            and before.of(one.name) is MemberStatus.HELD
            and one.server_id is None
        ),
        spares=frozenset(spares),
        freed=_freed(base, after)
        | (base.spares - after.spares - {one.uuid for one in after.members}),
        restated=restated,
        differs=bool(changed or restated) or _differs(base, after),
        notes=(*notes, *_kept_servers(after, before, changed)),
    )


def _with_names(described: Ensemble, names: Mapping[MemberName, MemberName]) -> Ensemble:
    """The ensemble, in whose policies members have these names."""
    if all(name == other for name, other in names.items()):
        return described
    policies = tuple(
        replace(
            one,
            members=tuple(
                selector
                if selector.member is None
                else Selector(member=names.get(selector.member, selector.member))
                for selector in one.members
            ),
        )
        for one in described.policies
    )
    return replace(described, policies=policies)


def _size(
    stored: Ensemble,
    described: Ensemble,
    role: str,
    sizes: tuple[int, int, int],
    servers: int,
    places: MemberPlaces,
) -> int:
    """How many members an autoscaling group has after an update.

    As in Heat, a group that the update does not change keeps its present size, to which it was
    scaled. One that is changed gets its desired size; without a desired one, which cannot be told
    from one that is the least size, it keeps its present size too, within the bounds.
    """
    least, desired, most = sizes
    if not any(one.name == role for one in stored.roles):
        return max(desired, min(servers, most))
    same = _description(stored.role(role)) == _description(described.role(role))
    if desired != least and not (same and stored.scaling.get(role) == sizes):
        return desired
    placed = sum(name.role == role for name in places.places)
    present = max(servers, placed, min(stored.count(role), desired))
    return min(max(present, least), most)


def _headroom(stored: Ensemble, compiled: CompiledTemplate) -> Iterator[Member]:
    """The spares that stay: of a scaling group no more than its template asks for."""
    asked = {role: compiled.headroom.get(role, 0) for role in compiled.scaling}
    left = Counter(asked)
    for spare in stored.headroom:
        role = spare.name.role
        if role in asked:
            left[role] -= 1
        if left[role] >= 0:
            yield spare


def _leaving(
    ensemble: Ensemble, role: str, wanted: int, servers: Iterable[str], snapshot: Snapshot
) -> frozenset[MemberName]:
    """The members of an autoscaling group that leave if so many are wanted.

    First those whose server Heat does not have any more; the others are chosen as in a shrinking,
    or without regard for policies that no choice keeps: what stays is judged by the decision.
    """
    named = frozenset(servers)
    unknown = sorted(
        one.name
        for one in ensemble.members
        if one.name.role == role and one.server_id is not None and one.server_id not in named
    )
    surplus = max(ensemble.count(role) - wanted, 0)
    gone = frozenset(unknown[:surplus])
    if len(gone) == surplus:
        return gone
    rest = replace(ensemble, members=tuple(one for one in ensemble.members if one.name not in gone))
    more = leaving_members(
        snapshot, rest, Reduction(RoleCounts({role: surplus - len(gone)})), kept=False
    )
    return gone | more


def _hosts(
    store: Store, snapshot: Snapshot, project_id: str, servers: Mapping[str, str]
) -> tuple[Mapping[str, str], tuple[str, ...]]:
    """Server -> its host, for the project's servers with allocations; and notes on the others."""
    found: dict[str, str] = {}
    notes: list[str] = []
    for path, server in sorted(servers.items()):
        bookings = bookings_of(snapshot, server)
        known = store.consumer(server) if bookings else None
        if (
            known is None
            or known[0].project_id != project_id
            or known[0].type == MEMBER_TYPE  # a place that is held, and no server
        ):
            notes.append(f"{path}: server {server} has no allocations, so it has no place")
        else:
            found[server] = place_of(snapshot, bookings).host
    return MappingProxyType(found), tuple(notes)


def _check_unaffiliated(store: Store, ensemble: Ensemble, servers: Iterable[str]) -> None:
    """Check that servers which join are nobody else's members; those of Nova's groups may be.

    Raises:
        InUse: one is; two ensembles would decide about it.
    """
    for server in sorted(frozenset(servers) - ensemble.servers):
        for other in store.ensembles_of_server(server):
            if other.id != ensemble.id and IMPORTED not in other.metadata.items():
                name = next(one.name for one in other.members if one.server_id == server)
                why = f"it is {name} of ensemble {other.name} ({other.id})"
                raise InUse("server", server, f"{why}{to_remove_member(other.id, str(name))}")


def _freed(before: Ensemble, after: Ensemble) -> frozenset[str]:
    stay = {one.name: one for one in after.members}

    def holds(member: Member) -> bool:
        still = stay.get(member.name)
        return still is not None and (still.server_id is None or member.server_id is not None)

    return frozenset(one.uuid for one in before.members if not holds(one))


def _changed_roles(before: Ensemble, after: Ensemble) -> frozenset[str]:
    """Names of roles that are described otherwise, as far as it matters for places."""
    known = {role.name: _description(role) for role in before.roles}
    return frozenset(
        role.name
        for role in after.roles
        if role.name in known and known[role.name] != _description(role)
    )


def _description(role: Role) -> Role:
    return replace(role, server=None, min_available=0)


def _restated(before: Ensemble, after: Ensemble) -> frozenset[str]:
    known = _meanings(before.policies)
    return frozenset(
        name for name, meaning in _meanings(after.policies).items() if known.get(name) != meaning
    )


def _meanings(policies: Iterable[PolicyStatement]) -> Mapping[str, object]:
    return {
        one.name: policy_meaning(one, f"policies[{index}]") for index, one in enumerate(policies)
    }


def _differs(before: Ensemble, after: Ensemble) -> bool:
    """Whether members or their servers differ, or policies or roles were removed."""

    def compared(ensemble: Ensemble) -> tuple[object, ...]:
        members = {(one.name, one.server_id) for one in ensemble.members}
        names = {one.name for one in ensemble.policies}
        return members, names, {one.name for one in ensemble.roles}

    return compared(before) != compared(after)


def _kept_servers(after: Ensemble, places: MemberPlaces, changed: frozenset[str]) -> Iterator[str]:
    """Notes on roles that are described otherwise while some of their members have servers."""
    for role in sorted(changed):
        some = [
            str(one.name)
            for one in after.members
            if one.name.role == role and places.of(one.name) is MemberStatus.ACTIVE
        ]
        if some:
            yield f"{role} is described otherwise; servers keep their places: {', '.join(some)}"
