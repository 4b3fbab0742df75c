"""Numbers with their nouns, for sentences."""

from __future__ import annotations


def counted(count: int, noun: str, many: str = "") -> str:
    """`1 rack`, `3 racks`."""
    return f"{count} {noun if count == 1 else many or f'{noun}s'}"
