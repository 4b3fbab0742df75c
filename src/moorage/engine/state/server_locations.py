"""Where server providers are: on the host on which the server that offers them has its place.

No column says so. A server provider follows its server because it is looked up by the server's
allocations: no write is needed when the server moves, and none can be forgotten.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, TypeAlias

from moorage.domain.bookings import BookingState
from moorage.domain.providers import SHARING_TRAIT

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import numpy as np
    from numpy.typing import NDArray

    from moorage.domain.period import Instant
    from moorage.engine.state.chunks import Chunks
    from moorage.engine.state.columns import ProviderState
    from moorage.engine.state.ledger_columns import LedgerColumns

    Rows: TypeAlias = NDArray[np.int32]

NOWHERE: Final = -1


@dataclass(frozen=True, eq=False)
class ServerLocations:
    """Where all server providers of a fleet are, as long as nothing is booked or ends."""

    hosts: Rows
    """[P]; see `hosts_of_rows`."""
    on_host: Mapping[int, tuple[int, ...]]
    """Row of a host -> rows of the server providers that are there; only hosts with some."""
    states: Chunks[ProviderState | None]
    since: Instant
    until: Instant

    @classmethod
    def of(cls, snapshot: LedgerColumns) -> ServerLocations:
        """Look them up."""
        hosts = hosts_of_rows(snapshot)
        on_host: dict[int, tuple[int, ...]] = {}
        for row in sorted(snapshot.offered_by):
            if hosts[row] != NOWHERE:
                on_host[int(hosts[row])] = (*on_host.get(int(hosts[row]), ()), row)
        until = snapshot.valid_until
        return cls(hosts, MappingProxyType(on_host), snapshot.states, snapshot.taken_at, until)

    def hold_in(self, snapshot: LedgerColumns) -> bool:
        """Whether a snapshot has the same."""
        return self.states is snapshot.states and self.since <= snapshot.taken_at < self.until


def hosts_of_rows(snapshot: LedgerColumns) -> Rows:
    """The host of each provider: its root, or where the server is that offers it.

    Returns:
        [P] rows of root providers that no server offers; `NOWHERE` for server providers of servers
        without a place.
    """
    if not snapshot.offered_by:
        return snapshot.root
    found = snapshot.root.copy()
    for row in snapshot.offered_by:
        found[row] = host_of(snapshot, row)
    return found


def host_of(snapshot: LedgerColumns, row: int) -> int:
    """The host of one provider, as a row, or `NOWHERE`."""
    server = snapshot.offered_by.get(row)
    return int(snapshot.root[row]) if server is None else host_of_server(snapshot, server)


def host_of_server(snapshot: LedgerColumns, server: str) -> int:
    """The one host on which a consumer has allocations now, or `NOWHERE`.

    Providers that share with others are no hosts. A consumer with nothing but slices is where those
    are. One with allocations on two hosts is nowhere, as is one that stands only on itself.
    """
    hosts: set[int] = set()
    seen, waiting = {server}, [server]
    while waiting:
        rows = _allocated(snapshot, waiting.pop())
        offered = {row: snapshot.offered_by[row] for row in rows if row in snapshot.offered_by}
        own = {int(snapshot.root[row]) for row in rows if row not in offered}
        if own or not offered:
            hosts |= own or {NOWHERE}
            continue
        fresh = set(offered.values()) - seen
        seen |= fresh
        waiting += fresh
    return hosts.pop() if len(hosts) == 1 else NOWHERE


def usable_servers(snapshot: LedgerColumns, project_id: str) -> Iterator[int]:
    """Rows of the server providers on which a project may place slices, ascending."""
    for row in sorted(snapshot.offered_by):
        open_to = snapshot.state(row).provider.open_to
        if open_to is None or project_id in open_to:
            yield row


def _allocated(snapshot: LedgerColumns, server: str) -> list[int]:
    """Rows on which a consumer has allocations now; none of providers that share with others."""
    sharing = snapshot.traits.get(SHARING_TRAIT)
    now = snapshot.taken_at
    return [
        row
        for row in snapshot.rows_of_consumer(server)
        if (sharing is None or not sharing[row])
        and any(
            one.consumer == server
            and one.state is BookingState.ALLOCATED
            and one.period.start <= now
            and one.live(now)
            for one in snapshot.state(row).bookings
        )
    ]
