"""Expands a template, with nested ones and groups, into the servers and policies in it.

The whole tree of stacks is expanded before anything is decided, so that all servers are placed
jointly. Limits apply to the whole tree.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from moorage.heat import typed_yaml
from moorage.heat.annotation import DECIDED, KEY
from moorage.heat.deferred_values import DeferredValue
from moorage.heat.expanded_template import Note, Resource, UnplacedResource
from moorage.heat.file_names import find_file, is_nested
from moorage.heat.functions import conditions_of, resolve
from moorage.heat.parameters import as_nested_parameters, pseudo_parameters, read_values
from moorage.heat.remarks import Remarks
from moorage.heat.resources import resource_type
from moorage.heat.scope import Scope
from moorage.heat.template import read_template
from moorage.heat.work_limit import Work

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from moorage.heat.conditions import Conditions
    from moorage.heat.expanded_template import ExpandedItem
    from moorage.heat.paths import Path
    from moorage.heat.resource_registry import ResourceRegistry
    from moorage.heat.template import Template
    from moorage.heat.yaml_tree import YamlNode

MAX_DEPTH: Final = 5
"""Nested stacks below the root, as in Heat's own default."""
PER_RESOURCE: Final = 20
PER_STACK: Final = 60
PER_REFERENCE: Final = 5
"""Work that a resource, a stack and a resource that another looks at count besides values."""
_PER_READ_VALUE: Final = 5
"""Work of reading a value of a template that is the text of a property."""


@dataclass(frozen=True, slots=True)
class ExpansionContext:
    """The context that all stacks of the tree share."""

    defaults: Mapping[str, YamlNode]
    """The environment's `parameter_defaults`."""
    files: Mapping[str, str]
    """Nested templates and other files by name: relative to the root template, or URLs."""
    stack_name: str
    may_lack: bool = False
    """Whether the root stack's parameters may lack values."""
    removed: Mapping[str, frozenset[str]] = field(default_factory=dict)
    members: Mapping[str, str] = field(default_factory=dict)
    """See `compile.Source`."""
    templates: dict[str, Template] = field(default_factory=dict)
    """Cache of the nested templates that have been read."""
    texts: dict[tuple[str, str], Template] = field(default_factory=dict)
    """Cache of the templates in properties: place and text -> what was read."""
    work: Work = field(default_factory=Work)
    remarks: Remarks = field(default_factory=Remarks)
    scopes: dict[Path, tuple[Scope, Conditions]] = field(default_factory=dict)
    """Of the stacks that are being expanded or have been, for references to their resources."""
    below: dict[Path, ResourceRegistry] = field(default_factory=dict)
    """Cache of the registries inside groups."""
    by_type: dict[tuple[Path, str], list[Resource]] = field(default_factory=dict)
    """Cache of the resources of a type in a stack."""
    referred: dict[Path, Resource | None] = field(default_factory=dict)
    """Cache of the resources to which others refer."""


@dataclass(frozen=True, slots=True)
class Stack:
    """One stack of the tree: a template with the values of its parameters."""

    path: Path
    template: Template
    parameters: Mapping[str, YamlNode]
    registry: ResourceRegistry
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
            self.context.defaults,
            self.context.work,
            may_lack=self.context.may_lack and not self.path.steps,
        )
        yield from (Note(text) for text in (*self.template.remarks, *values.notes))
        # Heat gives a nested stack a name of its own, with a random part.
        name = self.context.stack_name if self.depth == 0 else None
        scope = Scope(
            stack=self.path,
            version=self.template.version,
            parameters={
                **pseudo_parameters(name, self.template.file, self.template.version),
                **values.by_name,
            },
            resources=self.template.resources,
            file=self.template.file,
            conditions=self.template.conditions,
            mappings=self.template.mappings,
            files=self.context.files,
            work=self.context.work,
            remarks=self.context.remarks,
        )
        conditions = conditions_of(scope)
        for node in self.template.conditions.values():
            self.context.work.spend(node.size, node)
        conditions.check()
        self.context.scopes[self.path] = scope, conditions
        for name, node in self.template.resources.items():
            self.context.work.spend(node.size + PER_RESOURCE, node)
            definition = _definition(node, scope, conditions)
            if definition is not None:
                place = self._place(name)
                yield from self._resource(self.path / name, node, definition, self.registry, place)

    def member(
        self, group: Resource, number: int, definition: Mapping[str, YamlNode]
    ) -> Iterator[ExpandedItem]:
        """A group's member; see `Expander`."""
        size = sum(one.size for one in definition.values())
        self.context.work.spend(size + PER_RESOURCE, group.node)
        registry = self._below_registry(group)
        return self._resource(
            group.path.member(number), group.node, definition, registry, group.definition
        )

    def stack_in(
        self, resource: Resource, text: YamlNode, parameters: Mapping[str, YamlNode]
    ) -> Iterator[ExpandedItem]:
        """The stack of a template in a property; see `Expander`."""
        source = typed_yaml.text(text)
        self.context.work.spend(PER_STACK + text.size, text)
        template = self.context.texts.get((text.path, source))
        if template is None:
            template = read_template(source, file=text.path)
            self.context.texts[text.path, source] = template
            self.context.work.spend(_PER_READ_VALUE * template.size, text)
        registry = self._below_registry(resource)
        yield from self._below(resource.path, text, template, parameters, registry)

    def removed_names(self, group: Resource) -> Collection[str]:
        """Names that are given to no member any more; see `Expander`."""
        return self.context.removed.get(str(group.path), frozenset())

    def name_of(self, group: Resource, entry: str) -> str:
        """The member that an entry of removal policies names; see `Expander`."""
        path = self.context.members.get(entry, entry)
        return path.removeprefix(f"{group.path}/").partition("/")[0]

    def _below_registry(self, resource: Resource) -> ResourceRegistry:
        """The registry inside a group, or inside a stack whose template is a property."""
        path = resource.path
        if path not in self.context.below:
            self.context.work.spend(resource.registry.cost, resource.node)
            self.context.below[path] = resource.registry.below(path.steps[-1].name)
        return self.context.below[path]

    def resource_at(self, path: Path) -> Resource | None:
        """The resource that another one refers to; see `Expander`."""
        if path not in self.context.referred:
            self.context.referred[path] = self._referred(path)
        return self.context.referred[path]

    def resources_beside(self, path: Path, type_name: str) -> Iterator[Resource]:
        """The resources of a type in the stack of another; see `Expander`."""
        key = path.parent, type_name
        if key not in self.context.by_type:
            scope, _ = self.context.scopes[path.parent]
            every = (
                self.resource_at(path.parent / name)
                for name, node in scope.resources.items()
                if typed_yaml.mapping(node)["type"].value == type_name
            )
            self.context.by_type[key] = [one for one in every if one is not None]
        for found in self.context.by_type[key]:
            self.context.work.spend(PER_REFERENCE, found.node)
            yield found

    def _place(self, name: str) -> str:
        """The path of a resource in this stack's template."""
        section = "Resources" if self.template.version.is_cfn else "resources"
        return ".".join(filter(None, (self.template.file, section, name)))

    def _referred(self, path: Path) -> Resource | None:
        there = self.context.scopes.get(path.parent)
        if there is None:
            return None
        scope, conditions = there
        node = scope.resources.get(path.steps[-1].name)
        definition = None if node is None else _definition(node, scope, conditions)
        if node is None or definition is None:
            return None
        self.context.work.spend(node.size + PER_RESOURCE, node)
        type_name = str(definition["type"].value)
        properties = _fields(definition.get("properties"))
        return Resource(
            path.parent, path, type_name, node, node.path, properties, _metadata(definition)
        )

    def _resource(
        self,
        path: Path,
        node: YamlNode,
        definition: Mapping[str, YamlNode],
        registry: ResourceRegistry,
        place: str,
    ) -> Iterator[ExpandedItem]:
        self.context.work.spend(len(registry.wildcards), node)
        type_node = definition["type"]
        type_name = typed_yaml.text(type_node)
        external = definition.get("external_id")
        if external is not None and external.value is not None:
            yield UnplacedResource(path, type_name, "it exists already, by its external_id")
            return
        meaning = registry.meaning(type_node, path.steps[-1].name)
        if is_nested(meaning.target):
            self.context.work.spend(registry.cost, node)
            metadata = _metadata(definition)
            if KEY in metadata and typed_yaml.mapping(metadata[KEY]).keys() - {DECIDED}:
                raise metadata[KEY].invalid(
                    "write policies inside the nested template, or on a server group here"
                )
            # Files named in the environment are not relative to this template.
            of = self.template.file if meaning.target == type_name else ""
            file = find_file(meaning.target, of=of, files=self.context.files)
            properties = _fields(definition.get("properties"))
            yield from self._nested(path, type_node, file, properties, meaning.registry)
            return
        kind = resource_type(meaning.target, type_node)
        properties = _fields(definition.get("properties")) if kind.PLACED else {}
        metadata = _metadata(definition)
        resource = Resource(
            self.path, path, meaning.target, node, place, properties, metadata, registry
        )
        yield from kind.expand(resource, self)

    def _nested(
        self,
        path: Path,
        node: YamlNode,
        file: str,
        properties: Mapping[str, YamlNode],
        registry: ResourceRegistry,
    ) -> Iterator[ExpandedItem]:
        self.context.work.spend(PER_STACK, node)
        if file not in self.context.templates:
            text = self.context.files.get(file)
            if text is None:
                raise node.invalid(f"the nested template {file} is missing among the files")
            self.context.templates[file] = read_template(text, file=file)
        template = self.context.templates[file]
        parameters = as_nested_parameters(template.parameters, properties)
        yield from self._below(path, node, template, parameters, registry)

    def _below(
        self,
        path: Path,
        node: YamlNode,
        template: Template,
        parameters: Mapping[str, YamlNode],
        registry: ResourceRegistry,
    ) -> Iterator[ExpandedItem]:
        if self.depth >= MAX_DEPTH:
            raise node.invalid(f"nested templates more than {MAX_DEPTH} deep")
        nested = Stack(path, template, parameters, registry, self.context, self.depth + 1)
        yield from nested.expand()


def _definition(node: YamlNode, scope: Scope, conditions: Conditions) -> dict[str, YamlNode] | None:
    """A resource's definition with its functions resolved; None: its condition is false."""
    fields = typed_yaml.mapping(node)
    condition = fields.get("condition")
    if condition is not None and condition.value is not None and not conditions.holds(condition):
        return None
    return {key: resolve(one, scope) if key in _RESOLVED else one for key, one in fields.items()}


_RESOLVED: Final = frozenset({"properties", "metadata", "external_id"})


def _fields(node: YamlNode | None) -> Mapping[str, YamlNode]:
    return {} if node is None or node.value is None else typed_yaml.mapping(node)


def _metadata(definition: Mapping[str, YamlNode]) -> Mapping[str, YamlNode]:
    """The metadata; none where they come only later: no annotation can be in them."""
    node = definition.get("metadata")
    return {} if node is None or isinstance(node.value, DeferredValue) else _fields(node)
