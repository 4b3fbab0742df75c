"""Which root provider of the ledger is which of Nova's hypervisors."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from moorage.domain.nova_hosts import NovaHost
    from moorage.engine.state.snapshot import Snapshot


def hypervisor_rows(snapshot: Snapshot, hosts: Iterable[NovaHost]) -> Mapping[str, int]:
    """Hypervisor name -> row of its root provider; without those that have none.

    It is the provider with the hypervisor's UUID, whatever its name in Placement; otherwise the one
    with its name, unless the UUID of another hypervisor says that it is that one's.
    """
    roots = snapshot.hosts.tolist()
    by_uuid = {snapshot.uuids[row]: row for row in roots}
    by_name = {snapshot.names[row]: row for row in roots}
    hosts = tuple(hosts)
    found = {one.name: by_uuid[one.uuid] for one in hosts if one.uuid in by_uuid}
    taken = set(found.values())
    for one in hosts:
        row = by_name.get(one.name)
        if row is not None and one.name not in found and row not in taken:
            found[one.name] = row
    return found
