"""Writes an environment's values and types into the templates, so that they need no environment.

Parameter values from the caller or the environment become defaults, unless they are hidden. Types
are replaced by their targets in the resource_registry. Files keep their names, except that none is
written outside the root template's directory.
"""

from __future__ import annotations

import posixpath
from collections import deque
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from moorage.heat import typed_yaml
from moorage.heat.file_names import find_file, is_nested, is_url, place_in
from moorage.heat.parameters import given_value, is_hidden, to_default
from moorage.heat.remarks import Remarks
from moorage.heat.resources import members_of
from moorage.heat.resources.os_heat_resource_chain import CHAINED
from moorage.heat.resources.os_heat_resource_chain import TYPES as CHAIN
from moorage.heat.template import read_template
from moorage.heat.yaml_tree import parse

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from moorage.heat.compile import Source
    from moorage.heat.environment import Environment
    from moorage.heat.resource_registry import ResourceRegistry
    from moorage.heat.yaml_tree import Plain, YamlNode

FUNCTIONS: Final = frozenset({"get_param", "get_attr", "if", "map_merge", "yaql", "map_replace"})
"""Functions that can yield a mapping."""


@dataclass(frozen=True, slots=True)
class OutputTemplate:
    """One template of the tree in its output form."""

    file: str
    """Its name among the source files; empty for the root template."""
    name: str
    """Its name among the output files."""
    document: dict[str, Any]
    is_cfn: bool = False
    """Whether it has the form of AWS CloudFormation."""

    def in_group(self) -> OutputTemplate:
        """The template for what is in a group's definition, which has the keys of HOT always."""
        return replace(self, is_cfn=False)

    def key(self, name: str) -> str:
        """A section or key of HOT (`properties`) as this template calls it."""
        return name.capitalize() if self.is_cfn else name


@dataclass(frozen=True, slots=True)
class StandaloneTemplates:
    """The root template first, then nested ones; other files by name; and notes for the user."""

    templates: tuple[OutputTemplate, ...]
    files: Mapping[str, str]
    notes: tuple[str, ...]


def standalone(source: Source, environment: Environment) -> StandaloneTemplates:
    """Write the environment into the templates.

    Raises:
        InvalidDescription: something must be written where a function computes the value, or a
            template means different things in different places.
    """
    return _Writer(source, environment).write()


def is_computed(value: object) -> bool:
    """Whether a value is a function that can yield a mapping, which cannot be extended here."""
    return isinstance(value, dict) and len(value) == 1 and next(iter(value)) in FUNCTIONS


def output_names(files: Iterable[str]) -> dict[str, str]:
    """The output name of each file: the same, or without parts that lead outside.

    Of URLs only what they have not in common is kept: `file:///home/pods/pod.yaml` is `pod.yaml`.
    """
    listed = list(files)
    places = [posixpath.dirname(place_in(one)) for one in listed if is_url(one)]
    common = posixpath.commonpath(places) if places else ""
    names: dict[str, str] = {}
    taken: set[str] = set()
    last: dict[str, int] = {}
    for file in sorted(listed, key=lambda one: (_inside(one, common) != one, one)):
        inside = _inside(file, common)
        name = inside
        while name in taken:
            last[inside] = last.get(inside, 1) + 1
            name = f"{last[inside]}-{inside}"
        names[file] = name
        taken.add(name)
    return names


def _inside(file: str, common: str) -> str:
    if is_url(file):
        file = posixpath.relpath(place_in(file), common or ".")
    return "/".join(part for part in file.split("/") if part not in {"", ".", ".."})


class _Writer:
    def __init__(self, source: Source, environment: Environment) -> None:
        self._source = source
        self._environment = environment
        environments = set(source.environment_files)
        self._files = {
            name: text for name, text in source.files.items() if name not in environments
        }
        self._names = {"": "", **output_names(self._files)}
        self._found: list[tuple[str, ResourceRegistry]] = []
        self._notes: list[str] = []

    def write(self) -> StandaloneTemplates:
        """See `standalone`."""
        sheets: dict[str, OutputTemplate] = {}
        done: list[tuple[str, ResourceRegistry]] = []
        waiting = deque([("", self._environment.registry)])
        while waiting:
            one = file, registry = waiting.popleft()
            if one in done:
                continue
            done.append(one)
            sheet = self._sheet(file, registry)
            if sheets.setdefault(file, sheet) != sheet:
                raise parse(self._files[file], name=file).invalid(
                    "the resource_registry gives its types different meanings in different places,"
                    " so it cannot be written without an environment"
                )
            waiting += self._found
            self._found = []
        others = {
            self._names[file]: text for file, text in self._files.items() if file not in sheets
        }
        notes = tuple(dict.fromkeys(self._notes))
        return StandaloneTemplates(tuple(sheets.values()), others, notes)

    def _sheet(self, file: str, registry: ResourceRegistry) -> OutputTemplate:
        text = self._files[file] if file else self._source.template
        marked = parse(text, name=file, remarks=Remarks())
        document: Any = marked.plain()
        template = read_template(text, file=file)
        sheet = OutputTemplate(file, self._names[file], document, template.version.is_cfn)
        parameters, resources = sheet.key("parameters"), sheet.key("resources")
        if document.get(parameters):
            document[parameters] = self._parameters(sheet, template.parameters)
        if document.get(resources):
            document[resources] = {
                name: self._definition(sheet, definition, template.resources[name], registry, name)
                for name, definition in document[resources].items()
            }
        for section in {"resources", "outputs"} & set(document):
            document[section] = self._contents(file, document[section])
        return sheet

    def _parameters(
        self, sheet: OutputTemplate, declared: Mapping[str, YamlNode]
    ) -> dict[str, Any]:
        given = {} if sheet.file else self._environment.parameters
        written = dict(sheet.document[sheet.key("parameters")])
        for name, node in declared.items():
            value = given_value(name, given, self._environment.defaults)
            if value is None:
                continue
            default = to_default(name, node, value)
            if default is None:
                continue
            if is_hidden(node):
                where = f" of {sheet.file}" if sheet.file else ""
                self._notes.append(
                    f"parameter {name}{where} is hidden: its value is not written, give it again"
                )
                continue
            written[name] = {**written[name], sheet.key("default"): default}
        return written

    def _definition(
        self,
        sheet: OutputTemplate,
        definition: dict[str, Any],
        node: YamlNode,
        registry: ResourceRegistry,
        name: str,
    ) -> dict[str, Any]:
        """A resource, or a group's definition of its members; `node` has the keys of HOT."""
        fields = typed_yaml.mapping(node)
        if isinstance(fields["type"].value, dict):
            self._refuse_computed_type(fields["type"])
            return definition
        meaning = registry.meaning(fields["type"], name)
        target = meaning.target
        properties = definition.get(sheet.key("properties"))
        if is_nested(target):
            of = sheet.file if target == fields["type"].value else ""
            target = find_file(target, of=of, files=self._files)
            if target in self._files:
                self._found.append((target, meaning.registry))
                if is_computed(properties):
                    raise fields["properties"].invalid(
                        "a function computes the properties, so nothing can be handed down to the"
                        " nested template"
                    )
        written = {**definition, sheet.key("type"): self._relative(target, sheet.file)}
        if target in CHAIN and isinstance(properties, dict) and CHAINED in properties:
            listed = typed_yaml.mapping(fields["properties"])[CHAINED]
            chained = self._chained(listed, registry.below(name))
            written[sheet.key("properties")] = {**properties, CHAINED: chained}
            return written
        inner = members_of(target)
        if inner is not None and isinstance(properties, dict):
            if not _is_definition(properties, inner):
                self._refuse_computed_type(fields["properties"])
                return written
            below = typed_yaml.mapping(fields["properties"])[inner]
            inside = registry.below(name)
            if any(one != "*" and section for one, section in inside.resources.items()):
                raise fields["type"].invalid(
                    "the resource_registry gives types a meaning in single members of this group,"
                    " which cannot be written without an environment"
                )
            made = self._definition(sheet.in_group(), properties[inner], below, inside, "0")
            written[sheet.key("properties")] = {**properties, inner: made}
        return written

    def _chained(self, node: YamlNode, inside: ResourceRegistry) -> Plain:
        """The types of a chain, as the registry maps them."""
        if not isinstance(node.value, list) or any(
            not isinstance(one.value, str) for one in node.value
        ):
            self._refuse_computed_type(node)
            return node.plain()
        targets = [inside.meaning(one, str(number)).target for number, one in enumerate(node.value)]
        for one, target in zip(node.value, targets, strict=True):
            if is_nested(target):
                raise one.invalid(
                    "Heat's client sends no nested template that a chain names, so the chain cannot"
                    " be written without an environment"
                )
        return [*targets]

    def _refuse_computed_type(self, node: YamlNode) -> None:
        if self._environment.registry or any(is_nested(one) for one in self._files):
            raise node.invalid(
                "a function computes the type, so neither what the resource_registry says of it nor"
                " what is handed down to nested templates can be written there"
            )

    def _contents(self, file: str, value: Any) -> Any:  # noqa: ANN401 - YAML is what it is
        """The same node, with the new names of files in `get_file`."""
        match value:
            case {"get_file": str() as written, **more} if not more:
                target = find_file(written, of=file, files=self._files)
                moved = self._names.get(target) not in {None, target} or self._names[file] != file
                return {"get_file": self._relative(target, file) if moved else written}
            case dict():
                return {key: self._contents(file, one) for key, one in value.items()}
            case list():
                return [self._contents(file, one) for one in value]
            case _:
                return value

    def _relative(self, target: str, file: str) -> str:
        """A type or file as the template names it in the output."""
        if target not in self._names and not is_nested(target):
            return target
        name = self._names.get(target, target)
        return posixpath.relpath(name, posixpath.dirname(self._names[file]) or ".")


def _is_definition(properties: Mapping[str, Any], key: str) -> bool:
    found = properties.get(key)
    return isinstance(found, dict) and "type" in found


def resources(sheet: OutputTemplate) -> Iterator[tuple[str, dict[str, Any]]]:
    """The resources of a template by name."""
    yield from (sheet.document.get(sheet.key("resources")) or {}).items()
