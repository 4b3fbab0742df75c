"""Load a part of a fleet, or a topology: refuse what differs, write what is missing.

Loading the same part again writes nothing. A part that differs from the ledger (another inventory,
a name of another provider, a consumer with other allocations) is refused as a whole, and the error
lists the differences.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from moorage.domain.changes import (
    Change,
    Changeset,
    CreateProvider,
    CreateResourceClass,
    CreateTrait,
    PutAggregates,
    PutEvent,
    PutFlavor,
    PutInventories,
    PutTopology,
    PutTraits,
    ReplaceAllocations,
)
from moorage.domain.errors import Conflict, ProviderConflict, StaleGeneration, UnknownName
from moorage.domain.events import DerivedEvent
from moorage.domain.resources import is_custom_name
from moorage.domain.topology import EMPTY
from moorage.domain.words import first_of
from moorage.usecases.compliance.impact import newly_broken
from moorage.usecases.ledger.content import topology_content
from moorage.usecases.shared.access import require_operator
from moorage.usecases.shared.role_resolution import LedgerNames
from moorage.usecases.tickets.places import check_stock

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from moorage.domain.flavors import Flavor
    from moorage.domain.fleet_load import ForeignLoad
    from moorage.domain.fleet_parts import FleetPart
    from moorage.domain.providers import Inventory, ResourceProvider
    from moorage.domain.topology import Topology
    from moorage.engine.state.snapshot import Snapshot
    from moorage.usecases.compliance.impact import Impact
    from moorage.usecases.environment import UseCaseEnvironment
    from moorage.usecases.ports import Caller, Store


JUDGING: Final = 2.0
"""Seconds for which ensembles are judged after a topology was replaced."""


def put_topology(
    env: UseCaseEnvironment,
    caller: Caller,
    topology: Topology,
    revision: int | None = None,
    seconds: float | None = JUDGING,
) -> Impact:
    """Replace the whole topology; `revision` is the one that it is made from, None: any.

    Return what it newly breaks, as far as that is judged in so many seconds; None: all of it.

    Raises:
        Forbidden: the caller is no operator.
        UnknownName: the topology contains a host that is no root provider.
        StaleGeneration: the topology has another revision by now.
    """
    require_operator(caller)
    snapshot = env.store.snapshot()
    roots = {snapshot.names[row] for row in snapshot.hosts.tolist()}
    for tree, host in topology.attachments:
        if host not in roots:
            line = topology.lines.get((tree, host))
            raise UnknownName("host", host, path=f"attachments.{host}", line=line)
    if revision not in {None, snapshot.topology_revision}:
        raise _stale(env, revision)
    try:
        changes = PutTopology(topology), topology_event(caller, topology)
        env.store.commit(Changeset(changes, topology_revision=revision))
    except ProviderConflict as error:
        raise _stale(env, revision) from error
    return newly_broken(env, snapshot, snapshot.with_states(topology=topology), seconds=seconds)


def topology_event(caller: Caller, topology: Topology) -> PutEvent:
    """The event of a topology that a caller writes."""
    body = {
        "levels": {tree: list(names) for tree, names in topology.levels.items()},
        "domains": len(topology.domains),
        "hosts": len({host for _, host in topology.attachments}),
    }
    told = DerivedEvent("topology.changed", caller.project_id, "topology", 0, body)
    return PutEvent(told)


def _stale(env: UseCaseEnvironment, revision: int | None) -> StaleGeneration:
    actual = env.store.snapshot().topology_revision
    return StaleGeneration("the", "topology", expected=revision or 0, actual=actual)


SHOWN: Final = 5
"""How many differences an error lists; the others are counted."""


@dataclass(frozen=True, slots=True)
class FleetLoadResult:
    """The result of loading a part: how many records were written, and how many existed."""

    revision: int
    hosts: int
    consumers: int
    flavors: int
    unchanged: int


def load_fleet(store: Store, caller: Caller, part: FleetPart) -> FleetLoadResult:
    """Write the records of this part that the ledger lacks, in one transaction.

    Raises:
        Forbidden: the caller is no operator.
        Conflict: a record of the same name or id differs in the ledger.
        UnknownName: a resource class or trait of a new host; path and line name the host.
        InvalidDescription: a new host has an inventory of a virtual class.
        UnknownName, CapacityExceeded, ConstraintViolated, ConcurrentUpdate: from the commit.
    """
    require_operator(caller)
    snapshot = store.snapshot()
    differences: list[str] = []
    hosts = [one for one in part.providers if _is_new(one, snapshot, differences)]
    new_hosts = {one.uuid for one in hosts}
    load = list(_new_load(store, part, new_hosts, differences))
    known = store.flavors() if part.flavors else ()
    flavors = [one for one in part.flavors if _is_new_flavor(one, known, differences)]
    topology = _new_topology(part.topology, snapshot, differences)
    if differences:
        told = "; ".join(first_of(differences, SHOWN))
        raise Conflict(f"the fleet differs from the ledger: {told}")
    _check_names(LedgerNames(store, None), part, hosts)
    for host in hosts:
        check_stock(store, host.inventories)
    changes = tuple(_changes(hosts, load, flavors, topology))
    seen = None if topology is None else snapshot.topology_revision
    revision = snapshot.revision
    if changes:
        revision = store.commit(Changeset(changes, topology_revision=seen)).revision
    written = len(hosts) + len(load) + len(flavors)
    return FleetLoadResult(
        revision=revision,
        hosts=len(hosts),
        consumers=len(load),
        flavors=len(flavors),
        unchanged=len(part.providers) + len(part.load) + len(part.flavors) - written,
    )


def _check_names(known: LedgerNames, part: FleetPart, hosts: list[ResourceProvider]) -> None:
    """Check that standard names exist, to name the host in the error; custom ones are created."""
    for host in hosts:
        path = f"providers.{host.name}"
        classes = frozenset(one.resource_class for one in host.inventories)
        try:
            known.check_classes(_standard(classes), f"{path}.inventories")
            known.check_traits(_standard(host.traits), f"{path}.traits")
        except UnknownName as error:
            error.line = part.lines.get(host.uuid) or part.lines.get(host.root_uuid)
            raise


def _standard(names: frozenset[str]) -> frozenset[str]:
    return frozenset(name for name in names if not is_custom_name(name))


def _is_new(provider: ResourceProvider, snapshot: Snapshot, differences: list[str]) -> bool:
    row = snapshot.row_of.get(provider.uuid)
    if row is None or not snapshot.alive[row]:
        return True
    there = snapshot.state(row).provider
    if there.name != provider.name:
        differences.append(f"{provider.name} is called {there.name}")
    before, after = _by_class(there.inventories), _by_class(provider.inventories)
    differences.extend(
        f"{provider.name} {name} is {_amount(before.get(name))}, the file says"
        f" {_amount(after.get(name))}"
        for name in sorted(before.keys() | after.keys())
        if before.get(name) != after.get(name)
    )
    if there.traits != provider.traits:
        changed = ", ".join(sorted(there.traits ^ provider.traits))
        differences.append(f"{provider.name} differs in traits {changed}")
    if there.aggregates != provider.aggregates:
        differences.append(f"{provider.name} differs in aggregates")
    return False


_Terms = tuple[int, int, int, int, int, float]


def _by_class(inventories: Sequence[Inventory]) -> dict[str, _Terms]:
    return {
        one.resource_class: (
            one.total,
            one.reserved,
            one.min_unit,
            one.max_unit,
            one.step_size,
            one.allocation_ratio,
        )
        for one in inventories
    }


def _amount(terms: _Terms | None) -> str:
    if terms is None:
        return "absent"
    total, reserved, low, high, step, ratio = terms
    return f"{total} (reserved {reserved}, units {low}..{high} by {step}, ratio {ratio:g})"


def _new_load(
    store: Store, part: FleetPart, new_hosts: set[str], differences: list[str]
) -> Iterator[ForeignLoad]:
    there: dict[str, dict[str, dict[str, int]]] = {}
    # Of a load that takes from several providers, the others are in other parts.
    taken = {provider for load in part.load for provider in load.allocations}
    for provider in taken - new_hosts:
        for consumer, booking in store.allocations_of_provider(provider)[1]:
            there.setdefault(consumer.uuid, {})[provider] = dict(booking.amounts)
    for load in part.load:
        found = there.get(load.consumer.uuid)
        described = {provider: dict(amounts) for provider, amounts in load.allocations.items()}
        if found is None:
            yield load
        elif found != described:
            differences.append(
                f"consumer {load.consumer.uuid} takes {found}, the file says {described}"
            )


def _is_new_flavor(flavor: Flavor, known: Sequence[Flavor], differences: list[str]) -> bool:
    for there in known:
        if there.id == flavor.id or there.name == flavor.name:
            if there != flavor:
                differences.append(f"flavor {flavor.name} differs from flavor {there.name}")
            return False
    return True


def _new_topology(
    topology: Topology | None, snapshot: Snapshot, differences: list[str]
) -> Topology | None:
    if topology is None or topology_content(topology) == topology_content(snapshot.topology):
        return None
    if topology_content(snapshot.topology) != topology_content(EMPTY):
        differences.append("another topology is loaded")
    return topology


def _changes(
    hosts: list[ResourceProvider],
    load: list[ForeignLoad],
    flavors: list[Flavor],
    topology: Topology | None,
) -> Iterator[Change]:
    classes = {one.resource_class for host in hosts for one in host.inventories}
    for name in sorted(filter(is_custom_name, classes)):
        yield CreateResourceClass(name, exist_ok=True)
    for name in sorted(filter(is_custom_name, {name for host in hosts for name in host.traits})):
        yield CreateTrait(name)
    for host in hosts:
        yield CreateProvider(host.uuid, host.name, host.parent_uuid)
        yield PutInventories(host.uuid, host.inventories, generation=None, replace_all=True)
        if host.traits:
            yield PutTraits(host.uuid, host.traits, generation=None)
        if host.aggregates:
            yield PutAggregates(host.uuid, host.aggregates, generation=None)
    for flavor in flavors:
        yield PutFlavor(flavor)
    for one in load:
        yield ReplaceAllocations(one.consumer, one.allocations, generation=None)
    if topology is not None:
        yield PutTopology(topology)
