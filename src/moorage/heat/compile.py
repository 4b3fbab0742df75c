"""Compiles a template's text into an ensemble description: the entry point of this package."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from moorage.domain.describe import EnsembleDescription, read_role
from moorage.domain.ensembles import MAX_MEMBERS, ROLE_NAME
from moorage.domain.errors import InvalidDescription
from moorage.domain.member_names import MemberName
from moorage.heat import typed_yaml
from moorage.heat.environment import Environment, merge_environments, read_environment
from moorage.heat.expand import ExpansionContext, Stack
from moorage.heat.expanded_template import (
    DeclaredPolicy,
    Note,
    ScalingGroup,
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
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from moorage.domain.describe_members import RoleDescription
    from moorage.heat.expanded_template import ExpandedItem
    from moorage.heat.paths import Path
    from moorage.heat.template import Template
    from moorage.heat.yaml_tree import Plain, YamlNode

CALL_PATH: Final = "parameters"
"""The path in errors about parameters that the caller passed."""


class NothingToPlace(InvalidDescription):
    """The template is valid, and has no server."""


@dataclass(frozen=True, slots=True)
class Source:
    """A template with its environment, files and parameters, as text and plain values."""

    template: str
    environment: str | None = None
    """Names of files in it are relative to the root template."""
    environment_files: tuple[str, ...] = ()
    """Environments by their names in `files`; later ones win, and names in each are relative to it.

    As in Heat, `environment` is not read where there are any.
    """
    parameters: Mapping[str, Plain] = field(default_factory=lambda: MappingProxyType({}))
    """Passed by the caller. They override `environment`, and environment files override them."""
    files: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    """Nested templates and other files by name: relative to the root template, or URLs."""
    name: str = "stack"
    """The stack's name, and the ensemble's."""
    removed: Mapping[str, frozenset[str]] = field(default_factory=lambda: MappingProxyType({}))
    """Path of a resource group in a stack that exists -> the names which Heat gives no member of it
    any more, by removal policies of earlier templates."""
    members: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    """Id of a resource in that stack -> its path: removal policies may name ids."""


@dataclass(frozen=True, slots=True)
class CompiledTemplate:
    """The result of compiling a template."""

    description: EnsembleDescription
    keys: Mapping[MemberName, str]
    """Member -> its path in the stack: `web[0]` is at `web/0`."""
    scaling: Mapping[str, ScalingGroup] = field(compare=False)
    """Role -> the innermost group around it that Heat grows and shrinks."""
    unplaced: tuple[UnplacedResource, ...]
    notes: tuple[str, ...]
    locations: Mapping[str, YamlNode] = field(default_factory=dict, compare=False, repr=False)
    """Path in the description (`members[0]`, `policies[2]`) -> the node that defines it."""
    files: frozenset[str] = field(default=frozenset(), compare=False, repr=False)
    """Names of the source's files."""
    separate: frozenset[str] = field(default=frozenset(), compare=False, repr=False)
    """Paths in the templates of definitions whose members are not alike: each is its own role."""
    unnumbered: frozenset[str] = field(default=frozenset(), compare=False, repr=False)
    """Paths of definitions whose members have other numbers here than in the stack."""
    definitions: Mapping[str, str] = field(default_factory=dict, compare=False, repr=False)
    """Role -> the path in the templates of the resource that defines its members."""
    nameless: YamlNode | None = field(default=None, compare=False, repr=False)
    """A definition of servers whose role has the number of a scaling group's member in its name.

    Heat does not tell that number, so a written template cannot name the role.
    """
    environment: Environment = field(default_factory=Environment, compare=False, repr=False)

    @property
    def headroom(self) -> Mapping[str, int]:
        """Role -> how many more of its members the template wants places kept for."""
        return {role: one.headroom for role, one in self.scaling.items() if one.headroom}

    def node_of(self, role: str) -> YamlNode:
        """The node that defines a role's first member."""
        names = [one.name for one in self.description.roles]
        return self.locations[f"members[{names.index(role)}]"]

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


def compile_template(
    source: Source, *, may_be_empty: bool = False, may_lack: bool = False
) -> CompiledTemplate:
    """Read, expand and describe a template.

    Args:
        source: the template with its environment, files and parameters.
        may_be_empty: whether it may have no servers.
        may_lack: whether its parameters may lack values, on which no place hangs then.

    Raises:
        InvalidDescription: the template is invalid or uses something unsupported; `path` and `line`
            are the place. In a nested template the path starts with the file's name, and the
            message with "in" and that name: a line alone would mean the root template.
    """
    try:
        return _compiled(source, may_be_empty=may_be_empty, may_lack=may_lack)
    except InvalidDescription as error:
        _name_file(error, source.files)
        raise


def _name_file(error: InvalidDescription, files: Collection[str]) -> None:
    path = error.path or ""
    inside = [file for file in files if path == file or path.startswith((f"{file}.", f"{file}["))]
    if inside:
        error.message = f"in {max(inside, key=len)}: {error.message}"
        error.args = (error.message,)


def _compiled(source: Source, *, may_be_empty: bool, may_lack: bool) -> CompiledTemplate:
    root = read_template(source.template)
    environment = environment_of(source, root)
    found, remarks = _expanded(source, root, environment, may_lack=may_lack)
    servers = [one for one in found if isinstance(one, Server)]
    present = [one for one in servers if not one.absent]
    if not present and not may_be_empty:
        raise NothingToPlace("the template has no server to place", path="resources")
    if len(present) > MAX_MEMBERS:
        raise present[MAX_MEMBERS].node.invalid(f"more than {MAX_MEMBERS} servers")
    separate = unlike_definitions(servers)
    names, unnumbered = _names(servers, separate)
    roles = _roles(servers, names)
    cast = ServerIndex(servers, names, {role.name: role.tags for role in roles})
    groups = [one for one in found if isinstance(one, ServerGroup)]
    declared = [one for one in found if isinstance(one, DeclaredPolicy)]
    growing = [one for one in found if isinstance(one, ScalingGroup)]
    policies = statements(cast, servers, groups, declared)
    first = {names[one.path].role: one.node for one in reversed(servers)}
    return CompiledTemplate(
        description=EnsembleDescription(
            name=source.name, roles=roles, policies=tuple(one for one, _ in policies)
        ),
        keys=MappingProxyType({names[one.path]: str(one.path) for one in present}),
        scaling=_scaling(names, growing),
        unplaced=tuple(one for one in found if isinstance(one, UnplacedResource)),
        # A nested template's notes come once for each of its stacks.
        notes=tuple(
            dict.fromkeys(
                [
                    *environment.remarks,
                    *overruled(source, environment),
                    *(one.text for one in found if isinstance(one, Note)),
                    *remarks,
                ]
            )
        ),
        locations={
            **{f"members[{i}]": first[role.name] for i, role in enumerate(roles)},
            **{f"policies[{i}]": node for i, (_, node) in enumerate(policies)},
        },
        files=frozenset(source.files),
        separate=separate,
        unnumbered=unnumbered,
        definitions={names[one.path].role: one.definition for one in reversed(present)},
        nameless=_nameless(present, separate, growing),
        environment=environment,
    )


def environment_of(source: Source, root: Template) -> Environment:
    """The environment of a template, merged of all its files and the call's parameters.

    Raises:
        InvalidDescription: an environment that is missing or not valid.
    """
    given = {
        name: to_node(value, line=1, path=f"{CALL_PATH}.{name}")
        for name, value in source.parameters.items()
    }
    if not source.environment_files:
        texts = [] if source.environment is None else [source.environment]
        files = [read_environment(text) for text in texts]
        alone = merge_environments(files, root.parameters, {})
        return replace(alone, parameters={**alone.parameters, **given})
    files = []
    for name in source.environment_files:
        if name not in source.files:
            raise InvalidDescription(
                f"the environment {name} is missing among the files", path="environment_files"
            )
        files.append(read_environment(source.files[name], name=name))
    return merge_environments(files, root.parameters, given)


def overruled(source: Source, environment: Environment) -> Iterator[str]:
    """A note on each parameter of the call that an environment file overrules, as in Heat."""
    for name, value in source.parameters.items():
        there = environment.parameters.get(name)
        if source.environment_files and there is not None and there.plain() != value:
            yield f"parameter {name}: an environment file wins over the value of the call, in Heat"


def _expanded(
    source: Source, root: Template, environment: Environment, *, may_lack: bool
) -> tuple[list[ExpandedItem], tuple[str, ...]]:
    """The items of the whole tree of stacks, and remarks on its functions."""
    context = ExpansionContext(
        environment.defaults,
        source.files,
        source.name,
        may_lack,
        removed=source.removed,
        members=source.members,
    )
    found: list[ExpandedItem] = []
    for one in Stack(ROOT, root, environment.parameters, environment.registry, context).expand():
        found.append(one)
        if len(found) > _MAX_ITEMS:
            raise InvalidDescription("the template expands to too much", path="resources")
    return found, tuple(context.remarks)


_MAX_ITEMS: Final = 20 * MAX_MEMBERS


def unlike_definitions(servers: Sequence[Server]) -> frozenset[str]:
    """The paths of definitions that make members of one role which are not alike."""
    first: dict[str, Server] = {}
    found = set()
    for server in servers:
        alike = first.setdefault(server.path.member_name().role, server)
        if server.description != alike.description:
            found.add(server.definition)
    return frozenset(found)


def _names(
    servers: Sequence[Server], separate: Collection[str]
) -> tuple[dict[Path, MemberName], frozenset[str]]:
    """The members' names, and the paths of definitions whose members have not their own numbers.

    A group that leaves numbers out, by its removal policies, has the members from 0 on.
    """
    names: dict[Path, MemberName] = {}
    next_index: Counter[str] = Counter()
    unnumbered = set()
    for server in servers:
        if server.definition in separate:
            names[server.path] = server.path.own_name()
            continue
        name = server.path.member_name()
        names[server.path] = MemberName(name.role, next_index[name.role])
        next_index[name.role] += 1
        if names[server.path] != name:
            unnumbered.add(server.definition)
    return names, frozenset(unnumbered)


def _scaling(
    names: Mapping[Path, MemberName], groups: Sequence[ScalingGroup]
) -> Mapping[str, ScalingGroup]:
    by_path = {one.path: one for one in groups}
    found: dict[str, ScalingGroup] = {}
    for path, name in names.items() if groups else ():
        above = next((one for one in path.above() if one in by_path), None)
        if above is not None:
            found.setdefault(name.role, by_path[above])
    return found


def _nameless(
    servers: Sequence[Server], separate: Collection[str], groups: Sequence[ScalingGroup]
) -> YamlNode | None:
    scaling = {one.path for one in groups}
    for server in servers if groups else ():
        numbered = [one.parent for one in server.path.above() if one.steps and one.steps[-1].index]
        if server.path.steps[-1].index:
            numbered.insert(0, server.path.parent)
        inner = 0 if server.definition in separate else 1
        if any(one in scaling for one in numbered[inner:]):
            return server.node
    return None


def _roles(
    servers: Sequence[Server], names: Mapping[Path, MemberName]
) -> tuple[RoleDescription, ...]:
    first = {names[one.path].role: one for one in reversed(servers)}
    counts = Counter(names[one.path].role for one in servers if not one.absent)
    in_order = dict.fromkeys(names[one.path].role for one in servers)
    return tuple(_role(first[name], name, counts[name]) for name in in_order)


def _role(server: Server, name: str, count: int) -> RoleDescription:
    if ROLE_NAME.fullmatch(name) is None:
        raise server.node.invalid(f"{name!r} cannot name a role: letters, digits and _ . / : -")
    try:
        described = {**server.description, "name": name, "count": count}
        if not count:  # a group that is empty for now
            described.pop("min_available", None)
        return read_role(described, "moorage")
    except InvalidDescription as error:
        raise typed_yaml.with_location(error, server.node) from error
