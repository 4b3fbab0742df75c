"""Conversion between text, numbers and booleans as Heat does it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from moorage.heat.scalars import MAX_NUMBER_LENGTH, unwritable

if TYPE_CHECKING:
    from moorage.heat.yaml_tree import Plain

_TRUE: Final = frozenset({"1", "t", "true", "on", "y", "yes"})
_FALSE: Final = frozenset({"0", "f", "false", "off", "n", "no"})


def to_number(value: Plain) -> int | float | None:
    """A number, also from text: `"8"` is 8, `"8.5"` is 8.5; None for anything else.

    None also for more than `MAX_NUMBER_LENGTH` digits and for values that are not finite, such as
    `"1e400"` and `"nan"`.
    """
    if isinstance(value, int | float):
        return value if unwritable(value) is None else None
    if not isinstance(value, str) or len(value) > MAX_NUMBER_LENGTH:
        return None
    for reader in (int, float):
        try:
            number = reader(value)
        except ValueError:
            continue
        return number if unwritable(number) is None else None
    return None


def to_integer(value: Plain) -> int | None:
    """The whole number that Heat makes of a property: 2 of `2.7` and `"2"`; None of `"2.7"`."""
    number = to_number(value)
    if isinstance(number, float) and isinstance(value, str):
        return None
    return None if number is None else int(number)


def to_boolean(value: Plain) -> bool | None:
    """True or false, also from text such as `yes`, `off` and `1`; None for anything else."""
    word = str(value).strip().lower()
    if word in _TRUE:
        return True
    return False if word in _FALSE else None
