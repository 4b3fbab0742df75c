"""Environments: parameter values, defaults, and what resource types mean.

Several environment files are merged as Heat merges them: entries of later files win, unless the
file's `parameter_merge_strategies` say `merge` or `deep_merge` for a parameter.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from moorage.heat import typed_yaml
from moorage.heat.parameter_merge import ParameterMerge
from moorage.heat.remarks import Remarks
from moorage.heat.resource_registry import ResourceRegistry, read_registry
from moorage.heat.yaml_tree import parse

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from moorage.heat.resource_registry import RegistrySection
    from moorage.heat.yaml_tree import YamlNode

_PARAMETERS: Final = "parameters"
_DEFAULTS: Final = "parameter_defaults"
_REGISTRY: Final = "resource_registry"
_STRATEGIES: Final = "parameter_merge_strategies"
_SECTIONS: Final = (
    *(_PARAMETERS, _DEFAULTS, _REGISTRY, _STRATEGIES),
    *("encrypted_param_names", "event_sinks"),
)
_LISTS: Final = ("encrypted_param_names", "event_sinks")


@dataclass(frozen=True, slots=True)
class Environment:
    """What all environment files and the call say together."""

    parameters: Mapping[str, YamlNode] = field(default_factory=lambda: MappingProxyType({}))
    defaults: Mapping[str, YamlNode] = field(default_factory=lambda: MappingProxyType({}))
    registry: ResourceRegistry = field(default_factory=ResourceRegistry)
    remarks: tuple[str, ...] = ()
    """On the files' text, such as keys that are written twice."""


@dataclass(frozen=True, slots=True)
class EnvironmentFile:
    """One environment file."""

    name: str
    """Names of files in it are relative to it; empty: relative to the root template."""
    parameters: Mapping[str, YamlNode]
    defaults: Mapping[str, YamlNode]
    registry: RegistrySection
    strategies: Mapping[str, YamlNode]
    remarks: tuple[str, ...] = ()


def read_environment(text: str, *, name: str = "") -> EnvironmentFile:
    """Read an environment file; an empty one says nothing.

    Raises:
        InvalidDescription: not YAML, an unknown or empty section, or a registry that Heat would
            refuse.
    """
    if not text.strip():
        text = "{}"
    remarks = Remarks()
    top = parse(text, name=name or "environment", remarks=remarks)
    sections = typed_yaml.mapping(top, optional=_SECTIONS)
    for section, node in sections.items():
        if node.value is None:
            raise node.invalid(f"the section {section} is empty")
        if section in _LISTS:
            typed_yaml.items(node)
        else:
            typed_yaml.mapping(node)
    return EnvironmentFile(
        name=name,
        parameters=_entries(sections, _PARAMETERS),
        defaults=_entries(sections, _DEFAULTS),
        registry=read_registry(_entries(sections, _REGISTRY), name),
        strategies=_entries(sections, _STRATEGIES),
        remarks=tuple(remarks),
    )


def merge_environments(
    files: Sequence[EnvironmentFile],
    declared: Mapping[str, YamlNode],
    given: Mapping[str, YamlNode],
) -> Environment:
    """The environment of several files, later ones over earlier ones.

    Args:
        files: the files in their order.
        declared: the parameters of the root template, whose types say how values are merged.
        given: the parameters of the call, over which the files are merged.

    Raises:
        InvalidDescription: files contradict each other in a strategy, or a value cannot be merged.
    """
    merge = ParameterMerge(declared)
    parameters = dict(given)
    defaults: dict[str, YamlNode] = {}
    for one in files:
        parameters = merge.merged(parameters, one.parameters, one.strategies)
        defaults = merge.merged(defaults, one.defaults, one.strategies)
    registry = ResourceRegistry.of([one.registry for one in files])
    return Environment(
        MappingProxyType(parameters),
        MappingProxyType(defaults),
        registry,
        tuple(text for one in files for text in one.remarks),
    )


def _entries(sections: Mapping[str, YamlNode], name: str) -> Mapping[str, YamlNode]:
    return typed_yaml.mapping(sections[name]) if name in sections else {}
