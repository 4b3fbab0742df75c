"""Fleets that both servers are loaded with: plain values, the same for the same arguments."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

SHARES: Final = "MISC_SHARES_VIA_AGGREGATE"
ZONES: Final = 10
"""Zone aggregates; each host is in one."""
VFS: Final = 8
PFS: Final = 8
HOSTS_PER_POOL: Final = 100
"""Hosts that share one storage pool."""
PROJECT: Final = "bench-project"
USER: Final = "bench-user"


@dataclass(frozen=True)
class Stock:
    """One inventory, where it differs from Placement's defaults."""

    total: int
    reserved: int = 0
    ratio: float = 1.0


@dataclass(frozen=True)
class Node:
    """One resource provider; `used` is what one consumer of its own has on it."""

    uuid: str
    name: str
    parent: str | None = None
    stocks: Mapping[str, Stock] = field(default_factory=dict)
    traits: frozenset[str] = frozenset()
    aggregates: frozenset[str] = frozenset()
    used: Mapping[str, int] = field(default_factory=dict)

    @property
    def consumer(self) -> str:
        """The UUID of the consumer that has `used`."""
        return self.uuid[:14] + "5" + self.uuid[15:]


Shape = Callable[[int], Iterator[Node]]


def identity(kind: int, number: int, part: int = 0) -> str:
    """A UUID that says what it is."""
    return f"{kind:08x}-{part:04x}-4000-8000-{number:012x}"


def zone(number: int) -> str:
    """The aggregate of a zone."""
    return identity(0xA, number)


COMPUTE: Final = frozenset({"COMPUTE_NODE", "COMPUTE_VOLUME_EXTEND", "COMPUTE_TRUSTED_CERTS"})


def traits_of(number: int) -> frozenset[str]:
    """Half have AVX2, one in fifty is disabled, one in a hundred is rare."""
    found = set(COMPUTE)
    if number % 2 == 0:
        found.add("HW_CPU_X86_AVX2")
    if number % 50 == 49:  # noqa: PLR2004 - the docstring says it
        found.add("COMPUTE_STATUS_DISABLED")
    if number % 100 == 0:
        found.add("CUSTOM_RARE")
    return frozenset(found)


def flat(hosts: int) -> Iterator[Node]:
    """A provider a host; every second one has a server on it."""
    for n in range(hosts):
        yield Node(
            identity(1, n),
            f"host-{n}",
            stocks={
                "VCPU": Stock(64, ratio=4.0),
                "MEMORY_MB": Stock(262_144, reserved=512),
                "DISK_GB": Stock(2_000),
            },
            traits=traits_of(n),
            aggregates=frozenset({zone(n % ZONES)}),
            used={"VCPU": 4, "MEMORY_MB": 8_192, "DISK_GB": 40} if n % 2 else {},
        )


def numa(hosts: int) -> Iterator[Node]:
    """A host with disk, two NUMA nodes with processors and memory, a card under each."""
    for n in range(hosts):
        root = identity(2, n)
        yield Node(
            root,
            f"numa-{n}",
            stocks={"DISK_GB": Stock(2_000)},
            traits=traits_of(n),
            aggregates=frozenset({zone(n % ZONES)}),
        )
        for cell in (0, 1):
            own = identity(2, n, 1 + cell)
            yield Node(
                own,
                f"numa-{n}-cell-{cell}",
                root,
                stocks={"VCPU": Stock(32, ratio=4.0), "MEMORY_MB": Stock(131_072)},
                traits=frozenset({"HW_NUMA_ROOT"}),
                used={"VCPU": 4, "MEMORY_MB": 8_192} if n % 2 and cell else {},
            )
            yield Node(
                identity(2, n, 11 + cell),
                f"numa-{n}-card-{cell}",
                own,
                stocks={"CUSTOM_FPGA": Stock(2)},
                traits=frozenset({"CUSTOM_FAST_CARD"}) if cell else frozenset(),
            )


def sriov(hosts: int) -> Iterator[Node]:
    """A host with 8 physical functions of 8 virtual ones each, on two networks."""
    for n in range(hosts):
        root = identity(3, n)
        yield Node(
            root,
            f"sriov-{n}",
            stocks={
                "VCPU": Stock(64, ratio=4.0),
                "MEMORY_MB": Stock(262_144),
                "DISK_GB": Stock(2_000),
            },
            traits=traits_of(n),
        )
        for pf in range(PFS):
            yield Node(
                identity(3, n, 1 + pf),
                f"sriov-{n}-pf-{pf}",
                root,
                stocks={"SRIOV_NET_VF": Stock(VFS)},
                traits=frozenset({f"CUSTOM_PHYSNET_{pf % 2}"}),
            )


def shared(hosts: int) -> Iterator[Node]:
    """Hosts without disks; a storage pool for each hundred."""
    for n in range(hosts):
        pool = n // HOSTS_PER_POOL
        yield Node(
            identity(4, n),
            f"diskless-{n}",
            stocks={"VCPU": Stock(64, ratio=4.0), "MEMORY_MB": Stock(262_144)},
            traits=traits_of(n),
            aggregates=frozenset({identity(0xB, pool)}),
        )
        if n % HOSTS_PER_POOL == 0:
            yield Node(
                identity(4, pool, 1),
                f"pool-{pool}",
                stocks={"DISK_GB": Stock(1_000_000)},
                traits=frozenset({SHARES}),
                aggregates=frozenset({identity(0xB, pool)}),
            )


def wide(hosts: int) -> Iterator[Node]:
    """Two hosts whatever is asked: one with 8 equal devices, one with 64."""
    del hosts
    for n, devices in ((0, 8), (1, 64)):
        root = identity(5, n)
        yield Node(root, f"wide-{n}", stocks={"VCPU": Stock(64)})
        for d in range(devices):
            yield Node(
                identity(5, n, 1 + d),
                f"wide-{n}-device-{d}",
                root,
                stocks={"CUSTOM_GPU": Stock(8)},
            )


SHAPES: Final[Mapping[str, Shape]] = {
    "flat": flat,
    "numa": numa,
    "sriov": sriov,
    "shared": shared,
    "wide": wide,
}
