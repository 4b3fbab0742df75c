"""Which node this is: its host name, and the id that Nova's compute service has noted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final
from uuid import UUID

from moorage.agent.facts import Caution

if TYPE_CHECKING:
    from moorage.agent.files import Texts

COMPUTE_ID: Final = "var/lib/nova/compute_id"
"""Nova writes the UUID of its resource provider there."""
_MACHINE_ID: Final = "etc/machine-id"
PATTERNS: Final = ("proc/sys/kernel/hostname", "etc/hostname", COMPUTE_ID, _MACHINE_ID)
MAX_HOST_NAME: Final = 150
"""Leaves room for the names of devices below it."""


@dataclass(frozen=True, slots=True)
class Identity:
    """The host name ("" without one), and ids as UUIDs, where there are some."""

    host_name: str = ""
    compute_id: str | None = None
    machine_id: str | None = None


def parse(texts: Texts) -> tuple[Identity, tuple[Caution, ...]]:
    """The node's identity."""
    cautions: list[Caution] = []
    name = next((one for path in PATTERNS[:2] if (one := texts.text(path))), "")
    if name and (len(name) > MAX_HOST_NAME or not name.isprintable() or len(name.split()) > 1):
        cautions.append(Caution("not-a-name", PATTERNS[0], f"not a host name: {name[:40]!r}"))
        name = ""
    compute_id, machine_id = (_uuid(path, texts, cautions) for path in (COMPUTE_ID, _MACHINE_ID))
    return Identity(name, compute_id, machine_id), tuple(cautions)


def _uuid(path: str, texts: Texts, cautions: list[Caution]) -> str | None:
    text = texts.text(path)
    if not text:
        return None
    try:
        return str(UUID(text))
    except ValueError:
        cautions.append(Caution("not-a-uuid", path, f"left out: {text[:40]!r}"))
        return None
