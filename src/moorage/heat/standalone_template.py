"""Writes an environment's values and types into the templates, so that they need no environment.

Parameter values from the caller or the environment become defaults, unless they are hidden. Types
are replaced by their targets in the resource_registry. Files keep their names, except that none is
written outside the root template's directory.
"""

from __future__ import annotations

import posixpath
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from moorage.heat import typed_yaml
from moorage.heat.environment import Environment, read_environment
from moorage.heat.parameters import given_value, is_hidden, to_default
from moorage.heat.resources import members_of
from moorage.heat.template import file_name, is_nested
from moorage.heat.yaml_tree import parse, to_node

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from moorage.heat.compile import Source
    from moorage.heat.yaml_tree import YamlNode

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


@dataclass(frozen=True, slots=True)
class StandaloneTemplates:
    """The root template first, then nested ones; other files by name; and notes for the user."""

    templates: tuple[OutputTemplate, ...]
    files: Mapping[str, str]
    notes: tuple[str, ...]


def standalone(source: Source, read: Collection[str]) -> StandaloneTemplates:
    """Write the environment into the templates; `read` are the nested ones found by expansion.

    Raises:
        InvalidDescription: something must be written where a function computes the value.
    """
    return _Writer(source, read).write()


def is_computed(value: object) -> bool:
    """Whether a value is a function that can yield a mapping, which cannot be extended here."""
    return isinstance(value, dict) and len(value) == 1 and next(iter(value)) in FUNCTIONS


def output_names(files: Iterable[str]) -> dict[str, str]:
    """The output name of each file: the same, or without parts that lead outside."""
    names: dict[str, str] = {}
    taken: set[str] = set()
    last: dict[str, int] = {}
    for file in sorted(files, key=lambda one: (_inside(one) != one, one)):
        inside = _inside(file)
        name = inside
        while name in taken:
            last[inside] = last.get(inside, 1) + 1
            name = f"{last[inside]}-{inside}"
        names[file] = name
        taken.add(name)
    return names


def _inside(file: str) -> str:
    return "/".join(part for part in file.split("/") if part not in {"", ".", ".."})


class _Writer:
    def __init__(self, source: Source, read: Collection[str]) -> None:
        self._source = source
        self._read = read
        text = source.environment
        self._environment = Environment() if text is None else read_environment(text)
        self._names = {"": "", **output_names(source.files)}
        self._found: list[str] = []
        self._notes: list[str] = []

    def write(self) -> StandaloneTemplates:
        """See `standalone`."""
        sheets: dict[str, OutputTemplate] = {}
        waiting = deque(["", *self._read])
        while waiting:
            file = waiting.popleft()
            if file not in sheets:
                sheets[file] = self._sheet(file)
                waiting += self._found
                self._found = []
        others = {
            self._names[file]: text
            for file, text in self._source.files.items()
            if file not in sheets
        }
        return StandaloneTemplates(tuple(sheets.values()), others, tuple(self._notes))

    def _sheet(self, file: str) -> OutputTemplate:
        text = self._source.files[file] if file else self._source.template
        marked = parse(text, name=file)
        sections = typed_yaml.mapping(marked)
        document: Any = marked.plain()
        if document.get("parameters"):
            document["parameters"] = self._parameters(file, sections["parameters"], document)
        if document.get("resources"):
            nodes = typed_yaml.mapping(sections["resources"])
            document["resources"] = {
                name: self._definition(file, resource, nodes[name])
                for name, resource in document["resources"].items()
            }
        for section in {"resources", "outputs"} & set(document):
            document[section] = self._contents(file, document[section])
        return OutputTemplate(file, self._names[file], document)

    def _parameters(self, file: str, node: YamlNode, document: dict[str, Any]) -> dict[str, Any]:
        given = {} if file else self._given()
        written = dict(document["parameters"])
        for name, declared in typed_yaml.mapping(node).items():
            value = given_value(name, given, self._environment.defaults)
            if value is None:
                continue
            default = to_default(name, declared, value)
            if default is None:
                continue
            if is_hidden(declared):
                where = f" of {file}" if file else ""
                self._notes.append(
                    f"parameter {name}{where} is hidden: its value is not written, give it again"
                )
                continue
            written[name] = {**written[name], "default": default}
        return written

    def _given(self) -> Mapping[str, YamlNode]:
        called = {
            name: to_node(value, line=1, path=f"parameters.{name}")
            for name, value in self._source.parameters.items()
        }
        return {**self._environment.parameters, **called}

    def _definition(self, file: str, definition: dict[str, Any], node: YamlNode) -> dict[str, Any]:
        """A resource, or a group's definition of its members."""
        fields = typed_yaml.mapping(node)
        if isinstance(fields["type"].value, dict):
            self._refuse_computed_type(fields["type"])
            return definition
        meaning = self._environment.target_type(fields["type"], inside=file)
        if is_nested(meaning) and meaning in self._names:
            self._found.append(meaning)
            if is_computed(definition.get("properties")):
                raise fields["properties"].invalid(
                    "a function computes the properties, so nothing can be handed down to the"
                    " nested template"
                )
        written = {**definition, "type": self._relative(meaning, file)}
        inner = members_of(meaning)
        properties = definition.get("properties")
        if inner is not None and isinstance(properties, dict):
            if not _is_definition(properties, inner):
                self._refuse_computed_type(fields["properties"])
                return written
            below = typed_yaml.mapping(fields["properties"])[inner]
            written["properties"] = {
                **properties,
                inner: self._definition(file, properties[inner], below),
            }
        return written

    def _refuse_computed_type(self, node: YamlNode) -> None:
        if self._environment.types or self._read:
            raise node.invalid(
                "a function computes the type, so neither what the resource_registry says of it nor"
                " what is handed down to nested templates can be written there"
            )

    def _contents(self, file: str, value: Any) -> Any:  # noqa: ANN401 - YAML is what it is
        """The same node, with the new names of files in `get_file`."""
        match value:
            case {"get_file": str() as written, **more} if not more:
                target = file_name(written, of=file)
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
    yield from (sheet.document.get("resources") or {}).items()
