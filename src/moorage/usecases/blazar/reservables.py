"""Reservables: hosts and floating IPs that operators offer for reservation, and their properties.

An offered host gets a child provider with one unit of its own. A lease of the whole host takes that
unit in the ledger, and a policy keeps other consumers off the host. An address is a root provider
with one unit, in the aggregate of its network.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from ipaddress import ip_address
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from moorage.domain import plain_values
from moorage.domain.bookings import BookingState
from moorage.domain.changes import (
    Changeset,
    CreateProvider,
    DeleteProvider,
    DropReservable,
    PutAggregates,
    PutInventories,
    PutReservable,
)
from moorage.domain.errors import DuplicateName, InUse, InvalidDescription, NotFound
from moorage.domain.providers import Inventory
from moorage.domain.reservables import ADDRESS, WHOLE_HOST, Reservable, ReservableKind
from moorage.engine.state.host_states import host_states
from moorage.usecases.claims.claim import zones_of
from moorage.usecases.shared.access import require_operator

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from ipaddress import IPv4Address, IPv6Address

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
_OF_HYPERVISORS: Final = frozenset({"VCPU", "PCPU", "MEMORY_MB", "DISK_GB"})
"""Classes of which a hypervisor has some, and a bare-metal node none."""
BARE_METAL: Final = "ironic"
"""The hypervisor type of Ironic's nodes, as Nova names it."""
OF_EVERY_HOST: Final = frozenset(
    {
        *("id", "hypervisor_hostname", "service_name", "availability_zone"),
        *("vcpus", "memory_mb", "local_gb"),
        *("hypervisor_type", "hypervisor_version", "cpu_info"),
    }
)
"""Properties that every host has, whatever was added to it."""
FACTS: Final = OF_EVERY_HOST | {"status", "trust_id", "reservable", "created_at", "updated_at"}
"""What the service itself tells of a host; operators cannot tell otherwise."""


@dataclass(frozen=True, slots=True)
class OfferedHost:
    """A reservable host, with the capacity of its tree."""

    reservable: Reservable
    root: str
    """The UUID of its root provider."""
    totals: Mapping[str, int]
    """Resource class -> units without allocation ratio, less the reserved ones."""
    zone: str | None
    usable: bool
    """Whether leases may be granted on it: it is in service, or will be at a known time."""

    @property
    def properties(self) -> Mapping[str, object]:
        """The properties for requirements: those that operators added, and the host's own."""
        return MappingProxyType(
            {
                **self.reservable.properties,
                "id": self.reservable.id,
                "hypervisor_hostname": self.reservable.name,
                "service_name": self.reservable.name,
                "availability_zone": self.zone,
                "vcpus": self.totals.get("VCPU", 0) + self.totals.get("PCPU", 0),
                "memory_mb": self.totals.get("MEMORY_MB", 0),
                "local_gb": self.totals.get("DISK_GB", 0),
                "hypervisor_type": BARE_METAL if self._is_bare_metal else "QEMU",
                "hypervisor_version": 0,
                "cpu_info": "",
            }
        )

    @property
    def _is_bare_metal(self) -> bool:
        """Whether it is a node of Ironic, whose provider Nova names by its UUID.

        Or it has inventories, but nothing that a hypervisor has.
        """
        nameless = self.reservable.name == self.root
        return nameless or (bool(self.totals) and _OF_HYPERVISORS.isdisjoint(self.totals))


def offered_hosts(store: Store, snapshot: Snapshot) -> Sequence[OfferedHost]:
    """All offered hosts that exist, in the order in which they were offered."""
    found = []
    closed = host_states(snapshot).lasting
    for one in store.reservables(ReservableKind.HOST):
        row = None if one.provider is None else snapshot.row_of.get(one.provider)
        if row is not None:
            usable = not bool(closed[row])
            found.append(described_host(snapshot, one, int(snapshot.root[row]), usable=usable))
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
        InvalidDescription: it is no IP address, a text is too long, or there are too many keys.
    """
    require_operator(caller)
    plain_values.text(text, "floating_ip_address", most=_LONGEST_ADDRESS)
    if isinstance(_address_of(text), str):
        raise InvalidDescription(f"{text!r} is no IP address", path="floating_ip_address")
    plain_values.text(network, "floating_network_id", most=_LONGEST_NETWORK)
    check_keys(more)
    check_values(more)
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
    if any(_address_of(one.name) == _address_of(text) for one in addresses(env.store)):
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


def _address_of(text: str) -> IPv4Address | IPv6Address | str:
    """The address that a text is, however it is written; the text itself, if it is none."""
    try:
        return ip_address(text)
    except ValueError:
        return text


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
    if row is not None and is_booked(snapshot, row):
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


def check_keys(properties: Iterable[str]) -> None:
    """Check the length of keys.

    Raises:
        InvalidDescription: a key is too long.
    """
    for key in properties:
        if len(key) > MAX_KEY:
            raise InvalidDescription(f"a key has at most {MAX_KEY} characters: {key[:MAX_KEY]}...")


def check_values(properties: Mapping[str, str]) -> None:
    """Check the number and length of values.

    Raises:
        InvalidDescription: a value is too long, or there are too many.
    """
    if len(properties) > MAX_KEYS:
        raise InvalidDescription(f"at most {MAX_KEYS} keys, not {len(properties)}")
    for key, value in properties.items():
        plain_values.text(value, key, most=MAX_VALUE)


def described_host(snapshot: Snapshot, one: Reservable, root: int, *, usable: bool) -> OfferedHost:
    """The offered host with the capacity of its tree, by the row of its root."""
    totals: dict[str, int] = {}
    for row in snapshot.tree(root).tolist():
        for inventory in snapshot.inventories_of(row):
            name = inventory.resource_class
            if name == WHOLE_HOST:
                continue
            totals[name] = totals.get(name, 0) + inventory.total - inventory.reserved
    zone = min(zones_of(snapshot, root), default=None)
    return OfferedHost(one, snapshot.uuids[root], MappingProxyType(totals), zone, usable)


def is_used(snapshot: Snapshot, root: int) -> bool:
    """Whether servers run on the host."""
    return any(
        one.state is BookingState.ALLOCATED
        for row in snapshot.tree(root).tolist()
        for one in snapshot.bookings_of(row)
    )


def is_booked(snapshot: Snapshot, root: int) -> bool:
    """Whether the host has bookings."""
    return any(snapshot.bookings_of(row) for row in snapshot.tree(root).tolist())
