"""A node's provider tree as the ledger has it: what is the agent's own, and whose the rest is."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from moorage.agent.target import OWNED, ROOT, VANISHED, key_in, provider_uuid

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from moorage.client.provider_trees import ListedProvider, ProviderTrees
    from moorage.domain.providers import Inventory
    from moorage.domain.resources import Amounts, ResourceClass, Trait

_ADDRESS: Final = re.compile(
    r"(?:([0-9a-f]{4,8})[:_])([0-9a-f]{2})[:_]([01][0-9a-f])[._]([0-7])", re.ASCII | re.IGNORECASE
)
"""A PCI address in a name: as `lspci` writes it, or as libvirt does."""


@dataclass(frozen=True, slots=True)
class PresentProvider:
    """A provider of the agent's own, with everything that is known of it."""

    uuid: str
    name: str
    parent: str | None
    generation: int
    inventories: Mapping[ResourceClass, Inventory] = field(
        default_factory=lambda: MappingProxyType({})
    )
    traits: frozenset[Trait] = frozenset()
    aggregates: frozenset[str] = frozenset()
    allocations: Mapping[str, Amounts] = field(default_factory=lambda: MappingProxyType({}))
    """Consumer -> amounts."""

    def used(self, resource_class: ResourceClass) -> int:
        """How much consumers have of a class."""
        return sum(amounts.get(resource_class, 0) for amounts in self.allocations.values())

    @property
    def emptied(self) -> bool:
        """Whether it is what is left of a device that is gone."""
        return VANISHED in self.traits and not self.inventories


@dataclass(frozen=True, slots=True)
class PresentTree:
    """The tree of a node; `own` are the agent's providers by key."""

    root_uuid: str
    root_name: str
    own: Mapping[str, PresentProvider] = field(default_factory=lambda: MappingProxyType({}))
    others: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    """UUID -> name of the providers that are not the agent's."""
    exists: bool = True
    """False: there is no root provider yet."""

    @property
    def reported_addresses(self) -> frozenset[str]:
        """The PCI addresses that others have reported a provider for."""
        return frozenset(
            ":".join(found.groups()[:3]).lower() + f".{found[4]}"
            for name in self.others.values()
            if (found := _ADDRESS.search(name))
        )


def read_tree(trees: ProviderTrees, root: ListedProvider, keys: Iterable[str] = ()) -> PresentTree:
    """Read the tree of a root provider. Of these keys it knows providers under any name.

    Raises:
        SourceFailed: an error, or no answer.
    """
    own: dict[str, PresentProvider] = {}
    others: dict[str, str] = {}
    by_uuid = {provider_uuid(root.uuid, key): key for key in keys}
    for one in sorted(trees.in_tree(root.uuid), key=lambda one: one.uuid):
        traits, _ = trees.traits(one.uuid)
        key = ROOT if one.uuid == root.uuid else key_in(one.name) or by_uuid.get(one.uuid)
        if key is None or key in own or not _is_own(one.uuid, root.uuid, key, traits):
            others[one.uuid] = one.name
        else:
            own[key] = read_provider(trees, one, traits)
    return PresentTree(root.uuid, root.name, MappingProxyType(own), MappingProxyType(others))


def _is_own(uuid: str, root: str, key: str, traits: frozenset[Trait]) -> bool:
    """By its trait, or, where a run ended before that was set, by the UUID that the agent gives."""
    return OWNED in traits or (key != ROOT and uuid == provider_uuid(root, key))


def read_provider(
    trees: ProviderTrees,
    one: ListedProvider,
    traits: frozenset[Trait],
    *,
    with_allocations: bool = True,
) -> PresentProvider:
    """Read a provider of the agent's. Its generation is that of before: what moves later shows."""
    allocations = trees.allocations(one.uuid) if with_allocations else {}
    return PresentProvider(
        uuid=one.uuid,
        name=one.name,
        parent=one.parent,
        generation=one.generation,
        inventories=MappingProxyType(
            {found.resource_class: found for found in trees.inventories(one.uuid)}
        ),
        traits=traits,
        aggregates=trees.aggregates(one.uuid),
        allocations=MappingProxyType(dict(allocations)),
    )
