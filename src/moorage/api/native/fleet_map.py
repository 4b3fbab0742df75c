"""`/v1/fleet/map`: the whole fleet in columns, for a page that draws it."""

from __future__ import annotations

from base64 import b64encode
from typing import TYPE_CHECKING

from moorage.api.native.capacity import traits_of
from moorage.api.native.kept_bodies import PLAIN, kept_reply
from moorage.api.native.paging import ENCODER
from moorage.api.native.reading import instant
from moorage.domain.period import format_instant
from moorage.usecases.capacity.fleet_map import fleet_map
from moorage.usecases.shared.kept_maps import MapQuery
from moorage.wire import fleet_map as wire

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from moorage.api.native.call import Call, Reply
    from moorage.usecases.shared.kept_maps import FleetMap


def show(call: Call) -> Reply:
    """GET: the map of the fleet, or with `since` what has changed."""
    query = call.query
    at = query.get("at")
    required, forbidden = traits_of(query.get("trait", ""), "trait")
    asked = MapQuery(
        resource_class=query.get("class"),
        at=None if at is None else instant(at, "at"),
        tree=query.get("tree"),
        level=query.get("level"),
        flavor=query.get("flavor"),
        required=required,
        forbidden=forbidden,
        ensemble=query.get("ensemble"),
        project_id=call.caller.project_id if "flavor" in query else "",
    )
    found, before = call.perform(fleet_map, asked, query.get("since"))
    since = None if before is None else _since(found, before)
    if since is not None:
        return kept_reply(call, found.tag, since, lambda: since[PLAIN])
    return kept_reply(call, found.tag, found.bodies, lambda: _whole(found))


def _since(found: FleetMap, before: FleetMap) -> dict[str, bytes] | None:
    """What has changed since a map before, as it is sent; None: it shows other hosts."""
    if (kept := found.differences.get(before.tag)) is not None:
        return kept
    changed = _changed(found, before)
    return None if changed is None else found.differences.setdefault(before.tag, {PLAIN: changed})


def _whole(found: FleetMap) -> bytes:
    layout = found.layout
    return ENCODER.encode(
        wire.OneFleetMap(
            wire.FleetMap(
                revision=found.revision,
                tag=found.tag,
                at=format_instant(found.at),
                computed_at=format_instant(found.computed_at),
                resource_class=found.resource_class,
                classes=list(found.classes),
                trees={tree: list(names) for tree, names in found.levels.items()},
                tree=layout.tree,
                level=layout.level,
                blocks=wire.Blocks(
                    name=list(layout.blocks),
                    parent=layout.parent.tolist(),
                    first=layout.first.tolist(),
                    count=layout.count.tolist(),
                    free=found.block_free.tolist(),
                    capacity=found.block_capacity.tolist(),
                    fits=None if found.block_fits is None else found.block_fits.tolist(),
                ),
                parents=wire.Parents(layout.parent_level, list(layout.parents)),
                hosts=wire.MapHosts(
                    name=list(layout.names),
                    fill=_packed(found.fill),
                    flags=_packed(found.flags.astype("<u2")),
                    fits=None if found.fits is None else _packed(found.fits),
                ),
            )
        )
    )


def _changed(found: FleetMap, before: FleetMap) -> bytes | None:
    """The difference from a map before; None: it shows other hosts."""
    at = found.changed_since(before)
    if at is None:
        return None
    return ENCODER.encode(
        wire.OneFleetMap(
            wire.FleetMap(
                revision=found.revision,
                tag=found.tag,
                at=format_instant(found.at),
                computed_at=format_instant(found.computed_at),
                since=before.tag,
                changed=wire.ChangedHosts(
                    index=at.tolist(),
                    fill=_packed(found.fill[at]),
                    flags=_packed(found.flags[at].astype("<u2")),
                    fits=None if found.fits is None else _packed(found.fits[at]),
                ),
                changed_blocks=wire.ChangedBlocks(
                    free=found.block_free.tolist(),
                    capacity=found.block_capacity.tolist(),
                    fits=None if found.block_fits is None else found.block_fits.tolist(),
                ),
            )
        )
    )


def _packed(column: NDArray[np.generic]) -> str:
    return b64encode(column.tobytes()).decode()
