"""Take over what a Blazar offers and has granted; what is there already is left alone.

Leases are granted here with a proof, or not at all: of those that another service has overbooked,
the ones that have begun come first, then the older ones.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final, TypeAlias

from moorage.domain.errors import Infeasible, MoorageError, NotFound, WrongState
from moorage.domain.reservation_content import ADDRESS, HOST, LEASE, PROPERTY
from moorage.usecases import reservables
from moorage.usecases.access import for_operators
from moorage.usecases.leases.create import create_lease
from moorage.usecases.ports import Caller
from moorage.usecases.proposal import Naming
from moorage.usecases.reservations.asking import Offered
from moorage.usecases.reservations.granted import asks, kept_id

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from moorage.domain.period import Instant
    from moorage.domain.reservation_content import (
        EnrolledAddress,
        EnrolledHost,
        GrantedLease,
        ReservationContent,
    )
    from moorage.usecases.parts import Parts
    from moorage.usecases.ports import Store

    _Step: TypeAlias = tuple[str, str, str, Callable[[], object]]

_UNFINISHED: Final = frozenset({"ERROR", "CREATING"})
"""States in which nobody knows what a lease has."""


@dataclass(frozen=True, slots=True)
class Refused:
    """What is not taken over, and why."""

    kind: str
    id: str
    name: str
    reason: str


@dataclass(frozen=True, slots=True)
class Missing:
    """What the ledger lacks of a content."""

    hosts: tuple[EnrolledHost, ...]
    private: tuple[str, ...]
    """Keys of hosts that are private there and not here."""
    addresses: tuple[EnrolledAddress, ...]
    leases: tuple[GrantedLease, ...]
    """In the order in which they are granted."""

    @property
    def steps(self) -> int:
        """How many things are written."""
        return sum(map(len, (self.hosts, self.private, self.addresses, self.leases)))


def missing(store: Store, content: ReservationContent) -> Missing:
    """What of the content the ledger lacks."""
    hosts = {one.reservable.name for one in reservables.offered_hosts(store, store.snapshot())}
    texts = {one.name for one in reservables.addresses(store)}
    leases = [one for one in content.leases if not _is_known(store, one)]
    return Missing(
        hosts=tuple(one for one in content.hosts if one.name not in hosts),
        private=tuple(sorted(content.private - reservables.private_keys(store))),
        addresses=tuple(one for one in content.addresses if one.text not in texts),
        leases=tuple(_in_order(leases, store.now())),
    )


def take_over(
    parts: Parts,
    caller: Caller,
    lacking: Missing,
    *,
    advance: Callable[[], object] = lambda: None,
) -> tuple[Refused, ...]:
    """Write what is missing, one by one; tell what could not be.

    Broken off, it is simply started again with what is missing then.

    Raises:
        Forbidden: the caller is no operator.
    """
    for_operators(caller)
    refused: list[Refused] = []
    for kind, id_, name, act in _steps(parts, caller, lacking):
        try:
            act()
        except MoorageError as error:
            refused.append(Refused(kind, id_, name, error.message))
        advance()
    return tuple(refused)


def _steps(parts: Parts, caller: Caller, lacking: Missing) -> Iterator[_Step]:
    for host in lacking.hosts:
        yield HOST, host.id, host.name, partial(_enrol, parts, caller, host)
    for key in lacking.private:
        yield PROPERTY, key, key, partial(reservables.mark_key, parts, caller, key, private=True)
    for address in lacking.addresses:
        yield ADDRESS, address.id, address.text, partial(_offer, parts, caller, address)
    offered = Offered(parts.store)
    for lease in lacking.leases:
        yield LEASE, lease.id, lease.name, partial(grant, parts, lease, offered)


def foreseen(parts: Parts, lacking: Missing) -> tuple[Refused, ...]:
    """What could not be taken over, as far as that is known before anything is written.

    Each lease is judged as if it were the only one, and not at all where hosts or addresses have
    to be offered first.
    """
    snapshot = parts.store.snapshot()
    names = {snapshot.names[row] for row in snapshot.roots.tolist()}
    found = [
        Refused(HOST, one.id, one.name, str(NotFound("host", one.name)))
        for one in lacking.hosts
        if one.name not in names
    ]
    offered = Offered(parts.store)
    for lease in lacking.leases:
        if lacking.hosts or lacking.addresses:
            break
        try:
            grant(parts, lease, offered, dry_run=True)
        except MoorageError as error:
            found.append(Refused(LEASE, lease.id, lease.name, error.message))
    return tuple(found)


def grant(parts: Parts, lease: GrantedLease, offered: Offered, *, dry_run: bool = False) -> None:
    """Grant a lease as another service did: to its owner, under its ids.

    Raises:
        WrongState: its service knows not what it has.
        Infeasible: there is no room for it here.
        InvalidDescription, LimitExceeded, Conflict: it is none that can be granted.
    """
    if lease.status in _UNFINISHED:
        raise WrongState(f"its state is {lease.status}")
    # Its requirements become names of hosts, which tenants may not write.
    owner = Caller(lease.user_id, lease.project_id, as_operator=True)
    last: Infeasible | None = None
    for ask in asks(lease, offered, parts.store.snapshot()):
        try:
            # A refusal that is written leaves an explanation, and one more each time it is tried.
            create_lease(parts, owner, ask, Naming(kept_id(lease.id)), dry_run=True)
            if not dry_run:
                create_lease(parts, owner, ask, Naming(kept_id(lease.id)))
        except Infeasible as error:
            last = error
        else:
            return
    assert last is not None, "at least one size is tried"
    raise last


def _is_known(store: Store, lease: GrantedLease) -> bool:
    try:
        store.lease(kept_id(lease.id))
    except NotFound:
        return False
    return True


def _in_order(leases: Iterable[GrantedLease], now: Instant) -> Sequence[GrantedLease]:
    return sorted(leases, key=lambda one: (one.period.start > now, one.created_at, one.id))


def _enrol(parts: Parts, caller: Caller, one: EnrolledHost) -> None:
    reservables.enrol_host(parts, caller, one.name, one.properties, one.id)


def _offer(parts: Parts, caller: Caller, one: EnrolledAddress) -> None:
    id_ = kept_id(one.id)
    reservables.offer_address(parts, caller, one.network, one.text, one.more, id_)
