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

from moorage.domain.nova.flavors import novas_terms, trait_specs
from moorage.domain.request_groups import GroupKind
from moorage.domain.virtual_classes import TICKET

if TYPE_CHECKING:
    from collections.abc import Mapping

    from moorage.domain.ensembles import Role
    from moorage.domain.nova_servers import FlavorSize
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
    """The Nova flavor whose servers take the places of a ticket's or reservation's class."""

    id: str
    """Derived from the class, so that a flavor is made once."""
    name: str
    resource_class: ResourceClass
    role: str
    size: FlavorSize
    extra_specs: Mapping[str, str]


def ticket_flavor(
    ensemble: str, role: Role, ticket: str, *, index: int | None = None
) -> TicketFlavor:
    """The flavor by which servers take the places of a role's tickets.

    Args:
        ensemble: the ensemble's name.
        role: the role.
        ticket: the `Decision.ticket` of the decision that holds the places.
        index: the member's index in the role; None: any member of the role.
    """
    name = ticket_class(ticket, role.name, index)
    member = role.name if index is None else f"{role.name}-{index}"
    flavor_id = str(uuid5(UUID(ticket), name))
    return _flavor(flavor_id, _flavor_name(ensemble, f"-{member}-{ticket[:8]}"), name, role)


def reservation_flavor(
    reservation_id: str, resource_class: ResourceClass, role: Role
) -> TicketFlavor:
    """The flavor by which servers take the places of a lease's reservation.

    Its id is the reservation's, and its name `reservation:<id>`, as Blazar's are.
    """
    return _flavor(reservation_id, f"reservation:{reservation_id}", resource_class, role)


def _flavor(flavor_id: str, name: str, resource_class: ResourceClass, role: Role) -> TicketFlavor:
    """The role's own size, and one unit of the class.

    For a role with a flavor of Nova it is that flavor with the class beside. What a flavor cannot
    say (aggregates, one of several traits) is left out: the places have it. Groups of ports and
    volumes are left out too: Nova adds them to its request.
    """
    if role.nova_server is None:
        size, found = novas_terms(role.resources, role.required, role.forbidden, {})
    else:
        size, specs = role.nova_server.size, role.nova_server.extra_specs
        found = {**specs, **trait_specs("trait", role.required, role.forbidden, specs)}
    found = dict(found)
    groups = [one for one in role.groups if one.kind is GroupKind.GROUP]
    for group in groups:
        suffix = f"_{group.name}"
        found |= {f"resources{suffix}:{one}": str(n) for one, n in group.resources.items()}
        found |= trait_specs(f"trait{suffix}", group.required, group.forbidden, {})
    if role.isolate:
        found["group_policy"] = "isolate"
    elif len(role.groups) > 1 and groups:
        found.setdefault("group_policy", "none")
    found[f"resources:{resource_class}"] = "1"
    return TicketFlavor(
        id=flavor_id,
        name=name,
        resource_class=resource_class,
        role=role.name,
        size=size,
        extra_specs=MappingProxyType(dict(sorted(found.items()))),
    )


def _flavor_name(ensemble: str, tail: str) -> str:
    """A name that differs for each role, whatever the ensemble's is."""
    tail = tail[-_LONGEST // 2 :] if len(tail) > _LONGEST // 2 else tail
    return f"moorage-{ensemble}"[: _LONGEST - len(tail)] + tail
