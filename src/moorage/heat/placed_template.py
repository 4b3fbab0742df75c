"""Writes a template with its decision as plain HOT that needs no environment.

What is added:

- `metadata: {moorage: {decided: …}}` on every resource of the root template that has members:
  ensemble, decision and each member's place, by its opaque labels. Heat stores it and passes it
  over.
- What makes plain Heat take the held places (`Binding`): a scheduler hint `moorage` on each server,
  by which the filter in nova-api finds the place, or the flavor of the role's tickets. The flavor
  that was there is kept in the metadata.
- Nova metadata `moorage:ensemble` and `moorage:member` on servers, so that the server itself says
  which member it is. Not tags: Nova allows no slash in them. Left alone where the
  template computes the whole mapping by a function.
- What the environment and the call said (see `standalone`).

Nested templates are written too, under their names. Everything else stays as it was, keys in
their order; comments and anchors do not survive.

In the root template a name is plain text, with the index variable inside a group. A nested template
serves many stacks: there the name is computed from parameters that the parent template passes, by
the rules of `paths`.
"""

from __future__ import annotations

import posixpath
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

import yaml

from moorage.domain.ensembles import server_metadata
from moorage.heat.annotation import DECIDED, FLAVOR, KEY
from moorage.heat.file_names import is_nested
from moorage.heat.member_names import (
    AT_ROOT,
    FLAVORS,
    NESTED,
    PASSED_PARAMETERS,
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
from moorage.heat.standalone_template import OutputTemplate, is_computed, resources, standalone
from moorage.heat.template import read_template

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from moorage.domain.ensembles import MemberName
    from moorage.heat.compile import CompiledTemplate, Source
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
class EmittedTemplate:
    """The root template as text, and its files by name relative to it."""

    template: str
    files: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class PreparedTemplates:
    """Standalone templates that are ready for the decision; writing them cannot fail."""

    root: OutputTemplate
    nested: tuple[OutputTemplate, ...]
    files: Mapping[str, str]
    notes: tuple[str, ...]
    """Notes for users of the templates."""
    members: Mapping[str, tuple[MemberName, ...]]
    """Resource of the root template -> the members at and below it."""
    numbering: Mapping[str, Numbering]
    """Path of a definition -> how its members are named, if not by their index."""

    def with_decision(self, decided: TemplateDecision) -> EmittedTemplate:
        """Write the templates with a decision."""
        named = [one for one in self.nested if not one.is_cfn]
        writing = _DecisionWriter(decided, {one.name for one in named}, self.numbering)
        root = writing.write(self.root, AT_ROOT)
        key = self.root.key("resources")
        for name, members in self.members.items():
            root[key][name] = _with_annotation(self.root, root[key][name], members, decided)
        # The functions of CloudFormation cannot compute names: servers in such files are not bound.
        files = {one.name: _yaml_text(one.document) for one in self.nested if one.is_cfn}
        files |= {
            one.name: _yaml_text(
                _with_passed_parameters(writing.write(one, NESTED), decided.binding)
            )
            for one in named
        }
        return EmittedTemplate(_yaml_text(root), {**self.files, **files})


def prepare(
    source: Source, compiled: CompiledTemplate, binding: Binding = Binding.HINTS
) -> PreparedTemplates:
    """Prepare the templates before the decision is made, so that errors are found first.

    Raises:
        InvalidDescription: a function computes a mapping that must be extended, or servers cannot
            be bound so; names the place.
    """
    _check_binding(compiled, binding)
    alone = standalone(source, compiled.environment)
    root, *nested = alone.templates
    inside: dict[str, list[MemberName]] = {}
    for member, key in compiled.keys.items():
        inside.setdefault(key.partition("/")[0], []).append(member)
    for name in inside:
        _refuse_computed(source, root, name)
    return PreparedTemplates(
        root=root,
        nested=tuple(nested),
        files=alone.files,
        notes=alone.notes,
        members={name: tuple(sorted(members)) for name, members in inside.items()},
        numbering={
            **dict.fromkeys(compiled.unnumbered, Numbering.ANY),
            **dict.fromkeys(compiled.separate, Numbering.SEPARATE),
        },
    )


def _check_binding(compiled: CompiledTemplate, binding: Binding) -> None:
    if binding is not Binding.NONE and compiled.nameless is not None:
        raise compiled.nameless.invalid(
            "these servers are in a group inside a member of an autoscaling group, whose number"
            " Heat does not tell, so they cannot be bound to their places"
        )
    if binding is Binding.FLAVORS:
        for path, node in compiled.locations.items():
            if node.path in compiled.separate and path.startswith("members"):
                raise node.invalid(
                    "the members of this group are not alike, so no one flavor can be written;"
                    " bind by hints"
                )


def _refuse_computed(source: Source, root: OutputTemplate, name: str) -> None:
    """Refuse metadata computed by a function: the annotation cannot be added to it."""
    metadata = dict(resources(root))[name].get(root.key("metadata"))
    annotation = metadata.get(KEY) if isinstance(metadata, dict) else None
    if is_computed(metadata) or is_computed(annotation):
        raise (
            read_template(source.template)
            .resources[name]
            .invalid(
                "the metadata is computed by a function, so the decision cannot be written into it"
            )
        )


def _with_annotation(
    sheet: OutputTemplate,
    resource: dict[str, Any],
    members: tuple[MemberName, ...],
    decided: TemplateDecision,
) -> dict[str, Any]:
    places = {str(member): dict(decided.places[member]) for member in members}
    known = {"ensemble": decided.ensemble, "decision": decided.decision, "places": places}
    return _decided(sheet, resource, known)


def _decided(
    sheet: OutputTemplate, resource: dict[str, Any], known: Mapping[str, object]
) -> dict[str, Any]:
    """A resource with more known of its decision."""
    key = sheet.key("metadata")
    metadata = dict(resource.get(key) or {})
    annotation = metadata.get(KEY) or {}
    metadata[KEY] = {**annotation, DECIDED: {**(annotation.get(DECIDED) or {}), **known}}
    return {**resource, key: metadata}


def _with_passed_parameters(document: dict[str, Any], binding: Binding) -> dict[str, Any]:
    """A nested template with declarations of the passed parameters, with defaults."""
    passed: dict[str, tuple[str, str, object]] = {**PASSED_PARAMETERS}
    if binding is Binding.FLAVORS:
        passed[FLAVORS] = ("json", "Flavors of the roles' tickets; written by Moorage.", {})
    handed = {
        name: {"type": kind, "description": what, "default": default}
        for name, (kind, what, default) in passed.items()
    }
    declared = {**(document.get("parameters") or {}), **handed}
    if "parameters" in document:
        return {**document, "parameters": declared}
    before = ("heat_template_version", "description")
    head = {key: document[key] for key in before if key in document}
    return {**head, "parameters": declared, **document}


@dataclass(frozen=True, slots=True)
class _DecisionWriter:
    """Writes a decision into servers, and what servers need of it into whatever makes them."""

    decided: TemplateDecision
    templates: Collection[str]
    """Nested templates that declare the passed-down parameters, by their output names."""
    numbering: Mapping[str, Numbering]

    def write(self, sheet: OutputTemplate, naming: Naming) -> dict[str, Any]:
        """The template with member names in its servers."""
        found = dict(resources(sheet))
        named = {
            name: self._resource(sheet, naming, name, resource, found)
            for name, resource in found.items()
        }
        return {**sheet.document, sheet.key("resources"): named} if named else dict(sheet.document)

    def _resource(
        self,
        sheet: OutputTemplate,
        naming: Naming,
        name: str,
        resource: dict[str, Any],
        all_resources: Mapping[str, dict[str, Any]],
    ) -> dict[str, Any]:
        kind = resource[sheet.key("type")]
        if not isinstance(kind, str):
            return resource
        if kind in CONFIGURATION:
            groups = [one for one, it in all_resources.items() if _configured(sheet, it, name)]
            if len(groups) != 1:
                return resource
            member = naming.grouped(groups[0], "", self._numbering(sheet, groups[0]))
            return self._server(sheet, resource, member, kind)
        inner = members_of(kind)
        if inner is None:
            member = naming.server(name, self._numbering(sheet, name))
            return self._definition(sheet, resource, member, naming.below(name))
        return self._group(sheet, naming, name, resource, inner)

    def _group(
        self,
        sheet: OutputTemplate,
        naming: Naming,
        name: str,
        resource: dict[str, Any],
        inner: str,
    ) -> dict[str, Any]:
        """A group, with the definition of its members in property `inner`."""
        key = sheet.key("properties")
        properties = resource.get(key)
        definition = properties.get(inner) if isinstance(properties, dict) else None
        if (
            not isinstance(properties, dict)
            or not isinstance(definition, dict)
            or "type" not in definition
        ):
            return resource
        variable = _variable(resource[sheet.key("type")], properties)
        member = naming.grouped(name, variable, self._numbering(sheet, name))
        made = self._definition(sheet, definition, member, dict(naming.below_group(name, variable)))
        return {**resource, key: {**properties, inner: made}}

    def _numbering(self, sheet: OutputTemplate, name: str) -> Numbering:
        path = ".".join(filter(None, (sheet.file, sheet.key("resources"), name)))
        return self.numbering.get(path, Numbering.INDEX)

    def _definition(
        self,
        sheet: OutputTemplate,
        definition: dict[str, Any],
        member: ServerName,
        below: dict[str, Name],
    ) -> dict[str, Any]:
        """The definition of a server or nested stack with member names added."""
        kind, key = definition[sheet.key("type")], sheet.key("properties")
        if kind in (*SERVER, *INSTANCE):
            return self._server(sheet, definition, member, kind)
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
        self, sheet: OutputTemplate, definition: dict[str, Any], member: ServerName, kind: str
    ) -> dict[str, Any]:
        key = sheet.key("properties")
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
        if self.decided.binding is Binding.HINTS:
            _add_hint(written, joined(f"{self.decided.ensemble}/", *member.member), kind)
        result = {**definition, key: written}
        if self.decided.binding is Binding.FLAVORS:
            flavor = "flavor" if kind in SERVER else "InstanceType"
            result = _decided(sheet, result, {FLAVOR: written.get(flavor)})
            written[flavor] = self._ticket_flavor(member)
        return result

    def _ticket_flavor(self, member: ServerName) -> object:
        if isinstance(member.role, str):
            return self.decided.flavors[member.role]
        return {"get_param": [FLAVORS, member.role]}


def _add_hint(properties: dict[str, Any], reference: Name, kind: str) -> None:
    """Add the hint by which the filter in nova-api finds the place; left alone if computed."""
    if kind in SERVER:
        hints = properties.get("scheduler_hints") or {}
        if isinstance(hints, dict) and not is_computed(hints):
            properties["scheduler_hints"] = {**hints, "moorage": reference}
        return
    listed = properties.get("NovaSchedulerHints") or []
    if isinstance(listed, list):
        kept = [one for one in listed if not (isinstance(one, dict) and one.get("Key") == KEY)]
        properties["NovaSchedulerHints"] = [*kept, {"Key": KEY, "Value": reference}]


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


# --- YAML -----------------------------------------------------------------------------------

_WIDTH: Final = 100
_DUMPER: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)


def _yaml_text(document: dict[str, Any]) -> str:
    """A template as YAML: keys in their order, multi-line texts as blocks."""
    return str(
        yaml.dump(document, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=_WIDTH)
    )


class _Dumper(_DUMPER):  # type: ignore[misc] # the C dumper has no types
    """A safe dumper that writes multi-line texts as blocks, and no anchors."""

    def ignore_aliases(self, data: object) -> bool:  # noqa: ARG002 - every value is written out
        return True


def _block(dumper: Any, text: str) -> Any:  # noqa: ANN401 - as above
    style = "|" if "\n" in text else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _block)
