"""Remarks for a template's author: what was read leniently, or could not be worked out."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_REMARKS: Final = 200
"""How many are kept; of more only their number is told."""


@dataclass(slots=True)
class Remarks:
    """Remarks on the whole tree of stacks, each once, in the order in which they came up."""

    texts: dict[str, None] = field(default_factory=dict)
    more: int = 0
    """How many were not kept."""

    def add(self, text: str) -> None:
        """Keep a remark, unless it is there already."""
        if text in self.texts:
            return
        if len(self.texts) < MAX_REMARKS:
            self.texts[text] = None
        else:
            self.more += 1

    def __iter__(self) -> Iterator[str]:
        yield from self.texts
        if self.more:
            yield f"and {self.more} more remarks like these"
