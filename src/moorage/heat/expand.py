"""Expands a template, with nested ones and groups, into the servers and policies in it.

The whole tree of stacks is expanded before anything is decided, so that all servers are placed
jointly. Limits apply to the whole tree.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from moorage.heat import typed_yaml
from moorage.heat.annotation import DECIDED, KEY
from moorage.heat.expanded_template import Note, Resource
from moorage.heat.functions import Scope, resolve
from moorage.heat.parameters import pseudo_parameters, read_values
from moorage.heat.resources import registry
from moorage.heat.template import is_nested, read_template
from moorage.heat.work_limit import Work

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from moorage.heat.environment import Environment
    from moorage.heat.expanded_template import ExpandedItem
    from moorage.heat.paths import Path
    from moorage.heat.template import Template
    from moorage.heat.yaml_tree import YamlNode

MAX_DEPTH: Final = 5
"""Nested stacks below the root, as in Heat's own default."""
PER_RESOURCE: Final = 20
PER_STACK: Final = 60
"""Work that a resource and a stack count besides their values, in values."""


@dataclass(frozen=True, slots=True)
class ExpansionContext:
    """The context that all stacks of the tree share."""

    environment: Environment
    files: Mapping[str, str]
    """Nested templates and other files by name, relative to the root template."""
    stack_name: str
    templates: dict[str, Template] = field(default_factory=dict)
    """Cache of the nested templates that have been read."""
    work: Work = field(default_factory=Work)


@dataclass(frozen=True, slots=True)
class Stack:
    """One stack of the tree: a template with the values of its parameters."""

    path: Path
    template: Template
    parameters: Mapping[str, YamlNode]
    context: ExpansionContext
    depth: int = 0

    def expand(self) -> Iterator[ExpandedItem]:
        """All items in this stack and below, in the template's order.

        Raises:
            InvalidDescription: something is invalid or unsupported; with path and line.
        """
        values = read_values(
            self.template.parameters,
            self.parameters,
            self.context.environment.defaults,
            self.context.work,
        )
        yield from (Note(text) for text in values.notes)
        scope = Scope(
            stack=self.path,
            version=self.template.version,
            parameters={
                **pseudo_parameters(self.context.stack_name, self.template.file),
                **values.by_name,
            },
            resources=self.template.resources,
            file=self.template.file,
            conditions=self.template.conditions,
            files=self.context.files,
            work=self.context.work,
        )
        conditions = scope.evaluator()
        for node in self.template.conditions.values():
            self.context.work.spend(node.size, node)
        conditions.check()
        for name, node in self.template.resources.items():
            self.context.work.spend(node.size + PER_RESOURCE, node)
            fields = typed_yaml.mapping(node)
            if "condition" in fields and not conditions.holds(fields["condition"]):
                continue
            definition = {
                key: resolve(one, scope) if key in {"properties", "metadata"} else one
                for key, one in fields.items()
            }
            yield from self._resource(self.path / name, node, definition)

    def member(
        self, group: Resource, number: int, definition: Mapping[str, YamlNode]
    ) -> Iterator[ExpandedItem]:
        """A group's member; see `resources.MemberExpander`."""
        size = sum(one.size for one in definition.values())
        self.context.work.spend(size + PER_RESOURCE, group.node)
        return self._resource(group.path.member(number), group.node, definition)

    def _resource(
        self, path: Path, node: YamlNode, definition: Mapping[str, YamlNode]
    ) -> Iterator[ExpandedItem]:
        type_node = definition["type"]
        type_name = self.context.environment.target_type(type_node, inside=self.template.file)
        properties = _fields(definition.get("properties"))
        metadata = _fields(definition.get("metadata"))
        if is_nested(type_name):
            if KEY in metadata and typed_yaml.mapping(metadata[KEY]).keys() - {DECIDED}:
                raise metadata[KEY].invalid(
                    "write policies inside the nested template, or on a server group here"
                )
            yield from self._nested(path, type_node, type_name, properties)
            return
        kind = registry().get(type_name)
        if kind is None:
            known = ", ".join(sorted(registry()))
            raise type_node.invalid(
                f"resources of type {type_name} are not supported; known are {known}"
            )
        resource = Resource(self.path, path, type_name, node, properties, metadata)
        yield from kind.expand(resource, self)

    def _nested(
        self, path: Path, node: YamlNode, file: str, properties: Mapping[str, YamlNode]
    ) -> Iterator[ExpandedItem]:
        self.context.work.spend(PER_STACK, node)
        if self.depth >= MAX_DEPTH:
            raise node.invalid(f"nested templates more than {MAX_DEPTH} deep")
        if file not in self.context.templates:
            text = self.context.files.get(file)
            if text is None:
                raise node.invalid(f"the nested template {file} is missing among the files")
            self.context.templates[file] = read_template(text, file=file)
        nested = Stack(
            path=path,
            template=self.context.templates[file],
            parameters=properties,
            context=self.context,
            depth=self.depth + 1,
        )
        yield from nested.expand()


def _fields(node: YamlNode | None) -> Mapping[str, YamlNode]:
    return {} if node is None or node.value is None else typed_yaml.mapping(node)
