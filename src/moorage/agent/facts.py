"""What is known of a node: values that probes make of its files, and the warnings on the way."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from moorage.domain.errors import MoorageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

NO_CELL: Final = -1
"""The kernel's number for a device that belongs to no NUMA node."""


@dataclass(frozen=True, slots=True, order=True)
class Caution:
    """Something that was not as expected, and what the agent did about it.

    `code` is stable; `subject` is a file or a provider.
    """

    code: str
    subject: str
    message: str

    def __str__(self) -> str:
        return f"{self.code}: {self.subject}: {self.message}"


class InconsistentNode(MoorageError):
    """Only a part of a node's processors and memory is known, so that nothing is reported of it."""

    def __init__(self, name: str, doubts: Iterable[Caution]) -> None:
        said = "; ".join(map(str, doubts))
        super().__init__(f"{name} is not reported, only a part of it is known: {said}")


@dataclass(frozen=True, slots=True)
class Processors:
    """The processors of a node: their numbers, and what they can do as the kernel names it."""

    online: frozenset[int] = frozenset()
    online_listed: bool = True
    """Whether a list says which are online; otherwise they are those of /proc/cpuinfo."""
    flags: frozenset[str] = frozenset()
    architecture: str = ""
    hyperthreading: bool = False


@dataclass(frozen=True, slots=True)
class Cell:
    """A NUMA node, or the whole machine where the kernel knows of none (`number` NO_CELL)."""

    number: int
    cpus: frozenset[int] = frozenset()
    memory_mb: int = 0
    huge_pages: Mapping[int, int] = field(default_factory=lambda: MappingProxyType({}))
    """Size of a page in KiB -> number of such pages, without those of size zero or count zero."""

    @property
    def paged_mb(self) -> int:
        """The memory in huge pages, in MiB."""
        return sum(size * count for size, count in self.huge_pages.items()) // 1024


@dataclass(frozen=True, slots=True)
class PciFunction:
    """A PCI function that is not a virtual one."""

    address: str
    """Such as `0000:3b:00.0`."""
    class_code: int
    vendor: str
    """Four lower-case hexadecimal digits, as `device` and `vf_device`."""
    device: str
    cell: int = NO_CELL
    driver: str = ""
    total_vfs: int | None = 0
    """None, here and for `vfs`: the file cannot be understood."""
    vfs: int | None = 0
    vf_device: str = ""
    boot_display: bool = False
    """The firmware's console is on it."""


@dataclass(frozen=True, slots=True)
class MediatedType:
    """A type of mediated devices that a function offers: how many there are, and may be more."""

    address: str
    """The function's."""
    name: str
    label: str = ""
    available: int = 0
    existing: int = 0


@dataclass(frozen=True, slots=True)
class Interface:
    """A network interface of a PCI function."""

    name: str
    address: str
    switch_id: str = ""
    """Not empty: the card's switch is under control of the kernel (switchdev)."""
    megabits: int | None = None
    """Speed of the link; None without one."""


@dataclass(frozen=True, slots=True)
class FpgaRegion:
    """A region of an FPGA that can be programmed; `address` is the card's."""

    name: str
    address: str
    interface: str = ""
    """What a bitstream must fit: the id of the region's interface, in hexadecimal digits."""


@dataclass(frozen=True, slots=True)
class Disk:
    """A physical disk. `mounted`: the node itself uses it, or a part of it."""

    name: str
    size_gb: int
    rotational: bool = False
    removable: bool = False
    model: str = ""
    cell: int = NO_CELL
    mounted: bool = False


@dataclass(frozen=True, slots=True)
class Mount:
    """A mounted filesystem: where, from what, of which type, and how large if that was asked."""

    directory: str
    source: str
    kind: str
    size_gb: int | None = None


@dataclass(frozen=True, slots=True)
class Node:
    """All facts of a node."""

    host_name: str = ""
    provider_uuid: str | None = None
    """As Nova's compute service has noted it for itself."""
    machine_id: str | None = None
    processors: Processors = field(default_factory=Processors)
    cells: tuple[Cell, ...] = ()
    functions: tuple[PciFunction, ...] = ()
    interfaces: tuple[Interface, ...] = ()
    mediated: tuple[MediatedType, ...] = ()
    regions: tuple[FpgaRegion, ...] = ()
    disks: tuple[Disk, ...] = ()
    mounts: tuple[Mount, ...] = ()
    blind: frozenset[str] = frozenset()
    """Probes whose source looks empty: what they do not show may be there all the same."""
    doubts: tuple[Caution, ...] = ()
    """Why processors and cells are not believed: unreadable, or sums that are not the machine's."""
    cautions: tuple[Caution, ...] = ()
