"""Ticket classes: resource classes that stand for the held places of a role (ADR-0027).

A flavor that requests one unit of a ticket class creates servers in these places. The class is
derived from the decision, so that nothing has to be stored for it.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256
from types import MappingProxyType
from typing import TYPE_CHECKING, Final
from uuid import UUID, uuid5

from moorage.domain.ensembles import GroupKind
from moorage.domain.virtual_classes import TICKET

if TYPE_CHECKING:
    from collections.abc import Mapping

    from moorage.domain.ensembles import Group, Role
    from moorage.domain.resources import ResourceClass

_DIGITS: Final = 12
"""Hexadecimal digits that name a role: names of roles are no names of classes."""
_LONGEST: Final = 255
"""Longest name of a flavor in Nova, in characters."""


@dataclass(frozen=True, slots=True)
class TicketClass:
    """What a ticket class names: `Decision.ticket`, a role and, for one member, its index."""

    ticket: str
    role_digest: str
    index: int | None = None

    def is_of(self, role: str) -> bool:
        """Whether it stands for places of this role."""
        return self.role_digest == _digest(role)


def ticket_class(ticket: str, role: str, index: int | None = None) -> ResourceClass:
    """The resource class of a role's tickets, or of one member's.

    Args:
        ticket: the `Decision.ticket` of the decision that holds the places.
        role: the role's name.
        index: the member's index in the role; None: any member of the role.
    """
    member = "" if index is None else f"_{index}"
    return f"{TICKET}{UUID(ticket).hex.upper()}_{_digest(role)}{member}"


def parse_ticket_class(name: ResourceClass) -> TicketClass | None:
    """What a resource class names as a ticket class; None: it is none."""
    if not name.startswith(TICKET):
        return None
    ticket, *rest = name.removeprefix(TICKET).split("_")
    if len(rest) not in {1, 2} or len(rest[0]) != _DIGITS:
        return None
    index = rest[1] if len(rest) > 1 else None
    if index is not None and not (index.isascii() and index.isdecimal() and len(index) <= _DIGITS):
        return None
    try:
        return TicketClass(str(UUID(ticket)), rest[0], None if index is None else int(index))
    except ValueError:
        return None


def _digest(role: str) -> str:
    return sha256(role.encode()).hexdigest()[:_DIGITS].upper()


@dataclass(frozen=True, slots=True)
class TicketFlavor:
    """The Nova flavor whose servers take the places of a ticket class."""

    id: str
    """Derived from the class, so that a flavor is made once."""
    name: str
    resource_class: ResourceClass
    role: str
    vcpus: int
    ram: int
    """In MiB."""
    disk: int
    """In GiB."""
    extra_specs: Mapping[str, str]


def ticket_flavor(
    ensemble: str, role: Role, ticket: str, specs: Mapping[str, str], *, index: int | None = None
) -> TicketFlavor:
    """The flavor of a role's tickets: the role's own size, and one unit of the ticket's class.

    What a flavor cannot say (aggregates, one of several traits) is left out: the ticket's places
    have it. Groups of ports and volumes are left out too: Nova adds them to its request.

    Args:
        ensemble: the ensemble's name.
        role: the role.
        ticket: the `Decision.ticket` of the decision that holds the places.
        specs: extra specs of the flavor that the role was described by.
        index: the member's index in the role; None: any member of the role.
    """
    name = ticket_class(ticket, role.name, index)
    amounts = dict(role.resources)
    dedicated = amounts.pop("PCPU", 0) if "VCPU" not in amounts else 0
    vcpus, ram, disk = (
        dedicated or amounts.pop("VCPU", 0),
        amounts.pop("MEMORY_MB", 0),
        amounts.pop("DISK_GB", 0),
    )
    found = dict(specs)
    if dedicated:
        found["hw:cpu_policy"] = "dedicated"
    # Nova requires at least one of each, and asks Placement for as many unless told otherwise.
    found |= {f"resources:{one}": "0" for one, n in (("VCPU", vcpus), ("MEMORY_MB", ram)) if not n}
    found |= {f"resources:{one}": str(amount) for one, amount in amounts.items()}
    found |= _traits("trait", role)
    groups = [one for one in role.groups if one.kind is GroupKind.GROUP]
    for group in groups:
        suffix = f"_{group.name}"
        found |= {f"resources{suffix}:{one}": str(n) for one, n in group.resources.items()}
        found |= _traits(f"trait{suffix}", group)
    if len(groups) > 1:
        found["group_policy"] = "isolate" if role.isolate else "none"
    found[f"resources:{name}"] = "1"
    member = role.name if index is None else f"{role.name}-{index}"
    return TicketFlavor(
        id=str(uuid5(UUID(ticket), name)),
        name=_flavor_name(ensemble, f"-{member}-{ticket[:8]}"),
        resource_class=name,
        role=role.name,
        vcpus=max(vcpus, 1),
        ram=max(ram, 1),
        disk=disk,
        extra_specs=MappingProxyType(dict(sorted(found.items()))),
    )


def _flavor_name(ensemble: str, tail: str) -> str:
    """A name that differs for each role, whatever the ensemble's is."""
    tail = tail[-_LONGEST // 2 :] if len(tail) > _LONGEST // 2 else tail
    return f"moorage-{ensemble}"[: _LONGEST - len(tail)] + tail


def _traits(key: str, of: Role | Group) -> dict[str, str]:
    one_of_one = sorted(trait for some in of.required if len(some) == 1 for trait in some)
    return {
        **{f"{key}:{trait}": "required" for trait in one_of_one},
        **{f"{key}:{trait}": "forbidden" for trait in sorted(of.forbidden)},
    }
