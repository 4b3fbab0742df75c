"""Ensembles: members placed together, and the policies between them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property
from types import MappingProxyType
from typing import Final

from moorage.domain.errors import NotFound
from moorage.domain.member_names import MemberName
from moorage.domain.nova_servers import NovaServer, ServerOptions
from moorage.domain.period import Instant
from moorage.domain.request_groups import Group
from moorage.domain.resources import Amounts, Trait
from moorage.domain.role_paths import is_within, names_above
from moorage.domain.shares import Share
from moorage.domain.words import counted, did_you_mean, spans

ROLE_NAME: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_./:-]{0,127}", re.ASCII)
"""Roles may be stack paths (`web_group/0/server`), so slashes and dots are allowed."""
TAGGED: Final = "tag:"
"""How a selector of all roles with a tag begins; so no role's name may."""
MAX_MEMBERS: Final = 5_000
"""Members of one ensemble; an absurd count is a mistake, not a request."""
SIDES: Final = "between"
"""The parameter of policies between sides; where it lists them, they replace `members`."""

EXCLUDING: Final = "exclusive"
ISOLATING: Final = "isolate"
KEEPING: Final = frozenset({EXCLUDING, ISOLATING})
"""The policy types that, where required, close their members' domains to others."""


class MemberKind(StrEnum):
    """What a member is, which says where it may be placed."""

    SERVER = "server"
    BAREMETAL = "baremetal"
    """A server that is a whole node: one unit of a custom class, and nothing else."""
    SLICE = "slice"
    """On a server that offers resources of its own."""
    VOLUME = "volume"
    """Given by one provider: a pool, or a local one of a host that no server takes from."""
    PORT = "port"
    """Given by one provider: a host, or a device of one."""


OF_NOVA: Final = frozenset({MemberKind.SERVER, MemberKind.BAREMETAL})
"""The kinds that Nova makes; members of all others are claimed without it."""


@dataclass(frozen=True, slots=True)
class Role:
    """A named kind of member; how many there are follows from the ensemble's members."""

    name: str
    resources: Amounts
    kind: str = MemberKind.SERVER
    flavor: str | None = None
    """The flavor's name, when the description named one; `resources` holds what it meant then."""
    required: tuple[frozenset[Trait], ...] = ()
    """All of these; each satisfied by any trait of its set."""
    forbidden: frozenset[Trait] = frozenset()
    member_of: tuple[frozenset[str], ...] = ()
    """All of these; each satisfied by any aggregate UUID of its set."""
    tags: frozenset[str] = frozenset()
    groups: tuple[Group, ...] = ()
    """Needed beside `resources`, each from one provider."""
    same_subtree: tuple[frozenset[str], ...] = ()
    """Names of groups; in each set one group's provider is, or stands above, all others'."""
    isolate: bool = False
    """Whether no provider may serve two groups of one member."""
    server: ServerOptions | None = None
    """How its servers are created; None: nothing is said."""
    root_required: frozenset[Trait] = frozenset()
    """Traits of the host itself, whichever providers give the resources."""
    nova_server: NovaServer | None = None
    """What the request for its servers follows from; None: the role has no flavor."""
    alternatives: tuple[Role, ...] = ()
    """What a member may be instead of this, in order; each with the role's name and no
    alternatives of its own."""
    host_checks: tuple[str, ...] = ()
    """Extra specs and image properties that Nova compares with the host itself, and Moorage does
    not know of hosts."""
    on_server: str | None = None
    """Of slices: the server on which they must be, by its id or that of its provider; None: any."""
    servers_of: frozenset[str] = frozenset()
    """Of slices: whose servers besides their own project's they may be on: ids of projects, and
    `server_providers.OPERATORS`."""
    share: Share | None = None
    """Whose servers its members are, if another project's; None: the ensemble's project's."""
    min_available: int = 0
    """The quorum: how many members must be up; a change that would leave fewer is refused."""

    @property
    def choices(self) -> tuple[Role, ...]:
        """The role itself, its members' first choice, and its alternatives."""
        return (self, *self.alternatives)

    @property
    def shared_with(self) -> str:
        """The other project that its members belong to; empty: the ensemble's own."""
        return "" if self.share is None else self.share.project_id

    @property
    def is_slice(self) -> bool:
        """Whether its members are placed on servers that offer slices, and not on hosts."""
        return self.kind == MemberKind.SLICE

    @property
    def of_nova(self) -> bool:
        """Whether its members are servers of Nova's."""
        return self.kind in OF_NOVA

    @property
    def of_one_provider(self) -> bool:
        """Whether one provider gives all of a member, and has the traits and aggregates itself."""
        return self.kind in {MemberKind.VOLUME, MemberKind.PORT}

    @property
    def decided_alone(self) -> bool:
        """Whether it is never decided together with roles of other ensembles.

        A lease with it does not move for others, and none moves for it: the providers of its
        members are not those of all others.
        """
        return self.is_slice or self.of_one_provider or bool(self.groups)


@dataclass(frozen=True, slots=True)
class Member:
    """One member. `uuid` is its consumer while held; then `server_id` is."""

    name: MemberName
    uuid: str
    server_id: str | None = None
    migration: str | None = None
    """The consumer to which Nova gave its server's allocations when the server last moved. While
    that has any, the server may still run there."""
    choice: int = 0
    """Which of its role's choices it was placed as."""


@dataclass(frozen=True, slots=True)
class SizeChange:
    """A client's request that extended or shrank an ensemble, with the members that it was about.

    It is kept so that the same request again gets the same answer.
    """

    id: str
    digest: str
    members: tuple[Member, ...]
    """Who came, or who left."""
    from_headroom: int = 0


class Phase(StrEnum):
    """When a policy must hold."""

    CREATE = "create"
    """When members get places."""
    STEADY = "steady"
    """Afterwards: compliance judges it, and so does a move by its end."""
    TRANSITION = "transition"
    """While servers move, and at every step by which an ensemble with servers changes."""


class OnViolation(StrEnum):
    """What becomes of a write of Nova's that breaks a required policy."""

    REFUSE = "refuse"
    REPORT = "report"
    """It is written, and an event tells the project."""
    PLAN_REPAIR = "plan_repair"
    """As `report`, and a plan is made by which the policy would hold again."""


ALL_PHASES: Final = frozenset(Phase)
CREATION: Final = frozenset({Phase.CREATE})
"""The phases of a decision about members of which none has a server."""
STEP: Final = frozenset({Phase.CREATE, Phase.TRANSITION})
"""The phases of a decision beside servers: it is a step of an ensemble in motion."""
STANDING: Final = frozenset({Phase.STEADY})
"""The phases of what stands."""
SETTLING: Final = frozenset({Phase.STEADY, Phase.TRANSITION})
"""The phases of what a step leaves behind: a server that has moved, an ensemble that shrank."""


@dataclass(frozen=True, slots=True)
class Selector:
    """A named subset of an ensemble's members: exactly one field is set.

    `role` is all of a role or of a group's roles, `member` one of a role, or a copy of a group;
    `tag` is all members of roles with that tag, and `everyone` is `*`.
    """

    role: str | None = None
    member: MemberName | None = None
    tag: str | None = None
    everyone: bool = False

    def __str__(self) -> str:
        if self.everyone:
            return "*"
        if self.tag is not None:
            return f"{TAGGED}{self.tag}"
        return str(self.member or self.role)

    @property
    def group(self) -> str | None:
        """The group or copy (or, without an index, the role) that it may name; None: it is none."""
        return self.role if self.member is None else f"{self.member.role}/{self.member.index}"

    @classmethod
    def parse(cls, text: str) -> Selector:
        """Read `*`, `role`, `role[i]` or `tag:x`; a group has the form of a role."""
        if text == "*":
            return cls(everyone=True)
        if text.startswith(TAGGED):
            return cls(tag=text.removeprefix(TAGGED))
        if "[" in text:
            return cls(member=MemberName.parse(text))
        return cls(role=text)


@dataclass(frozen=True, slots=True)
class PolicyStatement:
    """A policy as the caller wrote it: a typed, named hyperedge with properties.

    `weight` None means required; a number means preferred, each unit of violation costing that
    much. With `zip` true, the i-th members of every selector form one hyperedge each (a surplus
    stays unconstrained); otherwise all selected members form a single one.
    """

    name: str
    type: str
    members: tuple[Selector, ...]
    zip: bool = False
    weight: int | None = None
    phases: frozenset[Phase] = ALL_PHASES
    parameters: Mapping[str, object] = field(default_factory=lambda: MappingProxyType({}))
    on_violation: OnViolation | None = None
    """None: as the service's settings say."""
    path: str = field(default="", compare=False)
    """Its place in the request that wrote it, for errors; empty: it was not read from one."""

    @property
    def required(self) -> bool:
        """Whether a placement that violates it is refused."""
        return self.weight is None

    def refuses(self, default: OnViolation) -> bool:
        """Whether a write of Nova's that breaks the policy is refused."""
        return (self.on_violation or default) is OnViolation.REFUSE


@dataclass(frozen=True)
class Ensemble:
    """A set placed together, owned by a project."""

    id: str
    project_id: str
    user_id: str
    name: str
    roles: tuple[Role, ...]
    members: tuple[Member, ...]
    policies: tuple[PolicyStatement, ...] = ()
    metadata: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    salt: str = ""
    """Makes the opaque labels of domains; never leaves the service."""
    digest: str = ""
    """Fingerprint of the request that created it: the same request again gets the same answer."""
    generation: int = 0
    created_at: Instant = 0
    updated_at: Instant = 0
    additions: tuple[tuple[str, str], ...] = ()
    """Ids and fingerprints of the latest requests that added members; see `digest`."""
    template: tuple[str, int] | None = None
    """Id and version of the template that it was made of."""
    paths: Mapping[str, str] | None = None
    """Of a Heat stack's ensemble: role -> where its members are in the stack, such as `web/*`, in
    which `*` stands for the index. None: it is no stack's."""
    scaling: Mapping[str, tuple[int, ...]] = field(default_factory=lambda: MappingProxyType({}))
    """Of a stack's ensemble: role of an autoscaling group -> its least, desired and largest size by
    the last template."""
    headroom: tuple[Member, ...] = ()
    """Spares: a place is held for each, for a member that its role does not have yet."""
    references: Mapping[str, frozenset[str]] = field(default_factory=lambda: MappingProxyType({}))
    """Id of another ensemble that policies name -> its members' consumers. Read, never stored."""
    size_changes: tuple[SizeChange, ...] = ()
    """The latest requests that extended or shrank it."""

    def role(self, name: str) -> Role:
        """The role of that name.

        Raises:
            NotFound: there is none.
        """
        role = self._role_of.get(name)
        if role is None:
            others = f"; its roles: {', '.join(self._role_of) or 'none'}"
            raise NotFound("role", name, did_you_mean(name, self._role_of) or others)
        return role

    def role_of(self, name: MemberName) -> Role:
        """What a member is: its role, or the alternative as which it was placed.

        Raises:
            NotFound: there is no such role or member.
        """
        role = self.role(name.role)
        return role.choices[self.member(name).choice] if role.alternatives else role

    def project_of(self, role: str) -> str:
        """The project that the places and servers of a role's members belong to."""
        share = self._share_of(role)
        return self.project_id if share is None else share.project_id

    def user_of(self, role: str) -> str:
        """The user in whose name the places of a role's members are booked."""
        share = self._share_of(role)
        return (share and share.user_id) or self.user_id

    def _share_of(self, role: str) -> Share | None:
        found = self._role_of.get(role)
        return None if found is None else found.share

    @property
    def shared_roles(self) -> tuple[tuple[Role, Share], ...]:
        """The roles that belong to other projects."""
        return tuple((one, one.share) for one in self.roles if one.share is not None)

    def is_joined_by(self, project_id: str) -> bool:
        """Whether another project takes part with a role of its own."""
        return any(one.joined and one.project_id == project_id for _, one in self.shared_roles)

    def member(self, name: MemberName) -> Member:
        """The member of that name.

        Raises:
            NotFound: there is none.
        """
        member = self._member_of.get(name)
        if member is None:
            there = [one.name.index for one in self.members if one.name.role == name.role]
            has = ", ".join(filter(None, (counted(len(there), "member"), spans(name.role, there))))
            raise NotFound("member", str(name), f": role {self.role(name.role).name} has {has}")
        return member

    def count(self, role: str) -> int:
        """How many members the role has."""
        return self.counts[role]

    @cached_property
    def _role_of(self) -> Mapping[str, Role]:
        # Of several with one name the first counts.
        return {role.name: role for role in reversed(self.roles)}

    @cached_property
    def _member_of(self) -> Mapping[MemberName, Member]:
        return {member.name: member for member in reversed(self.members)}

    @cached_property
    def counts(self) -> Counter[str]:
        """How many members each role has that has any."""
        return Counter(member.name.role for member in self.members)

    def edges(self, statement: PolicyStatement) -> tuple[tuple[MemberName, ...], ...]:
        """The hyperedges of a policy: tuples of member names, without duplicates."""
        return self._selection.edges(statement)

    @cached_property
    def _selection(self) -> MemberSelection:
        return MemberSelection(self.roles, [member.name for member in self.members])

    @property
    def servers(self) -> frozenset[str]:
        """UUIDs of the members' servers."""
        return frozenset(one.server_id for one in self.members if one.server_id is not None)

    @property
    def consumers(self) -> frozenset[str]:
        """UUIDs of its members, their servers and migrations."""
        every = ((one.uuid, one.server_id, one.migration) for one in self.members)
        return frozenset(uuid for some in every for uuid in some if uuid is not None)

    @property
    def spares(self) -> frozenset[str]:
        """UUIDs of the consumers of its headroom."""
        return frozenset(one.uuid for one in self.headroom)

    @property
    def keeps_others_out(self) -> bool:
        """Whether a required policy closes its members' domains to other consumers."""
        return any(one.required and one.type in KEEPING for one in self.policies)

    def with_role(self, changed: Role) -> Ensemble:
        """The same ensemble with a role as it has become."""
        roles = (changed if one.name == changed.name else one for one in self.roles)
        return replace(self, roles=tuple(roles))

    def grown(self, role: str, members: Iterable[Member]) -> Ensemble:
        """The same ensemble with more members of a role."""
        self.role(role)
        return replace(self, members=(*self.members, *members))


def edges(
    statement: PolicyStatement, roles: Iterable[Role], members: Iterable[MemberName]
) -> tuple[tuple[MemberName, ...], ...]:
    """Resolve a statement's selectors; see `PolicyStatement` for `zip`.

    A selector that matches nothing yields nothing: whether that is a mistake is judged
    when the ensemble is created, not when its last such member has left.
    """
    return MemberSelection(roles, members).edges(statement)


class MemberSelection:
    """Some members by role, to resolve many statements' selectors among them."""

    def __init__(self, roles: Iterable[Role], members: Iterable[MemberName]) -> None:
        self._tags = {role.name: role.tags for role in roles}
        self._of_role: dict[str, list[MemberName]] = {}
        for one in sorted(members, key=lambda member: (member.role, member.index)):
            self._of_role.setdefault(one.role, []).append(one)

    def edges(self, statement: PolicyStatement) -> tuple[tuple[MemberName, ...], ...]:
        """The statement's edges; see `edges`."""
        columns = [self._selected(selector) for selector in statement.members]
        if statement.zip:
            return tuple(tuple(dict.fromkeys(edge)) for edge in zip(*columns, strict=False))
        merged = tuple(dict.fromkeys(m for column in columns for m in column))
        return (merged,) if merged else ()

    def _selected(self, selector: Selector) -> list[MemberName]:
        """The members that a selector names, sorted."""
        if selector.member is not None:
            role, index = selector.member.role, selector.member.index
            own = [one for one in self._of_role.get(role, []) if one.index == index]
            if own:
                return own
        if selector.group is not None:
            return self._within(selector.group)
        return [
            one
            for role, of_role in self._of_role.items()
            if selector.everyone or selector.tag in self._tags.get(role, frozenset())
            for one in of_role
        ]

    def _within(self, name: str) -> list[MemberName]:
        """The members of the role of that name, or of the roles in that group or copy."""
        roles = self._below.get(name)
        if roles is None:
            roles = [role for role in self._of_role if is_within(role, name)]
        return [one for role in roles for one in self._of_role[role]]

    @cached_property
    def _below(self) -> Mapping[str, list[str]]:
        """Names of roles, groups and copies -> the roles that they name."""
        found: dict[str, list[str]] = {}
        for role in self._of_role:
            for name in names_above(role):
                found.setdefault(name, []).append(role)
        return found


def described_otherwise(old: Ensemble, new: Ensemble) -> dict[str, object]:
    """What differs between two descriptions of an ensemble; empty: nothing does."""
    was, now = old.counts, new.counts
    counts = {
        role: [was.get(role, 0), now.get(role, 0)]
        for role in sorted(was.keys() | now.keys())
        if was.get(role, 0) != now.get(role, 0)
    }
    roles = _differing({one.name: one for one in old.roles}, {one.name: one for one in new.roles})
    policies = _differing(
        {one.name: one for one in old.policies}, {one.name: one for one in new.policies}
    )
    changed: dict[str, object] = {
        "former_name": old.name if old.name != new.name else None,
        "counts": counts,
        "roles": roles,
        "policies": policies,
        "metadata": _differing(old.metadata, new.metadata),
    }
    return changed if any(changed.values()) else {}


def _differing(old: Mapping[str, object], new: Mapping[str, object]) -> list[str]:
    """Names of what is new, gone or otherwise."""
    return sorted(name for name in old.keys() | new.keys() if old.get(name) != new.get(name))
