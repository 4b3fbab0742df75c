"""All facts of a node, from the files below a root directory."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from moorage.agent.cell_validation import differences, offline_doubts, online_cells
from moorage.agent.facts import Node
from moorage.agent.probes import (
    cells,
    disks,
    fpga_regions,
    identity,
    interfaces,
    mediated_types,
    mounts,
    pci_functions,
    processors,
)

if TYPE_CHECKING:
    from moorage.agent.facts import Caution, Cell, Processors
    from moorage.agent.files import Files

CELLS: Final = "cells"
FUNCTIONS: Final = "PCI functions"
DISKS: Final = "disks"
MOUNTS: Final = "mounts"
"""Sources that no node is without: one that shows nothing is not believed."""


def discover(files: Files, *, measured: frozenset[str] = frozenset()) -> Node:
    """Read and parse every source. Never raises for what it reads.

    `measured` are the directories of mounts whose size is needed.
    """
    of_processors, of_cells, shared, doubts = _carriers(files)
    who, of_identity = identity.parse(files.read(identity.PATTERNS))
    functions, unclear_functions = pci_functions.parse(pci_functions.read(files))
    mediated, unclear_types = mediated_types.parse(files.read(mediated_types.PATTERNS))
    regions, unclear_regions = fpga_regions.parse(files.read(fpga_regions.PATTERNS))
    of_mounts = mounts.parse(files.read(mounts.PATTERNS))
    of_mounts = tuple(
        replace(one, size_gb=files.size_gb(one.directory)) if one.directory in measured else one
        for one in of_mounts
    )
    of_disks, unclear_disks = disks.parse(files.read(disks.PATTERNS), of_mounts)
    shown = {CELLS: of_cells, FUNCTIONS: functions, DISKS: of_disks, MOUNTS: of_mounts}
    blind = frozenset(name for name, some in shown.items() if not some)
    return Node(
        host_name=who.host_name,
        provider_uuid=who.compute_id,
        machine_id=who.machine_id,
        processors=of_processors,
        cells=of_cells,
        functions=functions,
        interfaces=interfaces.parse(files.read(interfaces.PATTERNS)),
        mediated=mediated,
        regions=regions,
        disks=of_disks,
        mounts=of_mounts,
        blind=blind,
        doubts=doubts,
        cautions=tuple(
            dict.fromkeys(
                (
                    *files.cautions,
                    *of_identity,
                    *shared,
                    *doubts,
                    *unclear_functions,
                    *unclear_types,
                    *unclear_regions,
                    *unclear_disks,
                )
            )
        ),
    )


def _carriers(
    files: Files,
) -> tuple[Processors, tuple[Cell, ...], tuple[Caution, ...], tuple[Caution, ...]]:
    """The processors, the cells, cautions about these, and doubts for which no cell is believed."""
    of_processors, unclear_processors = processors.parse(files.read(processors.PATTERNS))
    texts = files.read(cells.PATTERNS)
    listed, unclear_cells = cells.parse(texts)
    memory, unclear_memory = cells.machine_memory(texts)
    of_cells, shared = online_cells(listed, of_processors)
    doubts = (
        *files.cautions,
        *unclear_processors,
        *unclear_cells,
        *unclear_memory,
        *offline_doubts(listed, of_processors),
        *differences(of_cells, of_processors, memory, cells.machine_paged(texts)),
    )
    doubts = tuple(dict.fromkeys(doubts))
    return of_processors, () if doubts else of_cells, shared, doubts
