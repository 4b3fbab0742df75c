"""Hosts that other ensembles keep to themselves: the other side of `exclusive`.

A required `exclusive` policy would mean little if strangers could move in later. Every joint
decision therefore leaves out the domains of standing exclusive members to which its own
members are foreign.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

from moorage.domain.placement import Occupant
from moorage.domain.topology import Level
from moorage.policies.exclusive import Exclusive
from moorage.policies.registry import parse
from moorage.usecases.standing import hosts_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from numpy.typing import NDArray

    from moorage.domain.ensembles import Ensemble, PolicyStatement
    from moorage.domain.period import Period
    from moorage.engine.snapshot import Snapshot

    Bools: TypeAlias = NDArray[np.bool_]


EXCLUSIVE: Final = "exclusive"
"""The reason id of hosts that are kept."""


def kept_hosts(
    keepers: Iterable[Ensemble], snapshot: Snapshot, newcomer: Ensemble, period: Period
) -> Mapping[str, frozenset[str]]:
    """`EXCLUSIVE` -> UUIDs of hosts closed to the members of `newcomer` during `period`."""
    stranger = stranger_of(newcomer)
    closed = np.zeros(len(snapshot.uuids), dtype=np.bool_)
    for keeper in keepers:
        if keeper.id != newcomer.id:
            closed |= kept_from(stranger, keeper, snapshot, period)
    roots = snapshot.roots
    rows = roots[closed[roots]].tolist()
    return MappingProxyType({EXCLUSIVE: frozenset(snapshot.uuids[row] for row in rows)})


def stranger_of(newcomer: Ensemble) -> Occupant:
    """Whatever of an ensemble may be foreign to others."""
    return Occupant(
        consumer="",
        project_id=newcomer.project_id,
        tags=frozenset().union(*(role.tags for role in newcomer.roles)),
    )


def kept_from(stranger: Occupant, keeper: Ensemble, snapshot: Snapshot, period: Period) -> Bools:
    """[P] providers that an ensemble keeps from a stranger during `period`."""
    closed = np.zeros(len(snapshot.uuids), dtype=np.bool_)
    for statement in keeper.policies:
        if statement.required and statement.type == Exclusive.type:
            closed |= _closed(snapshot, keeper, statement, stranger, period)
    return closed


def _closed(
    snapshot: Snapshot,
    keeper: Ensemble,
    statement: PolicyStatement,
    stranger: Occupant,
    period: Period,
) -> Bools:
    """[P] providers in a domain that the statement's members keep from the stranger."""
    policy = parse(statement)
    assert isinstance(policy, Exclusive)
    closed = np.zeros(len(snapshot.uuids), dtype=np.bool_)
    if policy.forbids(stranger, keeper.project_id):
        selected = {member for edge in keeper.edges(statement) for member in edge}
        members = (one for one in keeper.members if one.name in selected)
        rows = hosts_of(snapshot, members, period)
        if rows:
            numbers = snapshot.domains(Level(policy.tree, policy.level))
            used = np.unique(numbers[rows])
            closed = np.isin(numbers, used[used >= 0])
    return closed
