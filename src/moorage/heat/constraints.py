"""A parameter's constraints, as Heat judges them.

Two kinds are not judged but noted, since they place nothing: custom constraints ask a cloud
whether a thing exists, and a pattern that could take a regular expression engine for ever is
not run on a stranger's word.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from moorage.heat import expect
from moorage.heat.numbers import to_boolean, to_number

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sized

    from moorage.heat.marked import Marked, Plain

KINDS: Final = (
    "range",
    "length",
    "allowed_values",
    "allowed_pattern",
    "custom_constraint",
    "modulo",
)
MAX_PATTERN: Final = 256
"""Longest pattern and longest text that are matched."""
MAX_REPEATED: Final = 3
MAX_OPTIONAL: Final = 6
_BOUND: Final = 2**63


def judge(constraints: Marked, value: Plain, kind: str) -> list[str]:
    """Judge a value by a list of constraints; return notes about those not judged.

    Raises:
        InvalidDescription: an unknown or ill-formed constraint, or one that is broken.
    """
    notes: list[str] = []
    for one in expect.items(constraints):
        fields = expect.mapping(one, optional=(*KINDS, "description"))
        kinds = [name for name in KINDS if name in fields]
        if len(kinds) != 1:
            raise one.invalid("a constraint is exactly one of " + ", ".join(KINDS))
        note = _JUDGES[kinds[0]](fields[kinds[0]], value, kind)
        if note is not None:
            notes.append(note)
    return notes


def _range(node: Marked, value: Plain, kind: str) -> None:
    number = to_number(value) if kind == "number" else None
    if number is None:
        raise node.invalid("range is for numbers")
    _within(node, number, f"{value}")


def _length(node: Marked, value: Plain, kind: str) -> None:
    if kind not in {"string", "comma_delimited_list", "json"}:
        raise node.invalid("length is for strings, lists and maps")
    size = len(_sized(value))
    _within(node, size, f"length {size}")


def _sized(value: Plain) -> Sized:
    return value if isinstance(value, str | list | dict) else str(value)


def _within(node: Marked, number: float, what: str) -> None:
    bounds = expect.mapping(node, optional=("min", "max"))
    if not bounds:
        raise node.invalid("min or max is needed")
    low = _bound(bounds["min"]) if "min" in bounds else None
    high = _bound(bounds["max"]) if "max" in bounds else None
    if (low is not None and number < low) or (high is not None and number > high):
        raise node.invalid(f"{what} is out of range (min {low}, max {high})")


def _bound(node: Marked) -> int | float:
    number = to_number(node.plain())
    if number is None:
        raise node.invalid(f"a number is needed here, not {expect.kind(node)}")
    return number


def _allowed_values(node: Marked, value: Plain, kind: str) -> None:
    allowed = [one.plain() for one in expect.items(node)]
    if isinstance(value, list):
        if any(one not in allowed for one in value):
            raise node.invalid(f"{value} holds more than the allowed values {allowed}")
    elif _as(kind, value) not in [_as(kind, one) for one in allowed]:
        raise node.invalid(f"{value!r} is not an allowed value of {allowed}")


def _as(kind: str, value: Plain) -> Plain:
    """A value in the parameter's type, for comparing: `8080` and `"8080"` are one number."""
    if kind == "number":
        return to_number(value)
    if kind == "boolean":
        return to_boolean(value)
    return str(value) if kind == "string" else value


def _allowed_pattern(node: Marked, value: Plain, kind: str) -> str | None:
    pattern = expect.text(node)
    if kind != "string":
        raise node.invalid("allowed_pattern is for strings")
    text = str(value)
    if not _cheap(pattern) or len(text) > MAX_PATTERN:
        return f"{node.path}: the pattern was not matched (it might take too long)"
    try:
        found = re.match(pattern, text)
    except (re.error, OverflowError, RecursionError) as error:
        raise node.invalid(f"not a pattern: {error}") from error
    if found is None or found.end() != len(text):
        raise node.invalid(f"{text!r} does not match {pattern!r}")
    return None


_AMBIGUOUS: Final = re.compile(r"\[[^\]]*(?:--|&&|~~|\|\||\[)")
"""In a set of characters: operations on sets, in later versions of Python."""


def _cheap(pattern: str) -> bool:
    """Whether matching takes at most a small power of the text's length.

    A group is never repeated, nothing looks around or back, and few things repeat at all. Nor does
    it hold what is to mean another thing one day.
    """
    bare = re.sub(r"\\[^1-9]", "x", pattern)
    bare = re.sub(r"\[\^?\]?[^\]]*\]", "x", bare)
    return (
        len(pattern) <= MAX_PATTERN
        and _AMBIGUOUS.search(pattern) is None
        and re.search(r"\\|\(\?(?!:)|\)[*+{?]", bare) is None
        and len(re.findall(r"[*+{]", bare)) <= MAX_REPEATED
        and len(re.findall(r"(?<!\()\?", bare)) <= MAX_OPTIONAL
    )


def _custom(node: Marked, _value: Plain, _kind: str) -> str:
    return f"{node.path}: custom constraint {expect.text(node)} was not judged"


def _modulo(node: Marked, value: Plain, kind: str) -> None:
    fields = expect.mapping(node, required=("step", "offset"), optional=())
    step = expect.integer(fields["step"], least=-_BOUND, most=_BOUND)
    offset = expect.integer(fields["offset"], least=-_BOUND, most=_BOUND)
    if step == 0 or abs(offset) >= abs(step) or step * offset < 0:
        raise node.invalid("offset must be smaller than step and of the same sign")
    number = to_number(value) if kind == "number" else None
    if number is None:
        raise node.invalid("modulo is for numbers")
    if number % step != offset:
        raise node.invalid(f"{value} is not a multiple of {step} with an offset of {offset}")


_JUDGES: Final[Mapping[str, Callable[[Marked, Plain, str], str | None]]] = {
    "range": _range,
    "length": _length,
    "allowed_values": _allowed_values,
    "allowed_pattern": _allowed_pattern,
    "custom_constraint": _custom,
    "modulo": _modulo,
}
