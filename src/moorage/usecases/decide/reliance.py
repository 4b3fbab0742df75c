"""What an answer depends on: providers and consumers that the commit must find unchanged."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from moorage.domain.bookings import Booking
    from moorage.domain.providers import ResourceProvider
    from moorage.engine.state.snapshot import Snapshot
    from moorage.usecases.decide.member_places import MemberPlaces
    from moorage.usecases.decide.solution import VerifiedPlacement

_NOBODY: Final[Mapping[str, frozenset[str]]] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Reliance:
    """The fields of a `Changeset` of the same names."""

    relies_on: Mapping[str, int]
    seen: Mapping[str, ResourceProvider]
    standing: Mapping[str, frozenset[str]]


def preemptible_revisions(snapshot: Snapshot, kept: Iterable[Booking]) -> dict[str, int]:
    """Provider revisions that must stand where bookings are rewritten with the end that they have.

    Of preemptible ones: a lease that comes, moves or goes gives them another end.
    """
    return {
        one.provider: int(snapshot.revisions[snapshot.row_of[one.provider]])
        for one in kept
        if one.preemptible
    }


def _givers(snapshot: Snapshot, found: VerifiedPlacement) -> set[str]:
    """Providers that placed members take from, and those whose aggregates enable sharing.

    That is who of the host's tree is in an aggregate: without it the sharing would end.
    """
    givers: set[str] = set()
    for place in found.places.values():
        host = snapshot.row_of[place.host]
        rows = [snapshot.row_of[uuid] for uuid in {*place.allocations, *place.groups.values()}]
        givers |= {snapshot.uuids[row] for row in rows}
        if any(int(snapshot.root[row]) != host for row in rows):
            givers |= {
                snapshot.uuids[row]
                for row in snapshot.tree(host).tolist()
                if snapshot.aggregates_of(row)
            }
    return givers


def reliance(
    snapshot: Snapshot,
    found: VerifiedPlacement,
    stand: MemberPlaces,
    evicted: Mapping[str, frozenset[str]] = _NOBODY,
    beside: Iterable[str] = (),
    firm: Iterable[str] = (),
) -> Reliance:
    """The providers and consumers that the verification of an answer depends on.

    Where a policy asked who else is on a host, nobody may come or go in its whole tree. On the
    other hosts that members use, others may, while there is room (the commit judges that): only
    what the hosts are must stay, and members that were not placed now must still stand there, as
    must those who are `evicted` (consumer -> providers). `beside` names more providers that are
    used, `firm` those on which nothing at all may change.
    """
    asked = {
        snapshot.uuids[row]
        for uuid in found.asked
        for row in snapshot.tree(snapshot.row_of[uuid]).tolist()
    } | set(firm)
    consumers: dict[str, set[str]] = {}
    for name in found.built.request.fixed:
        for booking in stand.bookings[name]:
            consumers.setdefault(booking.consumer, set()).add(booking.provider)
    for consumer, providers in evicted.items():
        consumers.setdefault(consumer, set()).update(providers)
    used = set(found.hosts.values()).union(beside, _givers(snapshot, found), *consumers.values())
    return Reliance(
        relies_on={
            uuid: int(snapshot.revisions[snapshot.row_of[uuid]]) for uuid in sorted(asked | used)
        },
        seen={
            uuid: snapshot.state(snapshot.row_of[uuid]).provider for uuid in sorted(used - asked)
        },
        standing={name: frozenset(providers) for name, providers in consumers.items()},
    )
