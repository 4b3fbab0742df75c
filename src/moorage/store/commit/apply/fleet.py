"""What members ask for and where hosts stand: flavors and the topology."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import bindparam, delete, insert, or_, select, update

from moorage.domain.errors import DuplicateName, NotFound, UnknownName
from moorage.store.schema import tables
from moorage.store.values import stored_bodies

if TYPE_CHECKING:
    from moorage.domain.changes import DeleteFlavor, PutFlavor, PutTopology
    from moorage.domain.topology import Topology
    from moorage.store.commit.batch import Batch

_f, _t = tables.flavors.c, tables.topology.c
_OF: Final[Any] = bindparam("of")
_OF_NAME: Final = select(_f.id).where(_f.name == bindparam("name"), _f.id != _OF)
_OF_EITHER: Final = select(_f.id).where(or_(_f.id == _OF, _f.name == _OF))
_NEW_FLAVOR: Final = insert(tables.flavors)
_NO_FLAVOR: Final = delete(tables.flavors).where(_f.id == _OF)
_ROOTS: Final = select(tables.providers.c.name).where(tables.providers.c.parent.is_(None))
_TOPOLOGY: Final = select(_t.body)
_NEW_TOPOLOGY: Final = insert(tables.topology)
_WRITE_TOPOLOGY: Final = (
    update(tables.topology)
    .where(_t.id == 1)
    .values(body=bindparam("body"), actor=bindparam("actor"))
)


def put_flavor(batch: Batch, change: PutFlavor) -> None:
    """See `PutFlavor`.

    Raises:
        DuplicateName: another flavor has the name.
    """
    flavor = change.flavor
    same = {"name": flavor.name, "of": flavor.id}
    if batch.connection.scalars(_OF_NAME, same).first() is not None:
        raise DuplicateName("flavor", flavor.name)
    body = stored_bodies.FLAVOR.encode(flavor)
    batch.connection.do(_NO_FLAVOR, {"of": flavor.id})
    batch.connection.do(_NEW_FLAVOR, {"id": flavor.id, "name": flavor.name, "body": body})


def delete_flavor(batch: Batch, change: DeleteFlavor) -> None:
    """See `DeleteFlavor`. An id goes before an equal name.

    Raises:
        NotFound: there is none of that id or name.
    """
    found = batch.connection.scalars(_OF_EITHER, {"of": change.id}).all()
    if not found:
        raise NotFound("flavor", change.id)
    chosen = change.id if change.id in found else found[0]
    batch.connection.do(_NO_FLAVOR, {"of": chosen})


def put_topology(batch: Batch, change: PutTopology) -> None:
    """See `PutTopology`.

    Raises:
        UnknownName: a host is attached that is no root provider.
    """
    known = set(batch.connection.scalars(_ROOTS))
    for tree, host in change.topology.attachments:
        if host not in known:
            line = change.topology.lines.get((tree, host))
            raise UnknownName("host", host, path=f"attachments.{host}", line=line)
    _write(batch, change.topology)


def rename_host(batch: Batch, old: str, new: str) -> None:
    """Let a renamed root provider keep its place: the topology knows hosts by name."""
    body = batch.connection.scalars(_TOPOLOGY).one_or_none()
    if body is None:
        return
    stored = stored_bodies.TOPOLOGY.decode(body)
    if not any(host == old for _, host in stored.attachments):
        return
    renamed = {
        (tree, new if host == old else host): domain
        for (tree, host), domain in stored.attachments.items()
    }
    _write(batch, replace(stored, attachments=renamed))


def _write(batch: Batch, topology: Topology) -> None:
    values = {"body": stored_bodies.TOPOLOGY.encode(topology), "actor": batch.actor}
    if not batch.connection.execute(_WRITE_TOPOLOGY, values).rowcount:
        batch.connection.do(_NEW_TOPOLOGY, {"id": 1, **values})
    batch.topology_moved = True
