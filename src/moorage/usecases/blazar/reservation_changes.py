"""Changes of a lease's reservations, as Blazar's update makes them.

| type | before the lease begins | while it runs |
|---|---|---|
| physical:host | numbers and requirements | more hosts; a requirement that its hosts meet |
| virtual:instance | all values | the amount |
| flavor:instance | the amount | the amount |
| virtual:floatingip | the amount; no address required any more | the same |
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from moorage.domain.describe import read_role, read_statement
from moorage.domain.errors import Conflict, InvalidDescription
from moorage.domain.leases import LeaseState
from moorage.domain.words import shown
from moorage.usecases.blazar.lease_request import (
    ADDRESSES,
    FLAVOR,
    HOST,
    INSTANCE,
    REQUIREMENTS,
    RESERVATIONS,
    ReservationRequest,
    at_size,
    count_sizes,
    read_count,
    read_part,
    separate_hosts,
)
from moorage.usecases.blazar.requirements import read_requirement
from moorage.usecases.leases.requests import RestatedMembers

if TYPE_CHECKING:
    from collections.abc import Iterator
    from collections.abc import Set as AbstractSet

    from moorage.domain.ensembles import Ensemble, PolicyStatement
    from moorage.domain.leases import Lease
    from moorage.usecases.blazar.lease_request import OfferedResources
    from moorage.usecases.blazar.requirements import Term

Words: TypeAlias = Mapping[str, Any]
"""A reservation's values, as Blazar names them."""

_NUMBERS: Final = frozenset({"amount", "min", "max"})
_CHANGEABLE: Final[Mapping[str, frozenset[str]]] = {
    HOST: frozenset({"min", "max", "hypervisor_properties", "resource_properties"}),
    INSTANCE: frozenset(
        {"amount", "vcpus", "memory_mb", "disk_gb", "affinity", "resource_properties"}
    ),
    FLAVOR: frozenset({"amount"}),
    ADDRESSES: frozenset({"amount", "required_floatingips"}),
}
"""Type -> what may change of a reservation."""
_CHANGEABLE_LATER: Final = {**_CHANGEABLE, INSTANCE: frozenset({"amount"})}
"""The same once the lease has begun."""


class FixedProperty(Conflict):
    """The property of a reservation cannot be changed."""


@dataclass(frozen=True, slots=True)
class ReservationChange:
    """The reservations of a lease after a change."""

    words: Mapping[str, Words]
    """Role -> its reservation's values."""
    counts: tuple[Mapping[str, int], ...]
    """The sizes in which it may be granted, the largest first: role -> members, where another
    number than now."""
    restated: RestatedMembers | None
    """New roles and policies; None if at most numbers of members change."""


def changed_reservations(
    lease: Lease,
    ensemble: Ensemble,
    source: object,
    offered: OfferedResources,
    *,
    extended: bool,
) -> ReservationChange:
    """The reservations after a change of those in `source`, which are named by their ids.

    A reservation of hosts is granted with as many hosts as there are, up to its `max`, if a value
    of it is given or the lease is `extended`. Reservations of a lease that another dialect made do
    not change. What was granted with a requirement may keep it, whoever may name its properties.

    Raises:
        InvalidDescription: a reservation cannot be read, or there is none of that id.
        FixedProperty: the property cannot change, or not any more.
    """
    said = lease.annotations.get(RESERVATIONS)
    before: Mapping[str, Words] = said if isinstance(said, dict) else {}
    begun = lease.state is not LeaseState.PENDING
    named = dict(_named(lease, before, source))
    parts = {
        role: _part(role, words, named.get(role, {}), offered, begun=begun)
        for role, words in before.items()
    }
    words = {role: {**one.words, "resource_type": one.resource_type} for role, one in parts.items()}
    stated = {
        role for role, body in named.items() if body.keys() & _CHANGEABLE[parts[role].resource_type]
    }
    sized = _sized(parts, ensemble, stated, begun=begun, extended=extended)
    counts = tuple(
        MappingProxyType(
            {one.role: one.count for one in size if one.count != ensemble.count(one.role)}
        )
        for size in (at_size(sized, number) for number in range(count_sizes(sized)))
    )
    changed = {role for role in named if not _same(before[role], words[role])}
    restated = None
    if changed:
        sizes = (parts[role] for role in changed if parts[role].resource_type == INSTANCE)
        restated = RestatedMembers(
            tuple(read_role(one.members, "members") for one in sizes),
            _policies(tuple(parts.values()), lease, ensemble, offered),
        )
    return ReservationChange(words, counts, restated)


def current_policies(
    lease: Lease, ensemble: Ensemble, offered: OfferedResources
) -> tuple[PolicyStatement, ...]:
    """The policies of a lease's reservations by the hosts that are offered."""
    said = lease.annotations.get(RESERVATIONS)
    words: Mapping[str, Words] = said if isinstance(said, dict) else {}
    parts = tuple(_part(role, one, {}, offered, begun=False) for role, one in words.items())
    return _policies(parts, lease, ensemble, offered)


def _named(
    lease: Lease, before: Mapping[str, Words], source: object
) -> Iterator[tuple[str, Words]]:
    """Role and new values of each reservation that changes."""
    source = [] if source is None else source
    if not isinstance(source, list):
        raise InvalidDescription("reservations is a list")
    by_id = {part.id: part for part in lease.reservations}
    for one in source:
        if not isinstance(one, Mapping) or "id" not in one:
            raise InvalidDescription("Reservations to change need their id")
        if not isinstance(one["id"], str) or one["id"] not in by_id:
            raise InvalidDescription(f"The lease has no reservation {shown(one['id'])}")
        part = by_id[one["id"]]
        if part.role in before:
            yield part.role, one
        elif one.keys() - {"id"}:
            raise FixedProperty("A lease of another API is changed there")


def _part(
    role: str, before: Words, body: Words, offered: OfferedResources, *, begun: bool
) -> ReservationRequest:
    """A reservation with its new values.

    Raises:
        InvalidDescription, FixedProperty: see `changed_reservations`.
    """
    kind = str(before["resource_type"])
    if body.get("resource_type", kind) != kind:
        raise FixedProperty("A reservation's resource_type cannot be changed")
    if kind == ADDRESSES:
        _check_addresses(before, body)
    # Values of other types of reservations are ignored, as Blazar does.
    after = {**before, **{key: value for key, value in body.items() if key in before}}
    if kind == FLAVOR and "flavor_id" not in before:
        # The flavor that an imported reservation was made from is known by its values only.
        amount = read_count(after, "amount")
        after = {key: value for key, value in after.items() if key != "resource_type"}
        part = ReservationRequest(role, FLAVOR, {**after, "amount": amount}, amount, amount, {})
    else:
        part = read_part(role, after, offered.granting(_kept_requirements(before, after)))
    changeable = (_CHANGEABLE_LATER if begun else _CHANGEABLE)[kind]
    for key in sorted(body.keys() & part.words.keys() - changeable):
        if part.words[key] != before[key]:
            raise FixedProperty(f"{key} of a reservation cannot be changed")
    return part


def _kept_requirements(before: Words, after: Words) -> Iterator[Term]:
    """The terms of the requirements that do not change."""
    for key in REQUIREMENTS:
        if after.get(key) == before.get(key):
            yield from read_requirement(before.get(key))


def _check_addresses(before: Words, body: Words) -> None:
    """Check what changes of a reservation of addresses.

    Raises:
        InvalidDescription: its network would change, or others would be required.
    """
    if body.get("network_id", before["network_id"]) != before["network_id"]:
        raise InvalidDescription("network_id of a reservation cannot be changed")
    required = body.get("required_floatingips") or []
    if required not in ([], before["required_floatingips"]):
        raise InvalidDescription(
            "required_floatingips of a reservation can only become an empty list"
        )


def _same(before: Words, after: Words) -> bool:
    """Whether no more than numbers of members differ."""
    return all(before.get(key) == value for key, value in after.items() if key not in _NUMBERS)


def _sized(
    parts: Mapping[str, ReservationRequest],
    ensemble: Ensemble,
    stated: AbstractSet[str],
    *,
    begun: bool,
    extended: bool,
) -> tuple[ReservationRequest, ...]:
    """The reservations with the numbers of members that they may get; `stated` have new values.

    Raises:
        FixedProperty: a lease that has begun would lose hosts.
    """
    found = []
    for role, one in parts.items():
        present = ensemble.count(role)
        if one.resource_type == HOST and (extended or role in stated):
            if begun and one.count < present:
                raise FixedProperty(
                    f"A lease that has begun keeps its hosts: max is {present} or more"
                )
            found.append(replace(one, least=max(one.least, present) if begun else one.least))
        elif role in stated:
            found.append(one)
        else:
            found.append(replace(one, least=present).of(present))
    return tuple(found)


def _policies(
    parts: tuple[ReservationRequest, ...],
    lease: Lease,
    ensemble: Ensemble,
    offered: OfferedResources,
) -> tuple[PolicyStatement, ...]:
    """The policies of all reservations of a lease."""
    every = separate_hosts(parts, offered)
    found = tuple(read_statement(one, "policies") for part in every for one in part.all_policies())
    if lease.state is LeaseState.PENDING:
        return found
    # An imported lease on hosts with servers lacks policies that new leases have.
    kept = {one.name for one in ensemble.policies}
    return tuple(one for one in found if one.name in kept)
