"""Regions of FPGAs on PCI cards."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from moorage.agent.facts import Caution, FpgaRegion
from moorage.agent.files import pci_address

if TYPE_CHECKING:
    from moorage.agent.files import Texts

_CLASS: Final = "sys/class/fpga_region"
PATTERNS: Final = (f"{_CLASS}/*", f"{_CLASS}/*/compat_id")
_NAME: Final = re.compile(r"region(\d{1,6})", re.ASCII)
_INTERFACE: Final = re.compile(r"[0-9a-f]{1,64}", re.ASCII)


def parse(texts: Texts) -> tuple[tuple[FpgaRegion, ...], tuple[Caution, ...]]:
    """The regions by card, in the kernel's order. Those of systems on a chip have no card."""
    cautions: list[Caution] = []
    found = []
    for name, files in texts.by_entry(_CLASS).items():
        path = f"{_CLASS}/{name}"
        number = _NAME.fullmatch(name)
        address = pci_address(texts.text(path))
        if number is None or not address:
            cautions.append(Caution("not-a-region", path, "not of a PCI card; left out"))
            continue
        interface = files.text("compat_id").lower()
        if interface and _INTERFACE.fullmatch(interface) is None:
            cautions.append(Caution("not-an-id", f"{path}/compat_id", "left out"))
            interface = ""
        found.append((address, int(number[1]), FpgaRegion(name, address, interface)))
    return tuple(region for _, _, region in sorted(found, key=lambda one: one[:2])), tuple(cautions)
