"""Domains of a level as columns: each provider's domain number, and the domains' names."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from moorage.domain.topology import HOST

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from moorage.domain.topology import Level, Topology

    Ints: TypeAlias = NDArray[np.int64]
    Rows: TypeAlias = NDArray[np.int32]
    Bools: TypeAlias = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Domains:
    """The domains of one level: per provider row its domain number."""

    numbers: Rows
    """[P] domain number, or -1 for rows without a domain there."""
    names: tuple[str, ...]
    """Domain number -> name: the domain's, or at the level `host` the root provider's."""


def domains_at(
    topology: Topology, level: Level, *, names: Sequence[str], root: Rows, alive: Bools
) -> Domains:
    """The domains of a level, numbered in order of their names.

    At the level `host` every provider tree is a domain, numbered by its root's row. Nested
    providers are in the domain of their root.
    """
    if level.name == HOST:
        return Domains(np.where(alive, root, -1).astype(np.int32), tuple(names))
    found = sorted(
        name
        for (tree, name), domain in topology.domains.items()
        if tree == level.tree and domain.level == level.name
    )
    number = {name: index for index, name in enumerate(found)}
    by_leaf: dict[str, int] = {}
    of_root = np.full(len(names), -1, dtype=np.int32)
    for row in np.unique(root[alive]).tolist():
        leaf = topology.attachments.get((level.tree, names[row]))
        if leaf is None:
            continue
        if leaf not in by_leaf:
            above = topology.ancestor(level.tree, leaf, level.name)
            by_leaf[leaf] = -1 if above is None else number[above]
        of_root[row] = by_leaf[leaf]
    return Domains(np.where(alive, of_root[root], -1).astype(np.int32), tuple(found))


def domains_at_first_of(columns: Sequence[Rows | Ints], names: Sequence[Sequence[str]]) -> Domains:
    """Each row's domain at the first of several levels at which the row has one.

    Args:
        columns: per level, from the top down, the rows' domain numbers or -1; the last has one
            for every row that has any.
        names: per level the names of its domains.
    """
    chosen = np.full(len(columns[0]), -1, dtype=np.int64)
    offset = 0
    for column, of_level in zip(columns, names, strict=True):
        chosen = np.where(chosen < 0, np.where(column >= 0, column + offset, -1), chosen)
        offset += len(of_level)
    every = [name for of_level in names for name in of_level]
    used, numbers = np.unique(chosen, return_inverse=True)
    if len(used) and used[0] < 0:
        used, numbers = used[1:], numbers - 1
    found = tuple(every[number] for number in used.tolist())
    return Domains(numbers.reshape(-1).astype(np.int32), found)
