"""Where the allocations of processors, memory and huge pages go when their carriers change."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from moorage.agent.inventory_merge import in_order, is_managed_class, merged
from moorage.agent.plan_steps import Transfer

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from moorage.agent.ledger_tree import PresentProvider
    from moorage.agent.target import TargetProvider
    from moorage.domain.providers import Inventory
    from moorage.domain.resources import ResourceClass


class NoRoom(Exception):
    """The allocations do not fit on the new carriers."""

    def __init__(self, consumer: str, amounts: Mapping[ResourceClass, int]) -> None:
        said = ", ".join(f"{amount} {name}" for name, amount in sorted(amounts.items()))
        super().__init__(f"{said} of consumer {consumer} do not fit on the new carriers")


@dataclass
class CarrierPlan:
    """The inventories of all carriers by key, and the transfers between them."""

    inventories: dict[str, tuple[Inventory, ...]] = field(default_factory=dict)
    transfers: list[Transfer] = field(default_factory=list)
    moved_classes: bool = False
    """Whether a class leaves a carrier: only then must all change at once."""


def plan_carriers(
    targets: Sequence[TargetProvider],
    present: Mapping[str, PresentProvider],
    uuids: Mapping[str, str],
) -> CarrierPlan:
    """Plan the inventories of the carriers, present and new.

    Raises:
        NoRoom: an allocation on a class that leaves its carrier fits nowhere.
    """
    plan = CarrierPlan()
    final: dict[str, dict[ResourceClass, Inventory]] = {key: {} for key in present}
    for one in targets:
        before = present.get(one.key)
        final[one.key] = {
            name: merged(before.inventories.get(name) if before else None, wanted, name)
            for name, wanted in one.inventories.items()
        }
    losses: dict[str, set[ResourceClass]] = {}
    for key, carrier in present.items():
        for name, inventory in carrier.inventories.items():
            if name in final[key]:
                continue
            if is_managed_class(key, name):
                losses.setdefault(key, set()).add(name)
            else:
                final[key][name] = inventory
    plan.moved_classes = bool(losses)
    plan.inventories = {key: in_order(some) for key, some in final.items()}
    plan.transfers = list(_transfers(losses, final, present, uuids))
    return plan


def _transfers(
    losses: Mapping[str, set[ResourceClass]],
    final: Mapping[str, Mapping[ResourceClass, Inventory]],
    present: Mapping[str, PresentProvider],
    uuids: Mapping[str, str],
) -> Iterator[Transfer]:
    """The largest consumers first; each on one carrier if it fits there, else on several."""
    free = {
        key: {
            name: one.capacity - (present[key].used(name) if key in present else 0)
            for name, one in some.items()
        }
        for key, some in final.items()
    }
    for source, consumer, amounts in _leaving(losses, present):
        for target, part in _places(consumer, amounts, free):
            for name, amount in part.items():
                free[target][name] -= amount
                yield Transfer(consumer, name, amount, uuids[source], uuids[target])


def _leaving(
    losses: Mapping[str, set[ResourceClass]], present: Mapping[str, PresentProvider]
) -> list[tuple[str, str, Mapping[ResourceClass, int]]]:
    """Carrier, consumer and the amounts that must leave it, the largest first."""
    found = []
    for key, classes in losses.items():
        for consumer, amounts in present[key].allocations.items():
            part = {name: amount for name, amount in amounts.items() if name in classes}
            if part:
                found.append((key, consumer, part))
    return sorted(found, key=lambda one: (-sum(one[2].values()), one[0], one[1]))


def _places(
    consumer: str,
    amounts: Mapping[ResourceClass, int],
    free: Mapping[str, Mapping[ResourceClass, int]],
) -> Iterator[tuple[str, Mapping[ResourceClass, int]]]:
    """Carriers for a consumer's amounts. Classes that no carrier has together are placed apart."""
    whole = [
        key
        for key, some in sorted(free.items())
        if all(some.get(name, 0) >= amount for name, amount in amounts.items())
    ]
    if whole:
        # The fullest that it fits: large consumers after it find the others whole.
        yield min(whole, key=lambda key: sum(free[key][name] for name in amounts)), amounts
        return
    for name, amount in sorted(amounts.items()):
        left = amount
        for key in sorted(free, key=lambda key: (-free[key].get(name, 0), key)):
            part = min(max(free[key].get(name, 0), 0), left)
            if part:
                left -= part
                yield key, {name: part}
        if left:
            raise NoRoom(consumer, {name: amount})
