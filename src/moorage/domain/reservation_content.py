"""The content of a Blazar service that an import takes over, as values."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

    from moorage.domain.period import Instant, Period

HOST: Final = "host"
PROPERTY: Final = "host property"
ADDRESS: Final = "floating ip"
LEASE: Final = "lease"


@dataclass(frozen=True, slots=True)
class EnrolledHost:
    """A host that may be reserved."""

    id: str
    name: str
    properties: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    """What operators added to it."""


@dataclass(frozen=True, slots=True)
class EnrolledAddress:
    """A floating IP that may be reserved."""

    id: str
    network: str
    text: str
    more: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))


@dataclass(frozen=True, slots=True)
class GrantedReservation:
    """A reservation of a lease, in Blazar's terms."""

    id: str
    words: Mapping[str, Any]
    """JSON values; `resource_type` is one of them."""
    hosts: tuple[str, ...] = ()
    """Names of the hosts it has places on."""


@dataclass(frozen=True, slots=True)
class GrantedLease:
    """A lease that has not ended."""

    id: str
    name: str
    project_id: str
    user_id: str
    period: Period
    status: str
    reservations: tuple[GrantedReservation, ...]
    created_at: str = ""
    """As its service writes it: earlier ones sort first."""
    before_end: Instant | None = None
    """When its owner is notified of its end."""


@dataclass(frozen=True, slots=True)
class ReservationContent:
    """Enrolled hosts and addresses, and the leases that have not ended."""

    hosts: tuple[EnrolledHost, ...] = ()
    private: frozenset[str] = frozenset()
    """Keys of hosts that only operators see."""
    addresses: tuple[EnrolledAddress, ...] = ()
    leases: tuple[GrantedLease, ...] = ()
    ended: int = 0
    """Leases that are over, which are not taken over."""

    def counts(self) -> dict[str, int]:
        """The number of records of each kind."""
        return {
            "hosts": len(self.hosts),
            "floating ips": len(self.addresses),
            "leases": len(self.leases),
            "reservations": sum(len(one.reservations) for one in self.leases),
        }
