"""Read one provider back from the snapshot's columns: for comparing, never in a hot loop."""

from __future__ import annotations

from typing import TYPE_CHECKING

from moorage.domain.providers import Inventory, ResourceProvider

if TYPE_CHECKING:
    from moorage.engine.snapshot import Snapshot


def recorded(snapshot: Snapshot, uuid: str) -> ResourceProvider | None:
    """The provider as the snapshot has it, or None if there is no such provider."""
    row = snapshot.row_of.get(uuid)
    if row is None or not snapshot.alive[row]:
        return None
    parent = int(snapshot.parent[row])
    return ResourceProvider(
        uuid=uuid,
        name=snapshot.names[row],
        parent_uuid=None if parent < 0 else snapshot.uuids[parent],
        root_uuid=snapshot.uuids[int(snapshot.root[row])],
        generation=int(snapshot.generation[row]),
        revision=int(snapshot.revisions[row]),
        created_at=int(snapshot.created_at[row]),
        updated_at=int(snapshot.updated_at[row]),
        inventories=_inventories(snapshot, row),
        traits=frozenset(name for name, mask in snapshot.traits.items() if mask[row]),
        aggregates=frozenset(name for name, rows in snapshot.aggregates.items() if row in rows),
    )


def _inventories(snapshot: Snapshot, row: int) -> tuple[Inventory, ...]:
    found = []
    for name, columns in sorted(snapshot.classes.items()):
        at = int(columns.position[row])
        if at >= 0:
            found.append(
                Inventory(
                    resource_class=name,
                    total=int(columns.total[at]),
                    reserved=int(columns.reserved[at]),
                    min_unit=int(columns.min_unit[at]),
                    max_unit=int(columns.max_unit[at]),
                    step_size=int(columns.step_size[at]),
                    allocation_ratio=float(columns.allocation_ratio[at]),
                    updated_at=int(columns.updated_at[at]),
                )
            )
    return tuple(found)
