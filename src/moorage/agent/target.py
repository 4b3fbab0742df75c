"""What a node's resource providers should be: the target that the ledger is brought to."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Final
from uuid import UUID, uuid5

if TYPE_CHECKING:
    from collections.abc import Mapping

    from moorage.agent.facts import Caution
    from moorage.domain.resources import ResourceClass, Trait

OWNED: Final = "CUSTOM_MOORAGE_AGENT"
"""The trait of every provider that the agent has made; it never writes another."""
VANISHED: Final = "CUSTOM_MOORAGE_VANISHED"
"""The trait of a provider whose device is gone: it is in use, or below a root of Nova's."""
ROOT: Final = ""
"""The key of the root provider."""
MEMORY: Final = "memory"
STORAGE: Final = "storage"
_POOLS: Final = UUID("b3f6c5d0-9d0e-5a6c-8a53-0f6a3d5f1c41")
"""The namespace of shared pools' UUIDs: all agents make the same."""
_ROOTS: Final = UUID("6f6cf4b5-4f0d-5d0b-9a2e-3f3f1a2f7f63")
"""The namespace of root providers' UUIDs that agents make."""
_ADDRESS: Final = r"[0-9a-f]{4,8}:[0-9a-f]{2}:[01][0-9a-f]\.[0-7]"
_KEY: Final = re.compile(
    rf"/(?P<key>numa\d+|memory|storage|(?:pf|gpu):{_ADDRESS}|fpga:{_ADDRESS}(?::\d+)?"
    r"|disk:[A-Za-z0-9_.!-]+)(?:~[0-9a-f]{8})?",
    re.ASCII,
)
_CELL: Final = re.compile(r"numa\d+", re.ASCII)


@dataclass(frozen=True, slots=True)
class TargetInventory:
    """What there should be of a class. None: what there is stays, or the default of a new one."""

    total: int
    reserved: int | None = None
    allocation_ratio: float | None = None


@dataclass(frozen=True, slots=True)
class TargetProvider:
    """A provider by its key, which is unique in the tree and follows from the device."""

    key: str
    parent: str | None = ROOT
    """The parent's key; None: unknown, where it is, or else below the root."""
    inventories: Mapping[ResourceClass, TargetInventory] = field(
        default_factory=lambda: MappingProxyType({})
    )
    traits: frozenset[Trait] = frozenset()
    address: str = ""
    """Of the PCI function, if it is one."""
    unsure: bool = False
    """The source could not be understood: what is there stays, and nothing new is made."""


@dataclass(frozen=True, slots=True)
class TargetPool:
    """Storage that is shared with other nodes, as a sharing provider of its own tree."""

    name: str
    total_gb: int | None
    """None: unknown at present; what is there stays."""
    stated: bool = False
    """The total is the configuration's; a measured one only grows."""
    traits: frozenset[Trait] = frozenset()

    @property
    def uuid(self) -> str:
        """The provider's UUID, the same for every node that sees the storage."""
        return str(uuid5(_POOLS, self.name))

    @property
    def aggregate(self) -> str:
        """The aggregate of those who share it."""
        return str(uuid5(UUID(self.uuid), "aggregate"))


@dataclass(frozen=True, slots=True)
class Target:
    """The providers of a node, parents first, and the pools that it shares."""

    name: str
    uuid: str | None = None
    """As somebody has said; None: the provider is found by its name."""
    own_root: bool = False
    new_uuid: str = ""
    """That of a root provider that the agent makes."""
    providers: tuple[TargetProvider, ...] = ()
    pools: tuple[TargetPool, ...] = ()
    pools_known: bool = True
    """False: pools that are not in the target may be shared all the same."""
    blind: frozenset[str] = frozenset()
    """Kinds of providers of which the node shows nothing, so that none counts as gone."""
    cautions: tuple[Caution, ...] = ()


def kind_of(key: str) -> str:
    """The kind of a provider: `numa`, `memory`, `storage`, `pf`, `gpu`, `fpga`, `disk`."""
    return "numa" if _CELL.fullmatch(key) else key.partition(":")[0]


def is_carrier(key: str) -> bool:
    """Whether the provider may carry what belongs to the node: processors, memory, huge pages."""
    return kind_of(key) in {ROOT, "numa", MEMORY}


def is_device(key: str) -> bool:
    """Whether it is a device, that can be pulled."""
    return kind_of(key) in {"pf", "gpu", "fpga", "disk"}


def provider_uuid(root: str, key: str) -> str:
    """The UUID of a new provider: the same whenever it is made."""
    return root if key == ROOT else str(uuid5(UUID(root), f"moorage-agent {key}"))


def new_root_uuid(identity: str) -> str:
    """The UUID of a root provider that the agent makes, by what identifies the machine."""
    return str(uuid5(_ROOTS, identity))


def provider_name(root_name: str, key: str) -> str:
    """A provider's name: unique in the ledger, as root providers' names are."""
    return root_name if key == ROOT else f"{root_name}/{key}"


def key_in(name: str) -> str | None:
    """The key in a provider's name, whatever the root is called; None: the agent made it not."""
    for start in range(len(name)):
        if name[start] == "/" and (found := _KEY.fullmatch(name, start)):
            return found["key"]
    return None
