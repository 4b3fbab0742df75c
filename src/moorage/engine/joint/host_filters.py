"""Which rows of a terrain each role may use by itself, with a reason for every one left out."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

from moorage.domain import deadline
from moorage.engine.joint.alternatives import role_described
from moorage.engine.joint.device_constraints import (
    device_filters,
    filters_without_size,
    lending_closed,
    serves_when_empty,
    with_lenders_closed,
)
from moorage.engine.joint.problem import mask_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from numpy.typing import NDArray

    from moorage.domain.ensembles import Role
    from moorage.engine.joint.device_constraints import DeviceConstraints
    from moorage.engine.joint.terrain import Terrain

    Bools: TypeAlias = NDArray[np.bool_]

Closed: TypeAlias = "Mapping[str, frozenset[str]]"
NO_CLOSED_HOSTS: Final[Closed] = MappingProxyType({})
"""All hosts may be used."""
_ROLE_SEPARATOR: Final = "/"
NO_LOCATION: Final = "no-location"
"""Reason id of servers that offer slices, and are on no host now."""
UNNAMED: Final = "unnamed-project"
"""Reason id of servers of other projects that a role does not name."""
ON_SERVER: Final = "on-server"
"""Reason id of servers other than the one that a role names."""
SERVER_NAME: Final = "server:"
"""What the name of a server's provider begins with, before the server's id."""


def closed_to_role(role: str, reason: str) -> str:
    """The key in `BuiltProblem.closed` of providers that are closed to one role only."""
    return f"{reason}{_ROLE_SEPARATOR}{role}"


def closed_to(closed: Closed, role: str) -> frozenset[str]:
    """UUIDs of all providers that are closed to a role, by its name or that of a choice of it."""
    described = role_described(role)
    some = (uuids for key, uuids in closed.items() if _role_of(key) in {"", described})
    return frozenset().union(*some)


def _role_of(key: str) -> str:
    """The one role that a key of `BuiltProblem.closed` concerns; empty: every role."""
    return key.partition(_ROLE_SEPARATOR)[2]


def reason_of(key: str) -> str:
    """The reason id in a key of `BuiltProblem.closed`."""
    return key.partition(_ROLE_SEPARATOR)[0]


@dataclass(frozen=True, eq=False, slots=True)
class RoleFilters:
    """The filters of hosts for roles with equal requirements: reason id and mask [H]."""

    filters: tuple[tuple[str, Bools], ...]
    mask: Bools
    """[H] hosts that pass all filters."""
    of_kind: Bools
    """[H] hosts of the kind on which the roles' members are placed; others are not rejected."""


def filters_by_role(
    terrain: Terrain, roles: list[Role], devices: DeviceConstraints | None, closed: Closed
) -> dict[str, RoleFilters]:
    """The filters by role. Equal roles share one object: there may be thousands of roles."""
    masks = {key: _open_hosts(terrain, uuids) for key, uuids in closed.items() if uuids}
    lending = frozenset() if devices is None else lending_closed(devices, closed)
    known: dict[object, RoleFilters] = {}
    found = {}
    for number, role in enumerate(roles):
        deadline.check()
        closed_filters = tuple(_closed_filters(role, masks))
        key = (_equality_key(role, number, devices), tuple(reason for reason, _ in closed_filters))
        if key not in known:
            filters = (
                *_role_filters(role, number, terrain, devices),
                *(mask for _, mask in closed_filters),
                *(
                    (reason_of(one), with_lenders_closed(number, devices))
                    for one, _ in closed_filters
                    if devices is not None and one in lending
                ),
            )
            of_kind = _rows_of_kind(role, terrain)
            mask = _intersection(terrain, (of_kind, *(mask for _, mask in filters)))
            known[key] = RoleFilters(filters, mask, of_kind)
        found[role.name] = known[key]
    return found


def eligible_rows(
    terrain: Terrain, roles: list[Role], devices: DeviceConstraints | None
) -> dict[str, Bools]:
    """Role -> [H] hosts that could hold one member if they were empty."""
    known: dict[object, Bools] = {}
    found = {}
    for number, role in enumerate(roles):
        deadline.check()
        key = _equality_key(role, number, devices)
        if key not in known:
            known[key] = _eligible(role, number, terrain, devices)
        found[role.name] = known[key]
    return found


def _equality_key(role: Role, number: int, devices: DeviceConstraints | None) -> object:
    """A key that is equal for roles with equal host filters; with devices unique per role."""
    if devices is not None:
        return number
    amounts = frozenset(role.resources.items())
    stands = role.is_slice and (role.on_server, role.servers_of, role.shared_with)
    return amounts, role.required, role.forbidden, role.root_required, role.member_of, stands


def _role_filters(
    role: Role, number: int, terrain: Terrain, devices: DeviceConstraints | None
) -> Iterator[tuple[str, Bools]]:
    """Every rule a host must pass for the role alone: reason id and mask [H]."""
    yield from _of_server(role, terrain)
    yield from _root_traits(role, terrain)
    if devices is not None:
        yield from filters_without_size(number, devices)
        yield from device_filters(number, devices)
        return
    for name, amount in role.resources.items():
        k = terrain.classes.index(name)
        yield f"unit:{name}", _obeys_units(terrain, k, amount)
        yield f"capacity:{name}", terrain.free[:, k] >= amount
    yield from _traits_and_aggregates(role, terrain)


def _closed_filters(
    role: Role, masks: Mapping[str, Bools]
) -> Iterator[tuple[str, tuple[str, Bools]]]:
    """The closed hosts that concern a role: the key of `closed`, and the filter."""
    for key, mask in masks.items():
        reason, _, only = key.partition(_ROLE_SEPARATOR)
        if only in {"", role_described(role.name)}:
            yield key, (reason, mask)


def _rows_of_kind(role: Role, terrain: Terrain) -> Bools:
    """[H] servers that offer slices for slices, hosts for all else; volumes and ports: or pools."""
    if role.of_one_provider:
        return ~terrain.offering
    if not role.is_slice:
        return ~(terrain.offering | terrain.pools)
    usable = terrain.usable.get(role.shared_with)
    return terrain.offering if usable is None else usable


def considered_rows(terrain: Terrain, roles: Collection[Role]) -> Bools:
    """[H] rows of a kind on which members of the roles are placed; hosts for none."""
    distinct = {(role.kind, role.shared_with): role for role in roles}
    if not distinct:
        return ~(terrain.offering | terrain.pools)
    found = np.zeros(terrain.host_count, dtype=np.bool_)
    for role in distinct.values():
        found |= _rows_of_kind(role, terrain)
    return found


def _of_server(role: Role, terrain: Terrain) -> Iterator[tuple[str, Bools]]:
    """Of slices: the servers that are on a host, and whose the role accepts or which it names."""
    if not role.is_slice:
        return
    if terrain.standing_on is not None:
        yield NO_LOCATION, terrain.standing_on >= 0
    if role.on_server is not None:
        names = (role.on_server, f"{SERVER_NAME}{role.on_server}")
        rows = [terrain.row_of[name] for name in names if name in terrain.row_of]
        yield ON_SERVER, mask_of(rows, terrain.host_count)
    elif terrain.offered:
        accepted = [terrain.offered[name] for name in (role.shared_with, *role.servers_of)]
        yield UNNAMED, np.logical_or.reduce(accepted)


def unnamed_servers(role: Role, terrain: Terrain) -> int:
    """How many servers of other projects are open to a role of slices that does not name them."""
    named = next((mask for reason, mask in _of_server(role, terrain) if reason == UNNAMED), None)
    return 0 if named is None else int((~named & _rows_of_kind(role, terrain)).sum())


def _open_hosts(terrain: Terrain, closed: frozenset[str]) -> Bools:
    """[H] all hosts but these."""
    rows = [terrain.row_of[uuid] for uuid in closed if uuid in terrain.row_of]
    return ~mask_of(rows, terrain.host_count)


def _root_traits(role: Role, terrain: Terrain) -> Iterator[tuple[str, Bools]]:
    for trait in sorted(role.root_required):
        yield f"trait:{trait}", terrain.has_trait(trait)
    if role.forbidden and not role.resources and not role.of_one_provider:
        # No provider gives the member resources of its own: what is forbidden, its host lacks.
        yield from _forbidden_traits(role, terrain)


def _traits_and_aggregates(role: Role, terrain: Terrain) -> Iterator[tuple[str, Bools]]:
    nowhere = np.zeros(terrain.host_count, dtype=np.bool_)
    for any_of in role.required:
        masks = [terrain.has_trait(trait) for trait in any_of]
        yield f"trait:{'|'.join(sorted(any_of))}", np.logical_or.reduce([nowhere, *masks])
    if role.forbidden and (role.resources or role.of_one_provider):
        yield from _forbidden_traits(role, terrain)
    for any_of in role.member_of:
        masks = [terrain.aggregates.get(uuid, nowhere) for uuid in any_of]
        yield "aggregate", np.logical_or.reduce([nowhere, *masks])


def _forbidden_traits(role: Role, terrain: Terrain) -> Iterator[tuple[str, Bools]]:
    for trait in sorted(role.forbidden):
        yield f"forbidden:{trait}", ~terrain.has_trait(trait)


def _obeys_units(terrain: Terrain, k: int, amount: int) -> Bools:
    obeys: Bools = (terrain.min_unit[:, k] <= amount) & (terrain.max_unit[:, k] >= amount)
    steps = terrain.step_size[:, k]
    if (steps > 1).any():  # a remainder takes longer than all else here, and is seldom needed
        obeys &= amount % steps == 0
    return obeys


def _eligible(
    role: Role, number: int, terrain: Terrain, devices: DeviceConstraints | None
) -> Bools:
    """[H] hosts that could hold one member of the role if they were empty."""
    masks = [mask for _, mask in (*_of_server(role, terrain), *_root_traits(role, terrain))]
    masks.append(_rows_of_kind(role, terrain))
    if devices is not None:
        masks += [mask for _, mask in filters_without_size(number, devices)]
        return _intersection(terrain, [*masks, serves_when_empty(role, number, devices)])
    masks += [mask for _, mask in _traits_and_aggregates(role, terrain)]
    for name, amount in role.resources.items():
        k = terrain.classes.index(name)
        masks += [_obeys_units(terrain, k, amount), terrain.capacity[:, k] >= amount]
    return _intersection(terrain, masks)


def _intersection(terrain: Terrain, masks: Iterable[Bools]) -> Bools:
    found = np.ones(terrain.host_count, dtype=np.bool_)
    for mask in masks:
        found &= mask
    return found


def rejected_rows(passes: Collection[RoleFilters]) -> dict[str, int]:
    """Number of hosts rejected per reason; a host counts once however many roles reject it."""
    failed: dict[str, Bools] = {}
    for one in passes:
        for reason, mask in one.filters:
            rejected = ~mask & one.of_kind
            failed[reason] = failed.get(reason, np.zeros_like(mask)) | rejected
    return {reason: int(mask.sum()) for reason, mask in sorted(failed.items()) if mask.any()}
