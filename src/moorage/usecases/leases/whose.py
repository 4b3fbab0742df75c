"""Which member of which ensemble a server is, for what its owner is told of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from moorage.domain.errors import NotFound

if TYPE_CHECKING:
    from moorage.usecases.ports import Store


def whose(store: Store, consumer: str, decision: str | None = None) -> dict[str, object]:
    """`ensemble`, `member` and `server` of a consumer; nothing of one that is no member.

    A member that only holds its place has no server yet.

    Args:
        store: where decisions and ensembles are.
        consumer: a server, or a member that is none yet.
        decision: the decision whose place it has; None: that of its bookings.
    """
    if decision is None:
        there = (one.decision for _, one in store.bookings(consumer=consumer))
        decision = next((one for one in there if one is not None), None)
    if decision is None:
        return {}
    try:
        ensemble = store.ensemble(store.decision(decision).ensemble_id)
    except NotFound:
        return {}
    for one in ensemble.members:
        if consumer in {one.uuid, one.server_id}:
            return {
                "ensemble": ensemble.id,
                "member": str(one.name),
                "server": one.server_id,
            }
    return {}
