"""Queries that are sent together with the request for locks, which saves a round trip.

Where the database is a server, a question that waits for the answer to the one before costs a round
trip on both sides. The first questions of a single change go out together with the wait for the
locks, and are answered after it; `Batch.query` then has the answers. Later changes of a changeset
read what earlier ones wrote, so a changeset of several asks as it goes.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from moorage.domain import changes
from moorage.store.commit import batch, inventory_check
from moorage.store.commit.apply import allocations, inventories, providers
from moorage.store.database.statements import chunks, only_chunk

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from moorage.domain.changes import Changeset
    from moorage.domain.period import Instant
    from moorage.store.database.session import Question


def first_questions(changeset: Changeset, now: Instant) -> Sequence[Question]:
    """Questions of a changeset, each of another wording; `now` need not be exact."""
    if len(changeset.changes) != 1:
        return ()
    (change,) = changeset.changes
    first = _FIRST.get(type(change))
    return () if first is None else tuple(first(change, now))


def _create_provider(change: changes.CreateProvider, _now: Instant) -> Iterator[Question]:
    yield providers.TAKEN, {"uuid": change.uuid, "name": change.name}
    if change.parent_uuid is not None:
        yield batch.PROVIDER, {"uuid": change.parent_uuid}


def _put_inventories(change: changes.PutInventories, _now: Instant) -> Iterator[Question]:
    yield batch.PROVIDER, {"uuid": change.provider}
    for names in only_chunk(batch.doubtful(one.resource_class for one in change.inventories)):
        yield batch.CLASSES, {"names": names}
    yield inventories.CLASSES, {"provider": change.provider}


def _delete_inventories(change: changes.DeleteInventories, _now: Instant) -> Iterator[Question]:
    yield batch.PROVIDER, {"uuid": change.provider}
    yield inventories.CLASSES, {"provider": change.provider}


def _put_traits(change: changes.PutTraits, _now: Instant) -> Iterator[Question]:
    yield batch.PROVIDER, {"uuid": change.provider}
    for names in only_chunk(change.traits):
        yield batch.TRAITS, {"names": names}
    yield inventories.TRAITS.stored, {"of_provider": change.provider}


def _put_aggregates(change: changes.PutAggregates, _now: Instant) -> Iterator[Question]:
    yield batch.PROVIDER, {"uuid": change.provider}
    yield inventories.AGGREGATES.stored, {"of_provider": change.provider}


def _replace_allocations(change: changes.ReplaceAllocations, now: Instant) -> Iterator[Question]:
    yield allocations.STANDING, {"uuid": change.consumer.uuid}
    yield from _questions(change, now)


def _questions(change: changes.ReplaceAllocations, now: Instant) -> Sequence[Question]:
    some = chunks(change.allocations)
    return inventory_check.prefetch_questions(some[0], now) if len(some) == 1 else ()


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
