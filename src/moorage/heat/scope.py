"""What the functions of one stack can refer to."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING

from moorage.heat.remarks import Remarks
from moorage.heat.work_limit import Work

if TYPE_CHECKING:
    from collections.abc import Mapping

    from moorage.heat.paths import Path
    from moorage.heat.versions import Version
    from moorage.heat.yaml_tree import YamlNode


@dataclass(frozen=True, slots=True)
class ConditionValues:
    """Cached values of a stack's conditions."""

    truths: dict[str, bool] = field(default_factory=dict)
    evaluating: dict[str, None] = field(default_factory=dict)
    """Names of the conditions that are being evaluated, each referred to by the one before it."""


@dataclass(frozen=True, slots=True)
class Scope:
    """The names that functions can refer to: one stack's parameters and resources."""

    stack: Path
    version: Version
    parameters: Mapping[str, YamlNode]
    resources: Mapping[str, YamlNode]
    conditions: Mapping[str, YamlNode] = field(default_factory=lambda: MappingProxyType({}))
    mappings: Mapping[str, YamlNode] = field(default_factory=lambda: MappingProxyType({}))
    """The section `Mappings` of a template in the form of AWS CloudFormation."""
    file: str = ""
    """The template's own name: `get_file` is relative to it."""
    files: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    condition_values: ConditionValues = field(default_factory=ConditionValues)
    work: Work = field(default_factory=Work)
    """Of the whole tree of stacks."""
    remarks: Remarks = field(default_factory=Remarks)
    """Of the whole tree of stacks."""
