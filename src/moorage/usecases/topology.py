"""Load the topology in one call: levels, domains and where hosts stand."""

from __future__ import annotations

from typing import TYPE_CHECKING

from moorage.domain.changes import Changeset, PutTopology
from moorage.domain.errors import UnknownName
from moorage.usecases.access import for_operators

if TYPE_CHECKING:
    from moorage.domain.topology import Topology
    from moorage.usecases.parts import Parts
    from moorage.usecases.ports import Caller


def put_topology(
    parts: Parts, caller: Caller, topology: Topology, *, dry_run: bool = False
) -> None:
    """Replace the whole topology.

    Raises:
        Forbidden: the caller is no operator.
        UnknownName: it places a host that is no root provider.
    """
    for_operators(caller)
    snapshot = parts.store.snapshot()
    roots = {snapshot.names[row] for row in snapshot.roots.tolist()}
    for tree, host in topology.attachments:
        if host not in roots:
            line = topology.lines.get((tree, host))
            raise UnknownName("host", host, path=f"attachments.{host}", line=line)
    if not dry_run:
        parts.store.commit(Changeset((PutTopology(topology),)))
