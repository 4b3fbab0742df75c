"""The target of a node: what its facts and its configuration make of its resource providers."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from moorage.agent.cpu_traits import traits_of
from moorage.agent.device_providers import disk_providers, function_providers
from moorage.agent.discovery import CELLS, DISKS, FUNCTIONS, MOUNTS
from moorage.agent.facts import NO_CELL, Caution, InconsistentNode
from moorage.agent.target import (
    MEMORY,
    ROOT,
    STORAGE,
    Target,
    TargetInventory,
    TargetPool,
    TargetProvider,
    new_root_uuid,
)
from moorage.domain.agent_config import RootOwner
from moorage.domain.errors import BadConfiguration
from moorage.domain.words import first_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from moorage.agent.facts import Cell, Node
    from moorage.domain.agent_config import AgentConfig, SharedPool
    from moorage.domain.resources import ResourceClass

_KINDS: Final[Mapping[str, frozenset[str]]] = {
    CELLS: frozenset({"numa", MEMORY}),
    FUNCTIONS: frozenset({"pf", "gpu", "fpga"}),
    DISKS: frozenset({"disk"}),
    MOUNTS: frozenset({STORAGE}),
}
"""Source -> the kinds of providers that come from it."""
_SHOWN: Final = 8
_NETWORK_FILESYSTEMS: Final = frozenset(
    {"nfs", "nfs4", "ceph", "fuse.glusterfs", "cifs", "lustre", "ocfs2", "gfs2", "gpfs", "beegfs"}
)


def target_of(node: Node, config: AgentConfig) -> Target:
    """The target.

    Raises:
        BadConfiguration: neither the configuration nor the node says what the provider is called.
        InconsistentNode: the agent reports the root, and only a part of what it has is known.
    """
    name = config.name or node.host_name
    if not name:
        raise BadConfiguration("the node has no host name; set `name`", path="name")
    uuid = config.uuid or node.provider_uuid
    blind = frozenset(kind for source in node.blind for kind in _KINDS[source])
    own_root = config.root is RootOwner.AGENT
    new_uuid = uuid or new_root_uuid(node.machine_id or name)
    if config.bare_metal is not None:
        whole = {config.bare_metal: _inventory(config, config.bare_metal, 1)}
        root = TargetProvider(
            ROOT,
            None,
            MappingProxyType(whole),
            traits_of(node.processors) | config.traits,
        )
        return Target(
            name, uuid, own_root=True, new_uuid=new_uuid, providers=(root,), cautions=node.cautions
        )
    cautions = list(node.cautions)
    guests = _guest_cells(node, config, cautions)
    if own_root:
        _validate(name, node, guests)
        _caution_dedicated(config, guests, cautions)
    carriers = _carriers(guests, node, config)
    cells = frozenset(one.number for one in guests if config.numa and one.number != NO_CELL)
    devices = [
        *function_providers(node, config, cautions),
        *disk_providers(node.disks, config, cautions),
    ]
    if CELLS in node.blind:
        devices = [replace(one, parent=None) for one in devices]
    else:
        present = {f"numa{number}" for number in cells}
        devices = [one if one.parent in present else replace(one, parent=ROOT) for one in devices]
    pools, known = _pools(node, config, cautions)
    storage = [TargetProvider(STORAGE)] if pools else []
    return Target(
        name=name,
        uuid=uuid,
        own_root=own_root,
        new_uuid=new_uuid,
        providers=(*carriers, *storage, *devices),
        pools=pools,
        pools_known=known,
        blind=blind,
        cautions=tuple(cautions),
    )


# --- processors, memory, huge pages ---------------------------------------------------------------


@dataclass
class _Stock:
    """Amounts of one carrier, as they are collected."""

    amounts: dict[ResourceClass, int] = field(default_factory=dict)

    def add(self, resource_class: ResourceClass, amount: int) -> None:
        if amount > 0:
            self.amounts[resource_class] = self.amounts.get(resource_class, 0) + amount


def _guest_cells(node: Node, config: AgentConfig, cautions: list[Caution]) -> tuple[Cell, ...]:
    """The cells that servers may use. Memory without processors is that of a GPU, or far away."""
    named = config.memory_nodes or frozenset()
    left_out = [
        one
        for one in node.cells
        if not one.cpus and one.number != NO_CELL and one.number not in named
    ]
    if left_out and config.memory_nodes is None:
        numbers = ", ".join(str(one.number) for one in left_out)
        said = f"{sum(one.memory_mb for one in left_out)} MiB of NUMA nodes {numbers} are not"
        said += " reported; `memory_nodes` names those that are for guests"
        cautions.append(Caution("memory-without-processors", "memory", said))
    if node.cells:
        having = {one.number for one in node.cells if one.cpus}
        _caution_named(named - {one.number for one in node.cells}, "do not exist", cautions)
        _caution_named(named & having, "have processors and are reported anyway", cautions)
    return tuple(one for one in node.cells if one not in left_out)


def _caution_named(numbers: Iterable[int], what: str, cautions: list[Caution]) -> None:
    if listed := ", ".join(map(str, sorted(numbers))):
        said = f"NUMA nodes {listed} {what}; only nodes without processors are to be named"
        cautions.append(Caution("memory-nodes", "memory_nodes", said))


def _caution_dedicated(
    config: AgentConfig, guests: Iterable[Cell], cautions: list[Caution]
) -> None:
    missing = config.dedicated_cpus.difference(*(one.cpus for one in guests))
    if missing:
        some = ", ".join(first_of(sorted(missing), _SHOWN))
        said = f"{len(missing)} of them ({some}) are not online, or do not exist"
        cautions.append(Caution("dedicated-cpus", "dedicated_cpus", said))


def _validate(name: str, node: Node, guests: Iterable[Cell]) -> None:
    """Refuse a node of which only a part is known.

    Raises:
        InconsistentNode: it is one.
    """
    doubts = list(node.doubts)
    if not doubts:
        if not any(one.cpus for one in guests):
            doubts.append(Caution("no-processors", name, "no processor for guests is to be seen"))
        if not any(one.memory_mb for one in guests):
            doubts.append(Caution("no-memory", name, "no memory for guests is to be seen"))
    if doubts:
        raise InconsistentNode(name, doubts)


def _carriers(guests: Iterable[Cell], node: Node, config: AgentConfig) -> list[TargetProvider]:
    own_root = config.root is RootOwner.AGENT
    flat = ROOT if own_root else MEMORY
    by_cell = config.numa and any(one.number != NO_CELL for one in guests)
    stocks: dict[str, _Stock] = {ROOT: _Stock()} if own_root else {}
    for cell in guests:
        key = f"numa{cell.number}" if by_cell else flat
        _stock(stocks.setdefault(key, _Stock()), cell, config)
    if own_root:
        offered = [one for one in node.disks if not one.removable and not _whole(one.name, config)]
        stocks[ROOT].add("DISK_GB", sum(one.size_gb for one in offered))
    cpu = traits_of(node.processors) if own_root else frozenset()
    found = []
    for key, inventories in _inventories(stocks, config).items():
        if key == MEMORY and not inventories:
            continue
        traits = cpu if key == ROOT else frozenset({"HW_NUMA_ROOT"}) | cpu
        if key == ROOT:
            traits |= config.traits
        if key == MEMORY:
            traits = frozenset()
        found.append(TargetProvider(key, ROOT, inventories, traits))
    return found


def _whole(disk: str, config: AgentConfig) -> bool:
    return any(fnmatchcase(disk, rule.name) for rule in config.disks)


def _stock(stock: _Stock, cell: Cell, config: AgentConfig) -> None:
    """Add what a cell has to its carrier: all of it, or what Nova does not report."""
    if config.huge_pages:
        for size, count in cell.huge_pages.items():
            stock.add(page_class(size), count)
    if config.root is RootOwner.AGENT:
        stock.add("VCPU", len(cell.cpus - config.dedicated_cpus))
        stock.add("PCPU", len(cell.cpus & config.dedicated_cpus))
        stock.add("MEMORY_MB", cell.memory_mb - cell.paged_mb)


def page_class(size_kb: int) -> ResourceClass:
    """The class of huge pages of a size; an amount is a number of pages."""
    for unit, name in ((2**20, "GB"), (2**10, "MB")):
        if size_kb % unit == 0:
            return f"CUSTOM_HUGEPAGES_{size_kb // unit}{name}"
    return f"CUSTOM_HUGEPAGES_{size_kb}KB"


def _inventories(
    stocks: Mapping[str, _Stock], config: AgentConfig
) -> Mapping[str, Mapping[ResourceClass, TargetInventory]]:
    """The inventories by carrier; what is reserved of the node is taken evenly from them."""
    found: dict[str, dict[ResourceClass, TargetInventory]] = {key: {} for key in stocks}
    classes = sorted({name for one in stocks.values() for name in one.amounts})
    for name in classes:
        having = {key: one.amounts[name] for key, one in stocks.items() if name in one.amounts}
        shares = _shares(config.reserved.get(name), having)
        for key, total in having.items():
            found[key][name] = TargetInventory(
                total, shares.get(key), config.allocation_ratio.get(name)
            )
    return {key: MappingProxyType(one) for key, one in found.items()}


def _shares(reserved: int | None, having: Mapping[str, int]) -> Mapping[str, int]:
    """The reserved amount of a node, dealt out as evenly as totals allow."""
    if reserved is None:
        return {}
    left = reserved
    shares: dict[str, int] = {}
    carriers = sorted(having, key=lambda key: (having[key], key))
    for number, key in enumerate(carriers):
        shares[key] = min(-(-left // (len(carriers) - number)), having[key])
        left -= shares[key]
    return shares


def _inventory(config: AgentConfig, name: ResourceClass, total: int) -> TargetInventory:
    reserved = config.reserved.get(name)
    return TargetInventory(
        total,
        None if reserved is None else min(reserved, total),
        config.allocation_ratio.get(name),
    )


# --- shared storage -------------------------------------------------------------------------------


def measured_mounts(config: AgentConfig) -> frozenset[str]:
    """The directories whose filesystems' sizes are needed."""
    return frozenset(
        one.mount for one in config.shared_storage if one.mount and one.total_gb is None
    )


def _pools(
    node: Node, config: AgentConfig, cautions: list[Caution]
) -> tuple[tuple[TargetPool, ...], bool]:
    """The pools, and whether there are no others."""
    found: dict[str, TargetPool] = {}
    known = True
    for one in config.shared_storage:
        pool = _pool(one, node, cautions)
        if pool is None:
            known = False
        else:
            found[pool.name] = pool
    return tuple(found.values()), known


def _pool(one: SharedPool, node: Node, cautions: list[Caution]) -> TargetPool | None:
    if one.mount is None:
        return TargetPool(one.name or "", one.total_gb, stated=True, traits=one.traits)
    mounted: Iterable[str] = (m.directory for m in node.mounts)
    if one.mount not in mounted:
        cautions.append(
            Caution("not-mounted", one.mount, "shared storage; what was reported of it stays")
        )
        return None if one.name is None else TargetPool(one.name, one.total_gb, traits=one.traits)
    mount = next(m for m in reversed(node.mounts) if m.directory == one.mount)
    if one.name is None and mount.kind not in _NETWORK_FILESYSTEMS:
        said = f"{mount.kind} of {mount.source} is not known to be shared; give it a name"
        cautions.append(Caution("not-shared", one.mount, said))
        return None
    return TargetPool(
        name=one.name or mount.source,
        total_gb=mount.size_gb if one.total_gb is None else one.total_gb,
        stated=one.total_gb is not None,
        traits=one.traits,
    )
