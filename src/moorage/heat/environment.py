"""Environment files: parameter values, defaults, and types mapped to templates."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from moorage.heat import typed_yaml
from moorage.heat.deferred_values import DeferredValue
from moorage.heat.template import file_name, is_nested
from moorage.heat.yaml_tree import parse

if TYPE_CHECKING:
    from collections.abc import Mapping

    from moorage.heat.yaml_tree import YamlNode

MAX_TYPE_ALIASES: Final = 8
"""Length limit of a chain of type aliases in the resource_registry."""

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
    """The parsed environment."""

    parameters: Mapping[str, YamlNode] = field(default_factory=lambda: MappingProxyType({}))
    defaults: Mapping[str, YamlNode] = field(default_factory=lambda: MappingProxyType({}))
    types: Mapping[str, YamlNode] = field(default_factory=lambda: MappingProxyType({}))
    """The resource_registry: resource type -> the type or nested template to use instead."""

    def target_type(self, node: YamlNode, *, inside: str) -> str:
        """The type or nested template (file name) that a type in template `inside` maps to.

        Raises:
            InvalidDescription: not text, a deferred value, or mapped in a cycle.
        """
        if isinstance(node.value, DeferredValue):
            raise node.invalid(f"{node.value} is not known before the stack is made")
        name = typed_yaml.text(node)
        for _ in range(MAX_TYPE_ALIASES):
            alias = self.types.get(name)
            if alias is None or alias.value == name:
                # Files named in the environment are relative to the root template.
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


def _entries(sections: Mapping[str, YamlNode], name: str) -> Mapping[str, YamlNode]:
    return typed_yaml.mapping(sections[name]) if name in sections else {}


def _registry(sections: Mapping[str, YamlNode]) -> Mapping[str, YamlNode]:
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
