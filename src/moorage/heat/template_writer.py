"""Writes a decision into the servers of a template, and what they need into whatever makes them."""

from __future__ import annotations

import posixpath
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from moorage.domain.nova_servers import server_metadata
from moorage.heat.annotation import DECIDED, FLAVOR, KEY
from moorage.heat.file_names import is_nested
from moorage.heat.member_names import (
    FLAVORS,
    Numbering,
    joined,
)
from moorage.heat.resources import members_of
from moorage.heat.resources.aws_auto_scaling_launch_configuration import TYPES as CONFIGURATION
from moorage.heat.resources.aws_ec2_instance import TYPES as INSTANCE
from moorage.heat.resources.os_heat_instance_group import TYPES as CONFIGURED
from moorage.heat.resources.os_heat_resource_group import INDEX
from moorage.heat.resources.os_heat_resource_group import TYPES as NUMBERED
from moorage.heat.resources.os_nova_server import TYPES as SERVER
from moorage.heat.standalone_template import OutputTemplate, is_computed, resources
from moorage.heat.versions import HOT, VERSIONS

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from moorage.domain.member_names import MemberName
    from moorage.heat.member_names import Name, Naming, ServerName


class Binding(StrEnum):
    """How a written template makes plain Heat take the held places."""

    HINTS = "hints"
    """Each server has the hint `moorage`, for the filter in nova-api."""
    FLAVORS = "flavors"
    """Each server has the flavor of its role's tickets."""
    NONE = "none"


_VARIABLE: Final = "index_var"


@dataclass(frozen=True, slots=True)
class TemplateDecision:
    """A decision for a template; `places` has each member's domain labels by level."""

    ensemble: str
    decision: str
    places: Mapping[MemberName, Mapping[str, str]]
    binding: Binding = Binding.HINTS
    flavors: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    """Role -> the flavor of its tickets; needed to bind by flavors."""


@dataclass(frozen=True, slots=True)
class DecisionWriter:
    """Writes a decision into servers, and what servers need of it into whatever makes them."""

    decided: TemplateDecision
    templates: Collection[str]
    """Nested templates that declare the passed-down parameters, by their output names."""
    numbering: Mapping[str, Numbering]
    bound: set[str] = field(default_factory=set)
    """Paths of the definitions whose servers have been bound so far."""

    def write(self, sheet: OutputTemplate, naming: Naming, some: Collection[str]) -> dict[str, Any]:
        """The template with the decision in those resources that have members."""
        found = dict(resources(sheet))
        placed = {name: one for name, one in found.items() if name in some}
        named = {
            name: self._resource(sheet, naming, name, resource, placed)
            for name, resource in found.items()
        }
        return {**sheet.document, sheet.key("resources"): named} if named else dict(sheet.document)

    def _resource(
        self,
        sheet: OutputTemplate,
        naming: Naming,
        name: str,
        resource: dict[str, Any],
        placed: Mapping[str, dict[str, Any]],
    ) -> dict[str, Any]:
        kind = resource[sheet.key("type")]
        if not isinstance(kind, str):
            return resource
        if kind in CONFIGURATION:
            groups = [one for one, it in placed.items() if _configured(sheet, it, name)]
            if len(groups) != 1:
                return resource
            path = _path(sheet, groups[0])
            member = naming.grouped(groups[0], "", self._numbering(path))
            return self._server(sheet, resource, member, path)
        if name not in placed:
            return resource
        path = _path(sheet, name)
        if members_of(kind) is None:
            member = naming.server(name, self._numbering(path))
            return self._definition(sheet, resource, member, naming.below(name), path)
        return self._group(sheet, naming, name, path, resource)

    def _group(
        self,
        sheet: OutputTemplate,
        naming: Naming,
        name: str,
        path: str,
        resource: dict[str, Any],
        around: tuple[str, ...] = (),
    ) -> dict[str, Any]:
        """A group, with the definition of its members; `around` are the variables of outer groups.

        The members of an outer group are called by their numbers, for which its variable stands.
        """
        inner = members_of(resource[sheet.key("type")])
        key = sheet.key("properties")
        properties = resource.get(key)
        definition = properties.get(inner) if isinstance(properties, dict) else None
        if (
            inner is None
            or not isinstance(properties, dict)
            or not isinstance(definition, dict)
            or "type" not in definition
        ):
            return resource
        written = dict(properties)
        variable = _variable(resource[sheet.key("type")], properties)
        if any(one in variable for one in around):
            # The outer group replaces it everywhere, so that the inner one may have any other.
            variable = written[_VARIABLE] = f"%member-{len(around)}%"
            if any(one in variable for one in around) or variable in repr(properties):
                return resource
        inside, kind = sheet.in_group(), definition["type"]
        if isinstance(kind, str) and members_of(kind) is not None:
            outer = (*around, variable)
            made = (
                self._group(inside, naming, name, path, definition, outer)
                if variable
                else definition
            )
        else:
            at = "/".join((name, *around))
            member = naming.grouped(at, variable, self._numbering(path))
            below = dict(naming.below_group(at, variable))
            made = self._definition(inside, definition, member, below, path)
        return {**resource, key: {**written, inner: made}}

    def _numbering(self, path: str) -> Numbering:
        return self.numbering.get(path, Numbering.INDEX)

    def _definition(
        self,
        sheet: OutputTemplate,
        definition: dict[str, Any],
        member: ServerName,
        below: dict[str, Name],
        path: str,
    ) -> dict[str, Any]:
        """The definition of a server or nested stack with member names added.

        `path` is that of the resource which it is, or whose members it defines.
        """
        kind, key = definition[sheet.key("type")], sheet.key("properties")
        if kind in (*SERVER, *INSTANCE):
            return self._server(sheet, definition, member, path)
        if is_nested(kind):
            file = posixpath.normpath(posixpath.join(posixpath.dirname(sheet.name), kind))
            if file in self.templates:
                passed: dict[str, object] = {**below}
                if self.decided.binding is Binding.FLAVORS:
                    passed[FLAVORS] = (
                        {"get_param": FLAVORS} if sheet.file else dict(self.decided.flavors)
                    )
                return {**definition, key: {**(definition.get(key) or {}), **passed}}
        return definition

    def _server(
        self, sheet: OutputTemplate, definition: dict[str, Any], member: ServerName, path: str
    ) -> dict[str, Any]:
        """The definition at a path of the template with its member's name, bound."""
        key, kind = sheet.key("properties"), definition[sheet.key("type")]
        properties = definition.get(key) or {}
        if is_computed(properties):
            return definition
        written = dict(properties)
        if kind in SERVER:
            metadata = properties.get("metadata") or {}
            if isinstance(metadata, dict) and not is_computed(metadata):
                known = server_metadata(self.decided.ensemble, "")
                written["metadata"] = {
                    **metadata,
                    **known,
                    "moorage:member": joined(*member.member),
                }
        result = {**definition, key: written}
        flavor = "flavor" if kind in SERVER else "InstanceType"
        before = _decision_of(sheet, definition)
        if self.decided.binding is Binding.HINTS:
            reference = joined(f"{self.decided.ensemble}/", *member.member)
            if _add_hint(sheet, written, reference, kind):
                self.bound.add(path)
        elif self.decided.binding is Binding.FLAVORS and self._has_flavor(member):
            self.bound.add(path)
            result = with_decided(sheet, result, {FLAVOR: before.get(FLAVOR, written.get(flavor))})
            written[flavor] = self._ticket_flavor(member)
        if self.decided.binding is not Binding.FLAVORS and FLAVOR in before:
            written[flavor] = before[FLAVOR]
        return result

    def _has_flavor(self, member: ServerName) -> bool:
        """Whether one flavor can be written: not in a group whose number is in the role's name."""
        return not member.several and (
            not isinstance(member.role, str) or member.role in self.decided.flavors
        )

    def _ticket_flavor(self, member: ServerName) -> object:
        if isinstance(member.role, str):
            return self.decided.flavors[member.role]
        return {"get_param": [FLAVORS, member.role]}


def _decision_of(sheet: OutputTemplate, resource: dict[str, Any]) -> Mapping[str, Any]:
    """What is known of a resource's decision, where the template was written before."""
    found: Any = resource
    for key in (sheet.key("metadata"), KEY, DECIDED):
        found = found.get(key) if isinstance(found, dict) else None
    return found if isinstance(found, dict) else {}


def _path(sheet: OutputTemplate, name: str) -> str:
    """The path of a resource, as errors have it."""
    return ".".join(filter(None, (sheet.file, sheet.key("resources"), name)))


def _add_hint(
    sheet: OutputTemplate, properties: dict[str, Any], reference: Name, kind: str
) -> bool:
    """Add the hint by which the filter in nova-api finds the place; whether that can be done.

    Hints that a function computes are merged with it, where the template's version can do that.
    """
    if kind in SERVER:
        hints = properties.get("scheduler_hints") or {}
        added = {KEY: reference}
        if isinstance(hints, dict) and not is_computed(hints):
            properties["scheduler_hints"] = {**hints, **added}
            return True
        if "map_merge" not in VERSIONS[str(sheet.document[HOT])].functions:
            return False
        merged = hints.get("map_merge") if isinstance(hints, dict) else None
        if isinstance(merged, list) and isinstance(merged[-1], dict) and KEY in merged[-1]:
            hints = {"map_merge": merged[:-1]} if len(merged) > _PAIR else merged[0]
        properties["scheduler_hints"] = {"map_merge": [hints, added]}
        return True
    listed = properties.get("NovaSchedulerHints") or []
    if not isinstance(listed, list):
        return False
    kept = [one for one in listed if not (isinstance(one, dict) and one.get("Key") == KEY)]
    properties["NovaSchedulerHints"] = [*kept, {"Key": KEY, "Value": reference}]
    return True


_PAIR: Final = 2


def _configured(sheet: OutputTemplate, group: dict[str, Any], name: str) -> bool:
    """Whether a resource is a group of instances of the launch configuration of that name."""
    properties = group.get(sheet.key("properties"))
    if group.get(sheet.key("type")) not in CONFIGURED or not isinstance(properties, dict):
        return False
    return properties.get("LaunchConfigurationName") in (
        {"Ref": name},
        {"get_resource": name},
    )


def _variable(kind: str, properties: Mapping[str, Any]) -> str:
    """A group's index variable; empty where it does not number its members."""
    if kind not in NUMBERED:
        return ""
    variable = properties.get(_VARIABLE) or INDEX
    return variable if isinstance(variable, str) else ""


def with_decided(
    sheet: OutputTemplate, resource: dict[str, Any], known: Mapping[str, object]
) -> dict[str, Any]:
    """A resource with more known of its decision."""
    key = sheet.key("metadata")
    metadata = dict(resource.get(key) or {})
    annotation = metadata.get(KEY) or {}
    metadata[KEY] = {**annotation, DECIDED: {**(annotation.get(DECIDED) or {}), **known}}
    return {**resource, key: metadata}
