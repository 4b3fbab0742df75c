"""Conditions of a template: which resources exist, and which branch of an `if` is taken.

A condition is true or false, the name of another one, `equals`, `not`, `and`, `or`, or a parameter
that is a boolean. Whatever else Heat allows there is an error that names its place.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from moorage.heat import typed_yaml
from moorage.heat.deferred_values import find_deferred

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

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
            later = find_deferred(one)
            if later is not None:
                raise one.invalid(f"{later} is not known before the stack is made")
        return both[0], both[1]
