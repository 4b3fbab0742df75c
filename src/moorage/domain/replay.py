"""Placement requests that recreate an exported service, in the order of their dependencies.

The generations that requests name are those the service has by then, counted by the wire's own
rules, so the list can be written down first and sent later. What cannot be said on the wire: a
generation to start from, so providers and consumers begin with those that writing them gives.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, replace
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final

from moorage.domain.consumers import UNKNOWN_TYPE
from moorage.domain.content import parents_first, terms
from moorage.domain.resources import MAX_AMOUNT, is_custom_name

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from moorage.domain.content import AllocationSet, Content
    from moorage.domain.providers import Inventory, ResourceProvider

CONSUMERS_AT_ONCE: Final = 20
"""In one request: a service takes each as one transaction, and one that is too large for long."""
VERSION: Final = "1.38"
"""Consumers have types."""
UNTYPED: Final = "1.37"
"""The last in which they have none; afterwards `unknown` cannot be written."""


@dataclass(frozen=True, slots=True)
class Request:
    """One request to a Placement service."""

    method: str
    path: str
    body: Mapping[str, Any] | None = None
    version: str = VERSION


def requests(content: Content) -> Iterator[Request]:
    """The requests that write the whole content.

    An inventory that is overfull, or whose terms its allocations break, is first made roomy and
    gets its terms when all is allocated: services let inventories shrink, but nobody exceed them.
    """
    for name in filter(is_custom_name, content.resource_classes):
        yield Request("PUT", f"/resource_classes/{name}")
    for name in sorted(filter(is_custom_name, content.traits)):
        yield Request("PUT", f"/traits/{name}")
    generations: Counter[str] = Counter()
    roomy = _roomy(content)
    ordered = parents_first(content.providers)
    for one in ordered:
        yield from _provider(one, roomy.get(one.uuid, {}), generations)
    yield from _allocations(content, generations)
    for one in ordered:
        if one.uuid in roomy:
            yield _inventories(one.uuid, one.inventories, generations)


def _provider(
    one: ResourceProvider, roomy: Mapping[str, Inventory], generations: Counter[str]
) -> Iterator[Request]:
    body = {"uuid": one.uuid, "name": one.name, "parent_provider_uuid": one.parent_uuid}
    yield Request("POST", "/resource_providers", body)
    at = f"/resource_providers/{one.uuid}"
    if one.inventories:
        stock = [roomy.get(item.resource_class, item) for item in one.inventories]
        yield _inventories(one.uuid, stock, generations)
    for key, names in (("traits", one.traits), ("aggregates", one.aggregates)):
        if names:
            content = {
                key: sorted(names),
                "resource_provider_generation": generations[one.uuid],
            }
            generations[one.uuid] += 1
            yield Request("PUT", f"{at}/{key}", content)


def _inventories(uuid: str, stock: Sequence[Inventory], generations: Counter[str]) -> Request:
    body = {
        "inventories": {item.resource_class: terms(item) for item in stock},
        "resource_provider_generation": generations[uuid],
    }
    generations[uuid] += 1
    return Request("PUT", f"/resource_providers/{uuid}/inventories", body)


def _allocations(content: Content, generations: Counter[str]) -> Iterator[Request]:
    ordered = sorted(
        content.consumers.values(),
        key=lambda one: (one.consumer.type == UNKNOWN_TYPE, one.consumer.uuid),
    )
    for untyped, sets in groupby(ordered, key=lambda one: one.consumer.type == UNKNOWN_TYPE):
        rest = list(sets)
        for start in range(0, len(rest), CONSUMERS_AT_ONCE):
            page = rest[start : start + CONSUMERS_AT_ONCE]
            generations.update({uuid for one in page for uuid in one.allocations})
            body = {one.consumer.uuid: _set(one, typed=not untyped) for one in page}
            yield Request("POST", "/allocations", body, UNTYPED if untyped else VERSION)


def restoring_request(one: AllocationSet) -> Request:
    """The request that restores these allocations of a consumer."""
    untyped = one.consumer.type == UNKNOWN_TYPE
    body = {one.consumer.uuid: _set(one, typed=not untyped)}
    return Request("POST", "/allocations", body, UNTYPED if untyped else VERSION)


def _set(one: AllocationSet, *, typed: bool) -> dict[str, Any]:
    body: dict[str, Any] = {
        "allocations": {
            uuid: {"resources": dict(amounts)} for uuid, amounts in one.allocations.items()
        },
        "project_id": one.consumer.project_id,
        "user_id": one.consumer.user_id,
        "consumer_generation": None,
    }
    return {**body, "consumer_type": one.consumer.type} if typed else body


def _roomy(content: Content) -> dict[str, dict[str, Inventory]]:
    """Provider -> class -> inventory enlarged while allocations are written, where it must be."""
    amounts: dict[tuple[str, str], list[int]] = {}
    for one in content.consumers.values():
        for uuid, of_provider in one.allocations.items():
            for name, amount in of_provider.items():
                amounts.setdefault((uuid, name), []).append(amount)
    found: dict[str, dict[str, Inventory]] = {}
    for provider in content.providers.values():
        for item in provider.inventories:
            taken = amounts.get((provider.uuid, item.resource_class), [])
            used = sum(taken)
            if used > item.capacity or any(item.rule_broken_by(amount) for amount in taken):
                found.setdefault(provider.uuid, {})[item.resource_class] = _with_room(item, used)
    return found


def _with_room(item: Inventory, used: int) -> Inventory:
    total = min(max(item.total, used), MAX_AMOUNT)
    return replace(
        item,
        total=total,
        reserved=0,
        min_unit=1,
        max_unit=MAX_AMOUNT,
        step_size=1,
        allocation_ratio=max(item.allocation_ratio, float(math.ceil(used / total))),
    )
