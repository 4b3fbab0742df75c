"""What is in the way of an entry of the waitlist by now."""

from __future__ import annotations

from typing import TYPE_CHECKING

from moorage.domain.errors import MoorageError
from moorage.domain.waitlist import WaitsFor
from moorage.usecases.explain import refused_because
from moorage.usecases.leases.obstacles import there_by_now
from moorage.usecases.waitlist.attempt import asker
from moorage.usecases.waitlist.starts import ahead_of, placeable, quota_refusal, starts_of

if TYPE_CHECKING:
    from moorage.domain.waitlist import WaitlistEntry
    from moorage.engine.snapshot import Snapshot
    from moorage.usecases.parts import Parts


def in_its_way(parts: Parts, entry: WaitlistEntry, snapshot: Snapshot) -> str | None:
    """Why its first start would be refused, by who is there then; None: nobody can be named."""
    first = min(entry.first_at(snapshot.taken_at), entry.latest)
    if entry.waits_for is WaitsFor.QUOTA:
        refused = quota_refusal(parts, entry, first)
        return None if refused is None else refused.message
    caller = asker(entry)
    try:
        ensemble = placeable(parts, caller, entry)
        starts = starts_of(entry, first, first)
        keepers = parts.store.keepers().ensembles
        ahead = ahead_of(parts, ensemble, starts, (snapshot, keepers), entry)
        built = ahead.stated(starts, starts.first, snapshot)
        why = there_by_now(parts, built, snapshot, operator=caller.operator)
    except MoorageError:
        return None  # what it needs is gone: whoever tries it will find that out
    return None if why is None else refused_because(why)
