"""Places lost members again on the emptiest hosts, if that obeys every policy: a quick yes.

What is found here is a placement: each required policy is judged by its meaning, and each host has
room at every instant from now on. Where nothing is found a whole search has to decide.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from itertools import groupby, product
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

from moorage.domain.ensembles import STEP
from moorage.domain.errors import MoorageError
from moorage.domain.period import Period
from moorage.domain.placement import Placement
from moorage.domain.requests import Objective
from moorage.domain.topology import HOST, Level
from moorage.engine.joint.build import policy_view_of
from moorage.engine.joint.host_filters import filters_by_role
from moorage.engine.joint.policy_rules import resolve_policies
from moorage.engine.joint.terrain import cut_terrain
from moorage.usecases.decide.member_places import locate_members
from moorage.usecases.decide.solution import request_for

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from moorage.domain.ensembles import Ensemble, Role
    from moorage.domain.member_names import MemberName
    from moorage.domain.requests import EnsembleRequest
    from moorage.engine.joint.terrain import Terrain
    from moorage.engine.state.snapshot import Snapshot
    from moorage.policies.rules import PolicyRule

    Bools: TypeAlias = NDArray[np.bool_]
    Ints: TypeAlias = NDArray[np.int64]

_TRIED: Final = 3
"""Domains that are tried for members that have to be near one another and lost all others."""


@dataclass(frozen=True, eq=False)
class _Fleet:
    """The hosts for roles that name the same classes, traits and aggregates."""

    terrain: Terrain
    order: Ints
    """[H] rows, the emptiest first, and as many domains as possible one after the other."""
    masks: dict[object, Bools]
    """Role's requirements -> [H] hosts that take one member."""


@dataclass(frozen=True, eq=False)
class _Prepared:
    """An ensemble, as it is judged."""

    fleet: _Fleet
    request: EnsembleRequest
    rules: tuple[PolicyRule, ...]
    placement: Placement
    demand: Mapping[str, Ints]
    """Role -> [K] what a member takes."""
    masks: Mapping[str, Bools]
    scopes: tuple[Level | None, ...]
    """Levels that its policies name: members may have to be in one domain of them."""


class FastReplacement:
    """Places members again on one snapshot, loss after loss."""

    def __init__(self, snapshot: Snapshot, usable: Bools) -> None:
        """`usable` are [P] the hosts on which anything may be placed."""
        self._snapshot = snapshot
        self._usable = usable
        self._fleets: dict[object, _Fleet] = {}
        self._prepared: dict[str, _Prepared | None] = {}
        self._leaves = tuple(Level(tree, names[-1]) for tree, names in _trees(snapshot) if names)

    def loss(self, hosts: Bools) -> LossReplacement:
        """The members lost with [P] these hosts are placed again one ensemble after the other."""
        return LossReplacement(self, hosts)

    def prepared(self, ensemble: Ensemble) -> _Prepared | None:
        """The ensemble as it is judged; None: it is not for this."""
        if ensemble.id not in self._prepared:
            try:
                self._prepared[ensemble.id] = self._prepare(ensemble)
            except MoorageError:
                self._prepared[ensemble.id] = None
        return self._prepared[ensemble.id]

    def _prepare(self, ensemble: Ensemble) -> _Prepared | None:
        if ensemble.references or ensemble.keeps_others_out:
            return None  # others may be elsewhere by then
        if any(role.alternatives or role.decided_alone for role in ensemble.roles):
            return None
        snapshot = self._snapshot
        places = locate_members(snapshot, ensemble)
        period = Period(snapshot.taken_at)
        request = request_for(ensemble, places, frozenset(), period, Objective.SPREAD)
        request = replace(request, phases=STEP)
        fleet = self._fleet(request)
        terrain = fleet.terrain
        if terrain.devices is not None or any(
            host not in terrain.row_of for host in request.fixed.values()
        ):
            return None
        rules = tuple(
            one for one in resolve_policies(request, terrain.topology) if one.statement.required
        )
        view = policy_view_of(request, terrain)
        rows = {member: terrain.row_of[host] for member, host in request.fixed.items()}
        roles = {role.name: role for role in ensemble.roles}
        return _Prepared(
            fleet=fleet,
            request=request,
            rules=rules,
            placement=Placement(view, rows),
            demand={name: _demand(role, terrain) for name, role in roles.items()},
            masks={name: _mask(fleet, role) for name, role in roles.items()},
            scopes=tuple(_scopes(rules)),
        )

    def _fleet(self, request: EnsembleRequest) -> _Fleet:
        """The hosts as a request needs them; those of equal requests are the same."""
        roles = request.roles
        key = (
            frozenset(name for role in roles for name in role.resources),
            frozenset(_words(request)),
            bool(request.references),
            frozenset(one.type for one in request.policies),
        )
        found = self._fleets.get(key)
        if found is None:
            neutral = replace(request, own_consumers=frozenset(), released=frozenset())
            terrain = cut_terrain(self._snapshot, neutral)
            found = self._fleets[key] = _Fleet(terrain, self._order(terrain), {})
        return found

    def _order(self, terrain: Terrain) -> Ints:
        """Usable rows, the emptiest first; of the first domains each in turn."""
        rows = terrain.fleet_rows
        assert rows is not None, "it was cut from a snapshot"
        share = np.where(terrain.capacity > 0, terrain.free / np.maximum(terrain.capacity, 1), 1.0)
        emptiest = np.argsort(-share.min(axis=1), kind="stable")
        emptiest = emptiest[self._usable[rows[emptiest]]]
        if not self._leaves:
            return emptiest.astype(np.int64)
        domains = terrain.domains(self._leaves[0])[emptiest]
        turn = np.zeros(len(emptiest), dtype=np.int64)
        seen = Counter[int]()
        for position, domain in enumerate(domains.tolist()):
            turn[position] = seen[domain]
            seen[domain] += 1
        return emptiest[np.argsort(turn, kind="stable")].astype(np.int64)

    @property
    def leaves(self) -> tuple[Level, ...]:
        """The lowest level of each tree above the hosts."""
        return self._leaves

    @property
    def snapshot(self) -> Snapshot:
        """The snapshot from which hosts are lost."""
        return self._snapshot


class LossReplacement:
    """One loss: what an ensemble takes, the next one finds taken."""

    def __init__(self, fast: FastReplacement, hosts: Bools) -> None:
        self._fast = fast
        self._lost = hosts
        self._taken: dict[int, dict[str, int]] = {}
        """Row of a host in the snapshot -> what is taken there, by class."""

    def place(
        self, ensemble: Ensemble, lost: frozenset[MemberName]
    ) -> Mapping[MemberName, int] | None:
        """Member -> row of its new host in the snapshot; None: nothing was found."""
        prepared = self._fast.prepared(ensemble)
        if prepared is None or not lost <= prepared.placement.hosts.keys():
            return None
        terrain = prepared.fleet.terrain
        rows = terrain.fleet_rows
        assert rows is not None, "it was cut from a snapshot"
        for found in self._tries(prepared, lost, self._lost[rows]):
            hosts = {**prepared.placement.hosts, **found}
            placement = Placement(prepared.placement.fleet, hosts)
            if _obeys(prepared.rules, lost, placement):
                for name, row in found.items():
                    self._take(int(rows[row]), ensemble.role(name.role))
                return {name: int(rows[row]) for name, row in found.items()}
        return None

    def _take(self, row: int, role: Role) -> None:
        taken = self._taken.setdefault(row, {})
        for name, amount in role.resources.items():
            taken[name] = taken.get(name, 0) + amount

    def _tries(
        self, prepared: _Prepared, lost: frozenset[MemberName], gone: Bools
    ) -> Iterator[dict[MemberName, int]]:
        """Assignments: spread over domains, over hosts or packed, in one domain or in all."""
        stays = {name: row for name, row in prepared.placement.hosts.items() if name not in lost}
        order = prepared.fleet.order[~gone[prepared.fleet.order]]
        seen: set[tuple[object, ...]] = set()
        for scope, apart in product(prepared.scopes, (*self._fast.leaves[:1], HOST, None)):
            for some in self._within(prepared, scope, stays, order):
                found = self._assigned(prepared, lost, stays, some, apart)
                if found is not None and (key := tuple(sorted(found.items()))) not in seen:
                    seen.add(key)
                    yield found

    def _within(
        self,
        prepared: _Prepared,
        scope: Level | None,
        stays: Mapping[MemberName, int],
        order: Ints,
    ) -> Iterator[Ints]:
        """The rows in the order of a try that are in one domain of a level."""
        if scope is None:
            yield order
            return
        domains = prepared.fleet.terrain.domains(scope)
        near = Counter(int(domains[row]) for row in stays.values() if domains[row] >= 0)
        chosen: Iterable[int] = [domain for domain, _ in near.most_common(1)]
        if not near:
            heads = dict.fromkeys(domains[order[: 64 * _TRIED]].tolist())
            chosen = [domain for domain in heads if domain >= 0][:_TRIED]
        for domain in chosen:
            yield order[domains[order] == domain]

    def _assigned(
        self,
        prepared: _Prepared,
        lost: frozenset[MemberName],
        stays: Mapping[MemberName, int],
        order: Ints,
        apart: Level | str | None,
    ) -> dict[MemberName, int] | None:
        """The lost members on the first hosts that have room, each apart from all others."""
        room = _Room(prepared.fleet.terrain, self._taken, stays.values(), apart)
        found: dict[MemberName, int] = {}
        for role, names in groupby(sorted(lost), key=lambda name: name.role):
            demand, waiting = prepared.demand[role], list(names)
            for row in order[prepared.masks[role][order]].tolist():
                while waiting and room.take(row, demand):
                    found[waiting.pop()] = row
                if not waiting:
                    break
            if waiting:
                return None
        return found


class _Room:
    """What is left on hosts in one try, and which of them, or of their domains, are in use."""

    def __init__(
        self,
        terrain: Terrain,
        taken: Mapping[int, Mapping[str, int]],
        stays: Iterable[int],
        apart: Level | str | None,
    ) -> None:
        self._terrain = terrain
        self._taken = taken
        self._left: dict[int, Ints] = {}
        self._apart = apart is not None
        self._domain_of = terrain.domain_list(apart) if isinstance(apart, Level) else None
        self._hosts = set(stays)
        self._domains = (
            set() if self._domain_of is None else {self._domain_of[row] for row in self._hosts}
        )

    def take(self, row: int, demand: Ints) -> bool:
        """Put one member on a host; False: it may not be there, or has no room."""
        if self._apart and row in self._hosts:
            return False
        domain = None if self._domain_of is None else self._domain_of[row]
        if domain in self._domains:
            return False
        left = self._left_on(row) - demand
        if (left < 0).any():
            return False
        self._left[row] = left
        self._hosts.add(row)
        if domain is not None:
            self._domains.add(domain)
        return True

    def _left_on(self, row: int) -> Ints:
        """[K] what is left on a host."""
        left = self._left.get(row)
        if left is not None:
            return left
        terrain, rows = self._terrain, self._terrain.fleet_rows
        assert rows is not None, "it was cut from a snapshot"
        taken = self._taken.get(int(rows[row]), {})
        free: Ints = terrain.free[row]
        return free - np.array([taken.get(name, 0) for name in terrain.classes], dtype=np.int64)


def _obeys(rules: Iterable[PolicyRule], lost: frozenset[MemberName], placement: Placement) -> bool:
    """Whether a placement violates no policy where lost members are concerned.

    Not if that depends on who else is on the hosts, which this does not know.
    """
    broken = any(
        rule.policy.violations(edge, placement)
        for rule in rules
        for edge in rule.edges
        if not lost.isdisjoint(edge)
    )
    return not broken and not getattr(placement.fleet, "read_occupants_of", True)


def _trees(snapshot: Snapshot) -> Sequence[tuple[str, tuple[str, ...]]]:
    return list(snapshot.topology.levels.items())


def _demand(role: Role, terrain: Terrain) -> Ints:
    return np.array([role.resources.get(name, 0) for name in terrain.classes], dtype=np.int64)


def _mask(fleet: _Fleet, role: Role) -> Bools:
    """[H] hosts that take one member of a role."""
    key = (
        frozenset(role.resources.items()),
        role.required,
        role.forbidden,
        role.root_required,
        role.member_of,
    )
    found = fleet.masks.get(key)
    if found is None:
        found = fleet.masks[key] = filters_by_role(fleet.terrain, [role], None, {})[role.name].mask
    return found


def _scopes(rules: Iterable[PolicyRule]) -> Iterator[Level | None]:
    """None, and the levels that required policies name, as far as they are levels of a tree."""
    yield None
    seen = set[Level]()
    for rule in rules:
        name, tree = getattr(rule.policy, "level", None), getattr(rule.policy, "tree", None)
        if isinstance(name, str) and isinstance(tree, str):
            level = Level(tree, name)
            if level not in seen:
                seen.add(level)
                yield level


def _words(request: EnsembleRequest) -> Iterator[str]:
    """What roles and policies name."""
    for role in request.roles:
        for any_of in (*role.required, role.forbidden, role.root_required, *role.member_of):
            yield from any_of
    for one in request.policies:
        yield repr(sorted(one.parameters.items(), key=repr))
