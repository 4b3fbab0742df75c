"""Write allocations: whole sets per consumer, all or nothing, and reshape providers with them.

Every write is one changeset. What a consumer had before does not count against what replaces
it; capacity is judged in the commit, over the whole of each booking's period.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from moorage.domain.changes import (
    Changeset,
    DeleteAllocations,
    PutInventories,
    ReplaceAllocations,
)
from moorage.domain.errors import ProviderConflict
from moorage.usecases.presented import take_place

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from moorage.domain.changes import Change, Committed
    from moorage.usecases.ports import Store

ATTEMPTS: Final = 10
"""How often a write that names no generation is tried when providers move under it."""


def allocate(
    store: Store, writes: Iterable[ReplaceAllocations], *, request_id: str | None = None
) -> Committed:
    """Replace the allocations of some consumers together.

    The caller relied on no provider's generation, so losing a race for one is ours to try again.
    With the `request_id` of a claim, one of the writes may take the claim's place; where none can,
    it is a write like any other.

    Raises:
        ConsumerConflict: a consumer is not at the generation its write expects.
        CapacityExceeded, ConstraintViolated: some amount does not fit.
        UnknownName: no such provider or resource class.
        ProviderConflict: others kept winning.
    """
    changes = tuple(writes)
    taken = take_place(store, request_id, changes)
    return taken or _commit_stubbornly(store, Changeset(changes))


def release(store: Store, consumer: str) -> Committed:
    """Drop a consumer's allocations.

    Raises:
        NotFound: it has none.
    """
    return _commit_stubbornly(store, Changeset((DeleteAllocations(consumer),)))


def reshape(
    store: Store, inventories: Sequence[PutInventories], writes: Iterable[ReplaceAllocations]
) -> Committed:
    """Give providers new inventories and consumers new allocations as one step.

    In between, each provider has its old classes and its new ones, so allocations can move from
    those to these. `inventories` are whole contents with the generations they rely on. Only the
    end is judged: a class dropped while allocated is refused, as is what does not fit.

    Raises:
        ProviderConflict, ConsumerConflict, InventoryInUse, CapacityExceeded,
        ConstraintViolated, UnknownName, NotFound.
    """
    interim: list[Change] = []
    final: list[Change] = []
    for put in inventories:
        if put.inventories:
            interim.append(PutInventories(put.provider, put.inventories, put.generation))
        checked = None if put.inventories else put.generation
        final.append(PutInventories(put.provider, put.inventories, checked, replace_all=True))
    return store.commit(Changeset((*interim, *writes, *final)))


def _commit_stubbornly(store: Store, changeset: Changeset) -> Committed:
    for _ in range(ATTEMPTS - 1):
        try:
            return store.commit(changeset)
        except ProviderConflict:
            continue
    return store.commit(changeset)
