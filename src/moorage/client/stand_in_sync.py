"""Keeps the stand-ins for virtual classes at a Placement service in step with Nova's servers."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from moorage.client.placement_wire import SourceFailed
from moorage.domain.content import terms
from moorage.domain.providers import SHARING_TRAIT
from moorage.domain.stand_ins import is_stand_in, stand_in_id, stand_in_name, stock
from moorage.domain.virtual_classes import is_of_moorage, may_be_virtual

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from collections.abc import Set as AbstractSet

    from moorage.client.placement_wire import PlacementWire
    from moorage.domain.resources import ResourceClass

ATTEMPTS: Final = 5
"""How often a stand-in is written whose generation Nova's own writes move."""
_CONFLICT: Final = 409
_MISSING: Final = 404


@dataclass(frozen=True, slots=True)
class StandInPlan:
    """What is to be changed at a Placement service."""

    added: tuple[ResourceClass, ...]
    """Classes that it does not know yet."""
    removed: tuple[ResourceClass, ...]
    """Classes that no server requests any more."""
    elsewhere: tuple[ResourceClass, ...]
    """Requested classes of which providers of others have inventories; left alone."""
    stand_ins: Mapping[str, tuple[frozenset[ResourceClass], frozenset[ResourceClass]]]
    """Host -> the classes of its stand-in as they are, and as they shall be, if they differ."""


@dataclass(slots=True)
class StandInChanges:
    """What was changed."""

    created: int = 0
    changed: int = 0
    deleted: int = 0
    kept: set[ResourceClass] = field(default_factory=set)
    """Classes that no server requests, of which something is allocated still."""


def plan(
    wire: PlacementWire, requested: AbstractSet[ResourceClass], *, connections: int = 8
) -> StandInPlan:
    """Compare a service with the classes that servers request.

    Asks a question for each class, not for each host: a cloud in step costs little.

    Raises:
        SourceFailed: an error, or no answer.
    """
    wire.negotiate()
    rows = wire.get("/resource_providers")["resource_providers"]
    shared = wire.get(f"/resource_providers?required={SHARING_TRAIT}")["resource_providers"]
    sharing = {one["uuid"] for one in shared}
    hosts = {one["uuid"] for one in rows if one["parent_provider_uuid"] is None} - sharing
    host_of = {
        one["uuid"]: one["parent_provider_uuid"]
        for one in rows
        if is_stand_in(one["uuid"], one["parent_provider_uuid"])
    }
    listed = wire.get("/resource_classes")["resource_classes"]
    known = sorted(one["name"] for one in listed if may_be_virtual(one["name"]))
    stocked: dict[str, set[ResourceClass]] = {host: set() for host in host_of.values()}
    elsewhere: set[ResourceClass] = set()
    with ThreadPoolExecutor(connections) as pool:
        having = pool.map(lambda name: _having(wire, name), known)
        for name, uuids in zip(known, having, strict=True):
            for uuid in uuids:
                if uuid in host_of:
                    stocked[host_of[uuid]].add(name)
                else:
                    elsewhere.add(name)
    wanted = frozenset(requested - elsewhere)
    ours = {name for some in stocked.values() for name in some} | set(filter(is_of_moorage, known))
    changes: dict[str, tuple[frozenset[ResourceClass], frozenset[ResourceClass]]] = {}
    for host in sorted(hosts | stocked.keys()):
        before = frozenset(stocked.get(host, ()))
        if before != wanted or (host in stocked and not wanted):
            changes[host] = (before, wanted)
    return StandInPlan(
        added=tuple(sorted(wanted.difference(known))),
        removed=tuple(sorted(ours - requested - elsewhere)),
        elsewhere=tuple(sorted(elsewhere & requested)),
        stand_ins=changes,
    )


def carry_out(
    wire: PlacementWire,
    planned: StandInPlan,
    *,
    connections: int = 8,
    advance: Callable[[int], None] = lambda _: None,
) -> StandInChanges:
    """Write the planned changes; repeated after an interruption, it goes on.

    Raises:
        SourceFailed: an error, or no answer.
    """
    done = StandInChanges()
    for name in planned.added:
        wire.call("PUT", f"/resource_classes/{name}")
    with ThreadPoolExecutor(connections) as pool:
        every = pool.map(lambda one: _carried_out(wire, one[0], *one[1]), planned.stand_ins.items())
        for host, kept in zip(planned.stand_ins, every, strict=True):
            before, after = planned.stand_ins[host]
            done.kept |= kept
            done.created += not before and bool(after)
            done.deleted += not after and not kept
            done.changed += bool(before) and bool(after | kept) and before != after | kept
            advance(1)
    for name in planned.removed:
        if name not in done.kept:
            done.kept |= _class_deleted(wire, name)
    return done


def _having(wire: PlacementWire, name: ResourceClass) -> list[str]:
    """UUIDs of the providers with an inventory of the class."""
    found = wire.get(f"/resource_providers?resources={name}:1")["resource_providers"]
    return [one["uuid"] for one in found]


def _carried_out(
    wire: PlacementWire,
    host: str,
    before: AbstractSet[ResourceClass],
    after: AbstractSet[ResourceClass],
) -> frozenset[ResourceClass]:
    """Give a host's stand-in its classes; return those that it keeps as they are allocated."""
    path = f"/resource_providers/{stand_in_id(host)}"
    for left in range(ATTEMPTS, 0, -1):
        row = wire.find(path)
        if row is None and not after:
            return frozenset()
        try:
            if row is None:
                body = {"uuid": stand_in_id(host), "name": stand_in_name(host)}
                row = wire.call(
                    "POST", "/resource_providers", body | {"parent_provider_uuid": host}
                )
            kept = _allocated(wire, path) - after if before - after else frozenset()
            if not after and not kept:
                wire.call("DELETE", path)
            else:
                _put_stock(wire, path, row["generation"], after | kept)
        except SourceFailed as error:
            if error.status != _CONFLICT or left == 1:
                raise
            continue  # a server was moved in between: what is allocated is read again
        return kept
    raise AssertionError("the last attempt returns or raises")


def _allocated(wire: PlacementWire, path: str) -> frozenset[ResourceClass]:
    usages = wire.get(f"{path}/usages")["usages"]
    return frozenset(name for name, used in usages.items() if used)


def _put_stock(
    wire: PlacementWire, path: str, generation: int, classes: Iterable[ResourceClass]
) -> None:
    body: dict[str, Any] = {
        "inventories": {one.resource_class: terms(one) for one in stock(classes)},
        "resource_provider_generation": generation,
    }
    wire.call("PUT", f"{path}/inventories", body)


def _class_deleted(wire: PlacementWire, name: ResourceClass) -> set[ResourceClass]:
    """Delete a class; return it if it is in use again."""
    try:
        wire.call("DELETE", f"/resource_classes/{name}")
    except SourceFailed as error:
        if error.status == _CONFLICT:
            return {name}
        if error.status != _MISSING:
            raise
    return set()
