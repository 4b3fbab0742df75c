"""What members ask for and where hosts stand: flavors and the topology."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from sqlalchemy import delete, insert, or_, select, update

from moorage.domain.errors import DuplicateName, NotFound, UnknownName
from moorage.store import bodies, tables

if TYPE_CHECKING:
    from moorage.domain.changes import DeleteFlavor, PutFlavor, PutTopology
    from moorage.domain.topology import Topology
    from moorage.store.batch import Batch

_f = tables.flavors.c


def put_flavor(batch: Batch, change: PutFlavor) -> None:
    """See `PutFlavor`.

    Raises:
        DuplicateName: another flavor has the name.
    """
    flavor = change.flavor
    same = select(_f.id).where(_f.name == flavor.name, _f.id != flavor.id)
    if batch.connection.scalars(same).first() is not None:
        raise DuplicateName("flavor", flavor.name)
    batch.connection.execute(delete(tables.flavors).where(_f.id == flavor.id))
    batch.connection.execute(
        insert(tables.flavors).values(
            id=flavor.id, name=flavor.name, body=bodies.FLAVOR.encode(flavor)
        )
    )


def delete_flavor(batch: Batch, change: DeleteFlavor) -> None:
    """See `DeleteFlavor`. An id goes before an equal name.

    Raises:
        NotFound: there is none of that id or name.
    """
    found = batch.connection.scalars(
        select(_f.id).where(or_(_f.id == change.id, _f.name == change.id))
    ).all()
    if not found:
        raise NotFound("flavor", change.id)
    chosen = change.id if change.id in found else found[0]
    batch.connection.execute(delete(tables.flavors).where(_f.id == chosen))


def put_topology(batch: Batch, change: PutTopology) -> None:
    """See `PutTopology`.

    Raises:
        UnknownName: a host is attached that is no root provider.
    """
    roots = select(tables.providers.c.name).where(tables.providers.c.parent.is_(None))
    known = set(batch.connection.scalars(roots))
    for tree, host in change.topology.attachments:
        if host not in known:
            line = change.topology.lines.get((tree, host))
            raise UnknownName("host", host, path=f"attachments.{host}", line=line)
    _write(batch, change.topology)


def rename_host(batch: Batch, old: str, new: str) -> None:
    """Let a renamed root provider keep its place: the topology knows hosts by name."""
    body = batch.connection.scalars(select(tables.topology.c.body)).one_or_none()
    if body is None:
        return
    stored = bodies.TOPOLOGY.decode(body)
    if not any(host == old for _, host in stored.attachments):
        return
    renamed = {
        (tree, new if host == old else host): domain
        for (tree, host), domain in stored.attachments.items()
    }
    _write(batch, replace(stored, attachments=renamed))


def _write(batch: Batch, topology: Topology) -> None:
    body = bodies.TOPOLOGY.encode(topology)
    table = tables.topology
    written = batch.connection.execute(update(table).where(table.c.id == 1).values(body=body))
    if not written.rowcount:
        batch.connection.execute(insert(table).values(id=1, body=body))
    batch.topology_moved = True
