"""Places that nobody may use before their lease begins, or not everybody.

A lease says who may use its capacity until then (`Terms.before_start`). For all others its places
are taken from now on: a stay that ends in time, or would yield, is looked for beside them. Who has
been there when the lease was granted stays to its end; and leases are beside each other as ever,
whatever either says.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from moorage.domain.bookings import Binding, BookingState
from moorage.domain.errors import NotFound
from moorage.domain.leases import Yielding
from moorage.domain.period import Period
from moorage.engine.overlay import exchanged
from moorage.usecases.standing import bookings_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from moorage.domain.bookings import Booking
    from moorage.domain.leases import Lease
    from moorage.engine.snapshot import Snapshot
    from moorage.usecases.joint import Ask
    from moorage.usecases.ports import Store
    from moorage.usecases.proposal import Promise


def seen_by(store: Store, snapshot: Snapshot, ask: Ask, promise: Promise | None) -> Snapshot:
    """The fleet as one sees it that asks for places now: without those that it may not use."""
    if promise is not None or not (ask.preemptible or ask.until is not None):
        return snapshot
    whom = Yielding.PREEMPTIBLE if ask.preemptible else Yielding.BOUNDED
    shut = [one for one in store.shutting_out() if whom not in one.terms.before_start]
    places = (place for one in shut for place in _places(store, snapshot, one))
    return exchanged(snapshot, {some[0].consumer: some for some in places})


def _places(store: Store, snapshot: Snapshot, lease: Lease) -> Iterator[tuple[Booking, ...]]:
    """The places of a lease as if it began now, and stayed where it is."""
    now = snapshot.taken_at
    try:
        members = store.ensemble(lease.ensemble_id).members
    except NotFound:
        return
    for member in members:
        kept = tuple(
            replace(one, period=Period(now, one.period.end), binding=Binding.BOUND)
            for one in bookings_of(snapshot, member.uuid)
            if one.state is BookingState.RESERVED and one.period.start > now
        )
        if kept:
            yield kept
