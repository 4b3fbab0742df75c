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

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import yaml

from moorage.domain.words import first_of
from moorage.heat.annotation import KEY
from moorage.heat.member_names import (
    AT_ROOT,
    FLAVORS,
    NESTED,
    PASSED_PARAMETERS,
    Numbering,
)
from moorage.heat.standalone_template import OutputTemplate, is_computed, resources, standalone
from moorage.heat.template import read_template
from moorage.heat.template_writer import Binding, DecisionWriter, with_decided

if TYPE_CHECKING:
    from collections.abc import Mapping

    from moorage.domain.member_names import MemberName
    from moorage.heat.compile import CompiledTemplate, Source
    from moorage.heat.template_writer import TemplateDecision


@dataclass(frozen=True, slots=True)
class EmittedTemplate:
    """The root template as text, and its files by name relative to it."""

    template: str
    files: Mapping[str, str]
    notes: tuple[str, ...] = ()
    """Roles whose servers could not be bound to their places."""


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
    definitions: Mapping[str, str]
    """Role -> the path of the definition of its servers."""
    numbering: Mapping[str, Numbering]
    """Path of a definition -> how its members are named, if not by their index."""

    def with_decision(self, decided: TemplateDecision) -> EmittedTemplate:
        """Write the templates with a decision."""
        named = [one for one in self.nested if not one.is_cfn]
        writing = DecisionWriter(decided, {one.name for one in named}, self.numbering)
        root = writing.write(self.root, AT_ROOT, self.members)
        key = self.root.key("resources")
        for name, members in self.members.items():
            root[key][name] = _with_annotation(self.root, root[key][name], members, decided)
        # The functions of CloudFormation cannot compute names: servers in such files are not bound.
        files = {one.name: _yaml_text(one.document) for one in self.nested if one.is_cfn}
        files |= {
            one.name: _yaml_text(
                _with_passed_parameters(
                    writing.write(one, NESTED, dict(resources(one))), decided.binding
                )
            )
            for one in named
        }
        definitions = reversed(list(self.definitions.items()))
        unbound = [role for role, path in definitions if path not in writing.bound]
        notes = () if decided.binding is Binding.NONE or not unbound else (_note(unbound),)
        return EmittedTemplate(_yaml_text(root), {**self.files, **files}, notes)


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
    written = dict(resources(root))
    for name in inside:
        _refuse_computed(source, written[name].get(root.key("metadata")), name)
    return PreparedTemplates(
        root=root,
        nested=tuple(nested),
        files=alone.files,
        notes=alone.notes,
        members={name: tuple(sorted(members)) for name, members in inside.items()},
        definitions=compiled.definitions,
        numbering={
            **dict.fromkeys(compiled.unnumbered, Numbering.ANY),
            **dict.fromkeys(compiled.separate, Numbering.SEPARATE),
        },
    )


def _note(roles: list[str]) -> str:
    told = ", ".join(first_of(roles, _TOLD))
    return (
        f"not bound: {told}: what makes these servers cannot be written so, and plain Heat creates"
        " them anywhere"
    )


_TOLD: Final = 10


def _check_binding(compiled: CompiledTemplate, binding: Binding) -> None:
    if binding is not Binding.NONE and compiled.nameless is not None:
        raise compiled.nameless.invalid(
            "these servers are in a group inside a member of an autoscaling group, whose number"
            " Heat does not tell, so they cannot be bound to their places"
        )
    if binding is Binding.FLAVORS:
        for role, path in compiled.definitions.items():
            if path in compiled.separate:
                node = compiled.node_of(role)
                raise node.invalid(
                    "the members of this group are not alike, so no one flavor can be written;"
                    " bind by hints"
                )


def _refuse_computed(source: Source, metadata: object, name: str) -> None:
    """Refuse a resource's metadata computed by a function: the annotation cannot be added to it."""
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
    return with_decided(sheet, resource, known)


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
