"""Write allocations: whole sets per consumer, all or nothing, and reshape providers with them.

Every write is one changeset. What a consumer had before does not count against what replaces
it; capacity is judged in the commit, over the whole of each booking's period.
"""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, Final

from moorage.domain.changes import (
    Changeset,
    DeleteAllocations,
    PutInventories,
    ReplaceAllocations,
)
from moorage.domain.errors import (
    ConcurrentUpdate,
    ConsumerConflict,
    MoorageError,
    ProviderConflict,
)
from moorage.domain.virtual_classes import declared_terms
from moorage.usecases.claims.departed_servers import commit_with_returns
from moorage.usecases.claims.presented import repeated_write, take_place
from moorage.usecases.claims.server_stay import Lifetimes, preemptible_write, with_declared_stay
from moorage.usecases.leases.placement_draw import is_retryable, take_places
from moorage.usecases.leases.placement_reservation import leases_of_classes
from moorage.usecases.ledger import withdrawal

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from moorage.domain.changes import Change, Committed
    from moorage.domain.virtual_classes import DeclaredTerms
    from moorage.usecases.ports import Ids, Store

ATTEMPTS: Final = 10
"""How often a write that names no generation is tried when providers move under it."""

FOR_EVER: Final = Lifetimes()
_PREEMPTIBLE: Final = attrgetter("stay.preemptible")


def allocate(
    store: Store,
    writes: Iterable[ReplaceAllocations],
    *,
    ids: Ids,
    lifetimes: Lifetimes = FOR_EVER,
    request_id: str | None = None,
) -> Committed:
    """Replace the allocations of some consumers together.

    The caller relied on no provider's generation, so losing a race for one is ours to try again.
    By virtual classes a write may say its terms, or take a place of a lease. With the
    `request_id` of a claim, one of the writes may take the claim's place; where none can, it is a
    write like any other. One that has taken it before, and is repeated as it was, has done so.

    Raises:
        ConsumerConflict: a consumer is not at the generation its write expects.
        CapacityExceeded, ConstraintViolated: some amount does not fit.
        UnknownName: no such provider or resource class.
        WrongState: a lease has no place for a write that would take one.
        ProviderConflict, ConcurrentUpdate: others kept winning.
    """
    changes = tuple(writes)
    if len(changes) > 1:
        # What one consumer gives up another may get as it was; whoever gives up goes first.
        changes = tuple(sorted(changes, key=lambda one: bool(one.allocations)))
    wishes = [declared_terms(one.allocations.values()) for one in changes]
    if any(wishes) or lifetimes.bounded:
        changes = tuple(
            map(lambda one, wish: with_declared_stay(one, wish, lifetimes), changes, wishes)
        )
        if any(wish is not None and wish.reservations for wish in wishes):
            drawn = _draw(store, ids, changes, wishes)
            if drawn is not None:
                return drawn
    try:
        taken = take_place(store, request_id, changes)
        if taken is not None:
            return taken
        if any(map(_PREEMPTIBLE, changes)):
            return _make_way(store, changes, lifetimes)
        return _commit_with_retries(store, Changeset(changes))
    except ConsumerConflict:
        before = repeated_write(store, request_id, changes)
        if before is None:
            raise
        return before


def release(store: Store, consumer: str) -> Committed:
    """Drop a consumer's allocations. A place that a lease gave it is the lease's again.

    Raises:
        NotFound: it has none.
    """
    return _commit_with_retries(store, Changeset((DeleteAllocations(consumer),)))


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
    # Who is reshaped stays where it is, though on other providers.
    return withdrawal.commit_with_withdrawal(
        store, Changeset((*interim, *writes, *final), lets_go=True)
    )


def _draw(
    store: Store,
    ids: Ids,
    changes: tuple[ReplaceAllocations, ...],
    wishes: Sequence[DeclaredTerms | None],
) -> Committed | None:
    """Let writes take places of leases; None where the classes are of no lease."""
    asked = [
        {}
        if wish is None
        else {name: wish.reservations[name] for name in leases_of_classes(store, wish.reservations)}
        for wish in wishes
    ]
    if not any(asked):
        return None
    late: MoorageError | None = None
    for changeset in take_places(store, ids, changes, asked):
        try:
            return commit_with_returns(store, changeset)
        except MoorageError as error:
            if not is_retryable(error):
                raise
            late = error
    raise ConcurrentUpdate("places of the lease kept being taken", subject="lease") from late


def _make_way(
    store: Store, changes: tuple[ReplaceAllocations, ...], lifetimes: Lifetimes
) -> Committed:
    """Write with preemptible ones among them: each ends in time for the lease that needs it."""
    for _ in range(ATTEMPTS):
        keepers = store.keepers()
        snapshot = store.snapshot()
        made: list[Change] = []
        relies_on: dict[str, int] = {}
        for one in changes:
            if one.stay.preemptible and one.allocations:
                way = preemptible_write(store, snapshot, one, lifetimes.notice, keepers.ensembles)
                made += way.changes
                relies_on |= way.relies_on
            else:
                made.append(one)
        try:
            return commit_with_returns(
                store,
                Changeset(tuple(made), relies_on=relies_on, keepers_revision=keepers.revision),
            )
        except ProviderConflict:
            continue
    return commit_with_returns(store, Changeset(changes))


def _commit_with_retries(store: Store, changeset: Changeset) -> Committed:
    for _ in range(ATTEMPTS - 1):
        try:
            return commit_with_returns(store, changeset)
        except ProviderConflict:
            continue
    return commit_with_returns(store, changeset)
