"""Compare the ledger with a Blazar service, and import its hosts, addresses and leases.

An imported lease is granted like any other, or refused. If the service has overbooked its hosts,
leases that have begun are granted first, then the older ones.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from moorage.domain.content import Difference, DifferenceWay
from moorage.domain.errors import MoorageError, NotFound, WrongState
from moorage.domain.leases import LeaseState
from moorage.domain.period import format_instant
from moorage.domain.plain_values import text
from moorage.domain.reservation_content import ADDRESS, HOST, LEASE, PROPERTY
from moorage.usecases.blazar import reservable_hosts, reservables
from moorage.usecases.blazar.granted_leases import kept_id, sized_requests
from moorage.usecases.blazar.largest_size import grant_largest, new_lease_sizes
from moorage.usecases.blazar.lease_request import RESERVATIONS, OfferedResources
from moorage.usecases.ports import Caller
from moorage.usecases.shared.access import require_operator
from moorage.usecases.shared.lookup import if_stored

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from moorage.domain.leases import Lease
    from moorage.domain.period import Instant
    from moorage.domain.reservation_content import (
        EnrolledAddress,
        EnrolledHost,
        GrantedLease,
        ReservationContent,
    )
    from moorage.usecases.environment import UseCaseEnvironment
    from moorage.usecases.ports import Store

    _Step: TypeAlias = tuple[str, str, str, Callable[[], object]]


_NUMBERS = ("amount", "min", "max")
_OVER = {LeaseState.ENDING, LeaseState.CLOSED}


def differences(store: Store, content: ReservationContent) -> Iterator[Difference]:
    """The records of the content that the ledger lacks or has with other values.

    Details read `key: value there / value here`.
    """
    yield from _hosts(store, content)
    for key in sorted(content.private - reservables.private_keys(store)):
        yield Difference(PROPERTY, key, DifferenceWay.OTHERWISE, "private / not")
    yield from _addresses(store, content)
    for one in content.leases:
        found = if_stored(store.lease, kept_id(one.id))
        if found is None:
            yield Difference(LEASE, one.id, DifferenceWay.MISSING)
        else:
            yield from _otherwise(LEASE, one.id, _theirs(one), _ours(found))


def _hosts(store: Store, content: ReservationContent) -> Iterator[Difference]:
    here = {
        one.reservable.name: one.reservable.properties
        for one in reservables.offered_hosts(store, store.snapshot())
    }
    for one in content.hosts:
        if one.name not in here:
            yield Difference(HOST, one.name, DifferenceWay.MISSING)
        else:
            yield from _otherwise(HOST, one.name, one.properties, here[one.name])


def _addresses(store: Store, content: ReservationContent) -> Iterator[Difference]:
    here = {one.name: one for one in reservables.addresses(store)}
    for one in content.addresses:
        found = here.get(one.text)
        if found is None:
            yield Difference(ADDRESS, one.text, DifferenceWay.MISSING)
            continue
        theirs = {"id": kept_id(one.id), "network": one.network}
        ours = {"id": found.id, "network": found.properties["floating_network_id"]}
        yield from _otherwise(ADDRESS, one.text, theirs, ours)


def _otherwise(
    kind: str, subject: str, theirs: Mapping[str, object], ours: Mapping[str, object]
) -> Iterator[Difference]:
    told = [
        f"{key}: {theirs.get(key, 'none')} / {ours.get(key, 'none')}"
        for key in sorted(theirs.keys() | ours.keys())
        if theirs.get(key) != ours.get(key)
    ]
    if told:
        yield Difference(kind, subject, DifferenceWay.OTHERWISE, "; ".join(told))


def _theirs(one: GrantedLease) -> dict[str, object]:
    return {
        "name": one.name,
        "project": one.project_id,
        "user": one.user_id,
        "start": format_instant(one.period.start),
        "end": format_instant(one.period.end),
        "state": "not over",
        **{kept_id(part.id): _said(part.words) for part in one.reservations},
    }


def _ours(found: Lease) -> dict[str, object]:
    words = found.annotations.get(RESERVATIONS)
    said = words if isinstance(words, dict) else {}
    return {
        "name": found.name,
        "project": found.project_id,
        "user": found.user_id,
        "start": format_instant(found.terms.period.start),
        "end": format_instant(found.terms.period.end),
        "state": found.state.value if found.state in _OVER else "not over",
        **{part.id: _said(said.get(part.role, {})) for part in found.reservations},
    }


def _said(words: Mapping[str, Any]) -> str:
    """The requested type and numbers, such as `virtual:instance amount=3`."""
    numbers = [f"{key}={words[key]}" for key in _NUMBERS if words.get(key) is not None]
    return " ".join([str(words.get("resource_type")), *numbers])


_UNFINISHED: Final = frozenset({"ERROR", "CREATING"})
"""States of a lease whose reservations are unknown."""


@dataclass(frozen=True, slots=True)
class NotTakenOver:
    """A record that was not imported, and the reason."""

    kind: str
    id: str
    name: str
    reason: str


@dataclass(frozen=True, slots=True)
class MissingRecords:
    """Records of the content that the ledger lacks."""

    hosts: tuple[EnrolledHost, ...]
    private: tuple[str, ...]
    """Keys of hosts that are private there but not here."""
    addresses: tuple[EnrolledAddress, ...]
    leases: tuple[GrantedLease, ...]
    """Leases, in the order in which they are granted."""

    @property
    def steps(self) -> int:
        """The number of records to write."""
        return sum(map(len, (self.hosts, self.private, self.addresses, self.leases)))


def missing(store: Store, content: ReservationContent) -> MissingRecords:
    """The records of the content that the ledger lacks."""
    hosts = {one.reservable.name for one in reservables.offered_hosts(store, store.snapshot())}
    texts = {one.name for one in reservables.addresses(store)}
    leases = [one for one in content.leases if if_stored(store.lease, kept_id(one.id)) is None]
    return MissingRecords(
        hosts=tuple(one for one in content.hosts if one.name not in hosts),
        private=tuple(sorted(content.private - reservables.private_keys(store))),
        addresses=tuple(one for one in content.addresses if one.text not in texts),
        leases=tuple(_in_order(leases, store.now())),
    )


def take_over(
    env: UseCaseEnvironment,
    caller: Caller,
    lacking: MissingRecords,
    *,
    advance: Callable[[], object] = lambda: None,
) -> tuple[NotTakenOver, ...]:
    """Write missing records one by one; return those that were refused.

    An interrupted import is continued by starting it again.

    Raises:
        Forbidden: the caller is no operator.
    """
    require_operator(caller)
    refused: list[NotTakenOver] = []
    for kind, id_, name, act in _steps(env, caller, lacking):
        try:
            act()
        except MoorageError as error:
            refused.append(NotTakenOver(kind, id_, name, error.message))
        advance()
    return tuple(refused)


def _steps(env: UseCaseEnvironment, caller: Caller, lacking: MissingRecords) -> Iterator[_Step]:
    for host in lacking.hosts:
        yield HOST, host.id, host.name, partial(_enrol, env, caller, host)
    for key in lacking.private:
        yield PROPERTY, key, key, partial(reservables.mark_key, env, caller, key, private=True)
    for address in lacking.addresses:
        yield ADDRESS, address.id, address.text, partial(_offer, env, caller, address)
    offered = OfferedResources(env.store)
    for lease in lacking.leases:
        yield LEASE, lease.id, lease.name, partial(grant, env, lease, offered)


def foreseeable_refusals(
    env: UseCaseEnvironment, lacking: MissingRecords
) -> tuple[NotTakenOver, ...]:
    """Records that will be refused, as far as is known before anything is written.

    Each lease is checked as if it were the only one, and not at all if hosts or addresses must be
    offered first.
    """
    snapshot = env.store.snapshot()
    names = {snapshot.names[row] for row in snapshot.hosts.tolist()}
    found = [
        NotTakenOver(HOST, one.id, one.name, str(NotFound("host", one.name)))
        for one in lacking.hosts
        if one.name not in names
    ]
    offered = OfferedResources(env.store)
    for lease in lacking.leases:
        if lacking.hosts or lacking.addresses:
            break
        try:
            grant(env.in_dry_run(), lease, offered)
        except MoorageError as error:
            found.append(NotTakenOver(LEASE, lease.id, lease.name, error.message))
    return tuple(found)


def grant(env: UseCaseEnvironment, lease: GrantedLease, offered: OfferedResources) -> None:
    """Grant a lease that another service granted, to its owner and under its ids.

    Raises:
        WrongState: the lease is in a state in which its reservations are unknown.
        Infeasible: the lease does not fit.
        InvalidDescription, LimitExceeded, Conflict: the lease cannot be read or granted.
    """
    if lease.status in _UNFINISHED:
        raise WrongState(f"its state is {lease.status}")
    for field_name in ("name", "project_id", "user_id"):
        text(getattr(lease, field_name), field_name)
    owner = Caller(lease.user_id, lease.project_id)
    count, request_at = sized_requests(lease, offered, env.store.snapshot())
    sizes = new_lease_sizes(owner, count, request_at)
    # No explanation: a written refusal would store another one at each try.
    grant_largest(env, sizes, lambda: kept_id(lease.id), explained=False)


def _in_order(leases: Iterable[GrantedLease], now: Instant) -> Sequence[GrantedLease]:
    return sorted(leases, key=lambda one: (one.period.start > now, one.created_at, one.id))


def _enrol(env: UseCaseEnvironment, caller: Caller, one: EnrolledHost) -> None:
    reservable_hosts.enrol_host(env, caller, one.name, one.properties, one.id)


def _offer(env: UseCaseEnvironment, caller: Caller, one: EnrolledAddress) -> None:
    id_ = kept_id(one.id)
    reservables.offer_address(env, caller, one.network, one.text, one.more, id_)
