"""Requests to the engine: Placement's request groups and the joint ensemble request."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from types import MappingProxyType

from moorage.domain.ensembles import CREATION, Phase, PolicyStatement, Role
from moorage.domain.member_names import MemberName
from moorage.domain.period import Period
from moorage.domain.resources import Amounts, Trait


@dataclass(frozen=True, slots=True)
class RequestGroup:
    """One (un)suffixed group of a candidates query; the unsuffixed one has suffix ''."""

    suffix: str = ""
    resources: Amounts = field(default_factory=lambda: MappingProxyType({}))
    required: tuple[frozenset[Trait], ...] = ()
    """All of these; each satisfied by any trait of its set."""
    forbidden: frozenset[Trait] = frozenset()
    member_of: tuple[frozenset[str], ...] = ()
    """All of these; each satisfied by any aggregate UUID of its set."""
    not_member_of: frozenset[str] = frozenset()
    in_tree: str | None = None

    def within(self, tree: str) -> RequestGroup:
        """The same group, limited to another provider's tree."""
        return RequestGroup(
            self.suffix,
            self.resources,
            self.required,
            self.forbidden,
            self.member_of,
            self.not_member_of,
            tree,
        )


class Objective(StrEnum):
    """What a decision optimizes among placements that meet every required policy.

    Every stated preference goes first: the objective only chooses among placements with the
    least penalties of preferred policies. It costs, in hosts: `spread` counts members that
    share a host with an earlier member of the ensemble (members - distinct hosts), `pack` counts
    distinct hosts, and `balance` is the fill, in percent rounded up, of the fullest host used
    (over the resource classes asked for). `room` costs nothing: what is left of the fleet for
    others decides alone, which among equal costs is the last criterion of the others, too (see
    `engine.joint.room`).

    A solver's single cost is scale x penalties + the objective's cost, where the scale is more
    than the objective can cost: members + 1 for `spread` and `pack`; for `balance` 101, or one
    more than the fill of a host that is over-full already (at most 10,001); 1 for `room`.
    """

    SPREAD = "spread"
    PACK = "pack"
    BALANCE = "balance"
    ROOM = "room"


@dataclass(frozen=True)
class EnsembleRequest:
    """A joint request: place `members` under `policies`, all or nothing.

    `fixed` members stand on a host already (root provider UUID) and do not move; their
    resources are booked by themselves, so they count for policies only. `own_consumers`
    are the consumers of the ensemble's present bookings, which are not foreign to it.
    `released` names consumers whose bookings this decision replaces: they are not counted
    against capacity. `restated` names policies that are new or changed: fixed members are
    judged by them like everybody, while what they break of others is accepted as it stands,
    on edges that were there before. A policy applies if it is for any of the `phases`.
    """

    project_id: str
    roles: tuple[Role, ...]
    members: tuple[MemberName, ...]
    policies: tuple[PolicyStatement, ...]
    period: Period
    objective: Objective = Objective.SPREAD
    fixed: Mapping[MemberName, str] = field(default_factory=lambda: MappingProxyType({}))
    own_consumers: frozenset[str] = frozenset()
    released: frozenset[str] = frozenset()
    restated: frozenset[str] = frozenset()
    absent: tuple[MemberName, ...] = ()
    """Members of the ensemble that have no place and get none: a zip pairs them, too."""
    former_edges: Mapping[str, tuple[tuple[MemberName, ...], ...]] | None = None
    """Policy -> its edges before the decision, among members that had places; None: those among
    fixed members."""
    phases: frozenset[Phase] = CREATION
    choices: Mapping[MemberName, int] = field(default_factory=lambda: MappingProxyType({}))
    """Fixed members that stand as an alternative of their role -> which."""
    references: Mapping[str, frozenset[str]] = field(default_factory=lambda: MappingProxyType({}))
    """Id of another ensemble to which policies refer -> UUIDs of its members' hosts."""
    first_choices: bool = True
    """Whether each step down a role's choices costs as a preferred policy of weight 1 would;
    False: the choices cost nothing, and the objective decides."""

    @cached_property
    def _role(self) -> Mapping[str, Role]:
        return {role.name: role for role in self.roles}

    @cached_property
    def every_choice(self) -> tuple[Role, ...]:
        """The roles, and what their members may be instead."""
        return tuple(one for role in self.roles for one in role.choices)

    def role_of(self, member: MemberName) -> Role:
        """The role of a member of this request."""
        return self._role[member.role]
