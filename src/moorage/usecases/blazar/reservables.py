"""Reservables: hosts and floating IPs that operators offer for reservation, and their properties.

An offered host gets a child provider with one unit of its own. A lease of the whole host takes that
unit in the ledger, and a policy keeps other consumers off the host. An address is a root provider
with one unit, in the aggregate of its network.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from moorage.domain import plain_values
from moorage.domain.bookings import BookingState
from moorage.domain.changes import (
    Changeset,
    CreateProvider,
    CreateResourceClass,
    DeleteProvider,
    DropReservable,
    PutAggregates,
    PutInventories,
    PutReservable,
)
from moorage.domain.errors import DuplicateName, InUse, InvalidDescription, NotFound
from moorage.domain.providers import Inventory
from moorage.domain.reservables import ADDRESS, WHOLE_HOST, Reservable, ReservableKind
from moorage.usecases.claims.claim import zones_of
from moorage.usecases.shared.access import require_operator

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from moorage.engine.state.snapshot import Snapshot
    from moorage.usecases.environment import UseCaseEnvironment
    from moorage.usecases.ports import Caller, Store

MAX_KEY: Final = 64
MAX_VALUE: Final = 1_024
"""Longest value of a property, in characters."""
MAX_KEYS: Final = 1_000
"""Most keys of one host or address."""
_LONGEST_ADDRESS: Final = 64
_LONGEST_NETWORK: Final = 36
UNIT: Final = "blazar_"
"""Prefix of the name of a host's unit provider; Blazar uses the same."""
_PRIVATE: Final = "private"
OF_EVERY_HOST: Final = frozenset(
    {
        *("id", "hypervisor_hostname", "service_name", "availability_zone"),
        *("vcpus", "memory_mb", "local_gb"),
    }
)
"""Properties that every host has, whatever was added to it."""


@dataclass(frozen=True, slots=True)
class OfferedHost:
    """A reservable host, with the capacity of its tree."""

    reservable: Reservable
    root: str
    """The UUID of its root provider."""
    totals: Mapping[str, int]
    """Resource class -> units without allocation ratio, less the reserved ones."""
    zone: str | None

    @property
    def properties(self) -> Mapping[str, object]:
        """The properties for requirements: the host's own, then those that operators added."""
        return MappingProxyType(
            {
                "id": self.reservable.id,
                "hypervisor_hostname": self.reservable.name,
                "service_name": self.reservable.name,
                "availability_zone": self.zone,
                "vcpus": self.totals.get("VCPU", 0) + self.totals.get("PCPU", 0),
                "memory_mb": self.totals.get("MEMORY_MB", 0),
                "local_gb": self.totals.get("DISK_GB", 0),
                **self.reservable.properties,
            }
        )


def offered_hosts(store: Store, snapshot: Snapshot) -> Sequence[OfferedHost]:
    """All offered hosts that exist, in the order in which they were offered."""
    found = []
    for one in store.reservables(ReservableKind.HOST):
        row = None if one.provider is None else snapshot.row_of.get(one.provider)
        if row is not None:
            found.append(_offered(snapshot, one, int(snapshot.root[row])))
    return found


def offered_host(store: Store, snapshot: Snapshot, id_: str) -> OfferedHost:
    """The offered host with this id.

    Raises:
        NotFound: no host is offered under it.
    """
    for one in offered_hosts(store, snapshot):
        if one.reservable.id == id_:
            return one
    raise NotFound("host", id_)


def offer_host(
    env: UseCaseEnvironment, caller: Caller, name: str, properties: Mapping[str, str]
) -> OfferedHost:
    """Offer a host of the fleet, by the name of its root provider.

    Raises:
        Forbidden: the caller is no operator.
        NotFound: the fleet has no such host.
        DuplicateName: the host is offered already.
        InUse: servers run on it.
        InvalidDescription: a key or value is too long, or there are too many.
    """
    require_operator(caller)
    _check_keys(properties)
    _check_values(properties)
    snapshot = env.store.snapshot()
    root = _root(snapshot, name)
    _check_new(env.store, name)
    if is_used(snapshot, root):
        raise InUse("host", name)
    return _enrolled(env, snapshot, root, properties, None)


def enrol_host(
    env: UseCaseEnvironment, caller: Caller, name: str, properties: Mapping[str, str], id_: str
) -> OfferedHost:
    """Offer a host that another service offers, also with servers on it, under its id if free.

    Raises:
        Forbidden, NotFound, DuplicateName, InvalidDescription: as for any host.
    """
    require_operator(caller)
    _check_keys(properties)
    snapshot = env.store.snapshot()
    root = _root(snapshot, name)
    _check_new(env.store, name)
    return _enrolled(env, snapshot, root, properties, id_)


def _check_new(store: Store, name: str) -> None:
    if any(one.name == name for one in store.reservables(ReservableKind.HOST)):
        raise DuplicateName("host", name)


def _enrolled(
    env: UseCaseEnvironment,
    snapshot: Snapshot,
    root: int,
    properties: Mapping[str, str],
    id_: str | None,
) -> OfferedHost:
    """Store the host with its unit; an existing unit provider of Blazar's is used."""
    store, now, name = env.store, env.store.now(), snapshot.names[root]
    theirs = [row for row in snapshot.tree(root).tolist() if snapshot.names[row] == UNIT + name]
    unit = snapshot.uuids[theirs[0]] if theirs else env.ids.uuid()
    made = Reservable(
        ReservableKind.HOST,
        _number(store, id_),
        name,
        unit,
        MappingProxyType(dict(properties)),
        now,
        now,
    )
    fresh = CreateProvider(unit, f"{UNIT}{name}", snapshot.uuids[root])
    store.commit(
        Changeset(
            (
                CreateResourceClass(WHOLE_HOST, exist_ok=True),
                *(() if theirs else (fresh,)),
                PutInventories(unit, (Inventory(WHOLE_HOST, 1, max_unit=1),), None),
                PutReservable(made, new=True),
            ),
            relies_on={snapshot.uuids[root]: int(snapshot.revisions[root])},
        )
    )
    return offered_host(store, store.snapshot(), made.id)


def _number(store: Store, requested: str | None) -> str:
    """A new host id: a number, so that clients can tell it from a name."""
    taken = {int(one.id) for one in store.reservables(ReservableKind.HOST)}
    if requested is not None and _NUMBER.fullmatch(requested) and int(requested) not in taken:
        return str(int(requested))
    return str(1 + max(taken, default=0))


_NUMBER: Final = re.compile(r"[1-9]\d{0,8}", re.ASCII)


def describe_host(
    env: UseCaseEnvironment, caller: Caller, id_: str, properties: Mapping[str, str | None]
) -> OfferedHost:
    """Change the properties of a host; None removes a key.

    Raises:
        Forbidden: the caller is no operator.
        NotFound: no such host.
        InvalidDescription: nothing changes, a key or value is too long, or there are too many.
    """
    require_operator(caller)
    found = offered_host(env.store, env.store.snapshot(), id_).reservable
    if not properties:
        raise InvalidDescription("nothing to change")
    _check_keys(properties)
    _check_values({key: value for key, value in properties.items() if value is not None})
    kept = {**found.properties, **properties}
    if len(kept) > max(MAX_KEYS, len(found.properties)):
        raise InvalidDescription(f"at most {MAX_KEYS} keys, not {len(kept)}")
    changed = replace(
        found,
        properties=MappingProxyType({k: v for k, v in kept.items() if v is not None}),
        updated_at=env.store.now(),
    )
    env.store.commit(Changeset((PutReservable(changed, new=False),)))
    return offered_host(env.store, env.store.snapshot(), id_)


def withdraw_host(env: UseCaseEnvironment, caller: Caller, id_: str) -> None:
    """Withdraw a host from reservation.

    Raises:
        Forbidden: the caller is no operator.
        NotFound: no such host.
        InUse: the host has bookings.
    """
    require_operator(caller)
    snapshot = env.store.snapshot()
    found = offered_host(env.store, snapshot, id_)
    if _booked(snapshot, snapshot.row_of[found.root]):
        raise InUse("host", id_)
    assert found.reservable.provider is not None, "offered hosts have a unit"
    env.store.commit(
        Changeset(
            (DeleteProvider(found.reservable.provider), DropReservable(ReservableKind.HOST, id_)),
        )
    )


# --- addresses ------------------------------------------------------------------------------


def addresses(store: Store) -> Sequence[Reservable]:
    """All offered floating IPs."""
    return store.reservables(ReservableKind.FLOATING_IP)


def address(store: Store, id_: str) -> Reservable:
    """The offered floating IP with this id.

    Raises:
        NotFound: no address is offered under it.
    """
    for one in addresses(store):
        if one.id == id_:
            return one
    raise NotFound("floating ip", id_)


def offer_address(
    env: UseCaseEnvironment,
    caller: Caller,
    network: str,
    text: str,
    more: Mapping[str, str],
    id_: str | None = None,
) -> Reservable:
    """Offer an address of a network, under a given or a new id.

    Raises:
        Forbidden: the caller is no operator.
        DuplicateName: the address is offered already.
        InvalidDescription: a text is too long, or there are too many keys.
    """
    require_operator(caller)
    plain_values.text(text, "floating_ip_address", most=_LONGEST_ADDRESS)
    plain_values.text(network, "floating_network_id", most=_LONGEST_NETWORK)
    _check_keys(more)
    _check_values(more)
    unit, now = id_ or env.ids.uuid(), env.store.now()
    made = Reservable(
        ReservableKind.FLOATING_IP,
        unit,
        text,
        unit,
        MappingProxyType({**more, "floating_network_id": network}),
        now,
        now,
    )
    if any(one.name == text for one in addresses(env.store)):
        raise DuplicateName("floating ip", text)
    env.store.commit(
        Changeset(
            (
                CreateProvider(unit, f"floatingip_{text}"),
                PutInventories(unit, (Inventory(ADDRESS, 1, max_unit=1),), None),
                PutAggregates(unit, frozenset({network}), None),
                PutReservable(made, new=True),
            )
        )
    )
    return made


def withdraw_address(env: UseCaseEnvironment, caller: Caller, id_: str) -> None:
    """Withdraw an address from reservation.

    Raises:
        Forbidden: the caller is no operator.
        NotFound: no such address.
        InUse: the address is reserved.
    """
    require_operator(caller)
    found = address(env.store, id_)
    snapshot = env.store.snapshot()
    row = snapshot.row_of.get(found.id)
    if row is not None and _booked(snapshot, row):
        raise InUse("floating ip", id_)
    env.store.commit(
        Changeset((DeleteProvider(found.id), DropReservable(ReservableKind.FLOATING_IP, id_)))
    )


# --- properties -----------------------------------------------------------------------------


def host_keys(store: Store) -> Mapping[str, Sequence[str]]:
    """All keys that operators added to hosts, each with its distinct values."""
    found: dict[str, dict[str, None]] = {}
    for one in store.reservables(ReservableKind.HOST):
        for key, value in one.properties.items():
            found.setdefault(key, {})[value] = None
    return {key: tuple(values) for key, values in sorted(found.items())}


def private_keys(store: Store) -> frozenset[str]:
    """Keys that only operators may see."""
    return frozenset(
        one.name
        for one in store.reservables(ReservableKind.PROPERTY)
        if one.properties.get(_PRIVATE) == "true"
    )


def mark_key(env: UseCaseEnvironment, caller: Caller, key: str, *, private: bool) -> Reservable:
    """Mark a key as visible to operators only, or to everyone.

    Raises:
        Forbidden: the caller is no operator.
        NotFound: no host has the key.
    """
    require_operator(caller)
    if key not in host_keys(env.store):
        raise NotFound("property", key)
    now = env.store.now()
    said = MappingProxyType({_PRIVATE: "true" if private else "false"})
    known = [one for one in env.store.reservables(ReservableKind.PROPERTY) if one.name == key]
    made = (
        replace(known[0], properties=said, updated_at=now)
        if known
        else Reservable(ReservableKind.PROPERTY, env.ids.uuid(), key, None, said, now, now)
    )
    env.store.commit(Changeset((PutReservable(made, new=not known),)))
    return made


def _check_keys(properties: Iterable[str]) -> None:
    for key in properties:
        if len(key) > MAX_KEY:
            raise InvalidDescription(f"a key has at most {MAX_KEY} characters: {key[:MAX_KEY]}...")


def _check_values(properties: Mapping[str, str]) -> None:
    if len(properties) > MAX_KEYS:
        raise InvalidDescription(f"at most {MAX_KEYS} keys, not {len(properties)}")
    for key, value in properties.items():
        plain_values.text(value, key, most=MAX_VALUE)


def _root(snapshot: Snapshot, name: str) -> int:
    for row in snapshot.hosts.tolist():
        if snapshot.names[row] == name:
            return int(row)
    raise NotFound("host", name)


def _offered(snapshot: Snapshot, one: Reservable, root: int) -> OfferedHost:
    totals: dict[str, int] = {}
    for row in snapshot.tree(root).tolist():
        for inventory in snapshot.inventories_of(row):
            name = inventory.resource_class
            totals[name] = totals.get(name, 0) + inventory.total - inventory.reserved
    zone = min(zones_of(snapshot, root), default=None)
    return OfferedHost(one, snapshot.uuids[root], MappingProxyType(totals), zone)


def is_used(snapshot: Snapshot, root: int) -> bool:
    """Whether servers run on the host."""
    return any(
        one.state is BookingState.ALLOCATED
        for row in snapshot.tree(root).tolist()
        for one in snapshot.bookings_of(row)
    )


def _booked(snapshot: Snapshot, root: int) -> bool:
    return any(snapshot.bookings_of(row) for row in snapshot.tree(root).tolist())
