"""Template parameters and their values.

A value comes from, first wins: the call itself, the environment's `parameters`, its
`parameter_defaults`, the template's `default`.

Two kinds are not checked but noted, since they do not affect placement and Heat checks them when
the stack is created: custom constraints, which ask a cloud whether a thing exists, and patterns
that `patterns` does not support.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from moorage.heat import typed_yaml
from moorage.heat.deferred_values import DeferredValue, find_deferred
from moorage.heat.numbers import to_boolean, to_number
from moorage.heat.pattern_syntax import InvalidPattern, UnsupportedPattern, matches
from moorage.heat.yaml_tree import to_node

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sized

    from moorage.heat.work_limit import Work
    from moorage.heat.yaml_tree import Plain, YamlNode

KINDS: Final = (
    "range",
    "length",
    "allowed_values",
    "allowed_pattern",
    "custom_constraint",
    "modulo",
)
_BOUND: Final = 2**63


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
        if len(kinds) != 1:
            raise one.invalid("a constraint is exactly one of " + ", ".join(KINDS))
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
    allowed = [one.plain() for one in typed_yaml.items(node)]
    if isinstance(value, list):
        if any(one not in allowed for one in value):
            raise node.invalid(f"{value} holds more than the allowed values {allowed}")
    elif _as(kind, value) not in [_as(kind, one) for one in allowed]:
        raise node.invalid(f"{value!r} is not an allowed value of {allowed}")


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
        raise node.invalid(f"{text!r} does not match {pattern!r}")
    return None


def _custom(node: YamlNode, _value: Plain, _kind: str, _work: Work) -> str:
    return f"{node.path}: custom constraint {typed_yaml.text(node)} was not judged"


def _modulo(node: YamlNode, value: Plain, kind: str, _work: Work) -> None:
    fields = typed_yaml.mapping(node, required=("step", "offset"), optional=())
    step = typed_yaml.integer(fields["step"], least=-_BOUND, most=_BOUND)
    offset = typed_yaml.integer(fields["offset"], least=-_BOUND, most=_BOUND)
    if step == 0 or abs(offset) >= abs(step) or step * offset < 0:
        raise node.invalid("offset must be smaller than step and of the same sign")
    number = to_number(value) if kind == "number" else None
    if number is None:
        raise node.invalid("modulo is for numbers")
    if number % step != offset:
        raise node.invalid(f"{value} is not a multiple of {step} with an offset of {offset}")


_CHECKS: Final[Mapping[str, Callable[[YamlNode, Plain, str, Work], str | None]]] = {
    "range": _range,
    "length": _length,
    "allowed_values": _allowed_values,
    "allowed_pattern": _allowed_pattern,
    "custom_constraint": _custom,
    "modulo": _modulo,
}


TYPES: Final = ("string", "number", "comma_delimited_list", "json", "boolean")
PER_PARAMETER: Final = 5
"""What a parameter costs beside its values, measured in values."""
_KEYS: Final = ("label", "description", "default", "hidden", "constraints", "immutable", "tags")


@dataclass(frozen=True, slots=True)
class Values:
    """Every parameter's value, and notes about constraints that were not applied."""

    by_name: Mapping[str, YamlNode]
    notes: tuple[str, ...] = ()


def read_values(
    declared: Mapping[str, YamlNode],
    given: Mapping[str, YamlNode],
    defaults: Mapping[str, YamlNode],
    work: Work,
) -> Values:
    """The value of each declared parameter.

    Raises:
        InvalidDescription: a value for an undeclared parameter, no value at all, a value of
            the wrong type or outside its constraints, or too much work in all.
    """
    for name, node in given.items():
        if name not in declared:
            known = ", ".join(declared) or "none"
            raise node.invalid(f"the template has no parameter {name!r}; it has {known}")
    values: dict[str, YamlNode] = {}
    notes: list[str] = []
    for name, node in declared.items():
        values[name] = _value(name, node, given_value(name, given, defaults), notes, work)
    return Values(values, tuple(notes))


def given_value(
    name: str, given: Mapping[str, YamlNode], defaults: Mapping[str, YamlNode]
) -> YamlNode | None:
    """The value from the caller, else from the environment; null is not given, as in Heat."""
    said = given.get(name)
    return defaults.get(name) if said is None or said.value is None else said


def to_default(name: str, declared: YamlNode, given: YamlNode) -> Plain:
    """A given value as the template's default.

    None where none is to be written, because null was given.

    Raises:
        InvalidDescription: a value of the wrong type.
    """
    fields = typed_yaml.mapping(declared)
    if given.value is None:
        return None
    return _converted(typed_yaml.choice(fields["type"], TYPES), name, given)


def is_hidden(declared: YamlNode) -> bool:
    """Whether the value must not be written to a file."""
    fields = typed_yaml.mapping(declared)
    return "hidden" in fields and bool(to_boolean(fields["hidden"].plain()))


def _value(
    name: str, node: YamlNode, given: YamlNode | None, notes: list[str], work: Work
) -> YamlNode:
    work.spend(PER_PARAMETER + node.size + (0 if given is None else given.size), node)
    fields = typed_yaml.mapping(node, required=("type",), optional=_KEYS)
    kind = typed_yaml.choice(fields["type"], TYPES)
    # Null is "not given" to Heat, from a caller and as a default.
    source = given if given is not None and given.value is not None else fields.get("default")
    if source is None or source.value is None:
        raise node.invalid(f"parameter {name} has neither a value nor a default")
    if find_deferred(source) is not None:
        # A nested template's parameter may be known only later; nothing to convert or judge.
        return source
    value = to_node(_converted(kind, name, source), line=source.line, path=source.path)
    if "constraints" in fields:
        notes += check_constraints(fields["constraints"], value.plain(), kind, work)
    return value


def _converted(kind: str, name: str, source: YamlNode) -> Plain:
    value = source.plain()
    match kind:
        case "string":
            # A date or number keeps its spelling; true becomes True, as in Heat.
            return value if isinstance(value, str) else str(value)
        case "number":
            number = to_number(value)
            if number is None:
                raise source.invalid(f"parameter {name} must be a number, not {value!r}")
            return number
        case "boolean":
            truth = to_boolean(value)
            if truth is None:
                raise source.invalid(f"parameter {name} must be true or false, not {value!r}")
            return truth
        case "comma_delimited_list":
            return _listed(name, source, value)
        case _:
            return _json(name, source, value)


def _listed(name: str, source: YamlNode, value: Plain) -> list[Plain]:
    if isinstance(value, list):
        return [str(one) for one in value]
    if not isinstance(value, str):
        raise source.invalid(f"parameter {name} must be a comma-delimited list, not {value!r}")
    return [*value.split(",")] if value else []


def _json(name: str, source: YamlNode, value: Plain) -> Plain:
    if not isinstance(value, str) or not value:
        return value
    try:
        parsed: Plain = json.loads(value)
    except (ValueError, RecursionError) as error:
        raise source.invalid(f"parameter {name} must be JSON: {error}") from error
    return parsed


def pseudo_parameters(stack_name: str, file: str) -> Mapping[str, YamlNode]:
    """Heat's pseudo parameters; only the stack's name is known beforehand."""
    later = {
        name: DeferredValue(f"the stack's {name}")
        for name in ("OS::stack_id", "OS::project_id", "OS::region")
    }
    known = {"OS::stack_name": stack_name, **later}
    return {name: to_node(value, line=1, path=file) for name, value in known.items()}
