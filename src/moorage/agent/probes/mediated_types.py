"""Types of mediated devices (such as virtual GPUs) that functions offer."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from moorage.agent.facts import Caution, MediatedType
from moorage.agent.files import PCI_ADDRESS, pci_address, whole_number
from moorage.domain.resources import MAX_AMOUNT

if TYPE_CHECKING:
    from moorage.agent.files import Texts

_BUS: Final = "sys/class/mdev_bus"
_TYPES: Final = "mdev_supported_types"
PATTERNS: Final = (
    f"{_BUS}/*/physfn",
    *(
        f"{_BUS}/*/{_TYPES}/*/{one}"
        for one in ("name", "available_instances", "description", "devices/*")
    ),
)
_MOST: Final = re.compile(r"max_instance\s*=\s*(\d{1,9})", re.ASCII)


def parse(texts: Texts) -> tuple[tuple[MediatedType, ...], tuple[Caution, ...]]:
    """The types by address and name. What virtual functions offer is their physical one's."""
    cautions: list[Caution] = []
    found: dict[tuple[str, str], MediatedType] = {}
    for address, files in texts.by_entry(_BUS).items():
        if PCI_ADDRESS.fullmatch(address) is None:  # mdev devices without hardware
            continue
        for name, one in files.by_entry(_TYPES).items():
            available = whole_number(one.text("available_instances"), MAX_AMOUNT)
            if available is None:
                path = f"{_BUS}/{address}/{_TYPES}/{name}"
                cautions.append(Caution("not-a-number", path, "available_instances; left out"))
                continue
            card = pci_address(files.text("physfn")) or address
            before = found.get((card, name), MediatedType(card, name))
            existing = before.existing + len(one.names("devices"))
            available += before.available
            most = _MOST.search(one.text("description"))
            if most:  # of the card, whatever its functions say
                available = min(available, max(int(most[1]) - existing, 0))
            label = one.text("name")[:100]
            found[card, name] = MediatedType(card, name, label, available, existing)
    return tuple(found[key] for key in sorted(found)), tuple(cautions)
