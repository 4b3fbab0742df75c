"""The whole content of a Placement service as values: for import, comparison and export."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

from moorage.domain.resources import MAX_AMOUNT, is_custom_name, odd_names
from moorage.domain.words import first_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from moorage.domain.consumers import Consumer
    from moorage.domain.period import Instant
    from moorage.domain.providers import Inventory, ResourceProvider
    from moorage.domain.resources import Amounts


@dataclass(frozen=True, slots=True)
class AllocationSet:
    """A consumer with all its allocations, by provider UUID."""

    consumer: Consumer
    allocations: Mapping[str, Amounts]
    written_at: Mapping[str, Instant] = field(default_factory=dict)
    """When those on a provider were written last, where it is known."""


@dataclass(frozen=True, slots=True)
class Content:
    """A Placement service's whole content at about one time. Everything by UUID."""

    providers: Mapping[str, ResourceProvider] = field(default_factory=dict)
    consumers: Mapping[str, AllocationSet] = field(default_factory=dict)
    resource_classes: tuple[str, ...] = ()
    """In the order in which they are listed; standard ones, too."""
    traits: frozenset[str] = frozenset()
    """Standard ones, too."""
    class_times: Mapping[str, Instant] = field(default_factory=dict)
    """When a resource class was made or renamed, where it is known."""
    trait_times: Mapping[str, Instant] = field(default_factory=dict)
    """When a trait was made, where it is known."""
    remarks: tuple[str, ...] = ()
    """What was found on the way that has no place here, as sentences."""
    broken: tuple[str, ...] = ()
    """What was found on the way without which the rest is not whole, as sentences."""
    stand_ins: int = 0
    """Providers that stand in for virtual classes, which are left out; see `stand_ins`."""


CLASS: Final = "resource class"
TRAIT: Final = "trait"
PROVIDER: Final = "resource provider"
CONSUMER: Final = "consumer"


class DifferenceWay(StrEnum):
    """How one content differs from another."""

    MISSING = "missing"
    BESIDES = "besides"
    OTHERWISE = "otherwise"


@dataclass(frozen=True, slots=True)
class Difference:
    """One difference between two contents.

    `detail` names what is otherwise, each as `wanted / found`.
    """

    kind: str
    subject: str
    way: DifferenceWay
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Overage:
    """An inventory of which more is allocated than its capacity."""

    provider: str
    name: str
    resource_class: str
    capacity: int
    used: int


def counts(content: Content) -> dict[str, int]:
    """The number of records of each kind."""
    providers, sets = content.providers.values(), content.consumers.values()
    return {
        "resource classes (custom)": sum(map(is_custom_name, content.resource_classes)),
        "traits (custom)": sum(map(is_custom_name, content.traits)),
        "resource providers": len(providers),
        "provider trees": sum(one.parent_uuid is None for one in providers),
        "inventories": sum(len(one.inventories) for one in providers),
        "traits of providers": sum(len(one.traits) for one in providers),
        "aggregates": len({name for one in providers for name in one.aggregates}),
        "aggregates of providers": sum(len(one.aggregates) for one in providers),
        "consumers": len(sets),
        "allocations": sum(len(amounts) for one in sets for amounts in one.allocations.values()),
        "projects": len({one.consumer.project_id for one in sets}),
        "users": len({one.consumer.user_id for one in sets}),
    }


def parents_first(providers: Mapping[str, ResourceProvider]) -> list[ResourceProvider]:
    """The providers in an order in which they can be made; those of one tree come together.

    What hangs under nothing that is here (a parent elsewhere, or a loop) counts as a root.
    """
    children: dict[str | None, list[ResourceProvider]] = {}
    for one in providers.values():
        parent = one.parent_uuid if one.parent_uuid in providers else None
        children.setdefault(parent, []).append(one)
    found: dict[str, ResourceProvider] = {}
    for start in (children.get(None, ()), providers.values()):
        for root in start:
            waiting = [root]
            while waiting:
                one = waiting.pop()
                if one.uuid not in found:
                    found[one.uuid] = one
                    waiting += reversed(children.get(one.uuid, ()))
    return list(found.values())


_NAMED: Final = 5
"""Providers that a remark names."""


def with_true_roots(content: Content) -> Content:
    """The content with the top of its tree as each provider's root, whatever its record says.

    Older services have left roots out. A remark tells which were others.
    """
    tops: dict[str, str] = {}
    for one in parents_first(content.providers):
        top = one.uuid if one.parent_uuid is None else tops.get(one.parent_uuid)
        if top is not None:
            tops[one.uuid] = top
    wrong = [uuid for uuid, top in tops.items() if content.providers[uuid].root_uuid != top]
    if not wrong:
        return content
    fixed = {uuid: replace(content.providers[uuid], root_uuid=tops[uuid]) for uuid in wrong}
    some = ", ".join(first_of(wrong, _NAMED))
    told = f"root is not the top of the tree, which is taken over, of {PROVIDER} {some}"
    return replace(
        content,
        providers={**content.providers, **fixed},
        remarks=(*content.remarks, told),
    )


def faults(content: Content) -> list[str]:
    """Why no ledger can hold this content, all reasons as sentences; empty if one can."""
    found = [*content.broken, *odd_names(CLASS, content.resource_classes)]
    found += odd_names(TRAIT, content.traits)
    providers = content.providers
    for one in providers.values():
        above, seen = one.parent_uuid, {one.uuid}
        while above is not None and above in providers and above not in seen:
            seen.add(above)
            above = providers[above].parent_uuid
        if above == one.uuid:
            found.append(f"{PROVIDER} {one.uuid}: it is below itself")
        if one.parent_uuid is not None and one.parent_uuid not in providers:
            found.append(f"{PROVIDER} {one.uuid}: its parent {one.parent_uuid} is not there")
        found += [
            f"{PROVIDER} {one.uuid}: {name} of its {item.resource_class} is {value}, not"
            f" {least} to {MAX_AMOUNT}"
            for item in one.inventories
            for name, least in _LEAST.items()
            if not least <= (value := getattr(item, name)) <= MAX_AMOUNT
        ]
    found += [
        f"{CONSUMER} {uuid}: allocated {amount} of {name} on {provider}, not at least 1"
        for uuid, one in content.consumers.items()
        for provider, amounts in one.allocations.items()
        for name, amount in amounts.items()
        if amount < 1
    ]
    return [*found, *_too_long(content)]


_LEAST: Final = {"total": 1, "reserved": 0, "min_unit": 1, "max_unit": 1, "step_size": 1}
"""The least values of an inventory's fields that the API takes."""
_UUID: Final = 36
_PROVIDER_NAME: Final = 200
_WORD: Final = 255
"""Characters that the API takes at most: of UUIDs, of providers' names, and of other texts."""


def _too_long(content: Content) -> Iterator[str]:
    """A sentence for each text that is longer than the API takes, with its kind and its record.

    Names of resource classes and traits have a form that says how long they are.
    """
    for one in content.providers.values():
        texts = {"uuid": (one.uuid, _UUID), "name": (one.name, _PROVIDER_NAME)}
        aggregates = {f"aggregate {text[:_UUID]}": (text, _UUID) for text in one.aggregates}
        yield from _longer(PROVIDER, one.uuid, texts | aggregates)
    for uuid, of in content.consumers.items():
        who = of.consumer
        of_consumer = {
            "uuid": (uuid, _UUID),
            "project_id": (who.project_id, _WORD),
            "user_id": (who.user_id, _WORD),
            "consumer_type": (who.type, _WORD),
        }
        yield from _longer(CONSUMER, uuid, of_consumer)


def _longer(kind: str, record: str, texts: Mapping[str, tuple[str | None, int]]) -> Iterator[str]:
    for name, (text, most) in texts.items():
        if text is not None and len(text) > most:
            yield f"{kind} {record[:_UUID]}: {name} has {len(text)} characters, {most} at most"


def overages(content: Content) -> list[Overage]:
    """Every inventory with an overage, by provider name and class."""
    used: dict[tuple[str, str], int] = {}
    for one in content.consumers.values():
        for provider, amounts in one.allocations.items():
            for name, amount in amounts.items():
                used[provider, name] = used.get((provider, name), 0) + amount
    found = [
        Overage(one.uuid, one.name, item.resource_class, max(item.capacity, 0), taken)
        for one in content.providers.values()
        for item in one.inventories
        if (taken := used.get((one.uuid, item.resource_class), 0)) > max(item.capacity, 0)
    ]
    return sorted(found, key=lambda one: (one.name, one.resource_class))


# --- comparing ------------------------------------------------------------------------------


def as_exported(content: Content) -> Content:
    """What another service is to have of it: no generations, and no standard names without use.

    Generations are a service's own, and so are the standard names that its libraries know.
    """
    providers = content.providers.values()
    classes = {item.resource_class for one in providers for item in one.inventories}
    traits = {name for one in providers for name in one.traits}
    return replace(
        content,
        resource_classes=tuple(
            name for name in content.resource_classes if is_custom_name(name) or name in classes
        ),
        traits=frozenset(name for name in content.traits if is_custom_name(name) or name in traits),
        providers={key: replace(one, generation=0) for key, one in content.providers.items()},
        consumers={
            key: replace(one, consumer=replace(one.consumer, generation=0))
            for key, one in content.consumers.items()
        },
    )


def differences(wanted: Content, found: Content) -> Iterator[Difference]:
    """What the found content lacks, has in addition or has differently from the wanted one.

    Further standard names, which a newer library brings along, are no difference.
    """
    for kind, first, second in (
        (CLASS, set(wanted.resource_classes), set(found.resource_classes)),
        (TRAIT, wanted.traits, found.traits),
    ):
        yield from (
            Difference(kind, name, DifferenceWay.MISSING) for name in sorted(first - second)
        )
        yield from (
            Difference(kind, name, DifferenceWay.BESIDES)
            for name in sorted(filter(is_custom_name, second - first))
        )
    yield from _compared(PROVIDER, _provider_facts, wanted.providers, found.providers)
    yield from _compared(CONSUMER, _consumer_facts, wanted.consumers, found.consumers)


def _compared(
    kind: str,
    facts: Callable[[Any], Mapping[str, object]],
    wanted: Mapping[str, object],
    found: Mapping[str, object],
) -> Iterator[Difference]:
    for key, one in wanted.items():
        if key not in found:
            yield Difference(kind, key, DifferenceWay.MISSING)
            continue
        first, second = facts(one), facts(found[key])
        if first != second:
            names = sorted(
                name for name in first.keys() | second.keys() if first.get(name) != second.get(name)
            )
            told = (f"{name}: {first.get(name)} / {second.get(name)}" for name in names)
            yield Difference(kind, key, DifferenceWay.OTHERWISE, "; ".join(told))
    yield from (Difference(kind, key, DifferenceWay.BESIDES) for key in found if key not in wanted)


def _provider_facts(one: ResourceProvider) -> dict[str, object]:
    """The fields of a provider that are compared; times of writing are not."""
    facts: dict[str, object] = {
        "name": one.name,
        "parent": one.parent_uuid,
        "root": one.root_uuid,
        "generation": one.generation,
        "traits": sorted(one.traits),
        "aggregates": sorted(one.aggregates),
    }
    for item in one.inventories:
        facts[item.resource_class] = terms(item)
    return facts


def terms(item: Inventory) -> dict[str, int | float]:
    """The fields of an inventory on the wire."""
    return {
        "total": item.total,
        "reserved": item.reserved,
        "min_unit": item.min_unit,
        "max_unit": item.max_unit,
        "step_size": item.step_size,
        "allocation_ratio": item.allocation_ratio,
    }


def _consumer_facts(one: AllocationSet) -> dict[str, object]:
    return {
        "project": one.consumer.project_id,
        "user": one.consumer.user_id,
        "type": one.consumer.type,
        "generation": one.consumer.generation,
        "allocations": {uuid: dict(amounts) for uuid, amounts in sorted(one.allocations.items())},
    }
