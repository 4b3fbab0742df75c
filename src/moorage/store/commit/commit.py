"""The one write path: a changeset in one transaction, judged as a whole, or nothing.

Read `APPLY` for what each change does. Then `settle` checks the end state, moves generations and
revisions, forgets consumers that have nothing left, and appends to the change log; `write_events`
writes the events that the changes mean. There is no other way to write (ADR-0023).
"""

from __future__ import annotations

import time
from functools import partial
from itertools import groupby
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import bindparam, delete, exists

from moorage.domain import changes
from moorage.domain.changes import Committed
from moorage.domain.derived_events import TELLING
from moorage.store.changelog.footprint import footprint
from moorage.store.commit.apply import (
    adoption,
    allocations,
    capacity_windows,
    ensembles,
    events,
    fleet,
    holds,
    host_records,
    inventories,
    leases,
    names,
    plans,
    providers,
    quotas,
    records,
    request_mixes,
    reservables,
    server_providers,
    taken_ids,
    violations,
)
from moorage.store.commit.batch import (
    CLASSES,
    PROVIDER,
    TRAITS,
    Batch,
    ChangeBodies,
    doubtful,
)
from moorage.store.commit.inventory_check import (
    answered_state,
    check_inventories,
    prefetch_questions,
    questions,
    state_after,
    state_before,
)
from moorage.store.commit.revisions import check_reliance, generations_of, move
from moorage.store.database.statements import chunks, only_chunk
from moorage.store.schema import tables

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from moorage.domain.changes import Change, Changeset
    from moorage.domain.period import Instant
    from moorage.store.backend import Log
    from moorage.store.commit.batch import Prefetched
    from moorage.store.database.session import Question, Session
    from moorage.usecases.ports import Clock

APPLY: Final[Mapping[type, Callable[[Batch, Any], None]]] = MappingProxyType(
    {
        changes.CreateProvider: providers.create_provider,
        changes.UpdateProvider: providers.update_provider,
        changes.DeleteProvider: providers.delete_provider,
        changes.PutInventories: inventories.put_inventories,
        changes.DeleteInventories: inventories.delete_inventories,
        changes.PutTraits: inventories.put_traits,
        changes.PutAggregates: inventories.put_aggregates,
        changes.CreateResourceClass: names.create_resource_class,
        changes.RenameResourceClass: names.rename_resource_class,
        changes.DeleteResourceClass: names.delete_resource_class,
        changes.CreateTrait: names.create_trait,
        changes.DropOfferedNames: names.drop_offered_names,
        changes.DeleteTrait: names.delete_trait,
        changes.ReplaceAllocations: allocations.replace_allocations,
        changes.DeleteAllocations: allocations.delete_allocations,
        changes.DropBookings: holds.drop_bookings,
        changes.SwapHold: holds.swap_hold,
        changes.TakeHold: holds.take_hold,
        changes.EndBookings: holds.end_bookings,
        changes.BindAllocations: holds.bind_allocations,
        changes.AdoptNames: names.adopt_names,
        changes.AdoptProviders: adoption.adopt_providers,
        changes.AdoptAllocations: adoption.adopt_allocations,
        changes.PutEnsemble: ensembles.put_ensemble,
        changes.ExpectEnsemble: ensembles.expect_ensemble,
        changes.PutViolation: violations.put_violation,
        changes.MarkJudged: violations.mark_judged,
        changes.DeleteEnsemble: ensembles.delete_ensemble,
        changes.PutDecision: ensembles.put_decision,
        changes.BoundHeld: ensembles.bound_held,
        changes.BoundOffers: quotas.bound_offers,
        changes.BoundStored: quotas.bound_stored,
        changes.BoundShareOffers: events.bound_share_offers,
        changes.BoundOfferedNames: server_providers.bound_offered_names,
        changes.ExpectUniqueName: ensembles.expect_unique_name,
        changes.PutClaim: ensembles.put_claim,
        changes.ExpectLease: leases.expect_lease,
        changes.PutLease: leases.put_lease,
        changes.DropEffects: leases.drop_effects,
        changes.PutExplanation: ensembles.put_explanation,
        changes.FinishExplanation: ensembles.finish_explanation,
        changes.PutTemplate: ensembles.put_template,
        changes.DeleteTemplate: ensembles.delete_template,
        changes.PutReservable: reservables.put_reservable,
        changes.DropReservable: reservables.drop_reservable,
        changes.PutSeries: leases.put_series,
        changes.PutQuota: quotas.put_quota,
        changes.DropQuota: quotas.drop_quota,
        changes.PutFlavor: fleet.put_flavor,
        changes.DeleteFlavor: fleet.delete_flavor,
        changes.PutCapacityWindow: capacity_windows.put_window,
        changes.DropCapacityWindow: capacity_windows.drop_window,
        changes.CloseHost: host_records.close_host,
        changes.PutHostService: host_records.put_host_service,
        changes.TellHost: host_records.tell_host,
        changes.PutServerProvider: server_providers.put_server_provider,
        changes.PutTopology: fleet.put_topology,
        changes.PutRequestMix: request_mixes.put_request_mix,
        changes.PutEntry: leases.put_entry,
        changes.PutPlan: plans.put_plan,
        changes.DeletePlan: plans.delete_plan,
        changes.PutEvent: events.put_event,
        changes.TrimEvents: events.trim_events,
        changes.DeleteRecords: records.delete_records,
        changes.PutSubscription: events.put_subscription,
        changes.PassEvents: events.pass_events,
        changes.DeleteSubscription: events.delete_subscription,
        changes.PutDeadLetters: events.put_dead_letters,
        changes.DropDeadLetters: events.drop_dead_letters,
    }
)

TOGETHER: Final[Mapping[type, Callable[[Batch, Any], None]]] = MappingProxyType(
    {
        changes.PutBookings: holds.put_bookings,
        changes.PutEffect: leases.put_effects,
    }
)
"""Changes that are applied together where several follow one another."""

_PURGES: Final = frozenset(
    {changes.PutBookings, changes.DropBookings, changes.PutDecision, changes.PutClaim}
)
"""Changes of holds: a commit with one deletes lapsed holds, too."""

_FORGET = delete(tables.consumers).where(
    tables.consumers.c.uuid.in_(bindparam("consumers", expanding=True)),
    ~exists().where(tables.bookings.c.consumer == tables.consumers.c.uuid),
)


def commit(
    connection: Session,
    changeset: Changeset,
    *,
    log: Log,
    clock: Clock | None = None,
    bodies: ChangeBodies | None = None,
    actor: str | None = None,
) -> Committed:
    """Apply a changeset inside the caller's transaction, which must be rolled back on any error.

    The commit's instant is the database's, or the clock's if one is given. `bodies` are what was
    encoded of the changeset before, `actor` is the stored text of who commits it.

    Raises:
        ProviderConflict: what it relies on has changed; see `check_reliance`.
        ServerOfMember, PlaceLeft: see `Changeset`.
        MoorageError: what its changes raise; see `domain.changes`.
    """
    about_now = time.time_ns() // 1000 if clock is None else clock.now()
    ahead = first_questions(changeset, about_now)
    turn, answers = log.enter(connection, partial(footprint, changeset), ahead)
    # Either clock is read after all waiting: what was overtaken is never the later one.
    now = turn.at if clock is None else clock.now()
    prefetched: Prefetched = {}
    for (statement, given), found in zip(ahead, answers, strict=True):
        prefetched[statement] = given, found
    batch = Batch(connection, now, turn, log.sweep, prefetched, bodies or ChangeBodies(), actor)
    kinds: frozenset[type] = frozenset(map(type, changeset.changes))
    check_reliance(batch, changeset)
    if not kinds.isdisjoint(taken_ids.KINDS):
        taken_ids.note_taken_ids(batch, changeset.changes)
    _apply(batch, changeset.changes)
    if not kinds.isdisjoint(_PURGES):
        batch.purge()
    if changeset.expects_no_members:
        allocations.check_members(batch)
    if not changeset.releases_places:
        allocations.check_places(batch)
    committed = settle(batch, log)
    if not kinds.isdisjoint(TELLING):
        events.write_events(batch, changeset.changes, committed.revision)
    return committed


def _apply(batch: Batch, every: Sequence[Change]) -> None:
    """Apply changes in their order."""
    for kind, some in groupby(every, key=type):
        together = TOGETHER.get(kind)
        if together is not None:
            together(batch, tuple(some))
            continue
        for one in some:
            APPLY[kind](batch, one)


def settle(batch: Batch, log: Log) -> Committed:
    """Judge the end state and finish the books.

    Raises:
        UnknownName: a booking names no provider or no resource class.
        CapacityExceeded, ConstraintViolated, InventoryInUse: see `check_inventories`.
        OfferCycle: see `refuse_cycles`.
    """
    before = state_before(batch)
    moves = move(batch)
    asked = questions(batch) if before is None else []
    answers = batch.connection.ask(*moves, *asked)
    generations = generations_of(batch, answers[: len(moves)])
    end = (
        answered_state(answers[len(moves) :], batch.now)
        if before is None
        else state_after(batch, before)
    )
    check_inventories(batch, end)
    if end.offered:
        server_providers.refuse_cycles(batch, end.offered)
    for some in chunks(batch.vacated):
        batch.connection.do(_FORGET, {"consumers": some})
    revision = log.append(
        batch.connection,
        batch.turn,
        batch.changed_providers(),
        topology_moved=batch.topology_moved,
        actor=batch.actor,
    )
    return Committed(
        revision=revision,
        at=batch.now,
        provider_generations=MappingProxyType(generations),
        consumer_generations=MappingProxyType(batch.consumer_generations),
        created=frozenset(batch.created),
        traits_at=batch.traits_at,
        serials=MappingProxyType(batch.serials),
    )


def commit_alone(
    connection: Session,
    propose: Callable[[], Changeset | None],
    *,
    log: Log,
    clock: Clock | None,
    actor: str | None = None,
) -> Committed | None:
    """As `commit`, of what is proposed once everybody else is shut out; None: of nothing."""
    log.shut_out(connection)
    changeset = propose()
    if changeset is None:
        return None
    return commit(connection, changeset, log=log, clock=clock, actor=actor)


# --- first questions --------------------------------------------------------------------------


def first_questions(changeset: Changeset, now: Instant) -> Sequence[Question]:
    """Questions of a changeset that are sent with the request for locks, which saves a round trip.

    Where the database is a server, a question that waits for the answer to the one before costs a
    round trip on both sides. Those of a single change go out together with the wait for the locks;
    `Batch.query` then has the answers. Later changes of a changeset read what earlier ones wrote,
    so a changeset of several asks as it goes.

    Each question is of another wording; `now` need not be exact.
    """
    if len(changeset.changes) != 1:
        return ()
    (change,) = changeset.changes
    first = _FIRST.get(type(change))
    return () if first is None else tuple(first(change, now))


def _create_provider(change: changes.CreateProvider, _now: Instant) -> Iterator[Question]:
    yield providers.TAKEN, {"uuid": change.uuid, "name": change.name}
    if change.parent_uuid is not None:
        yield PROVIDER, {"uuid": change.parent_uuid}


def _put_inventories(change: changes.PutInventories, _now: Instant) -> Iterator[Question]:
    yield PROVIDER, {"uuid": change.provider}
    for some in only_chunk(doubtful(one.resource_class for one in change.inventories)):
        yield CLASSES, {"names": some}
    yield inventories.CLASSES, {"provider": change.provider}


def _delete_inventories(change: changes.DeleteInventories, _now: Instant) -> Iterator[Question]:
    yield PROVIDER, {"uuid": change.provider}
    yield inventories.CLASSES, {"provider": change.provider}


def _put_traits(change: changes.PutTraits, _now: Instant) -> Iterator[Question]:
    yield PROVIDER, {"uuid": change.provider}
    for some in only_chunk(change.traits):
        yield TRAITS, {"names": some}
    yield inventories.TRAITS.stored, {"of_provider": change.provider}


def _put_aggregates(change: changes.PutAggregates, _now: Instant) -> Iterator[Question]:
    yield PROVIDER, {"uuid": change.provider}
    yield inventories.AGGREGATES.stored, {"of_provider": change.provider}


def _replace_allocations(change: changes.ReplaceAllocations, now: Instant) -> Iterator[Question]:
    yield allocations.STANDING, {"uuid": change.consumer.uuid}
    yield from _questions(change, now)


def _questions(change: changes.ReplaceAllocations, now: Instant) -> Sequence[Question]:
    some = chunks(change.allocations)
    return prefetch_questions(some[0], now) if len(some) == 1 else ()


def _delete_allocations(change: changes.DeleteAllocations, _now: Instant) -> Iterator[Question]:
    yield allocations.OWN, {"uuid": change.consumer}


_FIRST: Final[Mapping[type, Callable[[Any, Instant], Iterator[Question]]]] = MappingProxyType(
    {
        changes.CreateProvider: _create_provider,
        changes.PutInventories: _put_inventories,
        changes.DeleteInventories: _delete_inventories,
        changes.PutTraits: _put_traits,
        changes.PutAggregates: _put_aggregates,
        changes.ReplaceAllocations: _replace_allocations,
        changes.DeleteAllocations: _delete_allocations,
    }
)
"""Changes of the wire, which come one at a time and often."""
