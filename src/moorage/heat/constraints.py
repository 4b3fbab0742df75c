"""Constraints of parameters.

Two kinds are not checked but noted, since they do not affect placement and Heat checks them when
the stack is created: custom constraints, which ask a cloud whether a thing exists, and patterns
that `pattern_syntax` does not support.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from moorage.heat import typed_yaml
from moorage.heat.numbers import to_boolean, to_number
from moorage.heat.pattern_syntax import InvalidPattern, UnsupportedPattern, matches
from moorage.heat.scalars import excerpt

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sized

    from moorage.heat.work_limit import Work
    from moorage.heat.yaml_tree import Plain, YamlNode

KINDS: Final = (
    "modulo",
    "range",
    "length",
    "allowed_values",
    "allowed_pattern",
    "custom_constraint",
)
"""In the order in which Heat looks for them; of several in one entry it takes the first."""


def check_constraints(constraints: YamlNode, value: Plain, kind: str, work: Work) -> list[str]:
    """Apply constraints to a value; return notes about those not applied.

    Raises:
        InvalidDescription: an unknown or ill-formed constraint, one that is broken, or too much
            work in all.
    """
    notes: list[str] = []
    for one in typed_yaml.items(constraints):
        fields = typed_yaml.mapping(one, optional=(*KINDS, "description"))
        kinds = [name for name in KINDS if name in fields]
        if not kinds:
            raise one.invalid("a constraint is one of " + ", ".join(KINDS))
        if len(kinds) > 1:
            notes.append(
                f"{one.path} (line {one.line}): of several constraints in one entry Heat applies"
                f" only {kinds[0]}"
            )
        note = _CHECKS[kinds[0]](fields[kinds[0]], value, kind, work)
        if note is not None:
            notes.append(note)
    return notes


def _range(node: YamlNode, value: Plain, kind: str, _work: Work) -> None:
    number = to_number(value) if kind == "number" else None
    if number is None:
        raise node.invalid("range is for numbers")
    _within(node, number, f"{value}")


def _length(node: YamlNode, value: Plain, kind: str, _work: Work) -> None:
    if kind not in {"string", "comma_delimited_list", "json"}:
        raise node.invalid("length is for strings, lists and maps")
    size = len(_sized(value))
    for one in typed_yaml.mapping(node).values():
        if isinstance(to_number(one.plain()), float):
            raise one.invalid(f"a length is a whole number, not {typed_yaml.shown(one)}")
    _within(node, size, f"length {size}")


def _sized(value: Plain) -> Sized:
    return value if isinstance(value, str | list | dict) else str(value)


def _within(node: YamlNode, number: float, what: str) -> None:
    bounds = typed_yaml.mapping(node, optional=("min", "max"))
    if not bounds:
        raise node.invalid("min or max is needed")
    low = _bound(bounds["min"]) if "min" in bounds else None
    high = _bound(bounds["max"]) if "max" in bounds else None
    if (low is not None and number < low) or (high is not None and number > high):
        raise node.invalid(f"{what} is out of range (min {low}, max {high})")


def _bound(node: YamlNode) -> int | float:
    number = to_number(node.plain())
    if number is None:
        raise node.invalid(f"a number is needed here, not {typed_yaml.kind(node)}")
    return number


def _allowed_values(node: YamlNode, value: Plain, kind: str, _work: Work) -> None:
    if kind == "json":
        raise node.invalid("allowed_values are not for json")
    allowed = [one.plain() for one in typed_yaml.items(node)]
    if isinstance(value, list):
        # The items of such a parameter are texts, and no text is like anything else.
        texts = {one for one in allowed if isinstance(one, str)}
        other = next((one for one in value if one not in texts), None)
        if other is not None:
            raise node.invalid(f"{excerpt(str(other))} is not one of the allowed values {allowed}")
    elif _as(kind, value) not in [_as(kind, one) for one in allowed]:
        raise node.invalid(f"{excerpt(str(value))} is not an allowed value of {allowed}")


def _as(kind: str, value: Plain) -> Plain:
    """A value in the parameter's type, for comparison: `8080` and `"8080"` are one number."""
    if kind == "number":
        return to_number(value)
    if kind == "boolean":
        return to_boolean(value)
    return str(value) if kind == "string" else value


def _allowed_pattern(node: YamlNode, value: Plain, kind: str, work: Work) -> str | None:
    pattern = typed_yaml.text(node)
    if kind != "string":
        raise node.invalid("allowed_pattern is for strings")
    text = str(value)
    try:
        fits = matches(pattern, text, lambda cost: work.spend(cost, node))
    except InvalidPattern as error:
        raise node.invalid(f"not a regular expression: {error}") from error
    except UnsupportedPattern as error:
        return f"{node.path} (line {node.line}): the pattern was not matched here: {error}"
    if not fits:
        raise node.invalid(f"{excerpt(text)} does not match {pattern!r}")
    return None


def _custom(node: YamlNode, _value: Plain, _kind: str, _work: Work) -> str:
    return f"{node.path}: custom constraint {typed_yaml.text(node)} was not judged"


def _modulo(node: YamlNode, value: Plain, kind: str, _work: Work) -> None:
    fields = typed_yaml.mapping(node, required=("step", "offset"), optional=())
    step, offset = _whole(fields["step"]), _whole(fields["offset"])
    if step == 0 or abs(offset) >= abs(step) or step * offset < 0:
        raise node.invalid("offset must be smaller than step and of the same sign")
    number = to_number(value) if kind == "number" else None
    if number is None:
        raise node.invalid("modulo is for numbers")
    if number % step != offset:
        raise node.invalid(f"{value} is not a multiple of {step} with an offset of {offset}")


def _whole(node: YamlNode) -> int:
    number = _bound(node)
    if number != int(number):
        raise node.invalid(f"a whole number is needed here, not {number}")
    return int(number)


_CHECKS: Final[Mapping[str, Callable[[YamlNode, Plain, str, Work], str | None]]] = {
    "range": _range,
    "length": _length,
    "allowed_values": _allowed_values,
    "allowed_pattern": _allowed_pattern,
    "custom_constraint": _custom,
    "modulo": _modulo,
}
