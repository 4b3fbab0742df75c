"""The mix of requests as the ledger has it: what the consumers of a sample of hosts have booked."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from moorage.domain.request_mix import RequestMix, Shape, shape, shape_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from moorage.domain.flavors import Flavor
    from moorage.engine.state.snapshot import Snapshot

SAMPLE: Final = 400
"""So many hosts are looked at, evenly spread over all."""
RENEWED: Final = 500
"""After so many revisions the mix is counted anew: what is asked for changes slowly. One that was
counted from fewer consumers is counted anew after as many revisions as there were."""


def ledger_mix(snapshot: Snapshot, flavors: Callable[[], Iterable[Flavor]]) -> RequestMix:
    """What live bookings on a sample of hosts say is asked for; empty in an empty ledger.

    Each consumer counts once, with all that it has booked in one tree. Bookings do not say which
    traits were required: one with exactly the amounts of a flavor counts as a server of it, with
    the flavor's traits and groups. Others require nothing. The mix is kept for some revisions:
    see `RENEWED`.

    Args:
        snapshot: the ledger.
        flavors: reads the flavors there are; called only if the mix is counted.
    """
    kept = snapshot.cache.get("request mix")
    if isinstance(kept, tuple):
        found: RequestMix = kept[1]
        if 0 <= snapshot.revision - kept[0] < min(RENEWED, sum(n for _, n in found.shapes)):
            return found
    found = _counted(snapshot, flavors)
    snapshot.cache["request mix"] = snapshot.revision, found
    return found


def _counted(snapshot: Snapshot, flavors: Callable[[], Iterable[Flavor]]) -> RequestMix:
    hosts, now = snapshot.hosts, snapshot.taken_at
    alike: Counter[tuple[tuple[str, int], ...]] = Counter()
    for host in hosts[:: -(-len(hosts) // SAMPLE) or 1].tolist():
        taken: dict[str, Mapping[str, int]] = {}
        for row in snapshot.tree(host).tolist():
            for one in snapshot.state(row).bookings:
                if one.live(now):
                    mine = taken.get(one.consumer)
                    taken[one.consumer] = one.amounts if mine is None else _sum(mine, one.amounts)
        alike.update(tuple(sorted(amounts.items())) for amounts in taken.values())
    counts: Counter[Shape] = Counter()
    for amounts, count in alike.items():
        counts[shape(dict(amounts))] += count
    if not counts:
        return RequestMix()
    known = shapes_by_amounts(flavors())
    asked: Counter[Shape] = Counter()
    for taken_alone, count in counts.items():
        asked[known.get(taken_alone, taken_alone)] += count
    return RequestMix.of(asked)


def _sum(one: Mapping[str, int], other: Mapping[str, int]) -> Mapping[str, int]:
    return {name: one.get(name, 0) + other.get(name, 0) for name in one.keys() | other.keys()}


def shapes_by_amounts(flavors: Iterable[Flavor]) -> Mapping[Shape, Shape]:
    """The amounts of flavors, as a shape without traits -> what every flavor with these asks for.

    Of flavors that differ, the traits that each of them names are known, and the amounts in all.
    """
    alike: dict[Shape, set[Shape]] = {}
    for flavor in flavors:
        alike.setdefault(shape(flavor.whole), set()).add(shape_of(flavor))
    return {amounts: _common(amounts, some) for amounts, some in alike.items()}


def _common(amounts: Shape, some: set[Shape]) -> Shape:
    first = min(some)
    if len(some) == 1:
        return first
    required = set(first.required).intersection(*(one.required for one in some))
    forbidden = set(first.forbidden).intersection(*(one.forbidden for one in some))
    return shape(dict(amounts.resources), required, forbidden)
