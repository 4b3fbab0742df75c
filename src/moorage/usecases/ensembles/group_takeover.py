"""Take over Nova's server groups: an ensemble for each, with its running servers as members.

A group's ensemble has the group's id, so that clients that know it find the ensemble. It
is repeated at any time: servers that have come are added, and those that are gone are left out.
"""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from moorage.domain.changes import Changeset, PutEnsemble
from moorage.domain.describe import NOVA_SHORTHAND
from moorage.domain.describe_members import RoleDescription
from moorage.domain.ensembles import ROLE_NAME, TAGGED, Ensemble, Member
from moorage.domain.errors import InvalidDescription, MoorageError, UnknownName
from moorage.domain.member_names import MemberName
from moorage.domain.plain_values import text
from moorage.domain.references import REFERENCE
from moorage.domain.resources import total
from moorage.domain.server_groups import IMPORTED, GroupPolicy, group_policy
from moorage.usecases.compliance.judgement import broken_policies
from moorage.usecases.decide.member_places import bookings_of
from moorage.usecases.shared.access import every_ensemble, require_operator
from moorage.usecases.shared.limits import check_member_count
from moorage.usecases.shared.lookup import if_stored
from moorage.usecases.shared.retry import retry
from moorage.usecases.shared.role_resolution import LedgerNames, resolve

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from moorage.domain.ensembles import Role
    from moorage.domain.nova_groups import NovaGroup
    from moorage.domain.servers import Server
    from moorage.engine.state.snapshot import Snapshot
    from moorage.usecases.compliance.judgement import PolicyViolation
    from moorage.usecases.environment import UseCaseEnvironment
    from moorage.usecases.ports import Caller, Store

_NOT_IN_ROLES: Final = re.compile(r"[^A-Za-z0-9_./:-]")
_LONGEST: Final = 128


@dataclass(frozen=True, slots=True)
class GroupOutcome:
    """What became of one group."""

    group: NovaGroup
    name: str = ""
    """The ensemble's, which may have been renamed since."""
    added: tuple[str, ...] = ()
    """Servers that became members."""
    removed: tuple[str, ...] = ()
    """Servers that were members and are gone."""
    not_taken: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    """Servers of the group that are no members, with the reason."""
    broken: tuple[PolicyViolation, ...] = ()
    """What of its policy does not hold for the servers as they run."""
    new: bool = False
    refused: str | None = None
    """Why there is no ensemble for it, or why it was left as it is."""

    @property
    def changed(self) -> bool:
        """Whether there was anything to write."""
        return self.refused is None and bool(self.new or self.added or self.removed)


def take_over_groups(
    env: UseCaseEnvironment,
    caller: Caller,
    groups: Sequence[NovaGroup],
    servers: Mapping[str, Server],
    *,
    advance: Callable[[], object] = lambda: None,
) -> tuple[GroupOutcome, ...]:
    """Write what the ledger lacks of the groups, one after the other.

    A policy that the running servers break already is recorded with its group as it is. Quotas do
    not count: the groups are there.

    Raises:
        Forbidden: the caller is no operator.
    """
    require_operator(caller)
    found = []
    for group in groups:
        try:
            outcome = retry(env, lambda one=group: _take(env, one, servers))  # type: ignore[misc]
        except MoorageError as error:
            outcome = GroupOutcome(group, refused=error.message)
        found.append(outcome)
        advance()
    return tuple(found)


def without_group(
    store: Store, caller: Caller, groups: Sequence[NovaGroup]
) -> tuple[Ensemble, ...]:
    """Ensembles that were imported from groups which Nova does not have any more.

    Raises:
        Forbidden: the caller is no operator.
    """
    require_operator(caller)
    there = {one.id for one in groups}
    key, value = IMPORTED
    return tuple(
        one
        for one in every_ensemble(store)
        if one.metadata.get(key) == value and one.id not in there
    )


def ensemble_of_servers(
    env: UseCaseEnvironment, name: str, ids: Sequence[str], servers: Mapping[str, Server]
) -> Ensemble:
    """An ensemble without policies of those of the servers that have allocations; unwritten."""
    now = env.store.now()
    empty = Ensemble(
        id=env.ids.uuid(),
        project_id=next((servers[one].project_id or "" for one in ids if one in servers), ""),
        user_id="",
        name=name,
        roles=(),
        members=(),
        policies=(),
        salt=env.ids.salt(),
        created_at=now,
        updated_at=now,
    )
    binding = _Binding(env, env.store.snapshot(), empty, servers)
    for one in ids:
        binding.bind(one)
    return binding.ensemble


def _take(env: UseCaseEnvironment, group: NovaGroup, servers: Mapping[str, Server]) -> GroupOutcome:
    policy = _policy(group)
    stored = if_stored(env.store.ensemble, group.id)
    if stored is not None and (reason := _unlike(stored, group, policy)) is not None:
        return GroupOutcome(group, stored.name, refused=reason)
    snapshot = env.store.snapshot()
    ensemble = stored or _empty(env, group, policy)
    gone = _gone(snapshot, ensemble, servers)
    kept = tuple(one for one in ensemble.members if one.server_id not in gone)
    binding = _Binding(env, snapshot, replace(ensemble, members=kept), servers)
    for server in group.members:
        binding.bind(server.lower())
    bound = binding.ensemble
    outcome = GroupOutcome(
        group,
        name=bound.name,
        added=tuple(binding.added),
        removed=tuple(sorted(gone)),
        not_taken=binding.not_taken,
        broken=broken_policies(snapshot, bound),
        new=stored is None,
    )
    check_member_count(env.limits, len(bound.members))
    if outcome.changed:
        generation = None if stored is None else stored.generation
        written = replace(bound, updated_at=env.store.now())
        env.store.commit(Changeset((PutEnsemble(written, generation, stored),)))
    return outcome


def _policy(group: NovaGroup) -> GroupPolicy:
    """The group's policy.

    Raises:
        InvalidDescription: it has none that Moorage knows.
    """
    if group.policy not in NOVA_SHORTHAND:
        known = ", ".join(NOVA_SHORTHAND)
        raise InvalidDescription(f"its policy is {group.policy or 'none'}; known are {known}")
    return GroupPolicy(group.policy, group.max_server_per_host)


def _unlike(stored: Ensemble, group: NovaGroup, policy: GroupPolicy) -> str | None:
    """In what the ensemble of the group's id is another one than the group; None: in nothing."""
    if stored.project_id != group.project_id:
        return f"the ensemble of its id is of project {stored.project_id}"
    here = group_policy(stored)
    if here != policy:
        told = "none that Nova has a word for" if here is None else here.word
        return f"the policy of its ensemble has been changed: {policy.word} there, {told} here"
    return None


def _empty(env: UseCaseEnvironment, group: NovaGroup, policy: GroupPolicy) -> Ensemble:
    """The group's ensemble without members.

    Raises:
        InvalidDescription: a text of the group is longer than the API takes.
    """
    for field_name in ("name", "project_id", "user_id"):
        text(getattr(group, field_name) or "", field_name)
    now = env.store.now()
    return Ensemble(
        id=group.id,
        project_id=group.project_id,
        user_id=group.user_id,
        name=group.name,
        roles=(),
        members=(),
        policies=(policy.statement(),),
        metadata=MappingProxyType(dict([IMPORTED])),
        salt=env.ids.salt(),
        created_at=now,
        updated_at=now,
    )


def _gone(snapshot: Snapshot, ensemble: Ensemble, servers: Mapping[str, Server]) -> frozenset[str]:
    """Members' servers that Nova does not have, and that take nothing here."""
    bound = (one.server_id for one in ensemble.members if one.server_id is not None)
    return frozenset(one for one in bound if one not in servers and not bookings_of(snapshot, one))


@dataclass
class _Binding:
    """An ensemble to which servers are bound one after the other."""

    env: UseCaseEnvironment
    snapshot: Snapshot
    ensemble: Ensemble
    servers: Mapping[str, Server]
    added: list[str] = field(default_factory=list)
    not_taken: dict[str, str] = field(default_factory=dict)

    def bind(self, server_id: str) -> None:
        """Make a server a member, if it is none and has allocations."""
        if any(one.server_id == server_id for one in self.ensemble.members):
            return
        server = self.servers.get(server_id)
        taken = bookings_of(self.snapshot, server_id)
        if server is None:
            self.not_taken[server_id] = "Nova lists no such server"
            return
        if not taken:
            self.not_taken[server_id] = f"it is {server.status} and has no allocations here"
            return
        role = self._role(server, total([one.amounts for one in taken]))
        if all(one.name != role.name for one in self.ensemble.roles):
            self.ensemble = replace(self.ensemble, roles=(*self.ensemble.roles, role))
        numbers = [one.name.index for one in self.ensemble.members if one.name.role == role.name]
        name = MemberName(role.name, max(numbers, default=-1) + 1)
        member = Member(name, self.env.ids.uuid(), server_id)
        self.ensemble = self.ensemble.grown(role.name, (member,))
        self.added.append(server_id)

    def _role(self, server: Server, taken: Mapping[str, int]) -> Role:
        """The role of the server's flavor, or of what it takes where the ledger lacks that."""
        name = _role_name(server.flavor or "server")
        known = next((one for one in self.ensemble.roles if one.name == name), None)
        if known is not None:
            return known
        names, rules = LedgerNames(self.env.store, None), self.env.limits.nova
        if server.flavor is not None:
            with suppress(UnknownName, InvalidDescription):
                return resolve(names, (RoleDescription(name, flavor=server.flavor),), rules)[0]
        size = MappingProxyType(dict(taken))
        return resolve(names, (RoleDescription(name, resources=size),), rules)[0]


def _role_name(flavor: str) -> str:
    """A role's name that is the flavor's, as far as that can name a role."""
    name = _NOT_IN_ROLES.sub("_", flavor)[:_LONGEST]
    usable = ROLE_NAME.fullmatch(name) and not name.startswith((TAGGED, REFERENCE))
    return name if usable else f"_{name}"[:_LONGEST]
