"""Servers that Nova moves, and the consumers that have their allocations meanwhile.

Nova begins a move by one write of two consumers: the server gets nothing, and a new consumer, the
migration, all that the server had. The ledger then has it on record whose migration that is. A
revert is the same write the other way round, between a migration and its own server. Every other
write of several consumers is what it would be in as many writes.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from moorage.domain.resources import total
from moorage.usecases.decide.member_places import bookings_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from moorage.domain.bookings import Booking
    from moorage.domain.changes import Committed, ReplaceAllocations
    from moorage.domain.resources import Amounts
    from moorage.engine.state.snapshot import Snapshot
    from moorage.usecases.ports import Store
    from moorage.usecases.shared.allocation_write import AllocationWrite, Rest

_TWO: Final = 2


def pair_migration(asked: AllocationWrite, rest: Rest) -> Committed:
    """Write with the consumer named whom another one takes over, if a move begins or ends."""
    return rest(replace(asked, writes=with_migration(asked.store, asked.writes)))


def with_migration(
    store: Store, writes: tuple[ReplaceAllocations, ...]
) -> tuple[ReplaceAllocations, ...]:
    """The writes, those that remove first; one says whom it takes over, if a move begins or ends.

    A consumer that has allocations, or is the server of a member, is no migration.
    """
    writes = tuple(sorted(writes, key=lambda one: bool(one.allocations)))
    if len(writes) != _TWO or writes[0].allocations or not writes[1].allocations:
        return writes
    gives, takes = writes
    giver, taker = gives.consumer.uuid, takes.consumer.uuid
    found = store.consumer(giver)
    if found is None or _amounts(found[1]) != takes.allocations:
        return writes
    takes = replace(takes, takes_over=giver)
    if found[0].migration_of == taker:
        return gives, takes
    if store.consumer(taker) is not None or store.ensembles_of_server(taker):
        return writes
    return gives, replace(takes, consumer=replace(takes.consumer, migration_of=giver))


def _amounts(bookings: Sequence[Booking]) -> dict[str, Amounts]:
    providers = {one.provider for one in bookings}
    return {uuid: total(b.amounts for b in bookings if b.provider == uuid) for uuid in providers}


def hosts_before(snapshot: Snapshot, write: ReplaceAllocations) -> frozenset[int]:
    """Rows of the hosts that the write's consumer has already, or takes over."""
    return frozenset(
        int(snapshot.root[snapshot.row_of[booking.provider]])
        for consumer in (write.consumer.uuid, write.takes_over)
        if consumer is not None
        for booking in bookings_of(snapshot, consumer)
    )
