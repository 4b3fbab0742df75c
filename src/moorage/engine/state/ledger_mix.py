"""The mix of requests as the ledger has it: what the consumers of a sample of hosts have booked."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from moorage.domain.request_mix import RequestMix, Shape

if TYPE_CHECKING:
    from moorage.engine.state.snapshot import Snapshot

SAMPLE: Final = 400
"""So many hosts are looked at, evenly spread over all."""
RENEWED: Final = 500
"""After so many revisions the mix is counted anew: what is asked for changes slowly."""


def ledger_mix(snapshot: Snapshot) -> RequestMix:
    """What live bookings on a sample of hosts say is asked for; empty in an empty ledger.

    Each consumer counts once, with all that it has booked in one tree. The mix is kept for
    `RENEWED` revisions.
    """
    kept = snapshot.cache.get("request mix")
    if isinstance(kept, tuple) and 0 <= snapshot.revision - kept[0] < RENEWED and kept[1].shapes:
        found: RequestMix = kept[1]
        return found
    found = _counted(snapshot)
    snapshot.cache["request mix"] = snapshot.revision, found
    return found


def _counted(snapshot: Snapshot) -> RequestMix:
    hosts, now = snapshot.hosts, snapshot.taken_at
    counts: Counter[Shape] = Counter()
    for host in hosts[:: -(-len(hosts) // SAMPLE) or 1].tolist():
        taken: dict[str, Counter[str]] = {}
        for row in snapshot.tree(host).tolist():
            for one in snapshot.state(row).bookings:
                if one.live(now):
                    taken.setdefault(one.consumer, Counter()).update(one.amounts)
        counts.update(Shape(tuple(sorted(amounts.items()))) for amounts in taken.values())
    return RequestMix.of(counts)
