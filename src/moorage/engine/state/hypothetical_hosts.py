"""Snapshots in which hosts are down, closed or added that are not: what is supposed of a fleet."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from moorage.domain.host_states import (
    DISABLED_TRAIT,
    HostRecord,
    OperatorClosing,
    ServiceReport,
)
from moorage.engine.state.columns import ProviderState

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from moorage.domain.providers import ResourceProvider
    from moorage.engine.state.snapshot import Snapshot

_NOTHING = HostRecord()


def with_hosts_down(snapshot: Snapshot, rows: Iterable[int]) -> Snapshot:
    """The snapshot in which these hosts do not run, as if Nova's services there were down."""
    down = ServiceReport(enabled=True, up=False, forced_down=True, since=snapshot.taken_at)
    return snapshot.with_states(
        replace(state, host=replace(state.host or _NOTHING, service=down))
        for state in map(snapshot.state, rows)
    )


def with_hosts_closed(snapshot: Snapshot, rows: Iterable[int], user_id: str) -> Snapshot:
    """The snapshot in which an operator has closed these hosts."""
    closing = OperatorClosing("simulation", user_id, snapshot.taken_at)
    return snapshot.with_states(
        replace(state, host=replace(state.host or _NOTHING, closing=closing))
        for state in map(snapshot.state, rows)
    )


@dataclass(frozen=True, slots=True)
class Likeness:
    """Hosts to add: like one that there is, with its inventories, traits and aggregates."""

    model: int
    """The row of that host."""
    names: tuple[str, ...]
    domains: Mapping[str, str] | None = None
    """Tree -> domain in which they are; None: where the model is."""


def with_hosts_like(snapshot: Snapshot, added: Likeness, new_uuid: Callable[[], str]) -> Snapshot:
    """The snapshot with hosts added, open and with nothing booked on them."""
    topology = snapshot.topology
    model = snapshot.names[added.model]
    places = added.domains
    if places is None:
        places = {
            tree: topology.attachments[tree, model]
            for tree in topology.levels
            if (tree, model) in topology.attachments
        }
    attached = {(tree, name): place for name in added.names for tree, place in places.items()}
    tree = [snapshot.state(row).provider for row in snapshot.tree(added.model).tolist()]
    states = [one for name in added.names for one in _like(tree, model, name, new_uuid)]
    return snapshot.with_states(
        states, topology=replace(topology, attachments={**topology.attachments, **attached})
    )


def _like(
    tree: Sequence[ResourceProvider], model: str, name: str, new_uuid: Callable[[], str]
) -> Iterator[ProviderState]:
    """A provider tree like another one, under another name, as states."""
    uuids = {one.uuid: new_uuid() for one in tree}
    for one in tree:
        parent = one.parent_uuid
        yield ProviderState(
            replace(
                one,
                uuid=uuids[one.uuid],
                name=_named_after(one, model, name),
                parent_uuid=None if parent is None else uuids[parent],
                root_uuid=uuids[one.root_uuid],
                traits=one.traits - {DISABLED_TRAIT},
                generation=0,
            )
        )


def _named_after(one: ResourceProvider, model: str, name: str) -> str:
    """The name of a provider in the tree of a new host: `n1/numa0` becomes `n9/numa0`."""
    if one.name.startswith(model):
        return name + one.name[len(model) :]
    return f"{name}/{one.name}"
