"""Resource providers: their names and their trees."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import bindparam, delete, insert, or_, select, update

from moorage.domain.bookings import BookingState
from moorage.domain.errors import (
    DuplicateName,
    InvalidDescription,
    NotFound,
    ProviderHasChildren,
    ProviderInUse,
    UnknownName,
)
from moorage.store.commit.apply.fleet import rename_host
from moorage.store.commit.apply.reservables import rename_offered_host
from moorage.store.schema import tables

if TYPE_CHECKING:
    from moorage.domain.changes import CreateProvider, DeleteProvider, UpdateProvider
    from moorage.store.commit.batch import Batch

_p, _s = tables.providers.c, tables.server_providers.c
TAKEN = select(_p.uuid, _p.name).where(
    or_(_p.uuid == bindparam("uuid"), _p.name == bindparam("name"))
)
_INSERT = insert(tables.providers)
_AWAY = select(tables.away.c.window_id).where(
    tables.away.c.provider == bindparam("uuid"), tables.away.c.end_at > bindparam("now")
)
_BOOKED = (
    select(tables.bookings.c.consumer, tables.bookings.c.state)
    .where(tables.bookings.c.provider == bindparam("uuid"))
    .distinct()
)
_LOOP = "creating loop in the provider tree is not allowed"
_NO_CHILD = "a server provider is no child: it is where its server is"
_NO_PARENT = "a server provider has no children"
_OWN_NAME = "a server provider has its server's id for a name: it is not renamed"


def create_provider(batch: Batch, change: CreateProvider) -> None:
    """See `CreateProvider`.

    Raises:
        DuplicateName: the UUID or the name is taken.
        UnknownName: there is no such parent.
        InvalidDescription: it is to be its own parent, or a child of a server provider, or a
            server provider and a child.
    """
    if change.parent_uuid == change.uuid:
        raise InvalidDescription(
            "parent provider UUID cannot be same as UUID. Unable to create it",
            path="parent_provider_uuid",
        )
    if change.parent_uuid is not None and change.offered_by is not None:
        raise InvalidDescription(_NO_CHILD, path="parent_provider_uuid")
    root = change.uuid if change.parent_uuid is None else _root_of(batch, change.parent_uuid)
    _refuse_duplicate(batch, change.uuid, change.name, new=True)
    batch.connection.do(
        _INSERT,
        {
            "uuid": change.uuid,
            "name": change.name,
            "parent": change.parent_uuid,
            "root": root,
            "offered_by": change.offered_by,
            "generation": 0,
            "revision": 1,
            "created_at": batch.now,
            "updated_at": batch.now,
        },
    )
    batch.created.add(change.uuid)
    batch.gone.discard(change.uuid)
    batch.generations[change.uuid] = 0
    batch.touch(change.uuid)


def _root_of(batch: Batch, parent: str) -> str:
    try:
        found = batch.provider(parent)
    except NotFound:
        raise UnknownName("resource provider", parent, path="parent_provider_uuid") from None
    if found.offered_by is not None:
        raise InvalidDescription(_NO_PARENT, path="parent_provider_uuid")
    return str(found.root)


def _refuse_duplicate(batch: Batch, uuid: str, name: str, *, new: bool) -> None:
    for row in batch.query(TAKEN, {"uuid": uuid, "name": name}):
        if row.uuid != uuid:
            raise DuplicateName("resource provider", name)
        if new:
            raise DuplicateName("resource provider", uuid)


def update_provider(batch: Batch, change: UpdateProvider) -> None:
    """See `UpdateProvider`.

    Raises:
        NotFound: no such provider.
        DuplicateName: another one has the name.
        UnknownName: there is no such parent.
        InvalidDescription: a server provider is renamed; the parent is the provider itself or below
            it; either of them is a server provider; or the provider is a host that a capacity
            window names: below another host it would be there again.
    """
    stored = batch.provider(change.uuid)
    if stored.name != change.name:
        if stored.offered_by is not None:
            raise InvalidDescription(_OWN_NAME, path="name")
        _refuse_duplicate(batch, change.uuid, change.name, new=False)
        batch.connection.execute(
            update(tables.providers)
            .where(_p.uuid == change.uuid)
            .values(name=change.name, updated_at=batch.now)
        )
        if stored.parent is None:
            rename_host(batch, str(stored.name), change.name)
            rename_offered_host(batch, str(stored.name), change.name)
    if change.set_parent and stored.parent != change.parent_uuid:
        if stored.offered_by is not None:
            raise InvalidDescription(_NO_CHILD, path="parent_provider_uuid")
        _move(batch, change.uuid, str(stored.root), change.parent_uuid)
    batch.touch(change.uuid)
    batch.forget_provider(change.uuid)


def _move(batch: Batch, uuid: str, old_root: str, parent: str | None) -> None:
    root = uuid if parent is None else _root_of(batch, parent)
    moved = _subtree(batch, uuid, old_root)
    if parent in moved:
        raise InvalidDescription(_LOOP, path="parent_provider_uuid")
    if batch.connection.scalars(_AWAY, {"uuid": uuid, "now": batch.now}).first() is not None:
        raise InvalidDescription(
            "a host with a capacity window that is not over stays a host: drop the window first",
            path="parent_provider_uuid",
        )
    batch.connection.execute(
        update(tables.providers).where(_p.uuid == uuid).values(parent=parent, updated_at=batch.now)
    )
    for one in sorted(moved):
        batch.connection.execute(update(tables.providers).where(_p.uuid == one).values(root=root))
        batch.touch(one)
        batch.forget_provider(one)


def _subtree(batch: Batch, uuid: str, root: str) -> set[str]:
    """The provider and all below it."""
    children: dict[str | None, list[str]] = {}
    for row in batch.connection.execute(select(_p.uuid, _p.parent).where(_p.root == root)):
        children.setdefault(row.parent, []).append(row.uuid)
    found, waiting = set(), [uuid]
    while waiting:
        one = waiting.pop()
        found.add(one)
        waiting += children.get(one, [])
    return found


def delete_provider(batch: Batch, change: DeleteProvider) -> None:
    """See `DeleteProvider`.

    Raises:
        NotFound, ProviderHasChildren, ProviderInUse.
    """
    root = batch.provider(change.uuid).root
    connection = batch.connection
    below = select(_p.uuid).where(_p.root == root, _p.parent == change.uuid).limit(1)
    if connection.scalars(below).first() is not None:
        raise ProviderHasChildren(change.uuid)
    batch.purge()
    booked = connection.execute(_BOOKED, {"uuid": change.uuid}).all()
    if booked:
        allocated = any(row.state == BookingState.ALLOCATED.value for row in booked)
        holders = frozenset() if allocated else frozenset(row.consumer for row in booked)
        raise ProviderInUse(change.uuid, holders)
    for table in (
        tables.inventories,
        tables.provider_traits,
        tables.provider_aggregates,
        tables.away,
        tables.host_records,
        tables.told_hosts,
    ):
        connection.execute(delete(table).where(table.c.provider == change.uuid))
    connection.execute(delete(tables.server_providers).where(_s.id == change.uuid))
    connection.execute(delete(tables.providers).where(_p.uuid == change.uuid))
    batch.remove(change.uuid)
