"""Shared storage: one sharing provider for all nodes that see it, each of which joins and leaves.

A node joins by an aggregate of its provider `storage`; the root provider is not touched.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from moorage.agent.facts import Caution
from moorage.agent.inventory_merge import in_order, merged
from moorage.agent.ledger_tree import read_provider
from moorage.agent.plan_steps import (
    CreateProvider,
    DeleteProvider,
    Plan,
    PutAggregates,
    PutInventories,
    PutTraits,
)
from moorage.agent.target import OWNED, STORAGE, TargetInventory

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from moorage.agent.ledger_tree import PresentProvider, PresentTree
    from moorage.agent.plan_steps import Step
    from moorage.agent.target import Target, TargetPool
    from moorage.client.provider_trees import ProviderTrees

SHARES: Final = "MISC_SHARES_VIA_AGGREGATE"
_CLASS: Final = "DISK_GB"


@dataclass(frozen=True, slots=True)
class PresentPools:
    """The sharing providers that the target names or that the node shares at present, by UUID."""

    providers: Mapping[str, PresentProvider] = field(default_factory=lambda: MappingProxyType({}))
    alone: frozenset[str] = frozenset()
    """Those that no other node shares."""
    used_here: frozenset[str] = frozenset()
    """Those on which a consumer of this node's tree has an allocation."""


def read_pools(trees: ProviderTrees, target: Target, tree: PresentTree) -> PresentPools:
    """Read the pools.

    Raises:
        SourceFailed: an error, or no answer.
    """
    wanted = {one.uuid for one in target.pools}
    storage = tree.own.get(STORAGE)
    joined = storage.aggregates if storage else frozenset[str]()
    listed = {one.uuid: one for one in trees.in_aggregates(joined, required=SHARES)}
    for uuid in wanted - listed.keys():
        if (one := trees.find(uuid)) is not None:
            listed[uuid] = one
    providers = {}
    for uuid, one in sorted(listed.items()):
        traits, _ = trees.traits(uuid)
        if uuid in wanted or OWNED in traits:
            # Of a pool that stays, nobody needs to know what thousands of servers have there.
            leaves = uuid not in wanted
            providers[uuid] = read_provider(trees, one, traits, with_allocations=leaves)
    left = providers.keys() - wanted
    alone = {
        uuid
        for uuid in left
        if all(
            one.uuid == uuid or (storage and one.uuid == storage.uuid)
            for one in trees.in_aggregates(providers[uuid].aggregates)
        )
    }
    here: set[str] = set()
    if left:
        for uuid in (tree.root_uuid, *tree.others, *(one.uuid for one in tree.own.values())):
            here |= trees.allocations(uuid).keys()
    used = {uuid for uuid in left if not here.isdisjoint(providers[uuid].allocations)}
    return PresentPools(MappingProxyType(providers), frozenset(alone), frozenset(used))


def plan_pools(
    target: Target, tree: PresentTree, present: PresentPools, storage_uuid: str | None
) -> Plan:
    """Plan the pools' own steps, and the node's joining and leaving."""
    cautions: list[Caution] = []
    steps = [step for one in target.pools for step in _pool(one, present.providers, cautions)]
    if storage_uuid is None:
        return Plan(tuple(steps), tuple(cautions))
    storage = tree.own.get(STORAGE)
    joined = storage.aggregates if storage else frozenset[str]()
    wanted = {one.aggregate for one in target.pools}
    left: list[PresentProvider] = []
    for uuid, one in present.providers.items():
        if any(uuid == pool.uuid for pool in target.pools):
            continue
        if not target.pools_known:
            wanted |= one.aggregates & joined
        elif uuid in present.used_here:
            said = "the node shares it no more, and servers of the node have allocations on it"
            cautions.append(Caution("pool-in-use", one.name, said))
            wanted |= one.aggregates & joined
        else:
            left.append(one)
    if frozenset(wanted) != joined:
        name = storage.name if storage else f"{tree.root_name}/{STORAGE}"
        steps.append(PutAggregates(storage_uuid, name, frozenset(wanted)))
    steps += [
        DeleteProvider(one.uuid, one.name)
        for one in left
        if one.uuid in present.alone and not one.allocations
    ]
    return Plan(tuple(steps), tuple(cautions))


def _pool(
    one: TargetPool, present: Mapping[str, PresentProvider], cautions: list[Caution]
) -> Iterator[Step]:
    before = present.get(one.uuid)
    name = f"pool:{one.name}"[:200]
    traits = before.traits if before else frozenset[str]()
    if before is None:
        if one.total_gb is None:
            said = "its size is unknown at present; it is not reported"
            cautions.append(Caution("no-size", name, said))
            return
        yield CreateProvider(one.uuid, name, None)
    wanted = traits | {OWNED, SHARES} | one.traits
    if wanted != traits:
        yield PutTraits(one.uuid, name, wanted, traits)
    if before is None or one.aggregate not in before.aggregates:
        joined = before.aggregates if before else frozenset[str]()
        yield PutAggregates(one.uuid, name, joined | {one.aggregate})
    stock = before.inventories if before else {}
    total = _total(one, stock[_CLASS].total if _CLASS in stock else 0, name, cautions)
    if total:
        own = merged(stock.get(_CLASS), TargetInventory(total), _CLASS)
        if own != stock.get(_CLASS):
            yield PutInventories(one.uuid, name, in_order({**stock, _CLASS: own}), in_order(stock))


def _total(one: TargetPool, present: int, name: str, cautions: list[Caution]) -> int:
    """The pool's size. A node's own measure only makes it larger: another may measure otherwise."""
    if one.total_gb is None:
        return present
    if one.total_gb < present and not one.stated:
        said = f"{one.total_gb} GB are measured, and {present} reported; that stays"
        cautions.append(Caution("pool-differs", name, said))
        return present
    return one.total_gb
