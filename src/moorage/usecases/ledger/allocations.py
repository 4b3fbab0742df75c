"""Write allocations: whole sets per consumer, all or nothing, also together with inventories.

Every write is one changeset. A consumer's previous allocations do not count against the ones that
replace them; the commit checks capacity over each booking's whole period. What makes some writes
special is said by `allocation_rules`, one after the other; a write that concerns none is committed
as it is.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
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
    PlaceLeft,
    ProviderConflict,
    ServerOfMember,
)
from moorage.domain.virtual_classes import declared_terms
from moorage.usecases.claims.place_returns import commit_returning
from moorage.usecases.decide.member_places import bookings_of
from moorage.usecases.ledger.allocation_rules import COMMIT_RULES, WRITE_RULES
from moorage.usecases.ledger.server_moves import with_migration
from moorage.usecases.ledger.withdrawal import commit_with_withdrawal
from moorage.usecases.shared.allocation_write import AllocationWrite, WriteSettings
from moorage.usecases.tickets.places import check_stock

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from moorage.domain.changes import Change, Committed
    from moorage.engine.state.snapshot import Snapshot
    from moorage.usecases.ports import Ids, Store
    from moorage.usecases.shared.allocation_write import WriteRule

ATTEMPTS: Final = 10
"""How often a write without provider generations is tried if providers change concurrently."""
DEFAULTS: Final = WriteSettings()


def allocate(
    store: Store,
    writes: Iterable[ReplaceAllocations],
    *,
    ids: Ids,
    settings: WriteSettings = DEFAULTS,
    request_id: str | None = None,
) -> Committed:
    """Replace the allocations of one or more consumers together.

    The caller names no provider generation, so a conflict on one is retried here. Virtual resource
    classes in a write declare its terms, or take a place of a lease or of a held decision. With the
    `request_id` of a claim, one of the writes takes the claim's place, if it can; else it is
    written like any other, and the owner of a claim that is over is told, or the write is refused
    (`settings`). A repeated write whose place was taken before returns the first result.

    Raises:
        ConsumerConflict: a consumer's generation is not the one its write names.
        CapacityExceeded, ConstraintViolated: an amount does not fit, or violates the inventory's
            units.
        UnknownName: no such provider or resource class.
        WrongState: a lease or held decision has no place for a write that requests one; or it
            presents a claim that is over; or a host is exclusive to others; or a member would
            move to a host on which it breaks required policies.
        ProviderConflict, ConcurrentUpdate: too many conflicting commits.
    """
    changes = tuple(writes)
    virtual = any(declared_terms(one.allocations.values()) for one in changes)
    asked = AllocationWrite(store, ids, settings, changes, virtual, request_id)
    return _by_rules(asked, WRITE_RULES)


def release(store: Store, consumer: str) -> Committed:
    """Delete a consumer's allocations; a lease's place becomes unclaimed again.

    Raises:
        NotFound: the consumer has no allocations.
    """
    changeset = Changeset((DeleteAllocations(consumer),))
    for _ in range(ATTEMPTS - 1):
        try:
            return _commit(store, changeset)
        except ProviderConflict:
            continue
    return _commit(store, changeset)


def reshape(
    store: Store,
    inventories: Sequence[PutInventories],
    writes: Iterable[ReplaceAllocations],
    *,
    ids: Ids,
    settings: WriteSettings = DEFAULTS,
) -> Committed:
    """Replace inventories of providers and allocations of consumers in one transaction.

    During the transaction each provider has its old and its new classes, so that allocations can
    move between them. `inventories` are complete, with the generations they rely on. Only the final
    state is checked: a removed class that is still allocated is refused, as is what does not fit.

    A consumer that enters another host is judged as in `allocate`; one that only changes providers
    of its host is not.

    Raises:
        ProviderConflict, ConsumerConflict, InventoryInUse, CapacityExceeded,
        ConstraintViolated, UnknownName, NotFound.
        InvalidDescription: an inventory is of a virtual class.
        WrongState: a host is exclusive to others, or a member would move to a host on which it
            breaks required policies.
        ConcurrentUpdate: too many conflicting commits.
    """
    for put in inventories:
        check_stock(store, put.inventories)
    interim: list[Change] = []
    final: list[Change] = []
    for put in inventories:
        if put.inventories:
            interim.append(PutInventories(put.provider, put.inventories, put.generation))
        checked = None if put.inventories else put.generation
        final.append(PutInventories(put.provider, put.inventories, checked, replace_all=True))
    changes = tuple(writes)
    if len(changes) > 1:
        changes = with_migration(store, changes)

    def commit(changeset: Changeset) -> Committed:
        whole = replace(changeset, changes=(*interim, *changeset.changes, *final))
        try:
            return commit_with_withdrawal(store, whole)
        except PlaceLeft as error:
            left = [one for one in error.consumers if _leaves_host(store.snapshot(), changes, one)]
        return commit_returning(store, whole, left, commit=commit_with_withdrawal)

    # The caller names generations of providers: a conflict on one is its own.
    return _commit_writes(AllocationWrite(store, ids, settings, changes), commit, ProviderConflict)


def _leaves_host(snapshot: Snapshot, writes: Iterable[ReplaceAllocations], consumer: str) -> bool:
    """Whether a consumer is on none of its hosts after the writes, as a reshape rarely has it."""
    written = (uuid for one in writes if one.consumer.uuid == consumer for uuid in one.allocations)
    rows = [snapshot.row_of[uuid] for uuid in written if uuid in snapshot.row_of]
    had = [snapshot.row_of[one.provider] for one in bookings_of(snapshot, consumer)]
    return set(snapshot.root[rows].tolist()).isdisjoint(snapshot.root[had].tolist())


def _by_rules(asked: AllocationWrite, rules: Sequence[WriteRule]) -> Committed:
    """Apply the rules that concern the writes, then commit them."""
    for number, rule in enumerate(rules, 1):
        if rule.concerns(asked):
            return rule.apply(asked, partial(_by_rules, rules=rules[number:]))
    return _commit_writes(asked, partial(_commit, asked.store))


def _commit_writes(
    asked: AllocationWrite,
    commit: Callable[[Changeset], Committed],
    final: type[ConcurrentUpdate] = ConsumerConflict,
) -> Committed:
    """Judge and commit writes, again where they conflict with others, but for conflicts of `final`.

    Raises:
        WrongState: a host is exclusive to others, or a member would break required policies.
    """
    for attempt in range(ATTEMPTS):
        # What this process knows of exclusive ensembles is read anew after a conflict.
        known = asked.store.snapshot() if attempt else asked.store.last_snapshot()
        changeset = Changeset(
            (*asked.writes, *asked.further),
            exclusive_revision=known.exclusive_revision,
            expects_no_members=True,
        )
        for rule in COMMIT_RULES:
            if rule.concerns(asked, known):
                changeset = rule.apply(asked, changeset)
        try:
            return commit(changeset)
        except (ConsumerConflict, final):
            raise
        except ServerOfMember:
            return _commit_writes(replace(asked, of_member=True), commit, final)
        except ConcurrentUpdate:
            if attempt == ATTEMPTS - 1:
                raise
    raise AssertionError("the last attempt returns or raises")


def _commit(store: Store, changeset: Changeset) -> Committed:
    """Commit; places of leases and decisions that servers leave return to them."""
    try:
        return store.commit(changeset)
    except PlaceLeft as error:
        return commit_returning(store, changeset, error.consumers)
