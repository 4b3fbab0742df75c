"""PCI functions with their drivers, NUMA nodes and numbers of virtual functions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from moorage.agent.facts import NO_CELL, Caution, PciFunction
from moorage.agent.files import PCI_ADDRESS, link_name, whole_number
from moorage.agent.probes.cells import MAX_CELL

if TYPE_CHECKING:
    from moorage.agent.files import Files, Texts

DEVICES: Final = "sys/bus/pci/devices"
MAX_VFS: Final = 65_535
_PROPERTIES: Final = (
    "class",
    "vendor",
    "device",
    "numa_node",
    "driver",
    "sriov_totalvfs",
    "sriov_numvfs",
    "sriov_vf_device",
    "boot_vga",
)


def read(files: Files) -> Texts:
    """Read the properties of every function that is not a virtual one: of those there are many."""
    virtual = files.read((f"{DEVICES}/*/physfn",)).by_entry(DEVICES).keys()
    real = [name for name in files.names(DEVICES) if name not in virtual]
    return files.read(f"{DEVICES}/{name}/{one}" for name in real for one in _PROPERTIES)


def parse(texts: Texts) -> tuple[tuple[PciFunction, ...], tuple[Caution, ...]]:
    """The functions by address."""
    cautions: list[Caution] = []
    found = []
    for address, files in texts.by_entry(DEVICES).items():
        function = _function(address, files, cautions)
        if function is not None:
            found.append(function)
    return tuple(found), tuple(cautions)


def _function(address: str, files: Texts, cautions: list[Caution]) -> PciFunction | None:
    path = f"{DEVICES}/{address}"
    if PCI_ADDRESS.fullmatch(address) is None:
        cautions.append(Caution("not-an-address", path, "left out"))
        return None
    code = whole_number(files.text("class"), 0xFFFFFF, 16)
    vendor, device = _id(files.text("vendor")), _id(files.text("device"))
    if code is None or not vendor or not device:
        cautions.append(Caution("not-a-device", path, "without class, vendor or device; left out"))
        return None
    return PciFunction(
        address=address,
        class_code=code,
        vendor=vendor,
        device=device,
        cell=cell_of(files.text("numa_node")),
        driver=link_name(files.text("driver")),
        total_vfs=_vfs(path, "sriov_totalvfs", files, cautions),
        vfs=_vfs(path, "sriov_numvfs", files, cautions),
        vf_device=_id(files.text("sriov_vf_device")),
        boot_display=files.text("boot_vga") == "1",
    )


def cell_of(text: str) -> int:
    """The NUMA node in a file `numa_node`, or NO_CELL: for -1, and for what is no number."""
    number = whole_number(text, MAX_CELL)
    return NO_CELL if number is None else number


def _id(text: str) -> str:
    number = whole_number(text, 0xFFFF, 16)
    return "" if number is None else f"{number:04x}"


def _vfs(path: str, name: str, files: Texts, cautions: list[Caution]) -> int | None:
    text = files.text(name)
    if name not in files.content:
        return 0
    number = whole_number(text, MAX_VFS)
    if number is None:
        said = f"no number of virtual functions: {text[:40]!r}; what is known stays"
        cautions.append(Caution("not-a-number", f"{path}/{name}", said))
    return number
