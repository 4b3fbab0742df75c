"""Survivability: the members left of each role after the loss of any one domain."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from moorage.domain.ensembles import edges
from moorage.domain.topology import HOST, Level
from moorage.usecases.decide.member_places import locate_members
from moorage.usecases.shared.access import own_ensemble

if TYPE_CHECKING:
    from moorage.domain.ensembles import Ensemble
    from moorage.domain.member_names import MemberName
    from moorage.engine.state.snapshot import Snapshot
    from moorage.usecases.environment import UseCaseEnvironment
    from moorage.usecases.ports import Caller


@dataclass(frozen=True, slots=True)
class RoleLoss:
    """The worst case for a role: of `total` placed members `keeps` are left.

    `needed` is the number that must be up (`Role.min_available`), or that a `survive` policy
    requires at that level if that is more; 1 without either.
    """

    role: str
    total: int
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
    return tuple(
        LevelLoss(level, _losses(snapshot, ensemble, level, hosts))
        for level in (*levels, Level(trees[0], HOST))
    )


def _losses(
    snapshot: Snapshot, ensemble: Ensemble, level: Level, hosts: dict[MemberName, int]
) -> tuple[RoleLoss, ...]:
    domains = snapshot.domains(level)
    found = []
    for role in ensemble.roles:
        counts: dict[int, int] = {}
        placed = [name for name in hosts if name.role == role.name]
        for name in placed:
            domain = int(domains[hosts[name]])
            if domain >= 0:
                counts[domain] = counts.get(domain, 0) + 1
        worst = max(counts.values(), default=0)
        if placed:
            found.append(
                RoleLoss(
                    role.name, len(placed), len(placed) - worst, _needed(ensemble, role.name, level)
                )
            )
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
