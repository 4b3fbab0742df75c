"""The reliance of a placement: providers and consumers that the commit must find unchanged."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from moorage.domain.changes import Changeset
from moorage.usecases.decide.member_places import bookings_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from moorage.domain.bookings import Booking
    from moorage.engine.state.snapshot import Snapshot
    from moorage.usecases.decide.member_places import MemberPlaces
    from moorage.usecases.decide.solution import VerifiedPlacement

_NOBODY: Final[Mapping[str, frozenset[str]]] = MappingProxyType({})


def preemptible_revisions(snapshot: Snapshot, kept: Iterable[Booking]) -> dict[str, int]:
    """Provider -> revision that a rewrite of bookings with their present ends relies on.

    Only for preemptible bookings: a concurrent change of a lease may change their ends.
    """
    return {
        one.provider: int(snapshot.revisions[snapshot.row_of[one.provider]])
        for one in kept
        if one.preemptible
    }


def _givers(snapshot: Snapshot, found: VerifiedPlacement) -> set[str]:
    """Providers that placed members book on, and providers whose aggregates make that possible.

    The latter, for a member that books on a sharing provider: all providers in an aggregate in the
    tree of its host.
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


def _servers_below(snapshot: Snapshot, used: Iterable[str]) -> dict[str, frozenset[str]]:
    """Servers that offer any of these providers -> the providers on which they have bookings.

    With the servers on which those stand in turn. A slice is where its server is: the placement
    holds while the server stays there.
    """
    found: dict[str, frozenset[str]] = {}
    waiting = [snapshot.row_of[uuid] for uuid in used]
    while waiting:
        server = snapshot.offered_by.get(waiting.pop())
        if server is not None and server not in found:
            found[server] = frozenset(one.provider for one in bookings_of(snapshot, server))
            waiting += [snapshot.row_of[uuid] for uuid in found[server]]
    return found


def reliance(
    snapshot: Snapshot,
    found: VerifiedPlacement,
    member_places: MemberPlaces,
    evicted: Mapping[str, frozenset[str]] = _NOBODY,
    beside: Iterable[str] = (),
    firm: Iterable[str] = (),
) -> Changeset:
    """An empty changeset that relies on all that the verification of a placement depends on.

    On hosts whose occupants a policy has read, no booking may change in the whole tree. On the
    other hosts that members use, bookings may change while the capacity suffices (the commit checks
    that): only the provider's properties must be unchanged, and members that were not placed now
    must still be booked there, as must the servers whose slices are used, and the consumers in
    `evicted` (consumer -> providers). `beside`
    are more providers that are used, `firm` those on which nothing may change.
    """
    unchanged = {
        snapshot.uuids[row]
        for uuid in found.inspected_hosts
        for row in snapshot.at_host(snapshot.row_of[uuid])
    } | set(firm)
    consumers: dict[str, set[str]] = {}
    for name in found.built.request.fixed:
        for booking in member_places.bookings[name]:
            consumers.setdefault(booking.consumer, set()).add(booking.provider)
    for consumer, providers in evicted.items():
        consumers.setdefault(consumer, set()).update(providers)
    used = set(found.hosts.values()).union(beside, _givers(snapshot, found), *consumers.values())
    for server, providers in _servers_below(snapshot, used).items():
        consumers.setdefault(server, set()).update(providers)
        used |= providers
        used |= {snapshot.uuids[snapshot.root[snapshot.row_of[uuid]]] for uuid in providers}
    return Changeset(
        (),
        relies_on={
            uuid: int(snapshot.revisions[snapshot.row_of[uuid]])
            for uuid in sorted(unchanged | used)
        },
        seen={
            uuid: snapshot.state(snapshot.row_of[uuid]).provider
            for uuid in sorted(used - unchanged)
        },
        standing={name: frozenset(providers) for name, providers in consumers.items()},
        topology_revision=snapshot.topology_revision,
    )
