"""The steps of a plan, in the order in which they are carried out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

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
    before: Mapping[str, tuple[Inventory, ...]] | None = None
    names: Mapping[str, str] | None = None


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


def described(step: Step) -> Iterator[str]:
    """The step, a line for each provider that it changes: `+`, `~` or `-`, name, difference."""
    match step:
        case CreateProvider():
            yield f"+ {step.name}"
        case MoveProvider():
            parent = " below another parent" if step.re_parented else ""
            renamed = f" renamed from {step.before}" if step.before != step.name else ""
            yield f"~ {step.name}{renamed}{parent}"
        case PutTraits():
            added = [f"+{one}" for one in sorted(step.traits - step.before)]
            removed = [f"-{one}" for one in sorted(step.before - step.traits)]
            yield f"~ {step.name} {' '.join([*added, *removed])}"
        case PutInventories():
            yield f"~ {step.name} {_difference(step.before, step.inventories)}"
        case PutAggregates():
            yield f"~ {step.name} in {len(step.aggregates)} aggregates"
        case Reshape():
            names, before = step.names or {}, step.before or {}
            for uuid, some in step.inventories.items():
                yield f"~ {names.get(uuid, uuid)} {_difference(before.get(uuid, ()), some)}"
            moved = len({one.consumer for one in step.transfers})
            yield f"~ reshape: {moved} consumers move with their allocations"
        case DeleteProvider():
            yield f"- {step.name}"


def _difference(before: tuple[Inventory, ...], after: tuple[Inventory, ...]) -> str:
    old = {one.resource_class: one for one in before}
    new = {one.resource_class: one for one in after}
    parts = []
    for name in sorted(old.keys() | new.keys()):
        was, now = old.get(name), new.get(name)
        if was == now:
            continue
        if was is None or now is None or was.total != now.total:
            parts.append(f"{name} {was.total if was else 0} -> {now.total if now else 0}")
        if was and now and was.reserved != now.reserved:
            parts.append(f"{name} reserved {was.reserved} -> {now.reserved}")
        if was and now and was.allocation_ratio != now.allocation_ratio:
            parts.append(f"{name} ratio {was.allocation_ratio:g} -> {now.allocation_ratio:g}")
        if was and now and not parts:
            parts.append(f"{name} units")
    return ", ".join(parts)
