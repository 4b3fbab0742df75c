"""Lease requests from Blazar's: one role per reservation.

| type | a member is | together |
|---|---|---|
| physical:host | the one unit of an offered host | nobody else on their hosts |
| virtual:instance | VCPU, MEMORY_MB and DISK_GB | affinity true: one host, false: different ones |
| flavor:instance | a flavor | |
| virtual:floatingip | the one unit of an address of the network | those that must be are there |

A requirement becomes a `fence` around the hosts that meet it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from moorage.domain import plain_values
from moorage.domain.describe import read_ensemble
from moorage.domain.ensembles import MAX_MEMBERS
from moorage.domain.errors import Conflict, InvalidDescription
from moorage.domain.requests import Objective
from moorage.domain.reservables import ADDRESS, WHOLE_HOST
from moorage.domain.words import shown
from moorage.usecases.blazar import requirements
from moorage.usecases.blazar.reservables import addresses, offered_hosts
from moorage.usecases.leases.requests import LeaseRequest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from moorage.domain.leases import Terms
    from moorage.domain.reservables import Reservable
    from moorage.engine.state.snapshot import Snapshot
    from moorage.usecases.blazar.requirements import Properties, Term
    from moorage.usecases.blazar.reservables import OfferedHost
    from moorage.usecases.ports import Store

HOST: Final = "physical:host"
INSTANCE: Final = "virtual:instance"
FLAVOR: Final = "flavor:instance"
ADDRESSES: Final = "virtual:floatingip"
RESERVATIONS: Final = "reservations"
"""The annotation of a lease with its reservations' requested values, by role."""
BEFORE_END: Final = "before_end_date"
"""The annotation with the instant of the notice before the lease's end."""
REQUIREMENTS: Final = ("hypervisor_properties", "resource_properties")
"""Keys of a reservation with a requirement."""
MOST: Final = 100
"""The most reservations of one lease."""
_AFFINITY: Final[Mapping[str, bool | None]] = {
    "none": None,
    **dict.fromkeys(("true", "t", "yes", "y", "on", "1"), True),
    **dict.fromkeys(("false", "f", "no", "n", "off", "0"), False),
}
"""Words for an affinity, in any case, as Blazar takes them."""
_AMOUNTS: Final = {"vcpus": "VCPU", "memory_mb": "MEMORY_MB", "disk_gb": "DISK_GB"}


class OfferedResources:
    """Reservable hosts and addresses, each read from the ledger on first use.

    Most requests name neither hosts nor addresses, and fleets are large.
    """

    def __init__(
        self,
        store: Store,
        read_properties: Callable[[], Properties] = lambda: requirements.ALL,
        hosts: Sequence[OfferedHost] | None = None,
    ) -> None:
        """Store the sources; nothing is read yet.

        `read_properties` returns the host properties that the caller may name; `hosts` are the
        reservable hosts, if not those of the store.
        """
        self._store = store
        self._read_properties = read_properties
        self._hosts = hosts

    @cached_property
    def properties(self) -> Properties:
        """The host properties that the caller may name in requirements."""
        return self._read_properties()

    def granting(self, terms: Iterable[Term]) -> OfferedResources:
        """The same, where these terms may be named: they are those of a granted reservation."""
        granted = frozenset(terms)
        if not granted:
            return self
        return OfferedResources(
            self._store, lambda: replace(self.properties, granted=granted), self.hosts
        )

    @cached_property
    def _snapshot(self) -> Snapshot:
        return self._store.snapshot()

    @cached_property
    def hosts(self) -> Sequence[OfferedHost]:
        """The reservable hosts."""
        if self._hosts is not None:
            return self._hosts
        return offered_hosts(self._store, self._snapshot)

    @cached_property
    def addresses(self) -> Sequence[Reservable]:
        """The reservable floating IPs."""
        return addresses(self._store)

    @cached_property
    def names(self) -> frozenset[str]:
        """The names of all hosts of the fleet."""
        return frozenset(self._snapshot.names[row] for row in self._snapshot.hosts.tolist())


@dataclass(frozen=True, slots=True)
class ReservationRequest:
    """A requested reservation: its role, policies and Blazar's own values."""

    role: str
    resource_type: str
    words: Mapping[str, Any]
    least: int
    """The least number of members; it may get up to `count`."""
    count: int
    members: Mapping[str, Any]
    policies: tuple[Mapping[str, Any], ...] = ()
    only_on: frozenset[str] | None = None
    """Names of the allowed hosts; None: any."""

    def of(self, count: int) -> ReservationRequest:
        """The reservation with another number of members."""
        return replace(self, count=count, members={**self.members, "count": count})

    @property
    def compiled(self) -> frozenset[str]:
        """Names of its policies, all of which the service made."""
        return frozenset(str(one["name"]) for one in self.all_policies())

    def all_policies(self) -> tuple[Mapping[str, Any], ...]:
        """Its policies, with a fence around the allowed hosts."""
        if self.only_on is None:
            return self.policies
        domains = sorted(self.only_on)
        fence = {"name": f"{self.role}-hosts", "type": "fence", "members": [self.role]}
        return (*self.policies, {**fence, "domains": domains})


@dataclass(frozen=True, slots=True)
class BlazarLeaseRequest:
    """A lease as requested from Blazar's API."""

    name: str
    terms: Terms
    parts: tuple[ReservationRequest, ...]
    annotations: Mapping[str, Any]

    def lease_request(self) -> LeaseRequest:
        """The request to the use case of leases."""
        source = {
            "name": self.name,
            "members": [dict(one.members) for one in self.parts],
            "policies": [dict(policy) for one in self.parts for policy in one.all_policies()],
        }
        said = {one.role: {**one.words, "resource_type": one.resource_type} for one in self.parts}
        return LeaseRequest(
            name=self.name,
            terms=self.terms,
            description=read_ensemble(source),
            annotations=MappingProxyType({**self.annotations, RESERVATIONS: said}),
            objective=Objective.PACK,
            compiled=frozenset[str]().union(*(one.compiled for one in self.parts)),
        )


def read_parts(source: object, offered: OfferedResources) -> tuple[ReservationRequest, ...]:
    """The reservations of a new lease.

    Raises:
        InvalidDescription: a reservation cannot be read; the path names it if there are several.
    """
    if not isinstance(source, list) or not source:
        raise InvalidDescription("A lease needs reservations")
    if len(source) > MOST:
        raise InvalidDescription(f"A lease has at most {MOST} reservations")
    parts = []
    for i, one in enumerate(source):
        try:
            parts.append(read_part(f"r{i}", one, offered))
        except InvalidDescription as error:
            if len(source) > 1:
                error.path = f"reservations[{i}]"
            raise
    return separate_hosts(tuple(parts), offered)


def separate_hosts(
    parts: tuple[ReservationRequest, ...], offered: OfferedResources
) -> tuple[ReservationRequest, ...]:
    """Keep instances off the hosts that the same lease may reserve whole.

    A reservation with no allowed host is banned from all hosts, so that it is refused like any that
    does not fit.
    """
    whole = frozenset[str]().union(
        *(one.only_on or () for one in parts if one.resource_type == HOST)
    )
    return tuple(_nowhere(one, offered) for one in _apart(parts, whole, offered))


def _apart(
    parts: tuple[ReservationRequest, ...], whole: frozenset[str], offered: OfferedResources
) -> Iterator[ReservationRequest]:
    for one in parts:
        if whole and one.resource_type in {INSTANCE, FLAVOR}:
            will_do = offered.names if one.only_on is None else one.only_on
            yield replace(one, only_on=will_do - whole)
        else:
            yield one


def _nowhere(part: ReservationRequest, offered: OfferedResources) -> ReservationRequest:
    """The reservation, banned from all hosts if none is allowed: an empty fence is invalid."""
    if part.only_on is None or part.only_on or not offered.names:
        return part
    ban = {"name": f"{part.role}-hosts", "type": "ban", "members": [part.role]}
    nowhere = {**ban, "domains": sorted(offered.names)}
    return replace(part, only_on=None, policies=(*part.policies, nowhere))


def read_part(role: str, source: object, offered: OfferedResources) -> ReservationRequest:
    """Read one reservation.

    Raises:
        InvalidDescription, Unsupported: it cannot be read, or its type is unknown.
    """
    if not isinstance(source, Mapping):
        raise InvalidDescription("A reservation is an object")
    kind = source.get("resource_type")
    if kind is None:
        raise InvalidDescription("resource_type is missing")
    reader = _READERS.get(str(kind))
    if reader is None:
        raise InvalidDescription(f"Resource type {_text_of(kind)} is not supported")
    return reader(role, source, offered)


def count_sizes(parts: tuple[ReservationRequest, ...]) -> int:
    """The number of sizes of the reservations; see `at_size`."""
    return 1 + max((one.count - one.least for one in parts), default=0)


def at_size(parts: tuple[ReservationRequest, ...], number: int) -> tuple[ReservationRequest, ...]:
    """The reservations in one size: 0 is the largest, each next one has a member less per role.

    No role gets fewer members than its least.
    """
    return tuple(one.of(max(one.least, one.count - number)) for one in parts)


def _hosts(role: str, source: Mapping[str, Any], offered: OfferedResources) -> ReservationRequest:
    least, most = (read_count(source, key) for key in ("min", "max"))
    if most < least:
        raise InvalidDescription("max must be at least min")
    parts = [requirements.read_requirement(source.get(key, "")) for key in REQUIREMENTS]
    names = _met_by(parts[0] + parts[1], offered)
    # The class exists once a host was offered; until then the reservation fits nowhere.
    unit = WHOLE_HOST if offered.hosts else "VCPU"
    return ReservationRequest(
        role,
        HOST,
        {
            "min": least,
            "max": most,
            "hypervisor_properties": source.get("hypervisor_properties", ""),
            "resource_properties": source.get("resource_properties", ""),
            "before_end": _before_end(source),
        },
        least,
        most,
        {
            "name": role,
            "count": most,
            "groups": [{"name": "host", "resources": {unit: 1}}],
        },
        (
            {"name": f"{role}-alone", "type": "exclusive", "members": [role], "against": "others"},
            {"name": f"{role}-apart", "type": "anti-affinity", "members": [role]},
        ),
        only_on=frozenset(names),
    )


def _instances(
    role: str, source: Mapping[str, Any], offered: OfferedResources
) -> ReservationRequest:
    amount = read_count(source, "amount")
    resources = {name: _amount(source, key) for key, name in _AMOUNTS.items()}
    affinity = _affinity(source)
    requested = requirements.read_requirement(source.get("resource_properties", ""))
    together: tuple[Mapping[str, Any], ...] = ()
    if affinity is not None:
        kind = "affinity" if affinity else "anti-affinity"
        together = ({"name": f"{role}-{kind}", "type": kind, "members": [role]},)
    return ReservationRequest(
        role,
        INSTANCE,
        {
            "amount": amount,
            **{key: _amount(source, key) for key in _AMOUNTS},
            "affinity": affinity,
            "resource_properties": source.get("resource_properties", ""),
        },
        amount,
        amount,
        {
            "name": role,
            "count": amount,
            "resources": {name: value for name, value in resources.items() if value},
        },
        together,
        only_on=frozenset(_met_by(requested, offered)) if requested else None,
    )


def _flavored(
    role: str,
    source: Mapping[str, Any],
    offered: OfferedResources,  # noqa: ARG001 - as the others
) -> ReservationRequest:
    amount = read_count(source, "amount")
    flavor = _named(source, "flavor_id")
    if _affinity(source) is not None:
        raise Unsupported("affinity is not supported for flavor:instance; it must be None")
    return ReservationRequest(
        role,
        FLAVOR,
        {"amount": amount, "flavor_id": flavor, "affinity": None},
        amount,
        amount,
        {"name": role, "count": amount, "flavor": flavor},
    )


class Unsupported(Conflict):
    """The reservation's type does not have this property."""


def _addresses(
    role: str, source: Mapping[str, Any], offered: OfferedResources
) -> ReservationRequest:
    amount = read_count(source, "amount")
    network = _named(source, "network_id")
    required = source.get("required_floatingips") or []
    if not isinstance(required, list) or not all(isinstance(one, str) for one in required):
        raise InvalidDescription("required_floatingips is a list of addresses")
    if len(required) > amount:
        raise InvalidDescription("There are more required_floatingips than amount")
    known = {one.name: one for one in offered.addresses}
    for one in required:
        if one not in known or known[one].properties["floating_network_id"] != network:
            raise InvalidDescription(f"Floating IP {_text_of(one)} is not one of network {network}")
    policies = [
        {
            "name": f"{role}-{i}",
            "type": "fence",
            "members": [f"{role}[{i}]"],
            "domains": [known[one].id],
        }
        for i, one in enumerate(dict.fromkeys(required))
    ]
    return ReservationRequest(
        role,
        ADDRESSES,
        {"amount": amount, "network_id": network, "required_floatingips": required},
        amount,
        amount,
        {"name": role, "count": amount, "resources": {ADDRESS: 1}, "member_of": [network]},
        tuple(policies),
    )


_READERS: Final[
    Mapping[str, Callable[[str, Mapping[str, Any], OfferedResources], ReservationRequest]]
] = MappingProxyType({HOST: _hosts, INSTANCE: _instances, FLAVOR: _flavored, ADDRESSES: _addresses})


def _met_by(requested: requirements.Requirement, offered: OfferedResources) -> list[str]:
    """Names of the offered hosts that meet a requirement.

    Raises:
        Forbidden: the requirement names a property that the caller may not name.
    """
    properties = offered.properties
    properties.check(requested)
    return [one.reservable.name for one in offered.hosts if properties.met_by(one, requested)]


def read_count(source: Mapping[str, Any], key: str) -> int:
    """A number of members; Blazar's client sends some as text.

    Raises:
        InvalidDescription: it is missing, below 1, or more than a lease can have.
    """
    found = _amount(source, key)
    if found < 1:
        raise InvalidDescription(f"{key} must be greater than or equal to 1")
    if found > MAX_MEMBERS:
        raise InvalidDescription(f"{key} must be less than or equal to {MAX_MEMBERS}")
    return found


def _amount(source: Mapping[str, Any], key: str) -> int:
    """A number; Blazar's client sends some as text."""
    value = source.get(key)
    if value is None or value == "":
        raise InvalidDescription(f"{key} is missing")
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) <= _DIGITS:
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise InvalidDescription(f"{key} must be a number, not {shown(value)}")
    return value


_DIGITS: Final = 9


def _named(source: Mapping[str, Any], key: str) -> str:
    """The id or name under a key.

    Raises:
        InvalidDescription: it is missing or too long.
    """
    value = source.get(key)
    if not isinstance(value, str) or not value:
        raise InvalidDescription(f"{key} is missing")
    return plain_values.text(value, key)


def _before_end(source: Mapping[str, Any]) -> str:
    """The `before_end` value of a host reservation; it is stored and returned.

    Raises:
        InvalidDescription: Blazar has no such value.
    """
    value = source.get("before_end", "default")
    if value not in _BEFORE_END:
        raise InvalidDescription(
            f"before_end must be empty, default or snapshot, not {shown(value)}"
        )
    return str(value)


_BEFORE_END: Final = ("", "default", "snapshot")


def _text_of(value: object) -> str:
    """A value of a request, as text for a message."""
    return value if isinstance(value, str) and len(value) <= plain_values.MAX_NAME else shown(value)


def _affinity(source: Mapping[str, Any]) -> bool | None:
    value = source.get("affinity")
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str) and value.lower() in _AFFINITY:
        return _AFFINITY[value.lower()]
    raise InvalidDescription(f"affinity must be True, False or None, not {shown(value)}")
