"""The immutable snapshot of the ledger at one revision, as columns.

Memory grows with the number of inventories, not providers x classes: every resource class has
columns over only the providers that have it. A new revision (`with_states`) shares every unchanged
column with the old one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

from moorage.domain.errors import NotFound
from moorage.domain.period import FOREVER, Period
from moorage.domain.topology import EMPTY, SERVER
from moorage.engine.state.chunks import Chunks
from moorage.engine.state.columns import ClassColumns, ProviderState, inventory_loads
from moorage.engine.state.domains import domains_at
from moorage.engine.state.ledger_columns import LedgerColumns
from moorage.engine.state.provider_trees import Forest, Grouping
from moorage.engine.state.revision import RevisionBuilder
from moorage.engine.state.server_locations import ServerLocations
from moorage.engine.time.occupancy import Spans, peaks

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from numpy.typing import NDArray

    from moorage.domain.bookings import Booking
    from moorage.domain.period import Instant
    from moorage.domain.placement import Occupant
    from moorage.domain.providers import Inventory
    from moorage.domain.request_mix import StatedMix
    from moorage.domain.topology import Level, Topology
    from moorage.engine.state.arrivals import AddedBookings
    from moorage.engine.state.domains import Domains
    from moorage.engine.state.owners import Forbids

    Ints: TypeAlias = NDArray[np.int64]
    Rows: TypeAlias = NDArray[np.int32]
    Bools: TypeAlias = NDArray[np.bool_]

__all__ = ["ALL_TIME", "ClassColumns", "ProviderState", "Snapshot"]

ALL_TIME: Final = Period(0)
"""The period that contains every instant."""


@dataclass(frozen=True, eq=False)
class Snapshot(LedgerColumns):
    """The ledger at one revision: lookups, and the next revision (`with_states`)."""

    @classmethod
    def empty(cls, *, now: Instant = 0) -> Snapshot:
        """A fleet without providers, at revision 0."""
        ints, rows = np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int32)
        nothing: Mapping[str, int] = MappingProxyType({})
        return cls(
            revision=0,
            topology_revision=0,
            exclusive_revision=0,
            waited=False,
            taken_at=now,
            valid_until=FOREVER,
            uuids=(),
            names=(),
            row_of=nothing,
            parent=rows,
            root=rows,
            alive=np.zeros(0, dtype=np.bool_),
            generation=ints,
            revisions=ints,
            created_at=ints,
            updated_at=ints,
            classes=MappingProxyType({}),
            traits=MappingProxyType({}),
            aggregates=MappingProxyType({}),
            topology=EMPTY,
            states=Chunks(),
            next_change=ints,
            preemptible=np.zeros(0, dtype=np.bool_),
        )

    # --- the next snapshot ----------------------------------------------------------------

    def with_states(
        self,
        states: Iterable[ProviderState | AddedBookings] = (),
        *,
        removed: Iterable[str] = (),
        revision: int | None = None,
        topology: Topology | None = None,
        topology_revision: int | None = None,
        now: Instant | None = None,
    ) -> Snapshot:
        """The snapshot after these providers were added, changed or removed (by UUID).

        Every provider whose parent or root changed must be among `states`, and every parent
        named must be known or among them. For a known provider to which only bookings were added,
        `AddedBookings` gives the same result faster.
        """
        at = self.taken_at if now is None else now
        fields = RevisionBuilder(self, states, removed, at).fields()
        fields["taken_at"] = at
        if revision is not None:
            fields["revision"] = revision
        if topology is not None:
            fields |= {"topology": topology, "cache": {}}
        if topology_revision is not None:
            fields["topology_revision"] = topology_revision
        return self._with(fields)

    def with_ledger_state(self, *, exclusive_revision: int | None, waited: bool) -> Snapshot:
        """The snapshot with what the log says of the ledger as a whole; None: as it was."""
        fields: dict[str, object] = {"waited": waited}
        if exclusive_revision is not None:
            fields["exclusive_revision"] = exclusive_revision
        return self._with(fields)

    def with_stated_mix(self, mix: StatedMix | None) -> Snapshot:
        """The snapshot where an operator has stated this mix, or none."""
        return self._with({"stated_mix": mix})

    def at(self, now: Instant) -> Snapshot:
        """The snapshot at another instant: with the lapses, starts and ends up to `now`."""
        if not self.taken_at <= now < self.valid_until:
            return self.with_states(now=now)
        return self._with({"taken_at": now})

    def _with(self, fields: Mapping[str, object]) -> Snapshot:
        # Called at every request; `dataclasses.replace` would read all fields.
        seen = object.__new__(Snapshot)
        seen.__dict__.update(self.__dict__, **fields)
        return seen

    # --- looking up -------------------------------------------------------------------------

    def row(self, uuid: str) -> int:
        """The row of a provider.

        Raises:
            NotFound: there is no such provider.
        """
        try:
            return self.row_of[uuid]
        except KeyError:
            raise NotFound("resource provider", uuid) from None

    def traits_of(self, row: int) -> frozenset[str]:
        """The traits of a living row."""
        return self.state(row).provider.traits

    def inventories_of(self, row: int) -> tuple[Inventory, ...]:
        """The inventories of a living row."""
        return self.state(row).provider.inventories

    def aggregates_of(self, row: int) -> frozenset[str]:
        """The aggregate UUIDs of a living row."""
        return self.state(row).provider.aggregates

    def bookings_of(self, row: int) -> tuple[Booking, ...]:
        """The live bookings on a living row, of every state."""
        return tuple(one for one in self.state(row).bookings if one.live(self.taken_at))

    @property
    def roots(self) -> Rows:
        """Rows of living root providers, ascending."""
        found = self.cache.get("roots")
        if not isinstance(found, np.ndarray):
            found = np.flatnonzero(self.alive & (self.parent < 0)).astype(np.int32)
            found.setflags(write=False)  # it is many snapshots'
            self.cache["roots"] = found
        return found

    @property
    def fleet(self) -> Bools:
        """[P] living providers that no server offers."""
        found = self.alive.copy()
        found[list(self.offered_by)] = False
        return found

    @property
    def hosts(self) -> Rows:
        """Rows of living root providers that no server offers, ascending."""
        return np.flatnonzero(self.fleet & (self.parent < 0)).astype(np.int32)

    @property
    def locations(self) -> ServerLocations:
        """The location of every provider now: its root, or the host of the server that offers it.

        Where something stands, traits, aggregates, domains and state are those of its location; a
        provider's own traits are those of what it gives.
        """
        kept = self.cache.get("locations")
        if not isinstance(kept, ServerLocations) or not kept.hold_in(self):
            kept = self.cache["locations"] = ServerLocations.of(self)
        return kept

    @property
    def forest(self) -> Forest:
        """All provider trees as columns."""
        found = self.cache.get("forest")
        if not isinstance(found, Forest):
            found = self.cache["forest"] = Forest.of(self.parent, self.root, self.alive)
        return found

    @property
    def trees(self) -> Grouping:
        """Living rows by the root of their tree."""
        return self.forest.trees

    @property
    def parent_position(self) -> Rows:
        """[P] position of the parent among the rows of its tree, or -1."""
        return self.forest.parent_position

    def children(self, row: int) -> Rows:
        """Rows of the direct children, ascending."""
        return self.forest.children.rows_of(row)

    def tree(self, root_row: int) -> Rows:
        """Rows of the tree of a root, including the root, ascending."""
        return self.forest.trees.rows_of(root_row)

    def at_host(self, root_row: int) -> list[int]:
        """Rows of the tree of a root, and of what servers there offer."""
        return [*self.tree(root_row).tolist(), *self.locations.on_host.get(root_row, ())]

    def located(self, hosts: Bools) -> Bools:
        """[P] providers whose location is one of these [P] hosts; see `locations`."""
        at = self.locations.hosts
        return (at >= 0) & hosts[at]

    def occupants(self, root_row: int, period: Period = ALL_TIME) -> tuple[Occupant, ...]:
        """Occupants with a live booking in the tree within `period`, each once.

        With those of the slices on its servers. An overrun booking counts in every period.
        """
        found: dict[str, Occupant] = {}
        for row in self.at_host(root_row):
            live = self.consumers_in(row, period)
            for occupant in self.state(row).occupants:
                if occupant.consumer in live:
                    found[occupant.consumer] = occupant
        return tuple(found.values())

    def consumers_in(self, row: int, period: Period) -> set[str]:
        """Consumers with a live booking on a living row within `period`."""
        now = self.taken_at
        return {
            one.consumer
            for one in self.state(row).bookings
            if one.live(now)
            and one.period.start < period.end
            and one.occupies_until(now) > period.start
        }

    def roots_with(
        self, forbids: Forbids, period: Period, *, without: frozenset[str] = frozenset()
    ) -> Bools:
        """[P] roots in whose tree an occupant of `period` is forbidden, without those in `without`.

        And hosts of such server providers. The period begins now or later.
        """
        rows, unsure = self.owners.rows_with(self.states, forbids, period)
        mine = [row for consumer in without for row in self.rows_of_consumer(consumer)]
        unsure[mine] = rows[mine]
        found, doubtful = np.zeros_like(rows), np.zeros_like(rows)
        found[self.root[rows & ~unsure]] = True
        doubtful[self.root[unsure]] = True
        for root in np.flatnonzero(doubtful & ~found).tolist():
            found[root] = any(
                one.consumer not in without and forbids(one) for one in self.occupants(root, period)
            )
        if self.offered_by:
            servers = np.array(list(self.offered_by))
            hosts = self.locations.hosts[servers[found[servers]]]
            found[hosts[hosts >= 0]] = True
        return found

    def domains(self, level: Level) -> Rows:
        """[P] the number of each provider's domain at `level`, or -1.

        At the level `host` the row of its host, at `server` that of the server provider itself.
        """
        if level.name == SERVER:
            found = np.full(len(self.uuids), -1, dtype=np.int32)
            servers = list(self.offered_by)
            found[servers] = servers
            return found
        numbers = self._domains(level).numbers
        if not self.offered_by:
            return numbers
        hosts = self.locations.hosts
        return np.where(hosts >= 0, numbers[hosts], -1)

    def domains_of_hosts(self, level: Level) -> Rows:
        """[P] the same but for server providers, so that nobody asks where these are."""
        return self._domains(level).numbers

    def domain_names(self, level: Level) -> tuple[str, ...]:
        """Domain number -> name; at the levels `host` and `server` the root provider's name."""
        return self.names if level.name == SERVER else self._domains(level).names

    def peak_over(
        self, resource_class: str, period: Period, *, without: frozenset[str] = frozenset()
    ) -> Ints:
        """The highest occupancy of each inventory of a class at any instant of `period`.

        Some provider has the class. Bookings that have ended at this snapshot's instant do not
        count, nor do those of the consumers in `without`.

        Returns:
            [n] in the order of `classes[resource_class].rows`.
        """
        columns = self.classes[resource_class]
        found = columns.peak_over(period)
        touched = {row for consumer in without for row in self.rows_of_consumer(consumer)}
        positions = [
            (row, int(columns.position[row]))
            for row in sorted(touched)
            if columns.position[row] >= 0
        ]
        if not positions:
            return found
        found = found.copy()
        for row, position in positions:
            state = self.state(row)
            rest = tuple(one for one in state.bookings if one.consumer not in without)
            load = inventory_loads(replace(state, bookings=rest), self.taken_at)[0][resource_class][
                1
            ]
            timed = Spans.of((0, *span) for span in load.timed)
            found[position] = load.base + int(peaks(timed, 1, period)[0])
        return found

    # --- derived once -----------------------------------------------------------------------

    def _domains(self, level: Level) -> Domains:
        found = self.cache.get(level)
        if found is None:
            found = self.cache[level] = domains_at(
                self.topology, level, names=self.names, root=self.root, alive=self.alive
            )
        return found  # type: ignore[return-value]  # only Domains are kept under a level
