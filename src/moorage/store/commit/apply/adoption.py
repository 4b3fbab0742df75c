"""Bulk write of imported providers and allocations, without a check of capacity."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlalchemy import bindparam, insert, select, update

from moorage.domain.bookings import Binding, Booking, BookingState
from moorage.domain.changes import PutAggregates, PutInventories, PutTraits, UpdateProvider
from moorage.domain.consumers import UNKNOWN_TYPE
from moorage.domain.errors import (
    ConsumerConflict,
    DuplicateName,
    InvalidDescription,
    NotFound,
    UnknownName,
)
from moorage.domain.period import FOREVER, Period
from moorage.store.commit.apply.inventories import put_aggregates, put_inventories, put_traits
from moorage.store.commit.apply.providers import update_provider
from moorage.store.database.statements import chunks
from moorage.store.schema import tables
from moorage.store.values import rows

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from sqlalchemy import Insert, Row

    from moorage.domain.changes import AdoptAllocations, AdoptProviders
    from moorage.domain.content import AllocationSet
    from moorage.domain.providers import ResourceProvider
    from moorage.store.commit.batch import Batch

_p, _b, _c = tables.providers.c, tables.bookings.c, tables.consumers.c
_i = tables.inventories.c
_NEW_PROVIDERS = insert(tables.providers)
_NEW_INVENTORIES = insert(tables.inventories)
_NEW_PROVIDER_TRAITS = insert(tables.provider_traits)
_NEW_PROVIDER_AGGREGATES = insert(tables.provider_aggregates)
_NEW_CONSUMERS = insert(tables.consumers)
_NEW_BOOKINGS = insert(tables.bookings)
_KNOWN = select(_p.uuid).where(_p.uuid.in_(bindparam("some", expanding=True)))
_NAMED = select(_p.name).where(_p.name.in_(bindparam("some", expanding=True)))
_SET_COUNTERS = (
    update(tables.providers)
    .where(_p.uuid == bindparam("of"))
    .values({name: bindparam(name) for name in ("generation", "created_at", "updated_at")})
)
_SET_TIME = (
    update(tables.inventories)
    .where(_i.provider == bindparam("of"), _i.resource_class == bindparam("class"))
    .values(updated_at=bindparam("at"))
)
_CONSUMERS = select(_c.uuid, _c.generation, _c.project_id).where(
    _c.uuid.in_(bindparam("some", expanding=True))
)
_PLACES = select(_b.provider).where(_b.consumer.in_(bindparam("some", expanding=True))).distinct()
_ALLOCATED = (
    select(_b.consumer)
    .where(_b.consumer.in_(bindparam("some", expanding=True)))
    .where(_b.state == BookingState.ALLOCATED.value)
    .limit(1)
)
_UPDATE_CONSUMER = (
    update(tables.consumers)
    .where(_c.uuid == bindparam("of"))
    .values({name: bindparam(name) for name in ("project_id", "user_id", "type", "generation")})
)


def adopt_providers(batch: Batch, change: AdoptProviders) -> None:
    """See `AdoptProviders`.

    Raises:
        DuplicateName: another provider has the name, one that is not `known` is there, or one is
            given twice.
        UnknownName: no such parent, resource class or trait.
        InvalidDescription: a parent that is below the provider.
    """
    for one in change.providers:
        _check_names(batch, one)
    uuids = [one.uuid for one in change.providers]
    there = {
        uuid for some in chunks(uuids) for uuid in batch.connection.scalars(_KNOWN, {"some": some})
    }
    for uuid in uuids:
        if uuid in there and uuid not in change.known:
            raise DuplicateName("resource provider", uuid)
    kept = [one for one in change.providers if one.uuid in there]
    # A name may go to a new one, and a new one may become the parent.
    _rename(batch, kept)
    _create(batch, [one for one in change.providers if one.uuid not in there])
    for one in kept:
        _make_equal(batch, one)


def _check_names(batch: Batch, one: ResourceProvider) -> None:
    for item in one.inventories:
        if not batch.knows_class(item.resource_class):
            raise UnknownName("resource class", item.resource_class, path=f"{one.name}.inventories")
    for trait in sorted(one.traits):
        if not batch.knows_trait(trait):
            raise UnknownName("trait", trait, path=f"{one.name}.traits")


def _rename(batch: Batch, kept: Sequence[ResourceProvider]) -> None:
    """Names for those that exist; by way of their UUIDs where one gets what another one gives."""
    renamed = [one for one in kept if batch.provider(one.uuid).name != one.name]
    given = {str(batch.provider(one.uuid).name) for one in renamed}
    for one in renamed:
        if one.name in given:
            update_provider(batch, UpdateProvider(one.uuid, one.uuid))
    for one in renamed:
        update_provider(batch, UpdateProvider(one.uuid, one.name))


def _make_equal(batch: Batch, one: ResourceProvider) -> None:
    """One that exists, by the changes that others use; then it gets generation and times."""
    update_provider(batch, UpdateProvider(one.uuid, one.name, one.parent_uuid, set_parent=True))
    put_inventories(batch, PutInventories(one.uuid, one.inventories, None, replace_all=True))
    put_traits(batch, PutTraits(one.uuid, one.traits, None))
    put_aggregates(batch, PutAggregates(one.uuid, one.aggregates, None))
    del batch.bumps[one.uuid]
    counters = {"of": one.uuid, "generation": one.generation, **_times(batch, one)}
    batch.connection.execute(_SET_COUNTERS, counters)
    dated = [
        {"of": one.uuid, "class": item.resource_class, "at": item.updated_at}
        for item in one.inventories
        if item.updated_at
    ]
    if dated:
        batch.connection.execute(_SET_TIME, dated)
    batch.forget_provider(one.uuid)


def _create(batch: Batch, fresh: Sequence[ResourceProvider]) -> None:
    for some in chunks(one.name for one in fresh):
        taken = batch.connection.scalars(_NAMED, {"some": some}).first()
        if taken is not None:
            raise DuplicateName("resource provider", taken)
    _refuse_twice(fresh)
    roots: dict[str, str] = {}
    for one in fresh:
        roots[one.uuid] = _root(batch, one, roots)
        batch.created.add(one.uuid)
        batch.touch(one.uuid)
    _insert(batch, _NEW_PROVIDERS, [_columns(batch, one, roots[one.uuid]) for one in fresh])
    _insert(
        batch,
        _NEW_INVENTORIES,
        [
            rows.inventory_columns(one.uuid, item, item.updated_at or batch.now)
            for one in fresh
            for item in one.inventories
        ],
    )
    _insert(
        batch,
        _NEW_PROVIDER_TRAITS,
        [{"provider": one.uuid, "trait": name} for one in fresh for name in sorted(one.traits)],
    )
    _insert(
        batch,
        _NEW_PROVIDER_AGGREGATES,
        [
            {"provider": one.uuid, "aggregate": name}
            for one in fresh
            for name in sorted(one.aggregates)
        ],
    )


def _refuse_twice(fresh: Sequence[ResourceProvider]) -> None:
    seen: set[str] = set()
    for one in fresh:
        for word in (one.uuid, one.name):
            if word in seen:
                raise DuplicateName("resource provider", word)
        seen.update((one.uuid, one.name))


def _root(batch: Batch, one: ResourceProvider, roots: dict[str, str]) -> str:
    parent = one.parent_uuid
    if parent is None:
        return one.uuid
    if parent in roots:
        return roots[parent]
    try:
        return str(batch.provider(parent).root)
    except NotFound:
        raise UnknownName("resource provider", parent, path=f"{one.name}.parent") from None


def _columns(batch: Batch, one: ResourceProvider, root: str) -> dict[str, object]:
    return {
        "uuid": one.uuid,
        "name": one.name,
        "parent": one.parent_uuid,
        "root": root,
        "offered_by": one.offered_by,
        "generation": one.generation,
        "revision": 0,
        **_times(batch, one),
    }


def _times(batch: Batch, one: ResourceProvider) -> dict[str, object]:
    """When it was made and written last, as far as its source knows; else now."""
    updated = one.updated_at or one.created_at or batch.now
    return {"created_at": one.created_at or updated, "updated_at": updated}


def _insert(batch: Batch, statement: Insert, values: Sequence[dict[str, Any]]) -> None:
    if values:
        batch.connection.execute(statement, values)


def adopt_allocations(batch: Batch, change: AdoptAllocations) -> None:
    """See `AdoptAllocations`.

    Raises:
        ConsumerConflict: a consumer has allocations.
        UnknownName: a resource class nobody knows (a provider: at the end of the commit).
        InvalidDescription: a consumer without allocations, one given twice, an amount below 1.
    """
    _check_sets(batch, change.sets)
    stored = _there(batch, change)
    fresh, known = [], []
    for one in change.sets:
        values: dict[str, Any] = {
            "project_id": one.consumer.project_id,
            "user_id": one.consumer.user_id,
            "type": one.consumer.type or UNKNOWN_TYPE,
            "generation": one.consumer.generation,
        }
        if one.consumer.uuid in stored:
            known.append({"of": one.consumer.uuid, **values})
        else:
            fresh.append({"uuid": one.consumer.uuid, **values})
    _insert(batch, _NEW_CONSUMERS, fresh)
    if known:
        batch.connection.execute(_UPDATE_CONSUMER, known)
        # Whose their holds are, is read where these are.
        moved = [row["of"] for row in known if row["project_id"] != stored[row["of"]].project_id]
        for some in chunks(moved):
            batch.swept.update(batch.connection.scalars(_PLACES, {"some": some}))
    _insert(
        batch,
        _NEW_BOOKINGS,
        [row for one in change.sets for booking in _bookings(batch, one) for row in booking],
    )


def _there(batch: Batch, change: AdoptAllocations) -> dict[str, Row[Any]]:
    """Those of the consumers that exist, for they have holds.

    Raises:
        ConsumerConflict: one has allocations.
    """
    stored: dict[str, Row[Any]] = {}
    for some in chunks(one.consumer.uuid for one in change.sets):
        found = batch.connection.execute(_CONSUMERS, {"some": some})
        stored.update((row.uuid, row) for row in found)
    for some in chunks(stored):
        owner = batch.connection.scalars(_ALLOCATED, {"some": some}).first()
        if owner is not None:
            raise ConsumerConflict(owner, expected=None, actual=stored[owner].generation)
    return stored


def _check_sets(batch: Batch, sets: Sequence[AllocationSet]) -> None:
    seen: set[str] = set()
    for one in sets:
        path = f"consumers.{one.consumer.uuid}"
        if one.consumer.uuid in seen:
            raise InvalidDescription("a consumer is given twice", path=path)
        seen.add(one.consumer.uuid)
        if not one.allocations:
            raise InvalidDescription("a consumer needs allocations", path=path)
        for amounts in one.allocations.values():
            if not amounts or min(amounts.values()) < 1:
                raise InvalidDescription("an allocation needs amounts of at least 1", path=path)
            for name in amounts:
                if not batch.knows_class(name):
                    raise UnknownName("resource class", name, path=path)


def _bookings(batch: Batch, one: AllocationSet) -> Iterator[list[dict[str, object]]]:
    for provider, amounts in one.allocations.items():
        batch.touch(provider, bookings_only=True)
        yield rows.booking_columns(
            Booking(
                one.consumer.uuid,
                provider,
                amounts,
                Period(min(one.written_at.get(provider, batch.now), batch.now), FOREVER),
                BookingState.ALLOCATED,
                binding=Binding.BOUND,
            )
        )
    batch.consumer_generations[one.consumer.uuid] = one.consumer.generation
