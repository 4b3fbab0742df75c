"""Which node this is: its host name, and the id that Nova's compute service has noted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from uuid import UUID

from moorage.agent.facts import Caution

if TYPE_CHECKING:
    from moorage.agent.files import Texts

COMPUTE_ID: Final = "var/lib/nova/compute_id"
"""Nova writes the UUID of its resource provider there."""
PATTERNS: Final = ("proc/sys/kernel/hostname", "etc/hostname", COMPUTE_ID)
MAX_HOST_NAME: Final = 150
"""Leaves room for the names of devices below it."""


def parse(texts: Texts) -> tuple[str, str | None, tuple[Caution, ...]]:
    """The host name ("" without one), the id, and cautions."""
    cautions: list[Caution] = []
    name = next((one for path in PATTERNS[:2] if (one := texts.text(path))), "")
    if name and (len(name) > MAX_HOST_NAME or not name.isprintable() or len(name.split()) > 1):
        cautions.append(Caution("not-a-name", PATTERNS[0], f"not a host name: {name[:40]!r}"))
        name = ""
    text = texts.text(COMPUTE_ID)
    if not text:
        return name, None, tuple(cautions)
    try:
        return name, str(UUID(text)), tuple(cautions)
    except ValueError:
        cautions.append(Caution("not-a-uuid", COMPUTE_ID, f"left out: {text[:40]!r}"))
        return name, None, tuple(cautions)
