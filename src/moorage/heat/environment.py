"""An environment file: parameter values, defaults, and types mapped to templates."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from moorage.heat import expect
from moorage.heat.marked import parse

if TYPE_CHECKING:
    from collections.abc import Mapping

    from moorage.heat.marked import Marked

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
    """What the caller says besides the template; later environments have been merged in."""

    parameters: Mapping[str, Marked] = field(default_factory=lambda: MappingProxyType({}))
    defaults: Mapping[str, Marked] = field(default_factory=lambda: MappingProxyType({}))
    types: Mapping[str, Marked] = field(default_factory=lambda: MappingProxyType({}))
    """Resource type -> the type or nested template that stands for it."""


def read_environment(text: str, *, name: str = "environment") -> Environment:
    """Read an environment.

    Raises:
        InvalidDescription: not YAML, an unknown or empty section, a registry entry other than
            type -> type (wildcards and per-resource entries are not supported), or merge
            strategies other than overwriting.
    """
    sections = expect.mapping(parse(text, name=name), optional=_SECTIONS)
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
    return expect.mapping(sections[name]) if name in sections else {}


def _registry(sections: Mapping[str, Marked]) -> Mapping[str, Marked]:
    types = _entries(sections, "resource_registry")
    for name, node in types.items():
        if "*" in name:
            raise node.invalid("wildcards in the resource_registry are not supported")
        if name in {"resources", "base_url"}:
            if node.value:
                raise node.invalid(f"{name} in the resource_registry is not supported")
            continue
        expect.text(node)
    return {name: node for name, node in types.items() if name not in {"resources", "base_url"}}
