"""An ensemble's survivability: the members left of each role after the loss of any one domain.

And whether the lost ones can be placed again now. Members on hosts that are not in service are
placed, and are left in no case.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from moorage.domain.ensembles import edges
from moorage.domain.period import SECOND
from moorage.domain.topology import HOST, Level
from moorage.engine.capacity.capacity_over_time import hosts_where
from moorage.engine.state.host_states import host_states
from moorage.usecases.decide.member_places import locate_members
from moorage.usecases.shared.access import own_ensemble
from moorage.usecases.simulations.loss_replacement import LossReplacements
from moorage.usecases.simulations.replacement import Verdict

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from numpy.typing import NDArray

    from moorage.domain.ensembles import Ensemble, Role
    from moorage.domain.member_names import MemberName
    from moorage.engine.state.snapshot import Snapshot
    from moorage.usecases.environment import UseCaseEnvironment
    from moorage.usecases.ports import Caller

    Bools: TypeAlias = NDArray[np.bool_]
    Rows: TypeAlias = NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class RoleLoss:
    """The worst case for a role: of `total` placed members `in_service` are, and `keeps` left so.

    `needed` is the number that must be up (`Role.min_available`), or that a `survive` policy
    requires at that level if that is more; 1 without either.
    """

    role: str
    total: int
    in_service: int
    keeps: int
    needed: int
    hosts: tuple[int, int] | None = None
    """If a policy bounds how many members are on a host: how many hosts that could have some are
    left at worst, and how many those in service need. None: no policy does."""

    @property
    def survives(self) -> bool:
        """Whether at least `needed` members are left."""
        return self.keeps >= self.needed


@dataclass(frozen=True, slots=True)
class LevelLoss:
    """The worst loss of one domain of a level, by role."""

    level: Level
    roles: tuple[RoleLoss, ...]
    again: Verdict | None = None
    """Whether all members that are lost with any one domain can be placed again now; None: none is
    lost."""
    stuck: tuple[str, ...] = ()
    """Names of the domains whose lost members cannot, or were not placed in time."""


def survivability(
    env: UseCaseEnvironment, caller: Caller, ensemble_id: str
) -> tuple[Ensemble, tuple[LevelLoss, ...]]:
    """The ensemble, and the worst loss per level and role, over placed members; widest level first.

    Raises:
        NotFound: no such ensemble for this caller.
    """
    ensemble = own_ensemble(env.store, caller, ensemble_id)
    remaining = env.countdown(env.limits.time_limit / SECOND)
    snapshot = env.store.snapshot()
    hosts = {
        name: snapshot.row_of[place.host]
        for name, place in locate_members(snapshot, ensemble).places.items()
    }
    levels = [
        Level(tree, name) for tree, names in snapshot.topology.levels.items() for name in names
    ]
    trees = list(snapshot.topology.levels) or ["location"]
    in_service = host_states(snapshot).in_service
    alive = {name: row for name, row in hosts.items() if in_service[row]}
    placed = Counter(name.role for name in hosts)
    losses = _Losses(ensemble, snapshot, alive, placed, LossReplacements(env, snapshot, remaining))
    return ensemble, tuple(losses.of(level) for level in (*levels, Level(trees[0], HOST)))


class _Losses:
    """The losses of an ensemble with members in service (`alive`) and others, of each role."""

    def __init__(
        self,
        ensemble: Ensemble,
        snapshot: Snapshot,
        alive: Mapping[MemberName, int],
        placed: Mapping[str, int],
        replacements: LossReplacements,
    ) -> None:
        self._ensemble = ensemble
        self._snapshot = snapshot
        self._alive = alive
        self._placed = placed
        self._replacements = replacements

    def of(self, level: Level) -> LevelLoss:
        """The worst loss of one domain of a level, and whether any can be made good."""
        snapshot, ensemble = self._snapshot, self._ensemble
        domains, at = snapshot.domains(level), snapshot.locations.hosts
        gone: dict[int, set[MemberName]] = {}
        for name, row in self._alive.items():
            if domains[row] >= 0 and at[row] >= 0:
                gone.setdefault(int(domains[row]), set()).add(name)
        numbers = snapshot.domains_of_hosts(level)
        verdicts = {
            domain: self._replacements.verdicts(
                [(ensemble, frozenset(lost))], (numbers == domain) & snapshot.fleet & self._roots
            )[0]
            for domain, lost in gone.items()
        }
        names = snapshot.domain_names(level)
        stuck = sorted(
            names[one] for one, verdict in verdicts.items() if verdict is not Verdict.PLACED
        )
        worst = Verdict.REFUSED if Verdict.REFUSED in verdicts.values() else Verdict.UNDECIDED
        return LevelLoss(
            level,
            tuple(self._roles(level, domains, gone.keys())),
            (worst if stuck else Verdict.PLACED) if verdicts else None,
            tuple(stuck),
        )

    @property
    def _roots(self) -> Bools:
        found: Bools = self._snapshot.parent < 0
        return found

    def _roles(self, level: Level, domains: Rows, lost: Collection[int]) -> Iterator[RoleLoss]:
        for role in self._ensemble.roles:
            rows = [row for name, row in self._alive.items() if name.role == role.name]
            counts = Counter(domain for row in rows if (domain := int(domains[row])) >= 0)
            keeps = len(rows) - max(counts.values(), default=0)
            total = self._placed[role.name]
            if total:
                needed = _needed(self._ensemble, role.name, level)
                hosts = self._hosts(role, len(rows), level, lost)
                yield RoleLoss(role.name, total, len(rows), keeps, needed, hosts)

    def _hosts(
        self, role: Role, members: int, level: Level, lost: Collection[int]
    ) -> tuple[int, int] | None:
        """See `RoleLoss.hosts`."""
        most = _most_on_a_host(self._ensemble, role.name)
        if most is None or not lost or role.alternatives or role.decided_alone:
            return None
        snapshot = self._snapshot
        usable = hosts_where(snapshot, required=role.required, forbidden=role.forbidden)
        usable &= host_states(snapshot).in_service
        for name, amount in role.resources.items():
            columns = snapshot.classes.get(name)
            roomy = np.zeros(len(snapshot.uuids), dtype=np.bool_)
            if columns is not None:
                roomy[snapshot.root[columns.rows[columns.capacity >= amount]]] = True
            usable &= roomy
        there = snapshot.domains_of_hosts(level)[usable]
        left = min(int((there != domain).sum()) for domain in lost)
        return left, -(-members // most)


def _most_on_a_host(ensemble: Ensemble, role: str) -> int | None:
    """How many members of a role a required policy permits on one host; None: no policy does."""
    names = [member.name for member in ensemble.members]
    found = [
        one.parameters.get("max_per_domain", 1)
        for one in ensemble.policies
        if one.type == "anti-affinity"
        and one.required
        and one.parameters.get("level", HOST) == HOST
        and any(role in {name.role for name in edge} for edge in edges(one, ensemble.roles, names))
    ]
    return min((most for most in found if isinstance(most, int)), default=None)


def _needed(ensemble: Ensemble, role: str, level: Level) -> int:
    names = [member.name for member in ensemble.members]
    levels = [
        one.parameters["keep"]
        for one in ensemble.policies
        if one.type == "survive"
        and one.parameters.get("level") == level.name
        and one.parameters.get("tree", level.tree) == level.tree
        and one.parameters.get("lose", 1) == 1
        and all(
            {name.role for name in edge} == {role} for edge in edges(one, ensemble.roles, names)
        )
    ]
    needed = (n for n in levels if isinstance(n, int))
    return max(1, ensemble.role(role).min_available, *needed)
