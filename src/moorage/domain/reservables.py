"""Reservables of Blazar's API: hosts, addresses and properties that an operator offers.

They are records beside the ledger: what they can hold are resource providers like any others.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import Final

from moorage.domain.ensembles import Role
from moorage.domain.period import Instant


class ReservableKind(StrEnum):
    """The kinds of reservables."""

    HOST = "host"
    FLOATING_IP = "floatingip"
    PROPERTY = "property"
    """A key of hosts' properties, and whether tenants see it."""


WHOLE_HOST: Final = "CUSTOM_RESERVABLE_HOST"
"""The resource class of which a host that is offered has one unit, on a provider of its own."""
ADDRESS: Final = "IPV4_ADDRESS"
"""The resource class of which each floating IP that is offered has one unit."""


@dataclass(frozen=True, slots=True)
class Reservable:
    """One reservable. Ids and names are unique among those of a kind."""

    kind: ReservableKind
    id: str
    name: str
    """A host's name, an address, a key."""
    provider: str | None = None
    """The resource provider that the unit is taken from."""
    properties: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    created_at: Instant = 0
    updated_at: Instant = 0


def takes_whole_host(role: Role) -> bool:
    """Whether each member of a role takes a host whole."""
    return WHOLE_HOST in role.resources or any(WHOLE_HOST in one.resources for one in role.groups)
