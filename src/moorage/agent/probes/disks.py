"""Physical disks, and whether the node itself uses them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from moorage.agent.facts import Caution, Disk
from moorage.agent.files import whole_number
from moorage.agent.probes.pci_functions import cell_of
from moorage.domain.resources import MAX_AMOUNT

if TYPE_CHECKING:
    from collections.abc import Iterable

    from moorage.agent.facts import Mount
    from moorage.agent.files import Texts

_BLOCK: Final = "sys/block"
PATTERNS: Final = tuple(
    f"{_BLOCK}/*/{one}"
    for one in (
        "device",
        "size",
        "removable",
        "queue/rotational",
        "device/model",
        "device/device/numa_node",
        "holders/*",
        "*/partition",
        "*/holders/*",
    )
)
_SECTORS: Final = 2**30 // 512
"""In a GiB; sizes are in sectors of 512 bytes whatever the disk's own."""
_MAX_SECTORS: Final = 2**63


def parse(texts: Texts, mounts: Iterable[Mount]) -> tuple[tuple[Disk, ...], tuple[Caution, ...]]:
    """The disks by name; loops, mappings and the like have no device, and are none."""
    cautions: list[Caution] = []
    sources = frozenset(one.source for one in mounts)
    found = []
    for name, files in texts.by_entry(_BLOCK).items():
        if "device" not in files.content:
            continue
        sectors = whole_number(files.text("size"), _MAX_SECTORS)
        if sectors is None or sectors // _SECTORS > MAX_AMOUNT:
            said = f"no size of a disk: {files.text('size')[:40]!r}; left out"
            cautions.append(Caution("not-a-number", f"{_BLOCK}/{name}/size", said))
            continue
        partitions = [
            path.partition("/")[0] for path in files.content if path.endswith("/partition")
        ]
        own = {f"/dev/{one}" for one in (name, *partitions)}
        held = any("holders/" in path for path in files.content)
        found.append(
            Disk(
                name=name,
                size_gb=sectors // _SECTORS,
                rotational=files.text("queue/rotational") == "1",
                removable=files.text("removable") == "1",
                model=files.text("device/model")[:100],
                cell=cell_of(files.text("device/device/numa_node")),
                mounted=held or not own.isdisjoint(sources),
            )
        )
    return tuple(found), tuple(cautions)
