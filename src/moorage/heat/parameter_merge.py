"""Merges the parameter values of several environment files, as Heat does.

The default strategy is that a later file's value replaces an earlier one. With `merge` lists are
joined, maps united and texts concatenated; `deep_merge` does so within maps too.
Parameters that the root template does not declare are taken only from the first file with a value.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from moorage.domain.errors import InvalidDescription
from moorage.heat.yaml_tree import parse, to_node

if TYPE_CHECKING:
    from collections.abc import Mapping

    from moorage.heat.yaml_tree import YamlNode

OVERWRITE: Final = "overwrite"
MERGE: Final = "merge"
DEEP_MERGE: Final = "deep_merge"
STRATEGIES: Final = (OVERWRITE, MERGE, DEEP_MERGE)


class ParameterMerge:
    """Merges file after file; a parameter's strategy is the same in all of them."""

    def __init__(self, declared: Mapping[str, YamlNode]) -> None:
        """Merge values of these parameters, as the root template declares them."""
        self._types = {name: _type_of(node) for name, node in declared.items()}
        self._chosen: dict[str, str] = {}

    def merged(
        self,
        old: Mapping[str, YamlNode],
        new: Mapping[str, YamlNode],
        strategies: Mapping[str, YamlNode],
    ) -> dict[str, YamlNode]:
        """The values of earlier files with those of one more.

        Raises:
            InvalidDescription: another strategy than before, or values that cannot be merged.
        """
        for name, node in new.items():
            if name in self._types and node.value is not None:
                self._choose(name, node, strategies)
        if not old:
            return dict(new)
        result = dict(old)
        for name, node in new.items():
            if name in self._types and node.value is not None:
                result[name] = self._one(name, result.get(name), node)
        return result

    def _choose(self, name: str, node: YamlNode, strategies: Mapping[str, YamlNode]) -> None:
        default = _word(strategies.get("default"), OVERWRITE)
        chosen = _word(strategies.get(name), self._chosen.get(name, default))
        if chosen not in STRATEGIES:
            chosen = default
        if self._chosen.setdefault(name, chosen) != chosen:
            raise node.invalid(
                f"the strategy for parameter {name} is {chosen} here, and {self._chosen[name]} in"
                " an earlier environment"
            )

    def _one(self, name: str, old: YamlNode | None, node: YamlNode) -> YamlNode:
        strategy = self._chosen[name]
        if strategy not in (MERGE, DEEP_MERGE) or old is None:
            return node
        try:
            value = _together(self._types[name], old, node, deep=strategy == DEEP_MERGE)
        except (TypeError, ValueError, InvalidDescription) as error:
            raise node.invalid(f"parameter {name} cannot be merged: {error}") from error
        return to_node(value, line=node.line, path=node.path)


def _type_of(node: YamlNode) -> str:
    kind = node.value.get("type") if isinstance(node.value, dict) else None
    return str(kind.value) if kind is not None else ""


def _word(node: YamlNode | None, default: str) -> str:
    return node.value if node is not None and isinstance(node.value, str) else default


def _together(kind: str, old: YamlNode, new: YamlNode, *, deep: bool) -> Any:  # noqa: ANN401 - YAML
    before, after = old.plain(), new.plain()
    match kind:
        case "json":
            return _maps(_read(before), _read(after), deep=deep)
        case "comma_delimited_list":
            return _lists(before, after)
        case "string" | "number":
            # Heat puts the digits of numbers together, too, and refuses numbers that are no text.
            return f"{_text(before)}{_text(after)}"
        case _:
            raise ValueError(f"values of type {kind} cannot be merged")


def _read(value: Any) -> Any:  # noqa: ANN401 - YAML
    return parse(value).plain() if isinstance(value, str) else value


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError("text is needed")
    return value


def _lists(old: Any, new: Any) -> Any:  # noqa: ANN401 - YAML
    if not old:
        return new
    if isinstance(new, list):
        if not isinstance(old, list):
            raise TypeError("one is a list, the other text")
        return [*old, *new]
    return f"{_text(old)},{_text(new)}"


def _maps(old: Any, new: Any, *, deep: bool) -> Any:  # noqa: ANN401 - YAML
    if not old:
        return new
    if not isinstance(old, dict) or not isinstance(new, dict):
        raise TypeError("maps are needed")
    result = dict(old)
    for key, value in new.items():
        if value is None:
            continue
        before = result.get(key)
        if not deep or not before:
            result[key] = value
        elif isinstance(value, dict):
            result[key] = _maps(before, value, deep=True)
        elif isinstance(value, list):
            result[key] = _lists(before, value)
        elif isinstance(value, str):
            result[key] = f"{_text(before)}{value}"
        else:
            result[key] = value
    return result
