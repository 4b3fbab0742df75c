"""Survivability: the members left of each role after the loss of any one domain.

Members on hosts that are not in service are placed, and are left in no case.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from moorage.domain.ensembles import edges
from moorage.domain.topology import HOST, Level
from moorage.engine.state.host_states import host_states
from moorage.usecases.decide.member_places import locate_members
from moorage.usecases.shared.access import own_ensemble

if TYPE_CHECKING:
    from collections.abc import Mapping

    from moorage.domain.ensembles import Ensemble
    from moorage.domain.member_names import MemberName
    from moorage.engine.state.snapshot import Snapshot
    from moorage.usecases.environment import UseCaseEnvironment
    from moorage.usecases.ports import Caller


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

    @property
    def survives(self) -> bool:
        """Whether at least `needed` members are left."""
        return self.keeps >= self.needed


@dataclass(frozen=True, slots=True)
class LevelLoss:
    """The worst loss of one domain of a level, by role."""

    level: Level
    roles: tuple[RoleLoss, ...]


def survivability(
    env: UseCaseEnvironment, caller: Caller, ensemble_id: str
) -> tuple[LevelLoss, ...]:
    """The worst loss per level and role, over placed members; widest level first.

    Raises:
        NotFound: no such ensemble for this caller.
    """
    ensemble = own_ensemble(env.store, caller, ensemble_id)
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
    return tuple(
        LevelLoss(level, _losses(snapshot, ensemble, level, placed, alive))
        for level in (*levels, Level(trees[0], HOST))
    )


def _losses(
    snapshot: Snapshot,
    ensemble: Ensemble,
    level: Level,
    placed: Mapping[str, int],
    alive: Mapping[MemberName, int],
) -> tuple[RoleLoss, ...]:
    domains = snapshot.domains(level)
    found = []
    for role in ensemble.roles:
        rows = [row for name, row in alive.items() if name.role == role.name]
        counts = Counter(domain for row in rows if (domain := int(domains[row])) >= 0)
        keeps = len(rows) - max(counts.values(), default=0)
        if placed[role.name]:
            needed = _needed(ensemble, role.name, level)
            found.append(RoleLoss(role.name, placed[role.name], len(rows), keeps, needed))
    return tuple(found)


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
