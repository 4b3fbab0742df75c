"""Who is told of a planned change of capacity: its operator, at its edges, and of whom."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from moorage.domain.capacity_windows import WindowKind
from moorage.domain.effects import EffectKind
from moorage.domain.errors import NotFound
from moorage.domain.period import FOREVER, format_instant
from moorage.usecases.capacity.staying import host_names, staying
from moorage.usecases.leases import facts

if TYPE_CHECKING:
    from collections.abc import Mapping

    from moorage.domain.capacity_windows import CapacityWindow
    from moorage.domain.changes import Change
    from moorage.domain.effects import Effect
    from moorage.domain.period import Duration
    from moorage.engine.snapshot import Snapshot
    from moorage.usecases.parts import Parts

WINDOW: Final = "capacity_window"
"""The field of an effect's details that holds the window's id."""
_MOST: Final = 1_000
"""Servers that one message names."""


def notices(snapshot: Snapshot, window: CapacityWindow, notice: Duration) -> list[Change]:
    """A notice before its hosts are away, when they are, and when they are back."""
    now, start, end = snapshot.taken_at, window.period.start, window.period.end
    edges = [(start, "begins"), (end, "ends")]
    if start > now:
        edges.insert(0, (max(start - notice, now), "soon"))
    if window.kind is WindowKind.DELIVERY:
        edges = [(end, "there")]
    return [
        facts.fact(
            EffectKind.NOTIFY,
            window.id,
            window.project_id,
            due=at,
            now=now,
            details={
                WINDOW: window.id,
                "kind": window.kind.value,
                "edge": edge,
                "hosts": sorted(host_names(snapshot, window).values()),
                "start": format_instant(start),
                "end": None if end == FOREVER else format_instant(end),
                "reason": window.reason,
            },
            same=(window.id, edge),
        )
        for at, edge in edges
        if at != FOREVER
    ]


def affected(parts: Parts, effect: Effect) -> Mapping[str, object]:
    """What a notice says besides, as it is when it is told: servers on the hosts in that time."""
    id_ = effect.details.get(WINDOW)
    if effect.kind is not EffectKind.NOTIFY or id_ is None:
        return {}
    try:
        window = parts.store.capacity_window(str(id_))
    except NotFound:
        return {}
    found = staying(parts.store.snapshot(), window)
    servers = [
        {
            "server": one.consumer,
            "project_id": one.project_id,
            "host": one.host,
            "ends": None if one.end == FOREVER else format_instant(one.end),
        }
        for one in found[:_MOST]
    ]
    return {"servers": servers, "affected": len(found)}
