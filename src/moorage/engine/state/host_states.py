"""The state of every host of a snapshot: the one place where it is computed from all sources.

A provider has the state of its location: one inside a host that of its host, a slice that of the
host on which its server is. A server provider whose server has no place has no host that could be
closed, and counts as open. A sharing provider is no host: inventories say nothing of its state.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

from moorage.domain.host_states import (
    DISABLED_TRAIT,
    SEVERITIES,
    Closing,
    ClosingReason,
    HostState,
)
from moorage.domain.period import FOREVER
from moorage.domain.providers import SHARING_TRAIT
from moorage.domain.reservables import WHOLE_HOST

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from collections.abc import Set as AbstractSet

    from numpy.typing import NDArray

    from moorage.domain.period import Instant
    from moorage.engine.state.chunks import Chunks
    from moorage.engine.state.columns import ClassColumns, ProviderState
    from moorage.engine.state.snapshot import Snapshot

    Bools: TypeAlias = NDArray[np.bool_]

_PROCESSORS: Final = frozenset({"VCPU", "PCPU"})
_MEMORY: Final = frozenset({"MEMORY_MB"})
_OF_HYPERVISORS: Final = _PROCESSORS | _MEMORY | {"DISK_GB"}
"""Classes of which a hypervisor has some, and a bare-metal node none."""


@dataclass(frozen=True, eq=False)
class HostStates:
    """The states of P providers, as long as nothing changes or begins."""

    severity: NDArray[np.int8]
    """[P] position in `SEVERITIES` of the state of each provider's location."""
    in_service: Bools
    """[P] whether each provider's location is open."""
    lasting: Bools
    """[P] whether each provider's location is closed and no end of that is known.

    Without absences, then: these have periods, in which capacity says that nothing fits.
    """
    closed: Mapping[ClosingReason, Bools]
    """Reason -> [P] root providers that it closes now; only reasons that close any."""

    def state(self, row: int) -> HostState:
        """The state of the location of a provider."""
        return SEVERITIES[self.severity[row]]


def host_states(snapshot: Snapshot) -> HostStates:
    """The states of all hosts now. Kept with the snapshot for as long as they hold."""
    kept = snapshot.cache.get("host states")
    if not isinstance(kept, _Kept) or not kept.hold_in(snapshot):
        kept = snapshot.cache["host states"] = _Kept.of(snapshot)
    return kept.found


def closings(snapshot: Snapshot, root: int) -> tuple[Closing, ...]:
    """Why a host is closed now, or will be: what its state follows from."""
    noted = tuple(_noted(snapshot, root))
    known = {one.why for one in noted}
    closed = host_states(snapshot).closed
    found = (Closing(why) for why in closed if why not in known and closed[why][root])
    return (*found, *noted)


def _noted(snapshot: Snapshot, root: int) -> Iterator[Closing]:
    """The closings that are stored for a host; of its planned absences those that are not over."""
    if root not in snapshot.noted_hosts:
        return
    now, state = snapshot.taken_at, snapshot.state(root)
    if state.host is not None:
        yield from state.host.closings()
    for one in state.down:
        if one.end > now:
            why = ClosingReason.AWAY if one.covers(now) else ClosingReason.PLANNED
            yield Closing(why, one.start, None if one.end == FOREVER else one.end)


@dataclass(frozen=True, eq=False)
class _Kept:
    """The states with what they were computed from."""

    found: HostStates
    states: Chunks[ProviderState | None]
    classes: Mapping[str, ClassColumns]
    since: Instant
    until: Instant

    @classmethod
    def of(cls, snapshot: Snapshot) -> _Kept:
        """Compute them."""
        stock = _stock(snapshot)
        marked = snapshot.traits.get(DISABLED_TRAIT)
        closed: dict[ClosingReason, Bools] = {}
        if marked is not None:
            closed[ClosingReason.DISABLED] = marked & snapshot.alive & (snapshot.parent < 0)
        closed[ClosingReason.SPENT] = stock.spent
        closed[ClosingReason.EMPTY] = stock.empty
        for row in snapshot.noted_hosts:
            for one in _noted(snapshot, row):
                if one.why not in closed:
                    closed[one.why] = np.zeros(len(snapshot.uuids), dtype=np.bool_)
                closed[one.why][row] = True
        closed = {why: mask for why, mask in closed.items() if mask.any()}
        roots = np.zeros(len(snapshot.uuids), dtype=np.int8)
        for why, mask in closed.items():
            roots[mask] = np.maximum(roots[mask], why.state.severity)
        closed.pop(ClosingReason.PLANNED, None)
        at = snapshot.locations.hosts
        severity = np.where(at >= 0, roots[at], np.int8(0))
        lasting = np.zeros(len(snapshot.uuids), dtype=np.bool_)
        for why in closed.keys() - {ClosingReason.AWAY}:
            lasting |= closed[why]
        edges = (
            edge
            for row in snapshot.noted_hosts
            for one in snapshot.state(row).down
            for edge in (one.start, one.end)
            if edge > snapshot.taken_at
        )
        return cls(
            HostStates(
                severity, severity == 0, snapshot.located(lasting), MappingProxyType(closed)
            ),
            snapshot.states,
            snapshot.classes,
            snapshot.taken_at,
            min((snapshot.valid_until, *edges)),
        )

    def hold_in(self, snapshot: Snapshot) -> bool:
        """Whether a snapshot has the same."""
        return (
            self.states is snapshot.states
            and self.classes is snapshot.classes
            and self.since <= snapshot.taken_at < self.until
        )


@dataclass(frozen=True, eq=False)
class _Stock:
    """What inventories say of hosts, with the columns that say it."""

    spent: Bools
    """[P] hosts that have inventories, and nothing left to give."""
    empty: Bools
    """[P] hosts without any inventory in their tree."""
    sources: tuple[object, ...]


def _stock(snapshot: Snapshot) -> _Stock:
    """Read the inventories, unless nothing of them has changed: bookings do not count here."""
    sources: tuple[object, ...] = (
        snapshot.traits.get(SHARING_TRAIT),
        snapshot.offered_by,
        *(
            part
            for columns in snapshot.classes.values()
            for part in (columns.rows, columns.capacity, columns.min_unit)
        ),
    )
    kept = snapshot.cache.get("host stock")
    if (
        isinstance(kept, _Stock)
        and len(kept.sources) == len(sources)
        and all(one is other for one, other in zip(kept.sources, sources, strict=True))
    ):
        return kept
    hosts = snapshot.fleet & (snapshot.parent < 0)
    sharing = snapshot.traits.get(SHARING_TRAIT)
    if sharing is not None:
        hosts &= ~sharing
    having = _having(snapshot, snapshot.classes.keys())
    kept = _Stock(hosts & having & _without_capacity(snapshot), hosts & ~having, sources)
    snapshot.cache["host stock"] = kept
    return kept


def _without_capacity(snapshot: Snapshot) -> Bools:
    """[P] roots that have nothing left to give after what is reserved.

    A tree that has processors has none of them left, or one that has memory none of that. One that
    has neither, such as a bare-metal node's, is judged by the inventories of the root itself if
    there are any: none of them has capacity. The unit by which a whole host is leased does not
    count, and a hypervisor that is leased whole has processors.
    """
    processors, memory = _having(snapshot, _PROCESSORS), _having(snapshot, _MEMORY)
    lacking = (processors & ~_usable(snapshot, _PROCESSORS)) | (
        memory & ~_usable(snapshot, _MEMORY)
    )
    every = snapshot.classes.keys() - {WHOLE_HOST}
    own = _having(snapshot, every, nested=False)
    alone = np.where(own, _usable(snapshot, every, nested=False), _usable(snapshot, every))
    lacking |= ~(processors | memory) & ~alone
    whole = _having(snapshot, {WHOLE_HOST}) & _having(snapshot, _OF_HYPERVISORS)
    lacking |= whole & ~_usable(snapshot, _PROCESSORS)
    return lacking


def _having(snapshot: Snapshot, names: AbstractSet[str], *, nested: bool = True) -> Bools:
    """[P] roots in whose tree, or if not `nested` which themselves, have one of these classes."""
    found = np.zeros(len(snapshot.uuids), dtype=np.bool_)
    for name in names & snapshot.classes.keys():
        rows = snapshot.classes[name].rows
        found[snapshot.root[rows] if nested else rows] = True
    return found


def _usable(snapshot: Snapshot, names: AbstractSet[str], *, nested: bool = True) -> Bools:
    """[P] roots in whose tree, or if not `nested` which themselves, can give some of a class."""
    found = np.zeros(len(snapshot.uuids), dtype=np.bool_)
    for name in names & snapshot.classes.keys():
        columns = snapshot.classes[name]
        rows = columns.rows[columns.capacity >= np.maximum(columns.min_unit, 1)]
        found[snapshot.root[rows] if nested else rows] = True
    return found
