"""Hosts that other ensembles keep to themselves: the other side of `exclusive`.

A required `exclusive` policy would mean little if strangers could move in later. Every joint
decision therefore leaves out the domains of standing exclusive members to which its own
members are foreign.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from moorage.domain.placement import Occupant
from moorage.domain.topology import HOST, Level
from moorage.policies.exclusive import Exclusive
from moorage.policies.registry import parse
from moorage.usecases.standing import standing

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from moorage.domain.ensembles import Ensemble, MemberName, PolicyStatement
    from moorage.domain.placement import Place
    from moorage.engine.snapshot import Snapshot
    from moorage.usecases.ports import Store


def kept_hosts(store: Store, snapshot: Snapshot, newcomer: Ensemble) -> frozenset[str]:
    """UUIDs of hosts closed to the members of `newcomer`."""
    found: set[str] = set()
    for other in store.ensembles_with(Exclusive.type):
        statements = [one for one in other.policies if one.required and one.type == Exclusive.type]
        if other.id != newcomer.id and statements:
            found.update(_kept_by(snapshot, other, statements, newcomer))
    return frozenset(found)


def _kept_by(
    snapshot: Snapshot, keeper: Ensemble, statements: list[PolicyStatement], newcomer: Ensemble
) -> Iterator[str]:
    stranger = Occupant(
        consumer="",
        project_id=newcomer.project_id,
        tags=frozenset().union(*(role.tags for role in newcomer.roles)),
    )
    stand = standing(snapshot, keeper)
    for statement in statements:
        policy = parse(statement)
        assert isinstance(policy, Exclusive)
        if not policy.forbids(stranger, keeper.project_id):
            continue
        for edge in keeper.edges(statement):
            for member in edge:
                yield from _domain_of(snapshot, stand.places, member, policy)


def _domain_of(
    snapshot: Snapshot,
    places: Mapping[MemberName, Place],
    member: MemberName,
    policy: Exclusive,
) -> Iterator[str]:
    place = places.get(member)
    if place is None:
        return
    if policy.level == HOST:
        yield place.host
        return
    numbers = snapshot.domains(Level(policy.tree, policy.level))
    number = int(numbers[snapshot.row_of[place.host]])
    for row in snapshot.roots.tolist():
        if number >= 0 and int(numbers[row]) == number:
            yield snapshot.uuids[row]
