"""Text and numbers as Heat takes one for the other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from moorage.heat.marked import Plain

_TRUE: Final = frozenset({"1", "t", "true", "on", "y", "yes"})
_FALSE: Final = frozenset({"0", "f", "false", "off", "n", "no"})
_LONGEST: Final = 400
"""Digits of a number in text; Python itself refuses to read much longer ones."""


def to_number(value: Plain) -> int | float | None:
    """A number, also from text: `"8"` is 8, `"8.5"` is 8.5; None for anything else."""
    if isinstance(value, int | float):
        return value
    if not isinstance(value, str) or len(value) > _LONGEST:
        return None
    for reader in (int, float):
        try:
            return reader(value)
        except ValueError:
            continue
    return None


def to_boolean(value: Plain) -> bool | None:
    """True or false, also from text such as `yes`, `off` and `1`; None for anything else."""
    word = str(value).strip().lower()
    if word in _TRUE:
        return True
    return False if word in _FALSE else None
