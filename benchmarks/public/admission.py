"""How many applications each way of placing admits, in rows of load, order and where CN may be."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from benchmarks.joint.one_at_a_time import Scheduler
from benchmarks.joint.weighers import BestFit, Packing, Spreading
from benchmarks.public.applications import GPU, Catalog, fleet_for
from benchmarks.public.fragmentation import Fragmentation
from benchmarks.public.groups import Joint, every_fleet, place_all

from moorage.domain.requests import Objective

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from benchmarks.joint.fleet import Fleet
    from benchmarks.joint.weighers import Weigher
    from benchmarks.public.applications import Application
    from benchmarks.public.groups import Admitted, Way

LOADS: Final = (80, 90, 97)
"""Percent of the fleet that all applications need."""
BY_SIZE: Final = "size"
ORDERS: Final = (BY_SIZE, "random 1", "random 2", "random 3")
JOINT: Final = (Objective.ROOM, Objective.SPREAD, Objective.PACK)
PEERS: Final = ("packing", "spreading", "best fit", "FGD")
MARGIN: Final = 0.01
"""A peer is better if it places more applications and more members, both by more than this."""


@dataclass(frozen=True)
class Setting:
    """A row: what differs from one to the next."""

    load: int
    order: str
    barred: bool
    """Whether instances without GPUs may not be on hosts with GPUs."""


def settings(loads: Iterable[int] = LOADS, orders: Iterable[str] = ORDERS) -> list[Setting]:
    """All rows of these loads and orders."""
    orders = tuple(orders)
    return [
        Setting(load, order, barred)
        for load in loads
        for barred in (False, True)
        for order in orders
    ]


def ordered(asked: Sequence[Application], order: str) -> list[Application]:
    """The applications as they come: the largest first, or at random from the order's number."""
    if order == BY_SIZE:
        return sorted(asked, key=lambda one: (-one.size, one.name))
    found = sorted(asked, key=lambda one: one.name)
    random.Random(int(order.rsplit(maxsplit=1)[-1])).shuffle(found)
    return found


def ways(
    asked: Iterable[Application], objectives: Iterable[Objective] = JOINT
) -> Mapping[str, Callable[[Fleet], Way]]:
    """Every way of placing: jointly under each objective, and one at a time."""
    shapes: Counter[tuple[int, ...]] = Counter()
    for application in asked:
        for shape, count in application.shapes:
            shapes[shape.vcpu, shape.memory, shape.gpus] += count
    found: dict[str, Callable[[Fleet], Way]] = {
        str(one): partial(Joint, objective=one) for one in objectives
    }
    for name, weigher in peers(GPU, shapes).items():
        found[name] = every_fleet(Scheduler(ideal=True, weigher=weigher, name=name))
    return MappingProxyType(found)


def peers(
    gpu: str, shapes: Mapping[tuple[int, ...], int]
) -> Mapping[str, Callable[[Fleet], Weigher]]:
    """What peers choose by, in the order of `PEERS`; for the rest see `Fragmentation`."""
    weighers: tuple[Callable[[Fleet], Weigher], ...] = (
        Packing,
        Spreading,
        BestFit,
        partial(Fragmentation, gpu=gpu, shapes=shapes),
    )
    return MappingProxyType(dict(zip(PEERS, weighers, strict=True)))


def measure(
    asked: Sequence[Application], setting: Setting, objectives: Sequence[Objective] = JOINT
) -> dict[str, Any]:
    """Place all applications in every way; the row for the results."""
    fleet = fleet_for(asked, setting.load / 100)
    order = ordered(asked, setting.order)
    found = place_all(
        fleet,
        [one.name for one in order],
        lambda: Catalog(asked, len(fleet.names), barred=setting.barred),
        ways(asked, objectives),
    )
    sizes = {one.name: one.size for one in asked}
    return {
        "load": setting.load,
        "order": setting.order,
        "barred": setting.barred,
        "hosts": len(fleet.names),
        "applications": len(asked),
        "members": sum(sizes.values()),
        "admitted": {way: [len(one.groups), one.members] for way, one in found.items()},
        "broken": sum(one.broken for one in found.values()),
        "cpu": {way: round(sum(one.seconds), 2) for way, one in found.items()},
        "longest": {str(one): round(max(found[one].seconds), 2) for one in objectives},
        "better": {str(one): better(found, one) for one in objectives},
        "one application": {str(one): single(found, one, sizes) for one in objectives},
    }


def better(found: Mapping[str, Admitted], mine: str) -> list[str]:
    """The peers that place more applications and more members, both by more than the margin."""
    least = 1 + MARGIN
    own = found[mine]
    return [
        name
        for name in PEERS
        if len(found[name].groups) > least * len(own.groups)
        and found[name].members > least * own.members
    ]


def single(found: Mapping[str, Admitted], mine: str, sizes: Mapping[str, int]) -> str | None:
    """The application that makes the difference to the best peer; None if no single one does.

    It is the largest that only one of both places, if it has at least as many members as they
    differ by.
    """
    best = max((found[name] for name in PEERS), key=lambda one: (one.members, len(one.groups)))
    apart = sorted(
        set(best.groups) ^ set(found[mine].groups), key=lambda name: (-sizes[name], name)
    )
    if apart and sizes[apart[0]] >= abs(best.members - found[mine].members) > 0:
        return apart[0]
    return None
