"""Mounted filesystems."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from moorage.agent.facts import Mount

if TYPE_CHECKING:
    from moorage.agent.files import Texts

_MOUNTS: Final = "proc/self/mounts"
PATTERNS: Final = (_MOUNTS,)
_ESCAPE: Final = re.compile(r"\\([0-3][0-7]{2})", re.ASCII)
_FIELDS: Final = 3


def parse(texts: Texts) -> tuple[Mount, ...]:
    """The mounts in their order: the last of a directory is the one that is seen."""
    found = []
    for line in texts.text(_MOUNTS).splitlines():
        fields = [_ESCAPE.sub(lambda one: chr(int(one[1], 8)), word) for word in line.split(" ")]
        if len(fields) >= _FIELDS:
            found.append(Mount(directory=fields[1], source=fields[0], kind=fields[2]))
    return tuple(found)
