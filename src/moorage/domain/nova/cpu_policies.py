"""Processors of a server: which are dedicated (PCPU) and which shared (VCPU), and NUMA nodes.

The checks are those that nova-api makes before it asks its scheduler. What an image could still
settle is not refused while nothing is said of the image.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from moorage.domain.nova.image_properties import required_traits

if TYPE_CHECKING:
    from collections.abc import Iterator

    from moorage.domain.nova.properties import Hardware, Properties
    from moorage.domain.nova_servers import FlavorSize

HYPERTHREADING: Final = "HW_CPU_HYPERTHREADING"
SHARED: Final = "shared"
DEDICATED: Final = "dedicated"
MIXED: Final = "mixed"

_POLICY: Final = "hw:cpu_policy"
_THREADS: Final = "hw:cpu_thread_policy"
_EMULATOR: Final = "hw:emulator_threads_policy"
_MASK: Final = "hw:cpu_dedicated_mask"
_REALTIME_MASK: Final = "hw:cpu_realtime_mask"
_NODES: Final = "hw:numa_nodes"
_PAGES: Final = "hw:mem_page_size"
_MOST_CPUS: Final = 10_000
"""The largest number of a processor in a mask, and of processors that are told apart."""
_AMOUNT: Final = re.compile(r"resources([1-9][0-9]*)?:(VCPU|PCPU)", re.ASCII)
_TRAIT: Final = re.compile(rf"trait([1-9][0-9]*)?:{HYPERTHREADING}", re.ASCII)


@dataclass(frozen=True, slots=True)
class CpuDemand:
    """What follows from the policies of processors, memory pages and NUMA nodes."""

    vcpus: int | None = None
    """Shared processors, where the policy states them; None: as the flavor's amounts say."""
    pcpus: int | None = None
    """Dedicated processors, with one for emulator threads if it is isolated."""
    hyperthreading: str | None = None
    """`required` or `forbidden`: the trait of hosts with hardware threads."""
    host_checks: tuple[str, ...] = ()
    """The keys for whose sake Nova fits the server into NUMA nodes of the chosen host."""


def cpu_demand(size: FlavorSize, hardware: Hardware) -> CpuDemand:
    """The demand of a server.

    Raises:
        InvalidDescription: the extra specs and image properties contradict each other.
    """
    return _CpuReader(size, hardware).demand()


@dataclass(frozen=True, slots=True)
class _CpuReader:
    size: FlavorSize
    hardware: Hardware

    @property
    def specs(self) -> Properties:
        return self.hardware.flavor

    @property
    def image(self) -> Properties:
        return self.hardware.image

    def demand(self) -> CpuDemand:
        self._check_countable()
        policy, threads = self._policy(), self._thread_policy()
        emulator = self.specs.get(_EMULATOR)
        realtime, masked = self._realtime(), self._dedicated_mask()
        effective = self._explicit_policy(policy, emulator)
        self._check_together(effective, threads, realtime, masked)
        checks = tuple(self._numa_keys(effective))
        pages = self._page_size()
        if checks or pages:
            self._check_numa_nodes()
        vcpus = pcpus = None
        if policy == DEDICATED:
            pcpus = self.size.vcpus
        elif policy == MIXED:
            pcpus = len(masked or realtime)
            vcpus = self.size.vcpus - pcpus
        if pcpus is not None and emulator == "isolate":
            pcpus += 1
        how = {"isolate": "forbidden", "require": "required"}
        return CpuDemand(vcpus, pcpus, how.get(threads or ""), checks)

    def _check_countable(self) -> None:
        """Refuse to name single processors of an absurd number."""
        if self.size.vcpus <= _MOST_CPUS:
            return
        for source in (self.specs, self.image):
            for key in source.values:
                if key.startswith(("hw:cpu_", "hw_cpu_", "hw:numa_", "hw_numa_")):
                    raise source.refusal(key, f"at most {_MOST_CPUS} processors can have it")

    def _policy(self) -> str | None:
        ours, theirs = self.hardware.both("cpu_policy")
        forbidden = {MIXED: {DEDICATED}, SHARED: {MIXED, DEDICATED}}
        if theirs is not None and theirs in forbidden.get(ours or "", set()):
            raise self.specs.refusal(_POLICY, f"the flavor says {ours}, and the image {theirs}")
        return ours or theirs

    def _thread_policy(self) -> str | None:
        ours, theirs = self.hardware.both("cpu_thread_policy")
        if ours not in {None, "prefer"} and theirs is not None and theirs != ours:
            raise self.specs.refusal(_THREADS, f"the flavor says {ours}, and the image {theirs}")
        return ours or theirs

    def _realtime(self) -> frozenset[int]:
        """The processors with real-time priority."""
        if not self.hardware.flag("cpu_realtime"):
            return frozenset()
        ours, theirs = self.hardware.both("cpu_realtime_mask")
        mask = theirs or ours
        every = frozenset(range(self.size.vcpus))
        source, key = (
            (self.image, "hw_cpu_realtime_mask") if theirs else ((self.specs, _REALTIME_MASK))
        )
        cpus = every if mask is None else self._cpus(source, key, mask)
        if not cpus or not cpus <= every:
            raise source.refusal(key, f"it must name some of the {len(every)} processors")
        if cpus == every and self.specs.get(_EMULATOR) is None and (mask or self.image.known):
            raise source.refusal(
                key, "a processor must be left out of it, or hw:emulator_threads_policy be stated"
            )
        return cpus

    def _dedicated_mask(self) -> frozenset[int]:
        mask = self.specs.get(_MASK)
        if mask is None:
            return frozenset()
        every, cpus = frozenset(range(self.size.vcpus)), self._cpus(self.specs, _MASK, mask)
        if not cpus or not cpus < every:
            raise self.specs.refusal(
                _MASK, f"it must name some of the {len(every)} processors, and not all"
            )
        return cpus

    def _cpus(self, source: Properties, key: str, mask: str) -> frozenset[int]:
        """The processors of a mask; one that begins with `^` names those that are left out."""
        if mask.strip().startswith("^"):
            mask = f"0-{self.size.vcpus - 1},{mask}"
        return parse_cpus(source, key, mask)

    def _explicit_policy(self, policy: str | None, emulator: str | None) -> str | None:
        """The policy that amounts of VCPU or PCPU state, or the stated one."""
        amounts = {"VCPU": 0, "PCPU": 0}
        for key, value in self.specs.values.items():
            if (found := _AMOUNT.fullmatch(key)) is not None:
                amounts[found[2]] += int(value)
        if not any(amounts.values()):
            return policy
        key = f"resources:{'PCPU' if amounts['PCPU'] else 'VCPU'}"
        if policy is not None:
            raise self.specs.refusal(key, f"the policy {policy} of processors says it already")
        if all(amounts.values()):
            raise self.specs.refusal(key, "a flavor asks for VCPU or for PCPU, not for both")
        if amounts["VCPU"]:
            return SHARED
        needed = self.size.vcpus + (emulator == "isolate")
        if amounts["PCPU"] != needed:
            raise self.specs.refusal(key, f"it must be {needed}, as the flavor's processors are")
        return DEDICATED

    def _check_together(
        self,
        policy: str | None,
        threads: str | None,
        realtime: frozenset[int],
        masked: frozenset[int],
    ) -> None:
        """Check what needs dedicated processors, and what a mixed policy needs."""
        trait = self._hyperthreading_key()
        if threads is not None and trait is not None:
            raise self.specs.refusal(_THREADS, f"{trait} says it as well; state one of them")
        if masked and policy not in {None, MIXED}:
            raise self.specs.refusal(_MASK, "it needs hw:cpu_policy mixed")
        if policy in {None, SHARED} and (policy == SHARED or self.image.known):
            needing = (
                (_THREADS, threads is not None),
                (trait or "", trait is not None),
                (_EMULATOR, self.specs.get(_EMULATOR) == "isolate"),
                (_MASK, bool(masked)),
                ("hw:cpu_realtime", bool(realtime)),
            )
            for key, stated in needing:
                if stated:
                    raise self.specs.refusal(key, "it needs dedicated processors (hw:cpu_policy)")
        if policy == MIXED and bool(realtime) == bool(masked):
            raise self.specs.refusal(
                _POLICY, "mixed needs either hw:cpu_dedicated_mask or real-time processors"
            )

    def _hyperthreading_key(self) -> str | None:
        """The key that states the trait of hardware threads."""
        for key in self.specs.values:
            if _TRAIT.fullmatch(key) is not None:
                return key
        asked = HYPERTHREADING in set(required_traits(self.image))
        return f"the image's trait:{HYPERTHREADING}" if asked else None

    # --- NUMA nodes -------------------------------------------------------------------------

    def _numa_keys(self, policy: str | None) -> Iterator[str]:
        """The keys that give a server NUMA nodes."""
        for key in (_NODES, _PAGES, "hw:pmem"):
            if self.specs.get(key) is not None:
                yield key
        if self.image.get("hw_numa_nodes") is not None:
            yield "hw_numa_nodes"
        if policy in {DEDICATED, MIXED}:
            if self.specs.get(_POLICY) is not None:
                yield _POLICY
            elif self.image.get("hw_cpu_policy") is not None:
                yield "hw_cpu_policy"
            else:
                yield "resources:PCPU"

    def _page_size(self) -> str | None:
        ours, theirs = self.hardware.both("mem_page_size")
        if theirs is not None and ours not in {"any", "large"}:
            against = "the flavor says nothing" if ours is None else f"the flavor says {ours}"
            raise self.image.refusal("hw_mem_page_size", against)
        for source, key, size in (
            (self.specs, _PAGES, ours),
            (self.image, "hw_mem_page_size", theirs),
        ):
            if size is not None and re.search(r"[kKMGT]i?$", size):
                raise source.refusal(key, f"{size} needs a unit such as {size}B")
            if size is not None and "k" in size:
                raise source.refusal(key, f"{size}: the unit is written with K")
        return ours

    def _check_numa_nodes(self) -> None:
        ours, theirs = self.hardware.both("numa_nodes")
        if ours is not None and theirs is not None:
            raise self.image.refusal("hw_numa_nodes", "the flavor states it")
        nodes = int(ours or theirs or 1)
        cpus, memory = self._of_nodes("cpus"), self._of_nodes("mem")
        if not cpus and not memory:
            self._check_even(nodes)
        elif cpus and memory:
            self._check_amounts(nodes, cpus, memory)
        elif self.image.known:
            raise self.specs.refusal(_NODES, "a node needs both processors and memory")

    def _of_nodes(self, what: str) -> list[tuple[Properties, str]]:
        """The keys of the nodes' processors or memory in order, with where they are."""
        ours = list(_numbered(self.specs, f"hw:numa_{what}."))
        theirs = list(_numbered(self.image, f"hw_numa_{what}."))
        if ours and theirs:
            raise self.image.refusal(theirs[0][1], "the flavor states it")
        return ours or theirs

    def _check_even(self, nodes: int) -> None:
        if not self.image.known:
            return
        for what, amount in (("processors", self.size.vcpus), ("MiB", self.size.memory_mb)):
            if amount % nodes:
                raise self.specs.refusal(
                    _NODES, f"{amount} {what} cannot be divided evenly by {nodes} nodes"
                )

    def _check_amounts(
        self,
        nodes: int,
        cpus: list[tuple[Properties, str]],
        memory: list[tuple[Properties, str]],
    ) -> None:
        if len(cpus) != nodes or len(memory) != nodes:
            raise self.specs.refusal(_NODES, f"{nodes} nodes need processors and memory of each")
        left = set(range(self.size.vcpus))
        for source, key in cpus:
            here = parse_cpus(source, key, source.values[key])
            if not here <= left:
                raise source.refusal(
                    key, f"no processors, or another node's: {sorted(here - left)[:5]}"
                )
            left -= here
        if left:
            raise cpus[-1][0].refusal(cpus[-1][1], f"no node has processors {sorted(left)[:5]}")
        total = sum(int(source.values[key]) for source, key in memory)
        if total != self.size.memory_mb:
            source, key = memory[-1]
            raise source.refusal(
                key, f"the nodes have {total} MiB, and the flavor {self.size.memory_mb}"
            )


def parse_cpus(source: Properties, key: str, text: str) -> frozenset[int]:
    """The processors of a list such as `0-3,^1`.

    Raises:
        InvalidDescription: another form.
    """
    found: set[int] = set()
    left_out: set[int] = set()
    for item in filter(None, (one.strip() for one in text.split(","))):
        match = re.fullmatch(r"(\^?)\s*([0-9]{1,6})(?:\s*-\s*([0-9]{1,6}))?", item, re.ASCII)
        first, last = (0, -1) if match is None else (int(match[2]), int(match[3] or match[2]))
        if match is None or not first <= last <= _MOST_CPUS:
            raise source.refusal(key, f"{item!r} is no range of processors")
        (left_out if match[1] else found).update(range(first, last + 1))
    return frozenset(found - left_out)


def _numbered(source: Properties, start: str) -> Iterator[tuple[Properties, str]]:
    """The keys of nodes 0, 1, ... up to the first that is missing."""
    node = 0
    while f"{start}{node}" in source.values:
        yield source, f"{start}{node}"
        node += 1
