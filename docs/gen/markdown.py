"""Markdown from values."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """A Markdown table; cells may hold vertical bars."""
    lines = [list(head), *([cell.replace("|", "\\|") for cell in row] for row in rows)]
    shown = [f"| {' | '.join(cells)} |" for cells in lines]
    return "\n".join([shown[0], "|" + "---|" * len(lines[0]), *shown[1:]])


def code(value: object) -> str:
    """A value as code."""
    return f"`{value}`"


def text(words: str) -> str:
    """Prose that may hold angle brackets."""
    return html.escape(" ".join(words.split()), quote=False)
