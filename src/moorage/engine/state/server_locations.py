"""Where server providers are: on the host on which the server that offers them has its place.

No column says so. A server provider follows its server because it is looked up by the server's
allocations: no write is needed when the server moves, and none can be forgotten.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

from moorage.domain.bookings import BookingState
from moorage.engine.state.sharing import SHARING_TRAIT

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from moorage.engine.state.snapshot import Snapshot

    Rows: TypeAlias = NDArray[np.int32]

NOWHERE: Final = -1


def hosts_of_rows(snapshot: Snapshot) -> Rows:
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


def host_of(snapshot: Snapshot, row: int) -> int:
    """The host of one provider, as a row, or `NOWHERE`."""
    server = snapshot.offered_by.get(row)
    return int(snapshot.root[row]) if server is None else host_of_server(snapshot, server)


def host_of_server(snapshot: Snapshot, server: str) -> int:
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


def _allocated(snapshot: Snapshot, server: str) -> list[int]:
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
