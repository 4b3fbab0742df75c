"""Network interfaces of PCI functions, with the speed of their links, and whether in switchdev."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from moorage.agent.facts import Interface
from moorage.agent.files import pci_address, whole_number

if TYPE_CHECKING:
    from moorage.agent.files import Texts

_CLASS: Final = "sys/class/net"
PATTERNS: Final = (
    f"{_CLASS}/*",
    *(f"{_CLASS}/*/{one}" for one in ("speed", "phys_switch_id", "phys_port_name")),
)
MAX_MEGABITS: Final = 2_000_000


def parse(texts: Texts) -> tuple[Interface, ...]:
    """The interfaces by name, without those of no PCI function and without representors."""
    found = []
    for name, files in texts.by_entry(_CLASS).items():
        address = pci_address(texts.text(f"{_CLASS}/{name}"))
        if not address or _is_representor(files.text("phys_port_name")):
            continue
        megabits = whole_number(files.text("speed"), MAX_MEGABITS)  # -1: no link
        found.append(Interface(name, address, files.text("phys_switch_id"), megabits or None))
    return tuple(found)


def _is_representor(port: str) -> bool:
    """Whether the port is that of a function (pf0vf3), which switchdev shows beside the uplink."""
    return "vf" in port or "sf" in port
