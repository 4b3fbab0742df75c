"""What providers have: inventories, traits and aggregates."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import bindparam, delete, insert, select, update

from moorage.domain.errors import InvalidDescription, NotFound, ProviderConflict, UnknownName
from moorage.store.database.statements import chunks
from moorage.store.schema import tables
from moorage.store.values import rows

if TYPE_CHECKING:
    from sqlalchemy import Column, Table

    from moorage.domain.changes import DeleteInventories, PutAggregates, PutInventories, PutTraits
    from moorage.store.commit.batch import Batch

_i = tables.inventories.c
CLASSES = select(_i.resource_class).where(_i.provider == bindparam("provider"))
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
    stored = set(batch.query(CLASSES, {"provider": change.provider}).scalars())
    _check_presence(change, stored)
    columns = {
        one.resource_class: rows.inventory_columns(change.provider, one, batch.now)
        for one in change.inventories
    }
    fresh = [values for name, values in columns.items() if name not in stored]
    if fresh:
        batch.connection.do(_INSERT, fresh)
    for name, values in columns.items():
        if name in stored:
            parameters: dict[str, Any] = {"of_provider": change.provider, "of_class": name}
            batch.connection.do(_UPDATE, values | parameters)
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
    stored = set(batch.query(CLASSES, {"provider": change.provider}).scalars())
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
        batch.connection.do(_DELETE, {"of_provider": provider, "of_class": name})
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
    batch.note_traits(change.traits)
    if _replace(batch, TRAITS, change.provider, change.traits):
        batch.bumps[change.provider] += 1
        batch.touch(change.provider)


def put_aggregates(batch: Batch, change: PutAggregates) -> None:
    """See `PutAggregates`.

    Raises:
        NotFound: no such provider.
        ProviderConflict: another generation.
    """
    batch.expect_generation(change.provider, change.generation)
    _replace(batch, AGGREGATES, change.provider, change.aggregates)
    if change.generation is not None:
        batch.bumps[change.provider] += 1
    batch.touch(change.provider)


class _Set:
    """How a set of names per provider is kept: a table of pairs."""

    def __init__(self, table: Table, column: Column[str]) -> None:
        of_provider = table.c.provider == bindparam("of_provider")
        self.stored = select(column).where(of_provider)
        self.drop = delete(table).where(of_provider, column.in_(bindparam("some", expanding=True)))
        self.add = insert(table).values(provider=bindparam("of_provider"), **{column.name: _ONE})


_ONE: Final[Any] = bindparam("one")
TRAITS: Final = _Set(tables.provider_traits, tables.provider_traits.c.trait)
AGGREGATES: Final = _Set(tables.provider_aggregates, tables.provider_aggregates.c.aggregate)


def _replace(batch: Batch, kept: _Set, provider: str, wanted: frozenset[str]) -> bool:
    """Make the provider's set the wanted one; whether it differed."""
    of = {"of_provider": provider}
    stored = set(batch.query(kept.stored, of).scalars())
    for some in chunks(stored - wanted):
        batch.connection.do(kept.drop, {**of, "some": some})
    fresh = [{**of, "one": name} for name in sorted(wanted - stored)]
    if fresh:
        batch.connection.do(kept.add, fresh)
    return stored != wanted
