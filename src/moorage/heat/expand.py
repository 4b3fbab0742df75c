"""Expands a template, with nested ones and groups, into the servers and policies in it.

The whole tree of stacks is walked before anything is decided: a decision per stack level is
how others lost the joint view. Bounds hold for the tree as a whole.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from moorage.heat import typed_yaml
from moorage.heat.annotation import DECIDED, KEY
from moorage.heat.expanded_template import Note, Resource
from moorage.heat.functions import Scope, resolve
from moorage.heat.parameters import pseudo, read_values
from moorage.heat.resources import registry
from moorage.heat.template import is_nested, read_template
from moorage.heat.work_limit import Work

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from moorage.heat.environment import Environment
    from moorage.heat.expanded_template import Found
    from moorage.heat.paths import Path
    from moorage.heat.template import Template
    from moorage.heat.yaml_tree import Marked

MAX_DEPTH: Final = 5
"""Nested stacks below the root, as in Heat's own default."""
PER_RESOURCE: Final = 20
PER_STACK: Final = 60
"""What a resource and a stack cost beside their values, measured in values."""


@dataclass(frozen=True, slots=True)
class World:
    """What every stack of the tree shares."""

    environment: Environment
    files: Mapping[str, str]
    """Nested templates and other files by name, relative to the root template."""
    stack_name: str
    templates: dict[str, Template] = field(default_factory=dict)
    """Those read already."""
    work: Work = field(default_factory=Work)


@dataclass(frozen=True, slots=True)
class Stack:
    """One template with its parameters' values, at its place in the tree."""

    path: Path
    template: Template
    given: Mapping[str, Marked]
    world: World
    depth: int = 0

    def expand(self) -> Iterator[Found]:
        """All items in this stack and below, in the template's order.

        Raises:
            InvalidDescription: whatever cannot be understood, with path and line.
        """
        values = read_values(
            self.template.parameters,
            self.given,
            self.world.environment.defaults,
            self.world.work,
        )
        yield from (Note(text) for text in values.notes)
        scope = Scope(
            stack=self.path,
            version=self.template.version,
            parameters={**pseudo(self.world.stack_name, self.template.file), **values.by_name},
            resources=self.template.resources,
            file=self.template.file,
            conditions=self.template.conditions,
            files=self.world.files,
            work=self.world.work,
        )
        conditions = scope.judge()
        for node in self.template.conditions.values():
            self.world.work.spend(node.size, node)
        conditions.check()
        for name, node in self.template.resources.items():
            self.world.work.spend(node.size + PER_RESOURCE, node)
            fields = typed_yaml.mapping(node)
            if "condition" in fields and not conditions.holds(fields["condition"]):
                continue
            definition = {
                key: resolve(one, scope) if key in {"properties", "metadata"} else one
                for key, one in fields.items()
            }
            yield from self._resource(self.path / name, node, definition)

    def member(
        self, group: Resource, number: int, definition: Mapping[str, Marked]
    ) -> Iterator[Found]:
        """A group's member; see `resources.Nested`."""
        size = sum(one.size for one in definition.values())
        self.world.work.spend(size + PER_RESOURCE, group.node)
        return self._resource(group.path.member(number), group.node, definition)

    def _resource(
        self, path: Path, node: Marked, definition: Mapping[str, Marked]
    ) -> Iterator[Found]:
        type_node = definition["type"]
        type_name = self.world.environment.stands_for(type_node, inside=self.template.file)
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
        self, path: Path, node: Marked, file: str, properties: Mapping[str, Marked]
    ) -> Iterator[Found]:
        self.world.work.spend(PER_STACK, node)
        if self.depth >= MAX_DEPTH:
            raise node.invalid(f"nested templates more than {MAX_DEPTH} deep")
        if file not in self.world.templates:
            text = self.world.files.get(file)
            if text is None:
                raise node.invalid(f"the nested template {file} is missing among the files")
            self.world.templates[file] = read_template(text, file=file)
        nested = Stack(
            path=path,
            template=self.world.templates[file],
            given=properties,
            world=self.world,
            depth=self.depth + 1,
        )
        yield from nested.expand()


def _fields(node: Marked | None) -> Mapping[str, Marked]:
    return {} if node is None or node.value is None else typed_yaml.mapping(node)
