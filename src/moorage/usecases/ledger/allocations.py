"""Write allocations: whole sets per consumer, all or nothing, also together with inventories.

Every write is one changeset. A consumer's previous allocations do not count against the ones that
replace them; the commit checks capacity over each booking's whole period.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from operator import attrgetter
from typing import TYPE_CHECKING, Final

from moorage.domain.changes import (
    Changeset,
    DeleteAllocations,
    PutInventories,
    ReplaceAllocations,
)
from moorage.domain.ensembles import OnViolation
from moorage.domain.errors import (
    ConcurrentUpdate,
    ConsumerConflict,
    DuplicateName,
    MoorageError,
    ProviderConflict,
)
from moorage.domain.virtual_classes import declared_terms
from moorage.usecases.claims.place_returns import commit_with_returns
from moorage.usecases.claims.presented import (
    names_claim,
    presented_claim,
    repeated_write,
    spent_claim_notice,
    take_place,
)
from moorage.usecases.claims.stay_terms import Lifetimes, ending_in_time, with_declared_stay
from moorage.usecases.ledger import withdrawal
from moorage.usecases.ledger.exclusive_hosts import check_exclusive_hosts
from moorage.usecases.ledger.member_moves import check_moves
from moorage.usecases.ledger.server_moves import with_migration
from moorage.usecases.tickets.allocations import is_retryable, redeemed, take_places
from moorage.usecases.tickets.places import check_stock, is_ticket

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from moorage.domain.changes import Change, Committed
    from moorage.domain.period import Duration
    from moorage.domain.resources import ResourceClass
    from moorage.domain.virtual_classes import DeclaredTerms
    from moorage.usecases.ports import Ids, Store

ATTEMPTS: Final = 10
"""How often a write without provider generations is tried if providers change concurrently."""


@dataclass(frozen=True, slots=True)
class WriteRules:
    """By what settings writes of allocations are judged."""

    lifetimes: Lifetimes = field(default_factory=Lifetimes)
    """Default lifetimes of consumers without a declared end."""
    refuse_spent: bool = False
    """Whether a new server is refused that presents a claim which is over."""
    misplaced_members: OnViolation = OnViolation.REFUSE
    """What becomes of a member's move that breaks required policies."""
    foreign_servers: OnViolation = OnViolation.REPORT
    """What becomes of a server on a host that an `exclusive` policy keeps from it."""


DEFAULTS: Final = WriteRules()
_PREEMPTIBLE: Final = attrgetter("stay.preemptible")


def allocate(
    store: Store,
    writes: Iterable[ReplaceAllocations],
    *,
    ids: Ids,
    rules: WriteRules = DEFAULTS,
    request_id: str | None = None,
) -> Committed:
    """Replace the allocations of one or more consumers together.

    The caller names no provider generation, so a conflict on one is retried here. Virtual resource
    classes in a write declare its terms, or take a place of a lease or of a held decision. With the
    `request_id` of a claim, one of the writes takes the claim's place, if it can; else it is
    written like any other, and the owner of a claim that is over is told, or the write is refused
    (`rules`). A repeated write whose place was taken before returns the first result.

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
    lifetimes = rules.lifetimes
    if not names_claim(store, request_id):
        request_id = None
    if len(changes) > 1:
        changes = with_migration(store, changes)
    declarations = [declared_terms(one.allocations.values()) for one in changes]
    if any(declarations) or lifetimes.bounded:
        changes = tuple(
            map(
                lambda one, declared: with_declared_stay(one, declared, lifetimes),
                changes,
                declarations,
            )
        )
        if any(declared is not None and declared.tickets for declared in declarations):
            taken, changes = _by_ticket(
                store, ids, changes, declarations, request_id, lifetimes.notice
            )
            if taken is not None:
                return taken
    try:
        taken = take_place(store, request_id, changes, lifetimes.notice)
        if taken is not None:
            return taken
        told = spent_claim_notice(store, request_id, changes, refuse=rules.refuse_spent)
        return _commit_writes(store, changes, told, rules)
    except ConsumerConflict:
        before = repeated_write(store, request_id, changes)
        if before is None:
            raise
        return before


def release(store: Store, consumer: str) -> Committed:
    """Delete a consumer's allocations; a lease's place becomes unclaimed again.

    Raises:
        NotFound: the consumer has no allocations.
    """
    return _commit_with_retries(store, Changeset((DeleteAllocations(consumer),)))


def reshape(
    store: Store,
    inventories: Sequence[PutInventories],
    writes: Iterable[ReplaceAllocations],
    *,
    rules: WriteRules = DEFAULTS,
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
    for attempt in range(ATTEMPTS):
        revision, judged = _judged(store, changes, rules, afresh=attempt > 0)
        # As a rule a reshape moves consumers to other providers of the same host.
        changeset = Changeset(
            (*interim, *changes, *final, *judged),
            exclusive_revision=revision,
            releases_places=True,
        )
        try:
            return withdrawal.commit_with_withdrawal(store, changeset)
        except (ConsumerConflict, ProviderConflict):
            raise  # the caller named these generations
        except ConcurrentUpdate:
            if attempt == ATTEMPTS - 1:
                raise
    raise AssertionError("the last attempt returns or raises")


def _by_ticket(
    store: Store,
    ids: Ids,
    changes: tuple[ReplaceAllocations, ...],
    declarations: Sequence[DeclaredTerms | None],
    request_id: str | None,
    notice: Duration,
) -> tuple[Committed | None, tuple[ReplaceAllocations, ...]]:
    """The commit in which writes take places by their classes; None with the writes without them.

    A server that is a member of another ensemble is written like any other, as with a presented
    claim.
    """
    presents = presented_claim(store, request_id) is not None
    redeemable, tickets = redeemed(store, changes, declarations, presents=presents)
    if not any(tickets):
        return None, redeemable
    try:
        return _take_places(store, ids, redeemable, tickets, notice), redeemable
    except DuplicateName:
        if not all(is_ticket(name) for units in tickets for name in units):
            raise
        return None, redeemed(store, changes, declarations, presents=True)[0]


def _take_places(
    store: Store,
    ids: Ids,
    changes: Sequence[ReplaceAllocations],
    tickets: Sequence[Mapping[ResourceClass, int]],
    notice: Duration,
) -> Committed:
    """Commit writes of which some take places by the class of a ticket or reservation."""
    conflict: MoorageError | None = None
    for changeset in take_places(store, ids, changes, tickets):
        try:
            return commit_with_returns(store, ending_in_time(store, changeset, notice))
        except MoorageError as error:
            if not is_retryable(error):
                raise
            conflict = error
    raise ConcurrentUpdate(
        "other servers kept taking these places; retry", subject="ensemble"
    ) from conflict


def _commit_writes(
    store: Store,
    writes: tuple[ReplaceAllocations, ...],
    told: Sequence[Change],
    rules: WriteRules,
) -> Committed:
    """Write allocations; preemptible servers end in time for leases that need their hosts.

    `told` are further changes in the same commit.

    Raises:
        WrongState: a host is exclusive to others, or a member would break required policies.
    """
    notice = rules.lifetimes.notice
    for attempt in range(ATTEMPTS):
        revision, judged = _judged(store, writes, rules, afresh=attempt > 0)
        changeset = Changeset((*writes, *told, *judged), exclusive_revision=revision)
        if any(map(_PREEMPTIBLE, writes)):
            changeset = ending_in_time(store, changeset, notice)
        try:
            return commit_with_returns(store, changeset)
        except ConsumerConflict:
            raise
        except ConcurrentUpdate:
            if attempt == ATTEMPTS - 1:
                raise
    raise AssertionError("the last attempt returns or raises")


def _judged(
    store: Store, writes: tuple[ReplaceAllocations, ...], rules: WriteRules, *, afresh: bool
) -> tuple[int | None, tuple[Change, ...]]:
    """Judge the hosts that consumers enter: whose they are, and whether policies are broken there.

    With `afresh`, after a conflict, what this process knows of exclusive hosts is read anew.

    Returns:
        The revision of the exclusive ensembles on which the commit relies, or None; and changes to
        commit with the writes.

    Raises:
        WrongState: a host is exclusive to others, or a member would break required policies.
    """
    revision, kept = check_exclusive_hosts(
        store, writes, rules.lifetimes.notice, rules.foreign_servers, afresh=afresh
    )
    return revision, (*kept, *check_moves(store, writes, rules.misplaced_members))


def _commit_with_retries(store: Store, changeset: Changeset) -> Committed:
    for _ in range(ATTEMPTS - 1):
        try:
            return commit_with_returns(store, changeset)
        except ProviderConflict:
            continue
    return commit_with_returns(store, changeset)
