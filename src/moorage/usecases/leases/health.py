"""Which leases do not have all their places: found by looking at hosts, not at leases.

A place that a lease holds is missing while its host is disabled, and while its inventories have
no room for it: because capacity was lost, or because somebody is overrun. Where several leases
hold places in what is left, those promised first keep theirs. `affected` says which members are
concerned, so that others can be found for them; `note` writes down what it means for the lease.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np

from moorage.domain.bookings import BookingState
from moorage.domain.changes import Changeset, PutLease
from moorage.domain.effects import EffectKind
from moorage.domain.errors import ConcurrentUpdate, DuplicateName, NotFound
from moorage.domain.leases import LeaseState
from moorage.engine.overlay import overflow
from moorage.usecases.leases import facts
from moorage.usecases.ports import Page

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from moorage.domain.bookings import Booking
    from moorage.engine.columns import ProviderState
    from moorage.engine.snapshot import Snapshot
    from moorage.usecases.parts import Parts
    from moorage.usecases.ports import Store

DISABLED: Final = "COMPUTE_STATUS_DISABLED"
_PAGE: Final = 1000
_OPEN: Final = (LeaseState.PENDING, LeaseState.STARTING, LeaseState.ACTIVE)


def affected(snapshot: Snapshot) -> Mapping[str, frozenset[str]]:
    """The members that have no sound place, by their decision.

    Returns:
        Decision -> consumers (UUIDs of members) with a reserved booking that cannot be kept.
    """
    found: dict[str, set[str]] = defaultdict(set)
    for row in _suspects(snapshot):
        state = snapshot.state(row)
        reserved = [one for one in snapshot.bookings_of(row) if _kept_for_a_lease(one)]
        if not reserved:
            continue
        disabled = DISABLED in snapshot.traits_of(int(snapshot.root[row]))
        for one in reserved if disabled else _without_room(snapshot, state, reserved):
            found[str(one.decision)].add(one.consumer)
    return {decision: frozenset(members) for decision, members in found.items()}


def _suspects(snapshot: Snapshot) -> list[int]:
    """Living rows with an inventory that is more than full some time, or under a disabled host."""
    bad = np.zeros(len(snapshot.uuids), dtype=np.bool_)
    for columns in snapshot.classes.values():
        bad[columns.rows[columns.peak > columns.capacity]] = True
    disabled = snapshot.traits.get(DISABLED)
    if disabled is not None:
        bad |= disabled[snapshot.root]
    rows: list[int] = np.flatnonzero(bad & snapshot.alive).tolist()
    return rows


def _without_room(
    snapshot: Snapshot, state: ProviderState, reserved: list[Booking]
) -> Iterator[Booking]:
    """Those reserved bookings that do not fit once the ones promised before them are in."""
    now = snapshot.taken_at
    kept = [one for one in state.bookings if not _kept_for_a_lease(one)]
    for one in reserved:
        if overflow(state.provider.inventories, kept, one.amounts, one.period, now) is None:
            kept.append(one)
        else:
            yield one


def _kept_for_a_lease(booking: Booking) -> bool:
    return booking.state is BookingState.RESERVED and booking.decision is not None


def note(parts: Parts, snapshot: Snapshot, known: Collection[str]) -> frozenset[str]:
    """Write down which leases are degraded, and which are sound again.

    Args:
        parts: the ports.
        snapshot: what is looked at.
        known: leases that were degraded before.

    Returns:
        The leases that are degraded now.
    """
    missing = affected(snapshot)
    leases: dict[str, int] = {}
    for decision, members in missing.items():
        try:
            lease_id = parts.store.decision(decision).lease_id
        except NotFound:
            continue
        if lease_id is not None:
            leases[lease_id] = len(members)
    for one in sorted({*leases, *known}):
        _note(parts, one, leases.get(one, 0))
    return frozenset(leases)


def degraded(store: Store) -> frozenset[str]:
    """Every lease that is written down as degraded. Reads all that are not over."""
    found: set[str] = set()
    for state in _OPEN:
        marker = None
        while page := store.leases(project_id=None, state=state, page=Page(_PAGE, marker)):
            found |= {one.id for one in page if one.degraded}
            marker = page[-1].id
    return frozenset(found)


def _note(parts: Parts, lease_id: str, missing: int) -> None:
    """Write it into the lease, with a notice to its owner, where it has changed."""
    try:
        lease = parts.store.lease(lease_id)
        if lease.state not in _OPEN or lease.missing == missing:
            return
        now = parts.store.now()
        noted = replace(lease, degraded=missing > 0, missing=missing, updated_at=now)
        told = facts.fact(
            EffectKind.NOTIFY,
            lease.id,
            lease.project_id,
            due=now,
            now=now,
            details={
                **facts.of_lease(lease),
                "state": lease.state.value,
                "degraded": noted.degraded,
                "missing": missing,
            },
            same=(lease.id, "health", lease.generation),
        )
        parts.store.commit(Changeset((PutLease(noted, lease.generation), told)))
    except (ConcurrentUpdate, DuplicateName, NotFound):
        return  # changed or noted meanwhile; if it was changed, the ledger has moved
