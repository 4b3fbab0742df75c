"""An ensemble's policies as rules of a search for moves, judged by the policies' own meanings."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

from moorage.domain import deadline
from moorage.domain.ensembles import ALL_PHASES, Phase
from moorage.domain.period import FOREVER, Period
from moorage.domain.placement import Occupant, Placement
from moorage.domain.requests import Objective
from moorage.domain.topology import Level
from moorage.engine.joint.build import policy_view_of
from moorage.engine.joint.policy_rules import resolve_policies
from moorage.engine.joint.problem import permitted_hosts
from moorage.policies.exclusive import Exclusive
from moorage.policies.primitives import NeverOn, OnlyOn
from moorage.policies.rules import edges_among
from moorage.usecases.decide.closed_hosts import foreign_occupant
from moorage.usecases.decide.member_places import locate_members
from moorage.usecases.decide.solution import request_for
from moorage.usecases.plans.move_units import Newcomer, member_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from moorage.domain.ensembles import Ensemble
    from moorage.domain.member_names import MemberName
    from moorage.engine.joint.policy_view import TerrainView
    from moorage.engine.joint.terrain import Terrain
    from moorage.engine.state.snapshot import Snapshot
    from moorage.policies.rules import PolicyRule
    from moorage.usecases.plans.move_units import MoveGoal, Unit

    Ints: TypeAlias = NDArray[np.int64]
    Bools: TypeAlias = NDArray[np.bool_]

ANY_AMOUNT: Final = np.iinfo(np.int64).max
"""The limit of a policy that need not hold at the end."""


@dataclass(frozen=True, eq=False)
class EnsembleRule:
    """A required policy of one ensemble, over units that are its members; see `engine.moves`."""

    ensemble: str
    """Name of the ensemble."""
    rule: PolicyRule
    view: TerrainView
    member_of: Mapping[int, MemberName]
    """Unit -> the member that it is."""
    alone: Ints
    """[H] label of each host, equal for hosts that are in the same domains of every level."""
    limit: int
    meanwhile: int | None
    _amounts: dict[frozenset[tuple[int, int]], int] = field(default_factory=dict, repr=False)

    @property
    def name(self) -> str:
        """The policy's name, with its ensemble's."""
        return f"{self.rule.statement.name} of {self.ensemble}"

    @property
    def units(self) -> tuple[int, ...]:
        """The units whose hosts it reads."""
        return tuple(self.member_of)

    def amount(self, hosts: Mapping[int, int]) -> int:
        """By how much the policy is violated where units are on these hosts (unit -> row)."""
        mine = {unit: hosts[unit] for unit in self.member_of if hosts.get(unit, -1) >= 0}
        key = frozenset(mine.items())
        known = self._amounts.get(key)
        if known is None:
            known = self._amounts[key] = self._amount(mine)
        return known

    def _amount(self, hosts: Mapping[int, int]) -> int:
        there = {self.member_of[unit]: row for unit, row in hosts.items()}
        placement = Placement(self.view, there)
        return sum(
            violation.amount
            for edge in edges_among(self.rule.statement, self.rule.edges, there.keys())
            for violation in self.rule.policy.violations(edge, placement)
        )

    def alike(self, unit: int, hosts: Mapping[int, int]) -> Ints:
        """[H] labels: hosts of equal label violate the policy equally with the unit on them.

        Hosts are alike that are in the same domains and have no member of the ensemble. Hosts that
        differ otherwise, such as by other consumers, are told apart by `permitted`.
        """
        occupied = sorted(
            {
                row
                for other in self.member_of
                if other != unit and (row := hosts.get(other, -1)) >= 0
            }
        )
        if not occupied:
            return self.alone
        labels = self.alone.copy()
        labels[occupied] = len(labels) + np.arange(len(occupied))
        return labels


def labels_of(terrain: Terrain) -> Ints:
    """[H] a number for each combination of domains of all levels above the host."""
    found = np.zeros(terrain.host_count, dtype=np.int64)
    for level in terrain.topology.every_level:
        domains = terrain.domains(level)
        pairs = found * (int(domains.max(initial=-1)) + 2) + domains + 1
        found = np.unique(pairs, return_inverse=True)[1].reshape(-1).astype(np.int64)
    return found


def meanwhile_of(rule: PolicyRule, present: int) -> int | None:
    """The most by which a policy may be violated while servers move; None: it may be."""
    return present if Phase.TRANSITION in rule.statement.phases else None


def limit_of(rule: PolicyRule, kept: int) -> int:
    """The most by which a policy may be violated at the end, if it has to hold then."""
    return kept if Phase.STEADY in rule.statement.phases else ANY_AMOUNT


@dataclass(frozen=True, eq=False)
class ExclusiveRule:
    """A required policy that keeps others out, where others move as well.

    It counts what the policy does: members in a domain with a foreigner, or in none. Consumers that
    do not move are in `closed`; of `strangers` only those count that are in the domain then.
    """

    ensemble: str
    rule: PolicyRule
    members: frozenset[int]
    """The units that are members of its edges."""
    strangers: frozenset[int]
    """The units that are foreign to them."""
    domains: Ints
    """[H] the domain of each host at the policy's level."""
    closed: Bools
    """[H] hosts on which a member violates it, whoever moves."""
    alone: Ints
    limit: int
    meanwhile: int | None

    @property
    def name(self) -> str:
        """The policy's name, with its ensemble's."""
        return f"{self.rule.statement.name} of {self.ensemble}"

    @property
    def units(self) -> tuple[int, ...]:
        """The units whose hosts it reads."""
        return (*self.members, *self.strangers)

    def amount(self, hosts: Mapping[int, int]) -> int:
        """How many members violate it where units are on these hosts (unit -> row)."""
        rows = [row for unit in self.members if (row := hosts.get(unit, -1)) >= 0]
        if not rows:
            return 0
        taken = {
            int(self.domains[row])
            for unit in self.strangers
            if (row := hosts.get(unit, -1)) >= 0 and self.domains[row] >= 0
        }
        return sum(bool(self.closed[row]) or int(self.domains[row]) in taken for row in rows)

    def alike(self, unit: int, hosts: Mapping[int, int]) -> Ints:
        """[H] labels: hosts of equal label violate the policy equally with the unit on them."""
        labels = self.alone * 2 + self.closed
        side = self.strangers if unit in self.members else self.members
        occupied = sorted({row for one in side if (row := hosts.get(one, -1)) >= 0})
        labels[occupied] = 2 * len(labels) + np.arange(len(occupied))
        return labels


@dataclass(frozen=True, eq=False)
class EnsembleView:
    """An ensemble's required policies, and the fleet as they see it."""

    view: TerrainView
    rules: tuple[PolicyRule, ...]

    def permitted(self, member: MemberName) -> Bools | None:
        """[H] hosts that the policies permit the member by themselves; None: all of them."""
        found: Bools | None = None
        for rule in self.rules:
            if any(member in edge for edge in rule.edges):
                mask = closed_by(rule, self.view, member)
                if mask is not None:
                    found = ~mask if found is None else found & ~mask
        return found


def closed_by(rule: PolicyRule, view: TerrainView, member: MemberName) -> Bools | None:
    """[H] hosts that a policy forbids a member, whoever else is there; None: none."""
    found: Bools | None = None
    for one in view.posted(rule):
        if isinstance(one, OnlyOn | NeverOn) and one.weight is None and member in one.members:
            mask = ~permitted_hosts(one, view.host_count)
            found = mask if found is None else found | mask
    return found


def rules_of_units(
    snapshot: Snapshot,
    terrain: Terrain,
    ensembles: Mapping[str, Ensemble],
    units: Sequence[Unit],
    goal: MoveGoal,
) -> tuple[list[EnsembleRule | ExclusiveRule], dict[str, EnsembleView]]:
    """The required policies of the ensembles as rules, and the view of each ensemble."""
    labels, start = labels_of(terrain), dict[int, int]()
    members: dict[str, dict[int, MemberName]] = {}
    for number, one in enumerate(units):
        name = member_of(one)
        if one.ensemble is not None and name is not None:
            members.setdefault(one.ensemble.id, {})[number] = name
        if not isinstance(one, Newcomer):
            start[number] = terrain.row_of[snapshot.uuids[one.host]]
    leaving = {
        number
        for number, one in enumerate(units)
        if not isinstance(one, Newcomer) and one.host in goal.leave and not one.pinned
    }
    found: list[EnsembleRule | ExclusiveRule] = []
    views = {}
    for id_, ensemble in ensembles.items():
        deadline.check()
        mine = MappingProxyType(members.get(id_, {}))
        new = frozenset(mine[unit] for unit in mine if unit not in start)
        view = views[id_] = _view(snapshot, terrain, ensemble, mine, new, units)
        for rule in view.rules:
            bare = _rule(ensemble, rule, view.view, mine, labels, units)
            standing = {unit: start[unit] for unit in bare.units if unit in start}
            present = bare.amount(standing)
            others = {unit: row for unit, row in standing.items() if unit not in leaving}
            kept = present if goal.lenient else min(present, bare.amount(others))
            limit = limit_of(rule, 0 if id_ in goal.mended else kept)
            found.append(replace(bare, limit=limit, meanwhile=meanwhile_of(rule, present)))
    return found, views


def _view(
    snapshot: Snapshot,
    terrain: Terrain,
    ensemble: Ensemble,
    members: Mapping[int, MemberName],
    new: frozenset[MemberName],
    units: Sequence[Unit],
) -> EnsembleView:
    member_places = locate_members(snapshot, ensemble)
    period = Period(snapshot.taken_at, FOREVER)
    request = request_for(ensemble, member_places, new, period, Objective.SPREAD)
    there = frozenset(members.values())
    request = replace(
        request,
        phases=ALL_PHASES,
        members=tuple(one for one in request.members if one in there),
        absent=(*request.absent, *(one for one in request.members if one not in there)),
    )
    view = policy_view_of(request, terrain)
    if ensemble.keeps_others_out:
        # Who may move is foreign where it goes, not where it is.
        moving = frozenset(one.consumer for one in units if not isinstance(one, Newcomer))
        view = replace(view, own=view.own | moving)
    found = resolve_policies(request, terrain.topology)
    return EnsembleView(view, tuple(one for one in found if one.statement.required))


def _rule(
    ensemble: Ensemble,
    rule: PolicyRule,
    view: TerrainView,
    members: Mapping[int, MemberName],
    labels: Ints,
    units: Sequence[Unit],
) -> EnsembleRule | ExclusiveRule:
    """The rule without limits."""
    policy = rule.policy
    if not isinstance(policy, Exclusive):
        return EnsembleRule(ensemble.name, rule, view, members, labels, 0, None)
    selected = {name for edge in rule.edges for name in edge}
    mine = frozenset(unit for unit, name in members.items() if name in selected)
    strangers = frozenset(
        number
        for number, one in enumerate(units)
        if number not in members and policy.forbids(_occupant(one), ensemble.project_id)
    )
    level = Level(policy.tree, policy.level)
    closed = np.zeros(view.host_count, dtype=np.bool_)
    for name in selected:
        mask = closed_by(rule, view, name)
        if mask is not None:
            closed |= mask
    domains = view.terrain.domains(level)
    return ExclusiveRule(ensemble.name, rule, mine, strangers, domains, closed, labels, 0, None)


def _occupant(unit: Unit) -> Occupant:
    if isinstance(unit, Newcomer):
        return foreign_occupant(unit.ensemble, unit.member.role)
    tags = frozenset[str]() if unit.ensemble is None else unit.role.tags
    return Occupant(unit.consumer, unit.project_id, tags)
