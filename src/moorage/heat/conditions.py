"""The conditions of a stack, each judged when something asks for it.

A condition is true or false, or a function that yields one. Where a condition is asked for (on a
resource, in an `if`, under `not`, `and`, `or`) the name of a condition stands for it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from moorage.heat import typed_yaml
from moorage.heat.deferred_values import refuse_deferred

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from moorage.heat.scope import ConditionValues
    from moorage.heat.versions import Version
    from moorage.heat.yaml_tree import YamlNode

MAX_DEPTH: Final = 20
"""Depth of conditions that refer to one another."""


@dataclass(frozen=True, slots=True)
class Conditions:
    """The conditions of one stack; `value` resolves functions in them."""

    by_name: Mapping[str, YamlNode]
    version: Version
    value: Callable[[YamlNode], YamlNode]
    values: ConditionValues
    """Shared by all evaluations in the stack."""

    def check(self) -> None:
        """Check the form of every condition, used or not; none is judged.

        Raises:
            InvalidDescription: one is neither true nor false nor a function of conditions.
        """
        for name, node in self.by_name.items():
            if not isinstance(node.value, bool) and not self._is_function(node):
                raise node.invalid(
                    f"the condition {name} is neither true nor false nor one of"
                    f" {', '.join(sorted(self.version.in_conditions))}"
                )
            self._check_functions(node)

    def _is_function(self, node: YamlNode) -> bool:
        match node.value:
            case dict() as items if len(items) == 1:
                return next(iter(items)) in self.version.in_conditions
            case _:
                return False

    def _check_functions(self, node: YamlNode) -> None:
        """Refuse functions that conditions do not have."""
        below = node.value if isinstance(node.value, dict | list) else []
        if isinstance(below, dict):
            if len(below) == 1:
                refuse_function(next(iter(below)), node, self.version)
            below = list(below.values())
        for one in below:
            self._check_functions(one)

    def holds(self, node: YamlNode) -> bool:
        """Judge the condition at this node.

        Raises:
            NotKnownYet: it hangs on a value that is known only later.
            InvalidDescription: it cannot be judged; names the place.
        """
        return self.truth(self.value(node))

    def truth(self, node: YamlNode) -> bool:
        """The truth of a resolved node: true or false, or the name of a condition.

        Raises:
            NotKnownYet: it hangs on a value that is known only later.
            InvalidDescription: it is neither.
        """
        refuse_deferred(node)
        match node.value:
            case bool() as truth:
                return truth
            case None:
                return True  # as Heat: no condition
            case str() as name:
                return self._named(name, node)
            case _:
                raise node.invalid(
                    f"a condition is true, false, or the name of one, not {typed_yaml.kind(node)}"
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
        try:
            truths[name] = self._defined(name, definition)
        finally:
            del judging[name]
        return truths[name]

    def _defined(self, name: str, definition: YamlNode) -> bool:
        found = self.value(definition)
        refuse_deferred(found)
        if not isinstance(found.value, bool):
            raise definition.invalid(
                f"the condition {name} is neither true nor false, but {typed_yaml.kind(found)}"
            )
        return found.value


def refuse_function(name: str, node: YamlNode, version: Version) -> None:
    """Return unless a function of this name exists, but not in conditions.

    Raises:
        InvalidDescription: it does.
    """
    if name in version.functions | version.removed and name not in version.in_conditions:
        raise node.invalid(
            f"{name} cannot be used in a condition; there are"
            f" {', '.join(sorted(version.in_conditions))}"
        )
