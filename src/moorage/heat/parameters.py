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
from moorage.heat.yaml_tree import collection_node, to_node

if TYPE_CHECKING:
    from collections.abc import Mapping

    from moorage.heat.versions import Version
    from moorage.heat.work_limit import Work
    from moorage.heat.yaml_tree import Plain, YamlNode

LACKING: Final = "which has no default"
"""What is said of a parameter without any value."""
TYPES: Final = ("string", "number", "comma_delimited_list", "json", "boolean")
PER_PARAMETER: Final = 5
"""What a parameter costs beside its values, measured in values."""
_KEYS: Final = (
    *("label", "description", "default", "hidden", "constraints", "immutable", "tags"),
    "schema",
)


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
    *,
    may_lack: bool = False,
) -> Values:
    """The value of each declared parameter.

    With `may_lack` a parameter without any value gets a deferred one, as when a template is judged
    before somebody has chosen the values.

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
        reader = _Reader(name, node, work, notes)
        values[name] = reader.value(given_value(name, given, defaults), may_lack=may_lack)
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


@dataclass(frozen=True, slots=True)
class _Reader:
    """Reads the value of one parameter."""

    name: str
    declared: YamlNode
    work: Work
    notes: list[str]

    def value(self, given: YamlNode | None, *, may_lack: bool) -> YamlNode:
        node = self.declared
        self.work.spend(PER_PARAMETER + node.size + (0 if given is None else given.size), node)
        fields = typed_yaml.mapping(node, required=("type",), optional=_KEYS)
        kind = typed_yaml.choice(fields["type"], TYPES)
        constraints = fields.get("constraints")
        default = fields.get("default")
        # Null is "not given" to Heat, from a caller and as a default.
        if default is not None and default.value is None:
            default = None
        if given is None or given.value is None:
            given = default
        elif default is not None and (constraints is not None or kind == "comma_delimited_list"):
            # Heat refuses such a default even where another value is given.
            self._check(constraints, _converted(kind, self.name, default), kind)
        if given is None:
            if may_lack:
                later = DeferredValue(f"the parameter {self.name}, {LACKING},")
                return to_node(later, line=node.line, path=node.path)
            raise node.invalid(f"parameter {self.name} has neither a value nor a default")
        if find_deferred(given) is not None:
            return _partly_known(kind, given)
        value = to_node(_converted(kind, self.name, given), line=given.line, path=given.path)
        self._check(constraints, value.plain(), kind)
        return value

    def _check(self, constraints: YamlNode | None, value: Plain, kind: str) -> None:
        if constraints is not None and constraints.value is not None:
            self.notes.extend(check_constraints(constraints, value, kind, self.work))


def _partly_known(kind: str, given: YamlNode) -> YamlNode:
    """A value for a nested template, of which something is known only later; nothing is judged."""
    if kind != "comma_delimited_list" or not isinstance(given.value, list):
        return given
    items = [
        one if find_deferred(one) else to_node(str(one.plain()), line=one.line, path=one.path)
        for one in given.value
    ]
    return collection_node(items, given.line, given.path)


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


def as_nested_parameters(
    declared: Mapping[str, YamlNode], properties: Mapping[str, YamlNode]
) -> Mapping[str, YamlNode]:
    """The properties of a nested template's resource as the parameters of its stack.

    Heat joins a list with commas, so that an item with a comma in it becomes several.
    """
    return {name: _joined(declared.get(name), node) for name, node in properties.items()}


def _joined(declared: YamlNode | None, node: YamlNode) -> YamlNode:
    fields = None if declared is None else declared.value
    kind = fields.get("type") if isinstance(fields, dict) else None
    items = node.value
    if kind is None or kind.value not in _LISTS or not isinstance(items, list):
        return node
    texts = [one.value for one in items if one.value is None or isinstance(one.value, str)]
    if len(texts) < len(items) or find_deferred(node) is not None:
        return node
    return to_node(",".join(one or "" for one in texts), line=node.line, path=node.path)


_LISTS: Final = frozenset({"comma_delimited_list", "CommaDelimitedList"})


def _json(name: str, source: YamlNode, value: Plain) -> Plain:
    if not isinstance(value, str) or not value:
        return value
    try:
        parsed: Plain = json.loads(value)
    except (ValueError, RecursionError) as error:
        raise source.invalid(f"parameter {name} must be JSON: {error}") from error
    return parsed


def pseudo_parameters(
    stack_name: str | None, file: str, version: Version | None = None
) -> Mapping[str, YamlNode]:
    """Heat's pseudo parameters; only the name of the root stack is known beforehand.

    Without a name the stack is a nested one, which gets a name with a random part.
    """
    is_cfn = version is not None and version.is_cfn
    name, *others = _CFN_PSEUDO if is_cfn else _HOT_PSEUDO
    values: dict[str, str] = {one: DeferredValue(f"the stack's {one}") for one in (name, *others)}
    if stack_name is not None:
        values[name] = stack_name
    if is_cfn:
        values["AWS::Region"] = _AWS_REGION
    return {key: to_node(value, line=1, path=file) for key, value in values.items()}


_HOT_PSEUDO: Final = ("OS::stack_name", "OS::stack_id", "OS::project_id", "OS::region")
_CFN_PSEUDO: Final = ("AWS::StackName", "AWS::StackId")
_AWS_REGION: Final = "ap-southeast-1"
"""What Heat says, wherever it runs."""
