"""Compiles a template's text into an ensemble description: the entry point of this package."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from moorage.domain.describe import EnsembleDescription, RoleDescription, read_role
from moorage.domain.ensembles import MAX_MEMBERS, ROLE_NAME
from moorage.domain.errors import InvalidDescription
from moorage.heat import typed_yaml
from moorage.heat.environment import Environment, read_environment
from moorage.heat.expand import ExpansionContext, Stack
from moorage.heat.expanded_template import (
    DeclaredPolicy,
    Note,
    Server,
    ServerGroup,
    UnplacedResource,
)
from moorage.heat.paths import ROOT
from moorage.heat.policies import statements
from moorage.heat.selectors import ServerIndex
from moorage.heat.template import read_template
from moorage.heat.yaml_tree import to_node

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from moorage.domain.ensembles import MemberName
    from moorage.heat.expanded_template import ExpandedItem
    from moorage.heat.yaml_tree import Plain, YamlNode

CALL_PATH: Final = "parameters"
"""The path in errors about parameters that the caller passed."""


@dataclass(frozen=True, slots=True)
class Source:
    """A template with its environment, files and parameters, as text and plain values."""

    template: str
    environment: str | None = None
    parameters: Mapping[str, Plain] = field(default_factory=lambda: MappingProxyType({}))
    """Passed by the caller; they override the environment."""
    files: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    """Nested templates and files for `get_file`, by name relative to the root template."""
    name: str = "stack"
    """The stack's name, and the ensemble's."""


@dataclass(frozen=True, slots=True)
class CompiledTemplate:
    """The result of compiling a template."""

    description: EnsembleDescription
    keys: Mapping[MemberName, str]
    """Member -> its path in the stack: `web[0]` is at `web/0`."""
    unplaced: tuple[UnplacedResource, ...]
    notes: tuple[str, ...]
    locations: Mapping[str, YamlNode] = field(default_factory=dict, compare=False, repr=False)
    """Path in the description (`members[0]`, `policies[2]`) -> the node that defines it."""
    files: frozenset[str] = field(default=frozenset(), compare=False, repr=False)
    """Names of the source's files."""
    templates: tuple[str, ...] = field(default=(), compare=False, repr=False)
    """Names of the files that were read as nested templates."""

    def with_location(self, error: InvalidDescription) -> InvalidDescription:
        """Add the template's path and line to an error about the description."""
        first, _, rest = (error.path or "").partition(".")
        if error.line is None and first in self.locations:
            place = self.locations[first]
            if isinstance(place.value, dict):
                place = place.value.get(rest.partition(".")[0].partition("[")[0], place)
            error.path, error.line = place.path, place.line
            _name_file(error, self.files)
        return error


def compile_template(source: Source, *, may_be_empty: bool = False) -> CompiledTemplate:
    """Read, expand and describe a template; one without servers only if `may_be_empty`.

    Raises:
        InvalidDescription: the template is invalid or uses something unsupported; `path` and `line`
            are the place. In a nested template the path starts with the file's name, and the
            message with "in" and that name: a line alone would mean the root template.
    """
    try:
        return _compiled(source, may_be_empty=may_be_empty)
    except InvalidDescription as error:
        _name_file(error, source.files)
        raise


def _name_file(error: InvalidDescription, files: Collection[str]) -> None:
    path = error.path or ""
    inside = [file for file in files if path == file or path.startswith((f"{file}.", f"{file}["))]
    if inside:
        error.message = f"in {max(inside, key=len)}: {error.message}"
        error.args = (error.message,)


def _compiled(source: Source, *, may_be_empty: bool) -> CompiledTemplate:
    found, templates = _expanded(source)
    servers = [one for one in found if isinstance(one, Server)]
    if not servers and not may_be_empty:
        raise InvalidDescription("the template has no server to place", path="resources")
    if len(servers) > MAX_MEMBERS:
        raise servers[MAX_MEMBERS].node.invalid(f"more than {MAX_MEMBERS} servers")
    roles = _roles(servers)
    cast = ServerIndex(servers, {role.name: role.tags for role in roles})
    groups = [one for one in found if isinstance(one, ServerGroup)]
    declared = [one for one in found if isinstance(one, DeclaredPolicy)]
    policies = statements(cast, servers, groups, declared)
    first = {one.path.member_name().role: one.node for one in reversed(servers)}
    return CompiledTemplate(
        description=EnsembleDescription(
            name=source.name, roles=roles, policies=tuple(one for one, _ in policies)
        ),
        keys=MappingProxyType({one.path.member_name(): str(one.path) for one in servers}),
        unplaced=tuple(one for one in found if isinstance(one, UnplacedResource)),
        # A nested template's notes come once for each of its stacks.
        notes=tuple(dict.fromkeys(one.text for one in found if isinstance(one, Note))),
        locations={
            **{f"members[{i}]": first[role.name] for i, role in enumerate(roles)},
            **{f"policies[{i}]": node for i, (_, node) in enumerate(policies)},
        },
        files=frozenset(source.files),
        templates=templates,
    )


def _expanded(source: Source) -> tuple[list[ExpandedItem], tuple[str, ...]]:
    environment = (
        Environment() if source.environment is None else read_environment(source.environment)
    )
    given: dict[str, YamlNode] = {
        **environment.parameters,
        **{
            name: to_node(value, line=1, path=f"{CALL_PATH}.{name}")
            for name, value in source.parameters.items()
        },
    }
    world = ExpansionContext(environment=environment, files=source.files, stack_name=source.name)
    root = Stack(ROOT, read_template(source.template), given, world)
    found: list[ExpandedItem] = []
    for one in root.expand():
        found.append(one)
        if len(found) > _MAX_ITEMS:
            raise InvalidDescription("the template expands to too much", path="resources")
    return found, tuple(world.templates)


_MAX_ITEMS: Final = 20 * MAX_MEMBERS


def _roles(servers: Sequence[Server]) -> tuple[RoleDescription, ...]:
    roles: dict[str, RoleDescription] = {}
    first: dict[str, Server] = {}
    for server in servers:
        name = server.path.member_name().role
        if name not in roles:
            first[name] = server
            roles[name] = _role(server, name)
            continue
        if (server.description, server.zone) != (first[name].description, first[name].zone):
            raise server.node.invalid(
                f"the members of {name} differ: {server.path} is not described as"
                f" {first[name].path} is; a group's members must be alike"
            )
        roles[name] = replace(roles[name], count=roles[name].count + 1)
    return tuple(roles.values())


def _role(server: Server, name: str) -> RoleDescription:
    if ROLE_NAME.fullmatch(name) is None:
        raise server.node.invalid(f"{name!r} cannot name a role: letters, digits and _ . / : -")
    try:
        return read_role({"name": name, **server.description}, "moorage")
    except InvalidDescription as error:
        raise typed_yaml.with_location(error, server.node) from error
