"""Resource classes and traits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlalchemy import delete, insert, select, true, update

from moorage.domain.content import CLASS, TRAIT
from moorage.domain.errors import DuplicateName, InUse, InvalidDescription, NotFound
from moorage.domain.resources import is_custom_name, odd_names
from moorage.store.database.statements import chunks
from moorage.store.schema import tables

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from sqlalchemy import ColumnElement, Table

    from moorage.domain.changes import (
        AdoptNames,
        CreateResourceClass,
        CreateTrait,
        DeleteResourceClass,
        DeleteTrait,
        DropOfferedNames,
        RenameResourceClass,
    )
    from moorage.store.commit.batch import Batch

_classes = tables.resource_classes


def _refuse_odd_name(kind: str, name: str) -> None:
    if not is_custom_name(name):
        raise InvalidDescription(
            f"{kind} {name}: a custom name is CUSTOM_ and letters A-Z, digits or _", path="name"
        )


def _custom_class(batch: Batch, name: str) -> Any:  # noqa: ANN401 - a row of `resource_classes`
    row = batch.connection.execute(select(_classes).where(_classes.c.name == name)).one_or_none()
    if row is None:
        raise NotFound("resource class", name)
    if not is_custom_name(name):
        raise InvalidDescription(f"cannot change standard resource class {name}", path="name")
    return row


def adopt_names(batch: Batch, change: AdoptNames) -> None:
    """See `AdoptNames`.

    Raises:
        InvalidDescription: a name that Placement's API cannot have.
    """
    faults = odd_names(CLASS, change.classes) + odd_names(TRAIT, change.traits)
    if faults:
        raise InvalidDescription("; ".join(faults), path="name")
    for table, given in ((_classes, change.classes), (tables.traits, change.traits)):
        there = {name for some in chunks(given) for name in _there(batch, table, some)}
        fresh = [
            {"name": name, "updated_at": at or batch.now}
            for name, at in given.items()
            if name not in there
        ]
        if fresh:
            batch.connection.execute(insert(table), fresh)
        for name in there:
            if given[name]:
                batch.connection.execute(
                    update(table).where(table.c.name == name).values(updated_at=given[name])
                )
    batch.forget_names()


def _there(batch: Batch, table: Table, names: Sequence[str]) -> Iterable[str]:
    return batch.connection.scalars(select(table.c.name).where(table.c.name.in_(names)))


def create_resource_class(batch: Batch, change: CreateResourceClass) -> None:
    """See `CreateResourceClass`.

    Raises:
        DuplicateName: it exists, and that is not fine.
        InvalidDescription: not a custom name.
    """
    if batch.knows_class(change.name):
        if not change.exist_ok:
            raise DuplicateName("resource class", change.name)
        _keep(batch, _classes, change)
        return
    _refuse_odd_name("resource class", change.name)
    made = {"name": change.name, "updated_at": batch.now, "offered": change.offered}
    batch.connection.execute(insert(_classes).values(made))
    batch.created.add(change.name)
    batch.forget_names()


def rename_resource_class(batch: Batch, change: RenameResourceClass) -> None:
    """See `RenameResourceClass`.

    Raises:
        NotFound: there is none of the old name.
        DuplicateName: there is one of the new name.
        InvalidDescription: a standard class, or not a custom name.
    """
    _custom_class(batch, change.name)
    _refuse_odd_name("resource class", change.new_name)
    if change.new_name == change.name:
        return
    if batch.knows_class(change.new_name):
        raise DuplicateName("resource class", change.new_name)
    batch.connection.execute(
        update(_classes)
        .where(_classes.c.name == change.name)
        .values(name=change.new_name, updated_at=batch.now)
    )
    for table in (tables.inventories, tables.bookings):
        batch.connection.execute(
            update(table)
            .where(table.c.resource_class == change.name)
            .values(resource_class=change.new_name)
        )
    having = tables.inventories.c.resource_class == change.new_name
    for provider in batch.connection.scalars(select(tables.inventories.c.provider).where(having)):
        batch.touch(provider)
    batch.forget_names()


def delete_resource_class(batch: Batch, change: DeleteResourceClass) -> None:
    """See `DeleteResourceClass`.

    Raises:
        NotFound, InUse.
        InvalidDescription: a standard class.
    """
    _custom_class(batch, change.name)
    having = tables.inventories.c.resource_class == change.name
    used = select(tables.inventories.c.provider).where(having).limit(1)
    if batch.connection.scalars(used).first() is not None:
        raise InUse("resource class", change.name)
    batch.purge()
    batch.connection.execute(delete(_classes).where(_classes.c.name == change.name))
    batch.forget_names()


def create_trait(batch: Batch, change: CreateTrait) -> None:
    """See `CreateTrait`.

    Raises:
        InvalidDescription: not a custom name.
    """
    if batch.knows_trait(change.name):
        _keep(batch, tables.traits, change)
        return
    _refuse_odd_name("trait", change.name)
    made = {"name": change.name, "updated_at": batch.now, "offered": change.offered}
    batch.connection.execute(insert(tables.traits).values(made))
    batch.created.add(change.name)
    batch.forget_names()


def delete_trait(batch: Batch, change: DeleteTrait) -> None:
    """See `DeleteTrait`.

    Raises:
        NotFound, InUse.
        InvalidDescription: a standard trait.
    """
    if not batch.knows_trait(change.name):
        raise NotFound("trait", change.name)
    if not change.name.startswith("CUSTOM_"):
        raise InvalidDescription(f"cannot delete standard trait {change.name}", path="name")
    having = tables.provider_traits.c.trait == change.name
    used = select(tables.provider_traits.c.provider).where(having).limit(1)
    if batch.connection.scalars(used).first() is not None:
        raise InUse("trait", change.name)
    batch.connection.execute(delete(tables.traits).where(tables.traits.c.name == change.name))
    batch.forget_names()


def drop_offered_names(batch: Batch, change: DropOfferedNames) -> None:
    """See `DropOfferedNames`."""
    classes = _unused(batch, _classes, tables.inventories.c.resource_class, change.classes)
    if classes:
        batch.purge()
    traits = _unused(batch, tables.traits, tables.provider_traits.c.trait, change.traits)
    for table, names in ((_classes, classes), (tables.traits, traits)):
        for some in chunks(names):
            batch.connection.execute(delete(table).where(table.c.name.in_(some)))
    if classes or traits:
        batch.forget_names()


def _unused(
    batch: Batch, table: Table, having: ColumnElement[str], some: Iterable[str]
) -> set[str]:
    """Those of these names that tenants' servers have brought in, and no provider has."""
    found: set[str] = set()
    for names in chunks(some):
        offered = select(table.c.name).where(table.c.offered == true(), table.c.name.in_(names))
        used = select(having).where(having.in_(names)).distinct()
        found |= {*batch.connection.scalars(offered)} - {*batch.connection.scalars(used)}
    return found


def _keep(batch: Batch, table: Table, change: CreateResourceClass | CreateTrait) -> None:
    """Let a name that is there stay, if an operator asks for it."""
    if not change.offered and is_custom_name(change.name):
        named = update(table).where(table.c.name == change.name, table.c.offered == true())
        batch.connection.execute(named.values(offered=False))
