"""Evaluates the functions of a template.

Supported: get_param, get_resource, get_attr, get_file, if, str_replace, list_join. Any other
function that the template's version knows is an error that names the place. What Heat itself
learns only later (ids, attributes) becomes a `DeferredValue` and is passed on. Stricter than Heat:
a path into a parameter that does not exist is an error, not the empty string.

A condition is true or false, the name of another one, `equals`, `not`, `and`, `or`, or a parameter
that is a boolean. Whatever else Heat allows there is an error that names its place.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from moorage.heat import typed_yaml
from moorage.heat.deferred_values import (
    DeferredValue,
    ResourceReference,
    find_deferred,
    refuse_deferred,
)
from moorage.heat.template import file_name
from moorage.heat.work_limit import Work
from moorage.heat.yaml_tree import MAX_NODES, MAX_TEXT, collection_node, to_node

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from moorage.heat.paths import Path
    from moorage.heat.versions import Version
    from moorage.heat.yaml_tree import YamlNode

FUNCTIONS: Final = ("equals", "not", "and", "or", "get_param")
MAX_DEPTH: Final = 20
"""Depth of conditions that refer to one another."""
_BRANCHES: Final = 2


@dataclass(frozen=True, slots=True)
class ConditionValues:
    """Cached values of a stack's conditions."""

    truths: dict[str, bool] = field(default_factory=dict)
    evaluating: dict[str, None] = field(default_factory=dict)
    """Names of the conditions that are being evaluated, each referred to by the one before it."""


@dataclass(frozen=True, slots=True)
class Conditions:
    """The conditions of one stack; `value` resolves their operands."""

    by_name: Mapping[str, YamlNode]
    value: Callable[[YamlNode], YamlNode]
    values: ConditionValues
    """Shared by all evaluations in the stack."""

    def check(self) -> None:
        """Evaluate every condition, used or not.

        Raises:
            InvalidDescription: a condition cannot be evaluated.
        """
        for name, node in self.by_name.items():
            self._named(name, node)

    def holds(self, node: YamlNode) -> bool:
        """Evaluate the condition at this node.

        Raises:
            InvalidDescription: it cannot be evaluated; names the place.
        """
        match node.value:
            case bool() as truth:
                return truth
            case str() as name if find_deferred(node) is None:
                return self._named(name, node)
            case dict() as items if len(items) == 1:
                ((function, argument),) = items.items()
                return self._call(function, argument, node)
            case _:
                raise node.invalid(
                    f"a condition is true, false, the name of one, or one of {', '.join(FUNCTIONS)}"
                )

    def _named(self, name: str, node: YamlNode) -> bool:
        truths, judging = self.values.truths, self.values.evaluating
        if name in truths:
            return truths[name]
        if name in judging:
            raise node.invalid(f"the condition {name!r} asks for itself")
        definition = self.by_name.get(name)
        if definition is None:
            known = ", ".join(self.by_name) or "none"
            raise node.invalid(f"the template has no condition {name!r}; it has {known}")
        if len(judging) >= MAX_DEPTH:
            raise node.invalid(f"conditions that ask for others more than {MAX_DEPTH} deep")
        judging[name] = None
        truths[name] = self.holds(definition)
        del judging[name]
        return truths[name]

    def _call(self, function: str, argument: YamlNode, node: YamlNode) -> bool:
        match function:
            case "equals":
                first, second = self._compared(argument)
                return first.plain() == second.plain()
            case "not":
                return not self.holds(argument)
            case "and" | "or":
                truths = [self.holds(one) for one in typed_yaml.items(argument, least=_BRANCHES)]
                return all(truths) if function == "and" else any(truths)
            case "get_param":
                found = self.value(node)
                return typed_yaml.boolean(found)
            case _:
                raise argument.invalid(
                    f"{function} is not supported in a condition; supported are"
                    f" {', '.join(FUNCTIONS)}"
                )

    def _compared(self, argument: YamlNode) -> tuple[YamlNode, YamlNode]:
        both = [self.value(one) for one in typed_yaml.items(argument)]
        if len(both) != _BRANCHES:
            raise argument.invalid("equals compares two values")
        for one in both:
            refuse_deferred(one)
        return both[0], both[1]


@dataclass(frozen=True, slots=True)
class Scope:
    """The names that functions can refer to: one stack's parameters and resources."""

    stack: Path
    version: Version
    parameters: Mapping[str, YamlNode]
    resources: Mapping[str, YamlNode]
    conditions: Mapping[str, YamlNode] = field(default_factory=lambda: MappingProxyType({}))
    file: str = ""
    """The template's own name: `get_file` is relative to it."""
    files: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    condition_values: ConditionValues = field(default_factory=ConditionValues)
    work: Work = field(default_factory=Work)
    """Of the whole tree of stacks."""

    def evaluator(self) -> Conditions:
        """The stack's conditions."""
        return Conditions(self.conditions, lambda node: resolve(node, self), self.condition_values)


def resolve(node: YamlNode, scope: Scope) -> YamlNode:
    """The node with every function below it replaced by its value.

    Raises:
        InvalidDescription: an unsupported function, or one called wrongly; names the place.
    """
    found = resolve_or_drop(node, scope)
    return to_node(None, line=node.line, path=node.path) if found is None else found


def resolve_or_drop(node: YamlNode, scope: Scope) -> YamlNode | None:
    """As `resolve`; None for an `if` without a branch to take, whose entry is then left out."""
    match node.value:
        case dict() as items:
            if len(items) == 1:
                ((name, argument),) = items.items()
                if name == "if" and name in scope.version.functions:
                    return _if(argument, scope)
                if name in scope.version.functions:
                    return _call(name, argument, scope)
            some = {key: resolve_or_drop(one, scope) for key, one in items.items()}
            kept = {key: one for key, one in some.items() if one is not None}
            return collection_node(kept, node.line, node.path)
        case list() as listed:
            every = [resolve_or_drop(one, scope) for one in listed]
            return collection_node([one for one in every if one is not None], node.line, node.path)
        case _:
            return node


def _if(argument: YamlNode, scope: Scope) -> YamlNode | None:
    """The value of the taken branch; the other branch is not evaluated."""
    parts = typed_yaml.items(argument)
    least = _BRANCHES if scope.version.may_drop_entry else _BRANCHES + 1
    if not least <= len(parts) <= _BRANCHES + 1:
        raise argument.invalid("if takes a condition, a value, and another value")
    condition, *branches = parts
    if scope.evaluator().holds(condition):
        return resolve_or_drop(branches[0], scope)
    return resolve_or_drop(branches[1], scope) if len(branches) > 1 else None


_TEXT_PER_VALUE: Final = 500
"""Characters that are searched in about the time that a value takes."""


def _call(name: str, argument: YamlNode, scope: Scope) -> YamlNode:
    function = _FUNCTIONS.get(name)
    if function is None:
        raise argument.invalid(
            f"the function {name} is not supported; supported are {', '.join((*_FUNCTIONS, 'if'))}"
        )
    found = function(resolve(argument, scope), scope)
    scope.work.spend(found.size, argument)
    return found


def _get_param(argument: YamlNode, scope: Scope) -> YamlNode:
    name, *path = _words("get_param", argument)
    found = scope.parameters.get(name)
    if found is None:
        raise argument.invalid(f"get_param: the template has no parameter {name!r}")
    for step in path:
        if isinstance(found.value, DeferredValue):
            break
        found = _inside(found, step, argument)
    return _placed(found, argument)


def _inside(node: YamlNode, step: str, argument: YamlNode) -> YamlNode:
    if isinstance(node.value, dict) and step in node.value:
        return node.value[step]
    if isinstance(node.value, list) and re.fullmatch(r"-?\d{1,9}", step):
        number = int(step)
        if -len(node.value) <= number < len(node.value):
            return node.value[number]
    raise argument.invalid(f"get_param: nothing at {step!r} in {typed_yaml.kind(node)}")


def _get_resource(argument: YamlNode, scope: Scope) -> YamlNode:
    name = typed_yaml.name(argument)
    if name not in scope.resources:
        raise argument.invalid(f"get_resource: the template has no resource {name!r}")
    return to_node(ResourceReference.to(scope.stack / name), line=argument.line, path=argument.path)


def _get_attr(argument: YamlNode, scope: Scope) -> YamlNode:
    name, *path = _words("get_attr", argument)
    if name not in scope.resources:
        raise argument.invalid(f"get_attr: the template has no resource {name!r}")
    what = ".".join(path) or "attributes"
    return to_node(
        DeferredValue(f"{what} of {scope.stack / name}"), line=argument.line, path=argument.path
    )


def _get_file(argument: YamlNode, scope: Scope) -> YamlNode:
    name = file_name(typed_yaml.text(argument), of=scope.file)
    content = scope.files.get(name)
    if content is None:
        raise argument.invalid(f"get_file: the file {name} is missing among the files")
    return to_node(content, line=argument.line, path=argument.path)


def _words(function: str, argument: YamlNode) -> list[str]:
    """A name, or a list of a name and path steps."""
    nodes = argument.value if isinstance(argument.value, list) else [argument]
    if not nodes:
        raise argument.invalid(f"{function}: a name is needed")
    for one in nodes:
        if isinstance(one.value, DeferredValue):
            raise one.invalid(f"{function}: {one.value} is not known yet")
    return [typed_yaml.name(one) for one in nodes]


def _str_replace(argument: YamlNode, scope: Scope) -> YamlNode:
    fields = typed_yaml.mapping(argument, required=("template", "params"), optional=())
    template = fields["template"]
    if not isinstance(template.value, str):
        raise template.invalid(f"str_replace: text is needed, not {typed_yaml.kind(template)}")
    parameters = typed_yaml.mapping(fields["params"])
    later = find_deferred(argument)
    if later is not None:
        return to_node(DeferredValue(f"text with {later}"), line=argument.line, path=argument.path)
    texts = {key: _text("str_replace", one, scope) for key, one in parameters.items()}
    text = _replaced(template.value, texts, argument, scope.work)
    return to_node(text, line=argument.line, path=argument.path)


def _replaced(template: str, texts: Mapping[str, str], argument: YamlNode, work: Work) -> str:
    """Replace all keys: longer ones first, then in order, never inside a replaced value."""
    keys = sorted(sorted(texts), key=len, reverse=True)
    if "" in texts:
        raise argument.invalid("str_replace: an empty key")
    pieces: list[tuple[str, bool]] = [(template, False)]
    scanned = 1 + len(template) // _TEXT_PER_VALUE
    for key in keys:
        # Every key is looked for in all of the text that no longer key has replaced.
        work.spend(scanned + len(pieces), argument)
        pieces = [
            piece
            for text, done in pieces
            for piece in ([(text, done)] if done else _split(text, key, texts[key]))
        ]
        if len(pieces) > MAX_NODES:
            raise argument.invalid(f"str_replace: {key!r} is replaced too often")
    if sum(len(text) for text, _ in pieces) > MAX_TEXT:
        raise argument.invalid(f"str_replace: longer than {MAX_TEXT} characters")
    return "".join(text for text, _ in pieces)


def _split(text: str, key: str, value: str) -> list[tuple[str, bool]]:
    """The text split at each occurrence of the key, with the replacement value in between."""
    around = text.split(key)
    pieces = [(around[0], False)]
    for rest in around[1:]:
        pieces += [(value, True), (rest, False)]
    return pieces


def _list_join(argument: YamlNode, scope: Scope) -> YamlNode:
    delimiter, *lists = typed_yaml.items(argument, least=2)
    if len(lists) > 1 and not scope.version.joins_json:
        raise argument.invalid(f"list_join takes one list in version {scope.version.name}")
    if not isinstance(delimiter.value, str):
        raise delimiter.invalid(f"list_join: text is needed, not {typed_yaml.kind(delimiter)}")
    later = find_deferred(argument)
    if later is not None:
        return to_node(DeferredValue(f"text with {later}"), line=argument.line, path=argument.path)
    texts = [
        _joined(one, scope)
        for some in lists
        if some.value is not None
        for one in typed_yaml.items(some)
    ]
    if sum(map(len, texts)) + len(delimiter.value) * len(texts) > MAX_TEXT:
        raise argument.invalid(f"list_join: longer than {MAX_TEXT} characters")
    return to_node(delimiter.value.join(texts), line=argument.line, path=argument.path)


def _joined(node: YamlNode, scope: Scope) -> str:
    """An item to join: Heat does not accept bare numbers here."""
    if isinstance(node.value, int | float):
        raise node.invalid(f"list_join: text is needed, not {typed_yaml.kind(node)}; quote it")
    return _text("list_join", node, scope)


def _text(function: str, node: YamlNode, scope: Scope) -> str:
    match node.value:
        case None:
            return ""
        case str() as text:
            return text
        case dict() | list():
            if not scope.version.joins_json:
                raise node.invalid(
                    f"{function}: text is needed, not {typed_yaml.kind(node)},"
                    f" in version {scope.version.name}"
                )
            return json.dumps(node.plain(), sort_keys=True)
        case number:
            return str(number)


def _placed(node: YamlNode, at: YamlNode) -> YamlNode:
    """The same value with the place of its use, which errors then name."""
    match node.value:
        case dict() as items:
            return collection_node(dict(items), at.line, at.path)
        case list() as listed:
            return collection_node(list(listed), at.line, at.path)
        case scalar:
            return to_node(scalar, line=at.line, path=at.path)


_FUNCTIONS: Final[Mapping[str, Callable[[YamlNode, Scope], YamlNode]]] = {
    "get_param": _get_param,
    "get_resource": _get_resource,
    "get_attr": _get_attr,
    "get_file": _get_file,
    "str_replace": _str_replace,
    "list_join": _list_join,
}
