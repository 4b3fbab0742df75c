"""What an estimate was made from: as long as that is so, it is what the ledger says."""

from __future__ import annotations

from hashlib import sha256
from itertools import takewhile
from typing import TYPE_CHECKING, Final

from moorage.domain.period import FOREVER, Period

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from moorage.domain.waitlist import WaitlistEntry
    from moorage.engine.snapshot import Snapshot
    from moorage.usecases.ports import Store

ESTIMATED: Final = 200
"""Entries that are estimated: the first ones."""


def line_of(store: Store) -> Sequence[WaitlistEntry]:
    """Those who are estimated, in their order."""
    return store.in_line(Period(0, FOREVER), ESTIMATED)


def basis(
    store: Store, snapshot: Snapshot, line: Iterable[WaitlistEntry], entry: WaitlistEntry
) -> str:
    """A short name for all that the estimate of an entry depends on; the same in every process.

    That is what is booked until when, who keeps others out, and who waits before it.
    """
    now, alive = snapshot.taken_at, snapshot.alive
    before = takewhile(lambda one: one.id != entry.id, line)
    ids = " ".join(one.id for one in before if not one.over_at(now))
    booked = f"{int(snapshot.revisions[alive].sum())} {int(alive.sum())} {snapshot.valid_until}"
    text = f"{booked} {store.keepers().revision} {ids}"
    return sha256(text.encode()).hexdigest()[:16]
