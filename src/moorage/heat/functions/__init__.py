"""Evaluates the functions of a template: every one of every version that Heat knows.

What Heat itself learns only later (ids, attributes) becomes a `DeferredValue`, and so does what a
function makes of it. A call that has no value, because of an argument Heat would refuse or an
expression that cannot be worked out, becomes one, too: it is refused where a place hangs on it,
and remarked on elsewhere. Names that the template does not have, functions that its version has
not, and values beyond the limits are errors wherever they stand.

A new function goes into one of the modules of this package, and its name into `versions`.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from moorage.heat import typed_yaml
from moorage.heat.conditions import Conditions, refuse_function
from moorage.heat.deferred_values import NotKnownYet, ResourceReference, UnevaluatedValue
from moorage.heat.functions import (
    lists,
    maps,
    references,
    repetition,
    replacements,
    texts,
    urls,
    yaql_expressions,
)
from moorage.heat.functions.call import PAIR, Call, Unevaluable, Waiting
from moorage.heat.yaml_tree import collection_node, to_node

if TYPE_CHECKING:
    from moorage.heat.functions.call import Table
    from moorage.heat.scope import Scope
    from moorage.heat.yaml_tree import YamlNode

_FUNCTIONS: Final[Table] = MappingProxyType(
    {
        **references.FUNCTIONS,
        **texts.FUNCTIONS,
        **replacements.FUNCTIONS,
        **lists.FUNCTIONS,
        **maps.FUNCTIONS,
        **repetition.FUNCTIONS,
        **urls.FUNCTIONS,
        **yaql_expressions.FUNCTIONS,
    }
)
_CHOICES: Final = frozenset({"if", "Fn::If"})
_PER_CALL: Final = 1
"""What a call costs beside its value."""


def conditions_of(scope: Scope) -> Conditions:
    """The stack's conditions."""
    return Conditions(
        scope.conditions,
        scope.version,
        lambda node: _in_place(_Resolver(scope, in_condition=True).node(node), node),
        scope.condition_values,
    )


def resolve(node: YamlNode, scope: Scope) -> YamlNode:
    """The node with every function below it replaced by its value.

    Raises:
        InvalidDescription: a name that is not there, a function that the template's version has
            not, or too much of something; names the place.
    """
    return _in_place(resolve_or_drop(node, scope), node)


def resolve_or_drop(node: YamlNode, scope: Scope) -> YamlNode | None:
    """As `resolve`; None for an `if` without a branch to take, whose entry is then left out."""
    return _Resolver(scope).node(node)


def _in_place(found: YamlNode | None, node: YamlNode) -> YamlNode:
    return to_node(None, line=node.line, path=node.path) if found is None else found


@dataclass(frozen=True, slots=True)
class _Resolver:
    scope: Scope
    in_condition: bool = False

    def node(self, node: YamlNode) -> YamlNode | None:
        match node.value:
            case dict() as items:
                if len(items) == 1:
                    ((name, argument),) = items.items()
                    if self._is_function(name, argument):
                        return self._call(name, argument)
                some = {key: self.node(one) for key, one in items.items()}
                kept = {key: one for key, one in some.items() if one is not None}
                return collection_node(kept, node.line, node.path)
            case list() as listed:
                every = [self.node(one) for one in listed]
                return collection_node(
                    [one for one in every if one is not None], node.line, node.path
                )
            case _:
                return node

    def _is_function(self, name: str, argument: YamlNode) -> bool:
        version = self.scope.version
        if self.in_condition:
            refuse_function(name, argument, version)
            return name in version.in_conditions
        if name in version.removed:
            raise argument.invalid(f"version {version.name} has no function {name} any more")
        return name in version.functions

    def _call(self, name: str, argument: YamlNode) -> YamlNode | None:
        self.scope.work.spend(_PER_CALL, argument)
        if name in _CHOICES:
            return self._choice(name, argument)
        call = Call(name, _in_place(self.node(argument), argument), self.scope)
        try:
            judge = _JUDGES.get(name) if self.in_condition else None
            found = _FUNCTIONS[name](call) if judge is None else judge(call)
        except Waiting as waiting:
            found = call.value(waiting.value.through(name))
        except Unevaluable as problem:
            found = self._without_value(call, problem)
        self.scope.work.spend(found.size, argument)
        return found

    def _choice(self, name: str, argument: YamlNode) -> YamlNode | None:
        """The value of the taken branch; the other branch is not evaluated."""
        call = Call(name, argument, self.scope)
        parts = argument.value if isinstance(argument.value, list) else []
        least = PAIR if self.scope.version.may_drop_entry else PAIR + 1
        if not least <= len(parts) <= PAIR + 1:
            raise argument.invalid(f"{name} takes a condition, a value, and another value")
        condition, *branches = parts
        try:
            holds = conditions_of(self.scope).holds(condition)
        except NotKnownYet as problem:
            return self._without_value(call, problem)
        if holds:
            return self.node(branches[0])
        return self.node(branches[1]) if len(branches) > 1 else None

    def _without_value(self, call: Call, problem: Unevaluable | NotKnownYet) -> YamlNode:
        if isinstance(problem, Unevaluable):
            self.scope.remarks.add(
                f"{problem.path} (line {problem.line}): {problem.message}; no place hangs on it"
            )
        return call.value(UnevaluatedValue.because(problem))


def _equals(call: Call) -> YamlNode:
    first, second = call.parts("value", "value")
    if any(
        isinstance(one.value, ResourceReference) and other.value in ("", None)
        for one, other in ((first, second), (second, first))
    ):
        same = False  # whatever the id is, it is not empty
        return call.value(same)
    return call.value(call.known(first) == call.known(second))


def _not(call: Call) -> YamlNode:
    node = call.argument
    if call.name == "Fn::Not":
        (node,) = call.parts("condition")
    if node.value is None:
        raise node.invalid(f"{call.name} takes a condition")
    return call.value(not _truth(call, node))


def _and(call: Call) -> YamlNode:
    return call.value(not _some(call, wanted=False))


def _or(call: Call) -> YamlNode:
    return call.value(_some(call, wanted=True))


def _some(call: Call, *, wanted: bool) -> bool:
    """Whether one of the conditions has this truth, whatever is known only later about others."""
    later: Waiting | NotKnownYet | None = None
    for one in _several(call):
        try:
            if _truth(call, one) is wanted:
                return True
        except (Waiting, NotKnownYet) as error:
            later = later or error
    if later is not None:
        raise later
    return False


def _several(call: Call) -> list[YamlNode]:
    return typed_yaml.items(call.argument, least=PAIR)


def _truth(call: Call, node: YamlNode) -> bool:
    return conditions_of(call.scope).truth(call.here(node))


_JUDGES: Final[Table] = MappingProxyType(
    {
        "equals": _equals,
        "not": _not,
        "and": _and,
        "or": _or,
        "Fn::Equals": _equals,
        "Fn::Not": _not,
        "Fn::And": _and,
        "Fn::Or": _or,
    }
)
"""Functions of conditions alone."""
