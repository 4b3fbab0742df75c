"""Template parameters and their values.

A value comes from, first wins: the call itself, the environment's `parameters`, its
`parameter_defaults`, the template's `default`.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from moorage.heat import typed_yaml
from moorage.heat.constraints import check_constraints
from moorage.heat.deferred_values import DeferredValue, find_deferred
from moorage.heat.numbers import to_boolean, to_number
from moorage.heat.yaml_tree import to_node

if TYPE_CHECKING:
    from collections.abc import Mapping

    from moorage.heat.work_limit import Work
    from moorage.heat.yaml_tree import Plain, YamlNode

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
