"""The resource_registry of environments: what a resource type means.

A type is mapped to another type, to the file of a nested template, or (with a `*` at the end) a
family of types to another. Entries below `resources` are for resources of that name. As in Heat,
the most specific place wins, then the order of the names, in which `OS::*` comes before
`OS::Nova::Server`; inside the template that a type is mapped to, the type means itself again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, TypeAlias

from moorage.heat import typed_yaml
from moorage.heat.file_names import file_name, is_nested

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from moorage.heat.yaml_tree import YamlNode

MAX_TYPE_ALIASES: Final = 8
"""Length limit of a chain of type aliases."""
RESOURCES: Final = "resources"
MAX_REMOVALS: Final = 500
"""How many families of types environments may remove; all types are gone through for each."""
_TYPES_PER_VALUE: Final = 10
"""Types that are copied in about the time that a value takes otherwise."""
_PER_PATTERN: Final = 50
"""What comparing a name with a pattern costs, in values."""
_OWN_TYPES: Final = ("OS::", "AWS::")
"""Beginnings of the names of types that Heat itself has."""
_BASE_URL: Final = "base_url"
_HOOKS: Final = (
    *("pre-create", "pre-update", "pre-delete"),
    *("post-create", "post-update", "post-delete"),
)
_ACTIONS: Final = ("update", "replace")
_SETTINGS: Final = {"hooks": _HOOKS, "restricted_actions": _ACTIONS}
"""Entries that are no types -> their words; they decide nothing about places."""

RegistrySection: TypeAlias = "Mapping[str, RegistryEntry | RegistrySection]"
"""A level of the registry: type -> its meaning, or name -> the level below."""
_NOTHING: Final[RegistrySection] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class RegistryEntry:
    """What a type is mapped to."""

    node: YamlNode
    target: str | None
    """A type, or a file's name; None: an earlier entry is removed."""


@dataclass(frozen=True, slots=True)
class Meaning:
    """What a type means for a resource: a type or a nested template."""

    target: str
    registry: ResourceRegistry
    """The registry inside, if it is a nested template; else that around it."""


@dataclass(frozen=True, slots=True)
class ResourceRegistry:
    """The registry of one stack."""

    types: Mapping[str, RegistryEntry] = field(default_factory=lambda: MappingProxyType({}))
    resources: RegistrySection = field(default_factory=lambda: _NOTHING)

    wildcards: tuple[str, ...] = ()
    """The types with a `*`, in the order in which they are tried."""

    @classmethod
    def of(cls, sections: Sequence[RegistrySection]) -> ResourceRegistry:
        """The registry of several environment files, of which later ones win entry by entry.

        Raises:
            InvalidDescription: too many families of types are removed.
        """
        together: dict[str, RegistryEntry | RegistrySection] = {}
        for section in sections:
            together.update(section)
        types: dict[str, RegistryEntry] = {}
        removals = 0
        for name, entry in together.items():
            if not isinstance(entry, RegistryEntry):
                continue
            if entry.target is not None:
                types[name] = entry
                continue
            types.pop(name, None)
            if name.endswith("*"):
                removals += 1
                if removals > MAX_REMOVALS:
                    raise entry.node.invalid(f"more than {MAX_REMOVALS} families of types removed")
                for key in [key for key in types if key.startswith(name[:-1])]:
                    del types[key]
        resources = together.get(RESOURCES, _NOTHING)
        below = resources if isinstance(resources, Mapping) else _NOTHING
        return cls(types, below, tuple(sorted(one for one in types if one.endswith("*"))))

    @property
    def cost(self) -> int:
        """What making the registry inside a resource costs, measured in values of a template."""
        patterns = sum(1 for one in self.resources if _is_pattern(one))
        return len(self.resources) + _PER_PATTERN * patterns + len(self.types) // _TYPES_PER_VALUE

    def __bool__(self) -> bool:
        return bool(self.types or self.resources)

    def meaning(self, node: YamlNode, resource: str) -> Meaning:
        """What the type at this node means for a resource of that name.

        Raises:
            InvalidDescription: not text, or mapped in a circle.
        """
        name = typed_yaml.text(node)
        found = self._meaning(name, resource, node, MAX_TYPE_ALIASES)
        return Meaning(name, self) if found is None else found

    def _meaning(self, name: str, resource: str, node: YamlNode, room: int) -> Meaning | None:
        """What a type means; None: it is mapped to nothing, and is none of Heat's own."""
        if room == 0:
            raise node.invalid(f"the resource_registry maps {node.value} in a circle")
        for path, entry in self._candidates(name, resource):
            target = entry.target or name
            if path[-1].endswith("*") and target.endswith("*"):
                target = target[:-1] + name[len(path[-1]) - 1 :]
            if is_nested(target):
                return Meaning(target, self._inside(resource, path))
            if target != name:
                found = self._meaning(target, resource, node, room - 1)
                if found is not None:
                    return found
        if is_nested(name):
            return Meaning(name, self._inside(resource, ()))
        return Meaning(name, self) if name.startswith(_OWN_TYPES) else None

    def _candidates(
        self, name: str, resource: str
    ) -> Iterator[tuple[tuple[str, ...], RegistryEntry]]:
        """The entries for a type, the most specific first."""
        own = self.resources.get(resource)
        if isinstance(own, Mapping):
            entry = own.get(name)
            if isinstance(entry, RegistryEntry) and entry.target is not None:
                yield (RESOURCES, resource, name), entry
        matching = [
            one
            for one in self.wildcards
            if name.startswith(one[:-1]) and name != self.types[one].target
        ]
        exact = [name] if name in self.types else []
        for key in sorted({*exact, *matching}):
            yield (key,), self.types[key]

    def _inside(self, resource: str, path: tuple[str, ...]) -> ResourceRegistry:
        """The registry inside a resource, without the entry at `path` that led there."""
        below: dict[str, RegistryEntry | RegistrySection] = {}
        for pattern, section in self.resources.items():
            if not isinstance(section, Mapping) or not _is_pattern(pattern):
                continue
            if fnmatchcase(resource, pattern):
                below.update(section)
        exact = self.resources.get(resource)
        if isinstance(exact, Mapping):
            below.update(exact)
        types, wildcards = self.types, self.wildcards
        if len(path) == 1:
            types = {key: one for key, one in types.items() if key != path[0]}
            wildcards = tuple(one for one in wildcards if one != path[0])
        elif path:
            below.pop(path[-1], None)
        return replace(self, types=types, resources=below, wildcards=wildcards)

    def below(self, resource: str) -> ResourceRegistry:
        """The registry inside a group of that name."""
        if not self.resources:
            return self
        return self._inside(resource, ())


def read_registry(entries: Mapping[str, YamlNode], file: str) -> RegistrySection:
    """Read a resource_registry; names of files become names among the template's files.

    Raises:
        InvalidDescription: an entry that is neither text, null nor a mapping, a hook or an action
            that Heat does not have.
    """
    return _section(entries, file)


def registered_files(section: RegistrySection) -> Iterator[str]:
    """The nested templates that a registry names."""
    for entry in section.values():
        if isinstance(entry, RegistryEntry):
            if is_nested(entry.target):
                yield str(entry.target)
        else:
            yield from registered_files(entry)


def _section(entries: Mapping[str, YamlNode], base: str) -> RegistrySection:
    if _BASE_URL in entries and entries[_BASE_URL].value:
        # A directory: names in it are relative to a file in it.
        base = file_name(typed_yaml.text(entries[_BASE_URL]).rstrip("/") + "/.", of=base) + "/."
    found: dict[str, RegistryEntry | RegistrySection] = {}
    for name, node in entries.items():
        if name == _BASE_URL:
            continue
        if name in _SETTINGS:
            _check_setting(name, node)
        elif isinstance(node.value, dict):
            found[name] = _section(node.value, base)
        elif node.value is None:
            found[name] = RegistryEntry(node, None)
        elif name == RESOURCES:
            raise node.invalid(f"a mapping is needed here, not {typed_yaml.kind(node)}")
        else:
            target = typed_yaml.text(node)
            found[name] = RegistryEntry(
                node, file_name(target, of=base) if is_nested(target) else target
            )
    return found


def _check_setting(name: str, node: YamlNode) -> None:
    for one in node.value if isinstance(node.value, list) else [node]:
        typed_yaml.choice(one, _SETTINGS[name])


def _is_pattern(name: str) -> bool:
    """Whether a name of a resource is a pattern, by its characters."""
    return any(one in name for one in "*?[")
