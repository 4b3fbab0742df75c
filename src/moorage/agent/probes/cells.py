"""NUMA nodes with their processors, memory and huge pages."""

from __future__ import annotations

import re
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from moorage.agent.facts import NO_CELL, Caution, Cell
from moorage.agent.files import numbers, whole_number
from moorage.agent.probes.processors import MAX_CPU
from moorage.domain.resources import MAX_AMOUNT

if TYPE_CHECKING:
    from collections.abc import Mapping

    from moorage.agent.files import Texts

_NODES: Final = "sys/devices/system/node"
_PAGES: Final = "sys/kernel/mm/hugepages"
_MEMORY: Final = "proc/meminfo"
PATTERNS: Final = (
    f"{_NODES}/*/cpulist",
    f"{_NODES}/*/meminfo",
    f"{_NODES}/*/hugepages/*/nr_hugepages",
    f"{_PAGES}/*/nr_hugepages",
    _MEMORY,
)
MAX_CELL: Final = 1023
MAX_PAGE_KB: Final = 2**26
_NODE: Final = re.compile(r"node(\d{1,4})", re.ASCII)
_SIZE: Final = re.compile(r"hugepages-(\d{1,9})kB", re.ASCII)
_HUGETLB: Final = re.compile(r"^Hugetlb:\s*(\d{1,18}) kB", re.ASCII | re.MULTILINE)
_PAGES_TOTAL: Final = re.compile(r"HugePages_Total:\s*(\d{1,18})", re.ASCII)
_PAGE_SIZE: Final = re.compile(r"^Hugepagesize:\s*(\d{1,9}) kB", re.ASCII | re.MULTILINE)
_TOTAL: Final = re.compile(r"MemTotal:\s*(\d{1,18}) kB", re.ASCII)


def parse(texts: Texts) -> tuple[tuple[Cell, ...], tuple[Caution, ...]]:
    """The cells by number, or one cell NO_CELL for a machine without NUMA; none if it is unknown.

    A node without processors and without memory is none: kernels list such for absent sockets.
    """
    cautions: list[Caution] = []
    found = []
    for name, files in texts.by_entry(_NODES).items():
        number = _NODE.fullmatch(name)
        if number is None:
            continue
        if int(number[1]) > MAX_CELL:
            cautions.append(Caution("out-of-bounds", f"{_NODES}/{name}", "no such NUMA node"))
            continue
        cell = _cell(int(number[1]), f"{_NODES}/{name}", files, cautions)
        if cell.cpus or cell.memory_mb:
            found.append(cell)
    if not found:
        memory, unclear = machine_memory(texts)
        cautions.extend(unclear)
        pages = _pages(_PAGES, texts.by_entry(_PAGES), cautions)
        found = [Cell(NO_CELL, frozenset(), memory, pages)] if memory else []
    return tuple(sorted(found, key=lambda one: one.number)), tuple(cautions)


def machine_memory(texts: Texts) -> tuple[int | None, tuple[Caution, ...]]:
    """The memory of the whole machine in MiB; None where no file says it."""
    if _MEMORY not in texts.content:
        return None, ()
    cautions: list[Caution] = []
    return _memory(_MEMORY, texts.text(_MEMORY), cautions), tuple(cautions)


def machine_paged(texts: Texts) -> int | None:
    """The MiB of the whole machine that are in huge pages, at least; None where no file says it."""
    said = []
    text = texts.text(_MEMORY)
    if (every := _HUGETLB.search(text)) is not None:
        said.append(int(every[1]) // 1024)
    count, size = _PAGES_TOTAL.search(text), _PAGE_SIZE.search(text)
    if count is not None and size is not None:
        said.append(int(count[1]) * int(size[1]) // 1024)
    if by_size := texts.by_entry(_PAGES):
        pages = _pages(_PAGES, by_size, [])
        said.append(Cell(NO_CELL, huge_pages=pages).paged_mb)
    return max(said, default=None)


def _cell(number: int, path: str, files: Texts, cautions: list[Caution]) -> Cell:
    for name in ("cpulist", "meminfo"):
        if name not in files.content:
            said = "there is no such file, so that it is unknown what the NUMA node has"
            cautions.append(Caution("missing", f"{path}/{name}", said))
    cpus = numbers(files.text("cpulist"), MAX_CPU)
    if cpus is None:
        said = files.text("cpulist")[:40]
        cautions.append(Caution("not-a-number", f"{path}/cpulist", f"not a list: {said!r}"))
    pages = _pages(f"{path}/hugepages", files.by_entry("hugepages"), cautions)
    said_pages = _PAGES_TOTAL.search(files.text("meminfo"))
    if said_pages is not None and int(said_pages[1]) > sum(pages.values()):
        said = f"fewer huge pages than the {said_pages[1]} of its meminfo"
        cautions.append(Caution("huge-pages-differ", f"{path}/hugepages", said))
    return Cell(
        number,
        cpus or frozenset(),
        _memory(f"{path}/meminfo", files.text("meminfo"), cautions)
        if "meminfo" in files.content
        else 0,
        pages,
    )


def _memory(path: str, text: str, cautions: list[Caution]) -> int:
    """MemTotal in MiB; 0 where it is not said."""
    total = _TOTAL.search(text)
    if total is None:
        cautions.append(Caution("not-a-number", path, "says no MemTotal"))
        return 0
    megabytes = int(total[1]) // 1024
    if megabytes > MAX_AMOUNT:
        cautions.append(Caution("out-of-bounds", path, f"{megabytes} MiB of memory"))
        return 0
    return megabytes


def _pages(path: str, files: Mapping[str, Texts], cautions: list[Caution]) -> Mapping[int, int]:
    found = {}
    for name, one in files.items():
        size = _SIZE.fullmatch(name)
        count = whole_number(one.text("nr_hugepages"), MAX_AMOUNT)
        if size is None or not 0 < int(size[1]) <= MAX_PAGE_KB or count is None:
            said = one.text("nr_hugepages")[:40]
            cautions.append(Caution("not-a-number", f"{path}/{name}", f"huge pages: {said!r}"))
        elif count:
            found[int(size[1])] = count
    return MappingProxyType(dict(sorted(found.items())))
