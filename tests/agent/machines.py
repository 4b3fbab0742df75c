"""Machines as files: sysfs and procfs trees of real shapes, made from short descriptions."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

X86_FLAGS = "fpu vmx sse sse2 ssse3 sse4_1 sse4_2 aes avx avx2 avx512f avx512_vnni pdpe1gb sha_ni"
ARM_FEATURES = "fp asimd evtstrm aes pmull sha1 sha2 crc32 atomics asimdrdm sve"
NONE: Mapping[Any, Any] = {}
LINK = "-> "
"""How the content of a symbolic link begins."""


@dataclass
class Machine:
    """Files of a machine: path -> content, links as `-> target`."""

    host: str
    files: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.put("proc/sys/kernel/hostname", self.host)
        self.put("proc/self/mounts", "proc /proc proc rw 0 0\n/dev/sda1 / ext4 rw 0 0")

    def put(self, path: str, content: object) -> None:
        self.files[path] = f"{content}\n" if not str(content).startswith(LINK) else str(content)

    def without(self, *starts: str) -> Machine:
        """The same machine without the files below some paths."""
        other = Machine(self.host)
        other.files = {
            path: text for path, text in self.files.items() if not path.startswith(starts)
        }
        return other

    def cpus(
        self, online: str, flags: str = X86_FLAGS, key: str = "flags", smt: int = 1
    ) -> Machine:
        self.put("sys/devices/system/cpu/online", online)
        self.put("proc/cpuinfo", f"processor\t: 0\n{key}\t\t: {flags}\n")
        self.put("sys/devices/system/cpu/smt/active", smt)
        return self

    def cell(
        self, number: int, cpus: str, memory_mb: int, pages: Mapping[int, int] = {}
    ) -> Machine:
        node = f"sys/devices/system/node/node{number}"
        self.put(f"{node}/cpulist", cpus)
        self.put(f"{node}/meminfo", f"Node {number} MemTotal:       {memory_mb * 1024} kB")
        for size, count in pages.items():
            self.put(f"{node}/hugepages/hugepages-{size}kB/nr_hugepages", count)
        return self

    def flat_memory(self, memory_mb: int, pages: Mapping[int, int] = {}) -> Machine:
        self.put("proc/meminfo", f"MemTotal:       {memory_mb * 1024} kB")
        for size, count in pages.items():
            self.put(f"sys/kernel/mm/hugepages/hugepages-{size}kB/nr_hugepages", count)
        return self

    def function(self, address: str, code: int, model: str, cell: int, driver: str = "") -> str:
        """A PCI function; returns its directory below sys/devices."""
        home = f"sys/devices/pci{address[:7]}/{address}"
        vendor, device = model.split(":")
        self.put(f"{home}/class", f"0x{code:06x}")
        self.put(f"{home}/vendor", f"0x{vendor}")
        self.put(f"{home}/device", f"0x{device}")
        self.put(f"{home}/numa_node", cell)
        if driver:
            self.put(f"{home}/driver", f"{LINK}../../../bus/pci/drivers/{driver}")
        self.files[f"sys/bus/pci/devices/{address}"] = f"{LINK}../../../devices/{home[12:]}"
        return home

    def nic(  # noqa: PLR0917 - a card's data
        self,
        address: str,
        interface: str,
        cell: int,
        total: int = 0,
        vfs: int = 0,
        model: str = "15b3:1017",
        driver: str = "mlx5_core",
        speed: int = 25_000,
        switch: str = "",
    ) -> Machine:
        home = self.function(address, 0x020000, model, cell, driver)
        if total:
            self.put(f"{home}/sriov_totalvfs", total)
            self.put(f"{home}/sriov_numvfs", vfs)
            self.put(f"{home}/sriov_vf_device", "1018")
        self.files[f"sys/class/net/{interface}"] = f"{LINK}../../{home[4:]}/net/{interface}"
        self.put(f"{home}/net/{interface}/speed", speed)
        if switch:
            self.put(f"{home}/net/{interface}/phys_switch_id", switch)
        for number in range(vfs):
            at = int(address[5:7], 16) * 256 + 16 + number
            vf = f"{address[:5]}{at // 256:02x}:{at % 256 // 8:02x}.{at % 8}"
            self.put(f"sys/bus/pci/devices/{vf}/physfn", f"{LINK}../{address}")
            if switch:
                port = f"{interface}_{number}"
                self.files[f"sys/class/net/{port}"] = f"{LINK}../../{home[4:]}/net/{port}"
                self.put(f"{home}/net/{port}/phys_port_name", f"pf0vf{number}")
                self.put(f"{home}/net/{port}/phys_switch_id", switch)
        return self

    def gpu(
        self,
        address: str,
        cell: int,
        model: str = "10de:20b5",
        types: Mapping[str, tuple[str, int, int]] = {},
    ) -> Machine:
        """`types`: name -> label, available, existing."""
        home = self.function(address, 0x030200, model, cell, "nvidia" if types else "vfio-pci")
        if types:
            self.files[f"sys/class/mdev_bus/{address}"] = f"{LINK}../../{home[4:]}"
        for name, (label, available, existing) in types.items():
            at = f"{home}/mdev_supported_types/{name}"
            self.put(f"{at}/name", label)
            self.put(f"{at}/available_instances", available)
            for number in range(existing):
                uuid = f"00000000-0000-4000-8000-{number:012x}"
                self.put(f"{at}/devices/{uuid}", f"{LINK}../../../{uuid}")
        return self

    def fpga(self, address: str, cell: int, regions: Iterable[tuple[int, str]] = ()) -> Machine:
        """`regions`: number and interface id."""
        model = "8086:09c4" if regions else "10ee:5000"
        home = self.function(address, 0x120000, model, cell, "dfl-pci" if regions else "xclmgmt")
        for number, interface in regions:
            own = f"{home}/dfl-fme.0/dfl-fme-region.{number}/fpga_region/region{number}"
            self.put(f"{own}/compat_id", interface)
            self.files[f"sys/class/fpga_region/region{number}"] = f"{LINK}../../{own[4:]}"
        return self

    def disk(self, name: str, gigabytes: int, cell: int = -1, rotational: int = 0) -> Machine:
        at = f"sys/block/{name}"
        self.put(f"{at}/size", gigabytes * 2**21)
        self.put(f"{at}/removable", 0)
        self.put(f"{at}/queue/rotational", rotational)
        self.put(f"{at}/device/model", "a disk")
        self.put(f"{at}/device/device/numa_node", cell)
        return self

    def mount(self, source: str, directory: str, kind: str) -> Machine:
        path = "proc/self/mounts"
        self.files[path] += f"{source} {directory} {kind} rw 0 0\n"
        return self

    def write(self, directory: Path) -> Path:
        """Write the files below a directory."""
        for parent in {path.rpartition("/")[0] for path in self.files}:
            os.makedirs(f"{directory}/{parent}", exist_ok=True)  # noqa: PTH103 - of thousands
        for path, content in self.files.items():
            if content.startswith(LINK):
                os.symlink(content[len(LINK) :], f"{directory}/{path}")  # noqa: PTH211 - as above
            else:
                (directory / path).write_text(content)
        return directory


def two_sockets(host: str = "n1") -> Machine:
    """Two sockets, a card with virtual functions on each, huge pages."""
    return (
        Machine(host)
        .cpus("0-31")
        .cell(0, "0-7,16-23", 65_536, {2048: 1024, 1_048_576: 4})
        .cell(1, "8-15,24-31", 65_536, {2048: 1024, 1_048_576: 0})
        .nic("0000:3b:00.0", "ens1f0", 0, 8, 8)
        .nic("0000:af:00.0", "ens2f0", 1, 8, 8)
        .nic("0000:01:00.0", "eno1", 0, model="14e4:165f", driver="tg3", speed=1000)
        .disk("sda", 480)
    )


def accelerated(host: str = "gpu1") -> Machine:
    """An Ice Lake server with GPUs: two as a whole, two with virtual ones, a display of the BMC."""
    types = {"nvidia-474": ("GRID A100-5C", 6, 2), "nvidia-475": ("GRID A100-10C", 0, 0)}
    machine = (
        Machine(host)
        .cpus("0-63", X86_FLAGS + " avx512_bitalg")
        .cell(0, "0-31", 262_144)
        .cell(1, "32-63", 262_144)
        .gpu("0000:17:00.0", 0)
        .gpu("0000:31:00.0", 0, types=types)
        .gpu("0000:b1:00.0", 1)
        .gpu("0000:ca:00.0", 1, types=types)
        .disk("nvme0n1", 1788, 0)
        .disk("nvme1n1", 1788, 1)
    )
    machine.function("0000:03:00.0", 0x030000, "1a03:2000", 0, "ast")
    return machine


def with_fpgas(host: str = "fpga1") -> Machine:
    """A server with a card of two regions, and one whose shell shows none."""
    return (
        Machine(host)
        .cpus("0-15")
        .cell(0, "0-7", 98_304)
        .cell(1, "8-15", 98_304)
        .fpga("0000:b0:00.0", 1, [(2, "9926ab6d6c925a68aabca7d84c545738"), (3, "9926ab6d")])
        .fpga("0000:5e:00.0", 0)
        .disk("sda", 960)
    )


def arm_without_numa(host: str = "arm1") -> Machine:
    """An ARM board: no NUMA, no PCI card of note."""
    machine = (
        Machine(host)
        .cpus("0-3", ARM_FEATURES, "Features", smt=0)
        .flat_memory(8192, {2048: 64})
        .disk("mmcblk0", 58)
    )
    machine.function("0000:00:00.0", 0x060400, "14e4:2711", -1, "pcieport")
    return machine


def edge(host: str = "edge1") -> Machine:
    """One socket at a mast: functions of QuickAssist beside those of the network."""
    machine = (
        Machine(host)
        .cpus("0-19")
        .cell(0, "0-19", 131_072, {1_048_576: 64})
        .nic("0000:51:00.0", "ens785f0", 0, 64, 16, "8086:1593", "ice", 25_000)
        .nic("0000:51:00.1", "ens785f1", 0, 64, 0, "8086:1593", "ice", -1)
        .disk("nvme0n1", 894, 0)
        .mount("10.0.0.9:/vms", "/var/lib/nova/instances", "nfs4")
    )
    home = machine.function("0000:6b:00.0", 0x0B4000, "8086:4940", 0, "4xxx")
    machine.put(f"{home}/sriov_totalvfs", 16)
    machine.put(f"{home}/sriov_numvfs", 16)
    machine.put(f"{home}/sriov_vf_device", "4941")
    return machine


def smart_nic(host: str = "snic1") -> Machine:
    """A card in switchdev mode, with a representor for each function."""
    return (
        Machine(host)
        .cpus("0-7")
        .cell(0, "0-7", 65_536)
        .nic("0000:08:00.0", "ens6f0np0", 0, 4, 4, "15b3:101d", speed=100_000, switch="b8cef6")
        .disk("sda", 480)
    )


SHAPES = {
    make.__name__: make
    for make in (two_sockets, accelerated, with_fpgas, arm_without_numa, edge, smart_nic)
}
