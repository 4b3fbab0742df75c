"""Compares NUMA nodes with the processors and the memory of the whole machine. Pure."""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from moorage.agent.facts import NO_CELL, Caution, Cell

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from moorage.agent.facts import Processors

_MISSING: Final = 100
"""The cells may have less memory than the machine by one part in so many."""
_EXCESS: Final = 16
"""And more by one part in so many: older kernels count for a node what they keep for themselves."""


def online_cells(
    cells: Iterable[Cell], processors: Processors
) -> tuple[tuple[Cell, ...], tuple[Caution, ...]]:
    """The cells with their online processors, each of which is in one cell.

    Cells that share processors become one, with the lowest of their numbers: kernels show them so
    where firmware describes them wrongly, and where nodes are emulated (`numa=fake`).
    """
    found: list[Cell] = []
    cautions: list[Caution] = []
    for cell in cells:
        one = cell
        if cell.number == NO_CELL:
            one = replace(cell, cpus=processors.online)
        elif processors.online:
            one = replace(cell, cpus=cell.cpus & processors.online)
        for other in [other for other in found if other.cpus & one.cpus]:
            shared = len(other.cpus & one.cpus)
            said = f"{shared} of its {len(cell.cpus)} processors are also in node{other.number};"
            said += " the two are reported as one"
            cautions.append(Caution("shared-processors", f"node{cell.number}", said))
            found.remove(other)
            one = _joined(other, one)
        found.append(one)
    return tuple(sorted(found, key=lambda one: one.number)), tuple(cautions)


def offline_doubts(cells: Sequence[Cell], processors: Processors) -> tuple[Caution, ...]:
    """Which cells have processors that are not online, and too many to be believed.

    An operator may take some of a cell's processors offline; its memory stays for guests. A cell
    without any would be taken for one of memory only, and left out. Where no list says which are
    online, a cell's processors that /proc/cpuinfo does not have may be online as well. A list with
    offline processors and with ones of another cell is no kernel's.

    Args:
        cells: all of them, with all processors that their files say.
        processors: the machine's.
    """
    found = []
    for one in cells:
        offline = one.cpus - processors.online
        if not offline or not processors.online:
            continue
        if not processors.online_listed:
            said = f"{len(offline)} of its {len(one.cpus)} processors are not in /proc/cpuinfo,"
            said += " and nothing else says which are online"
            found.append(Caution("processors-differ", f"node{one.number}", said))
        elif offline == one.cpus and one.memory_mb:
            said = f"none of its {len(one.cpus)} processors is online,"
            said += f" and it has {one.memory_mb} MiB of memory"
            found.append(Caution("processors-differ", f"node{one.number}", said))
        elif any(one.cpus & processors.online & other.cpus for other in cells if other is not one):
            said = f"{len(offline)} of its {len(one.cpus)} processors are not online,"
            said += " and others are also in another node"
            found.append(Caution("processors-differ", f"node{one.number}", said))
    return tuple(found)


def differences(
    cells: Sequence[Cell],
    processors: Processors,
    machine_mb: int | None,
    paged_mb: int | None = None,
) -> tuple[Caution, ...]:
    """How the cells contradict the totals of the machine, or themselves.

    NUMA nodes need the total of processors: without it, one that is missing could not be noticed.
    Where that of memory is unknown, the processors tell that no node with some is missing.

    Args:
        cells: all of them, as `online_cells` returns them.
        processors: the machine's.
        machine_mb: the machine's memory in MiB, or None.
        paged_mb: MiB in huge pages that the machine has at least, or None.
    """
    found = []
    counted = frozenset[int]().union(*(one.cpus for one in cells))
    if not processors.online and any(one.number != NO_CELL for one in cells):
        said = "nothing says which are online, so that NUMA nodes may be missing"
        found.append(Caution("processors-unknown", "processors", said))
    if cells and processors.online - counted:
        said = f"{len(processors.online)} are online, and {len(counted)} of them in NUMA nodes"
        found.append(Caution("processors-differ", "processors", said))
    memory = sum(one.memory_mb for one in cells)
    if cells and machine_mb is not None:
        # Each cell's memory is rounded down to MiB.
        least = machine_mb - machine_mb // _MISSING - len(cells)
        if not least <= memory <= machine_mb + machine_mb // _EXCESS:
            said = f"the machine has {machine_mb} MiB, and its NUMA nodes have {memory} MiB"
            found.append(Caution("memory-differs", "memory", said))
    paged = sum(one.paged_mb for one in cells)
    if cells and paged_mb is not None and paged < paged_mb:
        said = f"the machine has {paged_mb} MiB of huge pages, of which {paged} MiB are found"
        found.append(Caution("huge-pages-differ", "the machine", said))
    for one in cells:
        if one.paged_mb > one.memory_mb:
            where = "the machine" if one.number == NO_CELL else f"node{one.number}"
            said = f"{one.paged_mb} MiB of huge pages, and {one.memory_mb} MiB of memory"
            found.append(Caution("huge-pages-differ", where, said))
    return tuple(found)


def _joined(one: Cell, other: Cell) -> Cell:
    pages = dict(one.huge_pages)
    for size, count in other.huge_pages.items():
        pages[size] = pages.get(size, 0) + count
    return Cell(
        min(one.number, other.number),
        one.cpus | other.cpus,
        one.memory_mb + other.memory_mb,
        MappingProxyType(dict(sorted(pages.items()))),
    )
