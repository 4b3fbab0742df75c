"""Writes a template with its decision as plain HOT that needs no environment.

What is added:

- `metadata: {moorage: {decided: …}}` on every resource of the root template that has members:
  ensemble, decision and each member's place, by its opaque labels. Heat stores it and passes it
  over.
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
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import yaml

from moorage.domain.ensembles import server_metadata
from moorage.heat import typed_yaml
from moorage.heat.annotation import DECIDED, KEY
from moorage.heat.resources import members_of
from moorage.heat.resources.os_heat_resource_group import INDEX
from moorage.heat.resources.os_heat_resource_group import TYPES as NUMBERED
from moorage.heat.resources.os_nova_server import TYPES as SERVER
from moorage.heat.standalone_template import OutputTemplate, is_computed, resources, standalone
from moorage.heat.template import is_nested
from moorage.heat.yaml_tree import parse

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from moorage.domain.ensembles import MemberName
    from moorage.heat.compile import CompiledTemplate, Source

STACK: Final = "moorage_stack"
ROLE: Final = "moorage_role"
MEMBER_INDEX: Final = "moorage_index"
PASSED_PARAMETERS: Final = {
    STACK: "Path of this stack; written by Moorage.",
    ROLE: "The same without the innermost group's number; written by Moorage.",
    MEMBER_INDEX: "That number; written by Moorage.",
}
"""Parameters passed to a nested template -> their descriptions."""
ANY_INDEX: Final = ""
"""The index of members of a group that does not number them, such as an autoscaling group."""

NamePart: TypeAlias = "str | dict[str, str]"
"""Text, or a `get_param` function."""
Name: TypeAlias = "str | dict[str, list[object]]"
"""Text, or a `list_join` function."""


@dataclass(frozen=True, slots=True)
class Naming:
    """The names in one template; `stack` and `role` are prefixes of the names there."""

    stack: tuple[NamePart, ...]
    role: tuple[NamePart, ...]
    index: NamePart

    def server(self, name: str) -> Name:
        """The member name of a server."""
        return joined(*self.role, f"{name}[", self.index, "]")

    def grouped(self, name: str, variable: str) -> Name:
        """The member name of a group's servers; `variable` stands for the index."""
        return joined(*self.stack, f"{name}[{variable}]")

    def below(self, name: str) -> dict[str, Name]:
        """The parameters passed to a nested stack."""
        return {
            STACK: joined(*self.stack, name),
            ROLE: joined(*self.role, name),
            MEMBER_INDEX: joined(self.index),
        }

    def below_group(self, name: str, variable: str) -> dict[str, Name]:
        """The parameters passed to each nested stack of a group."""
        return {
            STACK: joined(*self.stack, f"{name}/{variable}"),
            ROLE: joined(*self.stack, name),
            MEMBER_INDEX: variable,
        }


def _parameter(name: str) -> dict[str, str]:
    return {"get_param": name}


AT_ROOT: Final = Naming((), (), "0")
NESTED: Final = Naming((_parameter(STACK), "/"), (_parameter(ROLE), "/"), _parameter(MEMBER_INDEX))


def joined(*pieces: NamePart) -> Name:
    """Plain text if all pieces are text, else a function that joins them."""
    merged: list[NamePart] = []
    for piece in pieces:
        if isinstance(piece, str) and merged and isinstance(merged[-1], str):
            merged[-1] += piece
        else:
            merged.append(piece)
    if len(merged) == 1 and isinstance(merged[0], str):
        return merged[0]
    return {"list_join": ["", merged]}


_VARIABLE: Final = "index_var"


@dataclass(frozen=True, slots=True)
class TemplateDecision:
    """A decision for a template; `places` has each member's domain labels by level."""

    ensemble: str
    decision: str
    places: Mapping[MemberName, Mapping[str, str]]


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

    def with_decision(self, decided: TemplateDecision) -> EmittedTemplate:
        """Write the templates with a decision."""
        names = {one.name for one in self.nested}
        writing = _MemberNameWriter(decided.ensemble, names)
        root = writing.write(self.root, AT_ROOT, self.members)
        for name, members in self.members.items():
            root["resources"][name] = _with_annotation(root["resources"][name], members, decided)
        files = {
            one.name: _yaml_text(
                _with_passed_parameters(writing.write(one, NESTED, dict(resources(one))))
            )
            for one in self.nested
        }
        return EmittedTemplate(_yaml_text(root), {**self.files, **files})


def prepare(source: Source, compiled: CompiledTemplate) -> PreparedTemplates:
    """Prepare the templates before the decision is made, so that errors are found first.

    Raises:
        InvalidDescription: a function computes a mapping that must be extended; names the place.
    """
    alone = standalone(source, compiled.templates)
    root, *nested = alone.templates
    inside: dict[str, list[MemberName]] = {}
    for member, key in compiled.keys.items():
        inside.setdefault(key.partition("/")[0], []).append(member)
    for name in inside:
        _refuse_computed(source, name, root.document["resources"][name])
    return PreparedTemplates(
        root=root,
        nested=tuple(nested),
        files=alone.files,
        notes=alone.notes,
        members={name: tuple(sorted(members)) for name, members in inside.items()},
    )


def _refuse_computed(source: Source, name: str, resource: dict[str, Any]) -> None:
    """Refuse metadata computed by a function: the annotation cannot be added to it."""
    metadata = resource.get("metadata")
    annotation = metadata.get(KEY) if isinstance(metadata, dict) else None
    if is_computed(metadata) or is_computed(annotation):
        place = typed_yaml.mapping(typed_yaml.mapping(parse(source.template))["resources"])[name]
        raise place.invalid(
            "the metadata is computed by a function, so the decision cannot be written into it"
        )


def _with_annotation(
    resource: dict[str, Any], members: tuple[MemberName, ...], decided: TemplateDecision
) -> dict[str, Any]:
    metadata = dict(resource.get("metadata") or {})
    metadata[KEY] = {
        **(metadata.get(KEY) or {}),
        DECIDED: {
            "ensemble": decided.ensemble,
            "decision": decided.decision,
            "places": {str(member): dict(decided.places[member]) for member in members},
        },
    }
    return {**resource, "metadata": metadata}


def _with_passed_parameters(document: dict[str, Any]) -> dict[str, Any]:
    """A nested template with declarations of the passed parameters, with defaults."""
    handed = {
        name: {"type": "string", "description": what, "default": ANY_INDEX}
        for name, what in PASSED_PARAMETERS.items()
    }
    declared = {**(document.get("parameters") or {}), **handed}
    if "parameters" in document:
        return {**document, "parameters": declared}
    before = ("heat_template_version", "description")
    head = {key: document[key] for key in before if key in document}
    return {**head, "parameters": declared, **document}


@dataclass(frozen=True, slots=True)
class _MemberNameWriter:
    ensemble: str
    templates: Collection[str]
    """Nested templates that declare the passed-down parameters, by their output names."""

    def write(self, sheet: OutputTemplate, naming: Naming, some: Collection[str]) -> dict[str, Any]:
        """The template with member names in the servers of these resources."""
        named = {
            name: self._resource(sheet, naming, name, resource) if name in some else resource
            for name, resource in resources(sheet)
        }
        return {**sheet.document, "resources": named} if named else dict(sheet.document)

    def _resource(
        self, sheet: OutputTemplate, naming: Naming, name: str, resource: dict[str, Any]
    ) -> dict[str, Any]:
        kind = resource["type"]
        inner = members_of(kind) if isinstance(kind, str) else None
        if inner is None:
            return self._definition(sheet, resource, naming.server(name), naming.below(name))
        properties = resource.get("properties")
        if not isinstance(properties, dict):
            return resource
        definition = properties.get(inner)
        if not isinstance(definition, dict) or "type" not in definition:
            return resource
        variable = _variable(kind, properties)
        made = self._definition(
            sheet,
            definition,
            naming.grouped(name, variable),
            dict(naming.below_group(name, variable)),
        )
        return {**resource, "properties": {**properties, inner: made}}

    def _definition(
        self,
        sheet: OutputTemplate,
        definition: dict[str, Any],
        member: Name,
        below: dict[str, Name],
    ) -> dict[str, Any]:
        """The definition of a server or nested stack with member names added."""
        kind, properties = definition["type"], definition.get("properties") or {}
        if kind in SERVER and isinstance(kind, str):
            metadata = properties.get("metadata") or {}
            if is_computed(properties) or is_computed(metadata) or not isinstance(metadata, dict):
                return definition
            known = {**metadata, **server_metadata(self.ensemble, ""), "moorage:member": member}
            return {**definition, "properties": {**properties, "metadata": known}}
        if is_nested(kind):
            file = posixpath.normpath(posixpath.join(posixpath.dirname(sheet.name), kind))
            if file in self.templates:
                return {**definition, "properties": {**properties, **below}}
        return definition


def _variable(kind: str, properties: Mapping[str, Any]) -> str:
    """A group's index variable; empty where it does not number its members."""
    if kind not in NUMBERED:
        return ANY_INDEX
    variable = properties.get(_VARIABLE) or INDEX
    return variable if isinstance(variable, str) else ANY_INDEX


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
