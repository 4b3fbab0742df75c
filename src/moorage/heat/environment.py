"""Environment files: parameter values, defaults, and types mapped to templates."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from moorage.heat import typed_yaml
from moorage.heat.deferred_values import Later
from moorage.heat.template import file_name, is_nested
from moorage.heat.yaml_tree import parse

if TYPE_CHECKING:
    from collections.abc import Mapping

    from moorage.heat.yaml_tree import Marked

MAX_ALIASES: Final = 8
"""How often one type may stand for another in the environment."""

_SECTIONS: Final = (
    "parameters",
    "parameter_defaults",
    "resource_registry",
    "encrypted_param_names",
    "event_sinks",
    "parameter_merge_strategies",
)


@dataclass(frozen=True, slots=True)
class Environment:
    """The parsed environment; later environments have been merged in."""

    parameters: Mapping[str, Marked] = field(default_factory=lambda: MappingProxyType({}))
    defaults: Mapping[str, Marked] = field(default_factory=lambda: MappingProxyType({}))
    types: Mapping[str, Marked] = field(default_factory=lambda: MappingProxyType({}))
    """Resource type -> the type or nested template that stands for it."""

    def stands_for(self, node: Marked, *, inside: str) -> str:
        """The target of a type in template `inside`; a nested template by its file's name.

        Raises:
            InvalidDescription: no text, known only later, or mapped in a circle.
        """
        if isinstance(node.value, Later):
            raise node.invalid(f"{node.value} is not known before the stack is made")
        name = typed_yaml.text(node)
        for _ in range(MAX_ALIASES):
            alias = self.types.get(name)
            if alias is None or alias.value == name:
                # What the environment names is relative to the root, as the environment itself.
                of = inside if name == node.value else ""
                return file_name(name, of=of) if is_nested(name) else name
            name = typed_yaml.text(alias)
        raise node.invalid(f"the resource_registry maps {node.value} in a circle")


def read_environment(text: str, *, name: str = "environment") -> Environment:
    """Read an environment.

    Raises:
        InvalidDescription: not YAML, an unknown or empty section, a registry entry other than
            type -> type (wildcards and per-resource entries are not supported), or merge
            strategies other than overwriting.
    """
    sections = typed_yaml.mapping(parse(text, name=name), optional=_SECTIONS)
    for section in sections.values():
        if section.value is None:
            raise section.invalid("the section is empty")
    strategies = sections.get("parameter_merge_strategies")
    if strategies is not None and strategies.value:
        raise strategies.invalid("parameter_merge_strategies is not supported")
    return Environment(
        parameters=_entries(sections, "parameters"),
        defaults=_entries(sections, "parameter_defaults"),
        types=_registry(sections),
    )


def _entries(sections: Mapping[str, Marked], name: str) -> Mapping[str, Marked]:
    return typed_yaml.mapping(sections[name]) if name in sections else {}


def _registry(sections: Mapping[str, Marked]) -> Mapping[str, Marked]:
    types = _entries(sections, "resource_registry")
    for name, node in types.items():
        if "*" in name:
            raise node.invalid("wildcards in the resource_registry are not supported")
        if name in {"resources", "base_url"}:
            if node.value:
                raise node.invalid(f"{name} in the resource_registry is not supported")
            continue
        typed_yaml.text(node)
    return {name: node for name, node in types.items() if name not in {"resources", "base_url"}}
