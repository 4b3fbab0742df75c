"""The configuration of the agent of a compute node: what it cannot find out by itself."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from enum import StrEnum
from fnmatch import fnmatchcase
from types import MappingProxyType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from moorage.domain.resources import ResourceClass, Trait


class RootOwner(StrEnum):
    """Who reports a compute node's root provider."""

    NOVA = "nova"
    """Nova's compute service, or anybody else: the agent never writes it."""
    AGENT = "agent"
    """The agent, with processors, memory and disk: there is no Nova on the node."""


@dataclass(frozen=True, slots=True)
class Bandwidth:
    """Bandwidth to offer of an interface, in kilobits per second; None: the speed of its link."""

    egress: int | None = None
    ingress: int | None = None


@dataclass(frozen=True, slots=True)
class NetworkRule:
    """What is said of the network functions with such an address, or such an interface."""

    address: str | None = None
    interface: str | None = None
    """Patterns with `*` and `?`; None: any."""
    physnet: str | None = None
    bandwidth: Bandwidth | None = None
    traits: frozenset[Trait] = frozenset()

    def fits(self, address: str, interfaces: frozenset[str]) -> bool:
        """Whether it speaks of the function at an address, with these interfaces."""
        named = self.interface is None or any(
            fnmatchcase(one, self.interface) for one in interfaces
        )
        return named and (self.address is None or fnmatchcase(address, self.address))


@dataclass(frozen=True, slots=True)
class DiskRule:
    """Disks that are offered whole, each as one unit of a class."""

    name: str
    """A pattern with `*` and `?`."""
    resource_class: ResourceClass
    traits: frozenset[Trait] = frozenset()


@dataclass(frozen=True, slots=True)
class SharedPool:
    """Storage that several nodes see: found by its name, or by what is mounted on a directory."""

    name: str | None = None
    mount: str | None = None
    total_gb: int | None = None
    """None: the size of the filesystem."""
    traits: frozenset[Trait] = frozenset()


@dataclass(frozen=True, slots=True)
class AgentConfig:
    """A node's configuration. The defaults are those of an empty file."""

    name: str | None = None
    """Of the root provider; None: the host name."""
    uuid: str | None = None
    root: RootOwner = RootOwner.NOVA
    numa: bool = True
    """Whether what belongs to a NUMA node is reported below a provider of that node."""
    huge_pages: bool = True
    dedicated_cpus: frozenset[int] = frozenset()
    """Processors that are offered as PCPU, where the agent reports the root."""
    memory_nodes: frozenset[int] | None = None
    """NUMA nodes without processors whose memory is for guests; None: none, with a caution."""
    bare_metal: ResourceClass | None = None
    """The node is offered as a whole, as one unit of this class."""
    reserved: Mapping[ResourceClass, int] = field(default_factory=lambda: MappingProxyType({}))
    """For each node: amounts that are kept back."""
    allocation_ratio: Mapping[ResourceClass, float] = field(
        default_factory=lambda: MappingProxyType({})
    )
    traits: frozenset[Trait] = frozenset()
    """Of the root provider, where the agent reports it."""
    networks: tuple[NetworkRule, ...] = ()
    ignore: tuple[str, ...] = ()
    """Patterns of PCI addresses that are not reported."""
    mediated_types: tuple[str, ...] = ()
    """Types of mediated devices to offer; of several that a card has, the first."""
    disks: tuple[DiskRule, ...] = ()
    shared_storage: tuple[SharedPool, ...] = ()


def name_part(text: str) -> str:
    """A text as a part of a custom name: upper case, other characters as one underscore."""
    return re.sub("[^0-9A-Z]+", "_", text.upper()).strip("_")
