"""Types of mediated devices (such as virtual GPUs) that functions offer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from moorage.agent.facts import Caution, MediatedType
from moorage.agent.files import PCI_ADDRESS, whole_number
from moorage.domain.resources import MAX_AMOUNT

if TYPE_CHECKING:
    from moorage.agent.files import Texts

_BUS: Final = "sys/class/mdev_bus"
_TYPES: Final = "mdev_supported_types"
PATTERNS: Final = tuple(
    f"{_BUS}/*/{_TYPES}/*/{one}" for one in ("name", "available_instances", "devices/*")
)


def parse(texts: Texts) -> tuple[tuple[MediatedType, ...], tuple[Caution, ...]]:
    """The types by address and name."""
    cautions: list[Caution] = []
    found = []
    for address, files in texts.by_entry(_BUS).items():
        if PCI_ADDRESS.fullmatch(address) is None:  # mdev devices without hardware
            continue
        for name, one in files.by_entry(_TYPES).items():
            available = whole_number(one.text("available_instances"), MAX_AMOUNT)
            if available is None:
                path = f"{_BUS}/{address}/{_TYPES}/{name}"
                cautions.append(Caution("not-a-number", path, "available_instances; left out"))
                continue
            existing = len(one.names("devices"))
            label = one.text("name")[:100]
            found.append(MediatedType(address, name, label, available, existing))
    return tuple(found), tuple(cautions)
