"""The steps of a plan, in the order in which they are carried out."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from moorage.agent.target import OWNED
from moorage.domain.words import counted

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from moorage.agent.facts import Caution
    from moorage.domain.providers import Inventory
    from moorage.domain.resources import ResourceClass, Trait


@dataclass(frozen=True, slots=True)
class CreateProvider:
    """Create a provider below another, or as a root."""

    uuid: str
    name: str
    parent: str | None


@dataclass(frozen=True, slots=True)
class MoveProvider:
    """Give a provider another name, or another parent."""

    uuid: str
    before: str
    name: str
    parent: str | None
    re_parented: bool = False


@dataclass(frozen=True, slots=True)
class PutTraits:
    """Replace a provider's traits."""

    uuid: str
    name: str
    traits: frozenset[Trait]
    before: frozenset[Trait] = frozenset()


@dataclass(frozen=True, slots=True)
class PutInventories:
    """Replace a provider's inventories."""

    uuid: str
    name: str
    inventories: tuple[Inventory, ...]
    before: tuple[Inventory, ...] = ()


@dataclass(frozen=True, slots=True)
class PutAggregates:
    """Replace a provider's aggregates."""

    uuid: str
    name: str
    aggregates: frozenset[str]


@dataclass(frozen=True, slots=True)
class Transfer:
    """A consumer's amount of a class goes from one provider to another."""

    consumer: str
    resource_class: ResourceClass
    amount: int
    source: str
    target: str


@dataclass(frozen=True, slots=True)
class Reshape:
    """Replace inventories of several providers, and move allocations between them, at once."""

    inventories: Mapping[str, tuple[Inventory, ...]]
    transfers: tuple[Transfer, ...] = ()
    before: Mapping[str, tuple[Inventory, ...]] = field(default_factory=dict)
    names: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class DeleteProvider:
    """Delete a provider of a device that is gone."""

    uuid: str
    name: str


Step: TypeAlias = (
    CreateProvider
    | MoveProvider
    | PutTraits
    | PutInventories
    | PutAggregates
    | Reshape
    | DeleteProvider
)


@dataclass(frozen=True, slots=True)
class Plan:
    """What leads from the present tree to the target, and what stays as it is, and why."""

    steps: tuple[Step, ...] = ()
    cautions: tuple[Caution, ...] = ()


def described(steps: Iterable[Step]) -> Iterator[str]:
    """What steps do, a line for each provider: `+`, `~` or `-`, its name, and the differences."""
    lines: dict[str, list[str]] = {}
    signs: dict[str, tuple[str, str]] = {}
    reshaped = []
    for step in steps:
        if isinstance(step, Reshape):
            for uuid, some in step.inventories.items():
                signs.setdefault(uuid, ("~", step.names.get(uuid, uuid)))
                lines.setdefault(uuid, []).append(_stock(step.before.get(uuid, ()), some))
            consumers = len({one.consumer for one in step.transfers})
            reshaped.append(f"reshape: the allocations of {counted(consumers, 'consumer')} move")
            continue
        sign = {CreateProvider: "+", DeleteProvider: "-"}.get(type(step), "~")
        before = signs.get(step.uuid, (sign, ""))[0]
        signs[step.uuid] = "-" if sign == "-" else before, step.name
        lines.setdefault(step.uuid, []).append(_difference(step))
    for uuid, (sign, name) in signs.items():
        yield "  ".join([f"{sign} {name}", *(part for part in lines[uuid] if part)])
    yield from reshaped


def _difference(step: Step) -> str:
    match step:
        case MoveProvider():
            renamed = f"(was {step.before})" if step.before != step.name else ""
            return f"{renamed} below another parent".strip() if step.re_parented else renamed
        case PutTraits():
            added = [f"+{one}" for one in sorted(step.traits - step.before - {OWNED})]
            removed = [f"-{one}" for one in sorted(step.before - step.traits)]
            return " ".join([*added, *removed])
        case PutInventories():
            return _stock(step.before, step.inventories)
        case PutAggregates():
            return f"in {counted(len(step.aggregates), 'aggregate')}"
    return ""


def _stock(before: Iterable[Inventory], after: Iterable[Inventory]) -> str:
    old = {one.resource_class: one for one in before}
    new = {one.resource_class: one for one in after}
    return ", ".join(
        _inventory(name, old.get(name), new.get(name))
        for name in sorted(old.keys() | new.keys())
        if old.get(name) != new.get(name)
    )


def _inventory(name: ResourceClass, was: Inventory | None, now: Inventory | None) -> str:
    if was is None or now is None:
        return f"{name} {0 if now is None else now.total}"
    parts = [f"{name} {was.total} -> {now.total}" if was.total != now.total else name]
    if was.reserved != now.reserved:
        parts.append(f"reserved {was.reserved} -> {now.reserved}")
    if was.allocation_ratio != now.allocation_ratio:
        parts.append(f"ratio {was.allocation_ratio:g} -> {now.allocation_ratio:g}")
    return " ".join(parts)
