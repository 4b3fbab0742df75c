"""What providers have: inventories, traits and aggregates."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlalchemy import bindparam, delete, insert, select, update

from moorage.domain.errors import InvalidDescription, NotFound, ProviderConflict, UnknownName
from moorage.store import rows, tables

if TYPE_CHECKING:
    from sqlalchemy import Column, Table

    from moorage.domain.changes import (
        DeleteInventories,
        PutAggregates,
        PutInventories,
        PutTraits,
    )
    from moorage.store.batch import Batch

_i = tables.inventories.c
_CLASSES = select(_i.resource_class).where(_i.provider == bindparam("provider"))
_INSERT = insert(tables.inventories)
_UPDATE = (
    update(tables.inventories)
    .where(_i.provider == bindparam("of_provider"), _i.resource_class == bindparam("of_class"))
    .values(
        {
            name: bindparam(name)
            for name in (
                "total",
                "reserved",
                "min_unit",
                "max_unit",
                "step_size",
                "allocation_ratio",
                "updated_at",
            )
        }
    )
)
_DELETE = delete(tables.inventories).where(
    _i.provider == bindparam("of_provider"), _i.resource_class == bindparam("of_class")
)


def put_inventories(batch: Batch, change: PutInventories) -> None:
    """See `PutInventories`.

    Raises:
        NotFound: no such provider.
        ProviderConflict: another generation, or a class to be created is there.
        UnknownName: no such resource class.
        InvalidDescription: a class to be updated is not there, or one is given twice.
    """
    batch.expect_generation(change.provider, change.generation)
    given = [one.resource_class for one in change.inventories]
    if len(set(given)) != len(given):
        raise InvalidDescription("a resource class is given twice", path="inventories")
    batch.look_up_classes(given)
    for name in given:
        if not batch.knows_class(name):
            raise UnknownName("resource class", name, path=f"inventories.{name}")
    stored = set(batch.connection.scalars(_CLASSES, {"provider": change.provider}))
    _check_presence(change, stored)
    columns = {
        one.resource_class: rows.inventory_columns(change.provider, one, batch.now)
        for one in change.inventories
    }
    fresh = [values for name, values in columns.items() if name not in stored]
    if fresh:
        batch.connection.execute(_INSERT, fresh)
    for name, values in columns.items():
        if name in stored:
            parameters: dict[str, Any] = {"of_provider": change.provider, "of_class": name}
            batch.connection.execute(_UPDATE, values | parameters)
    if change.replace_all:
        _drop(batch, change.provider, stored.difference(given))
    batch.bumps[change.provider] += 1
    batch.touch(change.provider)


def _check_presence(change: PutInventories, stored: set[str]) -> None:
    for one in change.inventories:
        name = one.resource_class
        if change.create and name in stored:
            raise ProviderConflict(
                f"inventory {name} of provider {change.provider} exists already",
                subject=change.provider,
            )
        if change.update and name not in stored:
            raise InvalidDescription(
                f"no inventory {name} on provider {change.provider}", path=f"inventories.{name}"
            )


def delete_inventories(batch: Batch, change: DeleteInventories) -> None:
    """See `DeleteInventories`. Whether one is in use is judged on the changeset's end state.

    Raises:
        NotFound: no such provider, or the class is not there.
    """
    batch.provider(change.provider)
    stored = set(batch.connection.scalars(_CLASSES, {"provider": change.provider}))
    if change.resource_class is None:
        gone = stored
    elif change.resource_class in stored:
        gone = {change.resource_class}
    else:
        raise NotFound("inventory", change.resource_class)
    _drop(batch, change.provider, gone)
    batch.bumps[change.provider] += 1
    batch.touch(change.provider)


def _drop(batch: Batch, provider: str, classes: set[str]) -> None:
    for name in sorted(classes):
        batch.connection.execute(_DELETE, {"of_provider": provider, "of_class": name})
        batch.dropped.add((provider, name))


def put_traits(batch: Batch, change: PutTraits) -> None:
    """See `PutTraits`.

    Raises:
        NotFound: no such provider.
        ProviderConflict: another generation.
        UnknownName: no such trait.
    """
    batch.expect_generation(change.provider, change.generation)
    batch.look_up_traits(change.traits)
    for name in sorted(change.traits):
        if not batch.knows_trait(name):
            raise UnknownName("trait", name, path="traits")
    column = tables.provider_traits.c.trait
    if _replace(batch, tables.provider_traits, column, change.provider, change.traits):
        batch.bumps[change.provider] += 1
        batch.touch(change.provider)


def put_aggregates(batch: Batch, change: PutAggregates) -> None:
    """See `PutAggregates`.

    Raises:
        NotFound: no such provider.
        ProviderConflict: another generation.
    """
    batch.expect_generation(change.provider, change.generation)
    column = tables.provider_aggregates.c.aggregate
    _replace(batch, tables.provider_aggregates, column, change.provider, change.aggregates)
    if change.generation is not None:
        batch.bumps[change.provider] += 1
    batch.touch(change.provider)


def _replace(
    batch: Batch, table: Table, column: Column[Any], provider: str, wanted: frozenset[str]
) -> bool:
    """Make the provider's set the wanted one; whether it differed."""
    stored = set(
        batch.connection.scalars(
            select(column).where(table.c.provider == bindparam("provider")),
            {"provider": provider},
        )
    )
    gone, fresh = sorted(stored - wanted), sorted(wanted - stored)
    if gone:
        batch.connection.execute(
            delete(table).where(
                table.c.provider == bindparam("of_provider"), column == bindparam("one")
            ),
            [{"of_provider": provider, "one": name} for name in gone],
        )
    if fresh:
        batch.connection.execute(
            insert(table), [{"provider": provider, column.name: name} for name in fresh]
        )
    return bool(gone or fresh)
