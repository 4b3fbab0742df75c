"""Collects the ensemble's policies from the places in a template that declare them.

These are Nova's server groups, through the scheduler hints of servers; zones, as fences; and
`metadata: {moorage: {policies: …}}`. A policy without selectors applies to the members at or below
the resource with the metadata (on a server group: the members of the group).
"""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING

from moorage.domain.describe import NOVA_SHORTHAND, has_sides, read_statement
from moorage.domain.ensembles import PolicyStatement, Selector
from moorage.domain.errors import InvalidDescription
from moorage.heat import typed_yaml

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from moorage.heat.expanded_template import DeclaredPolicy, Server, ServerGroup
    from moorage.heat.paths import Path
    from moorage.heat.selectors import ServerIndex
    from moorage.heat.yaml_tree import YamlNode

LocatedPolicy = tuple[PolicyStatement, "YamlNode"]
"""A policy, and the template node that declares it."""


def statements(
    cast: ServerIndex,
    servers: Sequence[Server],
    groups: Sequence[ServerGroup],
    declared: Sequence[DeclaredPolicy],
) -> tuple[LocatedPolicy, ...]:
    """Every policy of the ensemble with its node; names are unique.

    Raises:
        InvalidDescription: a hint to something that is no server group, a selector without members,
            a name used twice, or an invalid statement.
    """
    known = {group.path: group for group in groups}
    for server in servers:
        for group in server.groups:
            if group not in known:
                raise server.node.invalid(f"the group of {server.path} is no server group: {group}")
    result: dict[str, LocatedPolicy] = {}
    for statement, node in (
        *_of_groups(cast, groups),
        *_of_zones(cast, servers),
        *_of_hints(cast, servers),
        *(_of_metadata(cast, one, known) for one in declared),
    ):
        if statement.name in result:
            raise node.invalid(f"two policies are called {statement.name}")
        result[statement.name] = (statement, node)
    return tuple(result.values())


def _of_groups(cast: ServerIndex, groups: Sequence[ServerGroup]) -> Iterator[LocatedPolicy]:
    for group in groups:
        members = cast.group_members(group.path)
        if not members:
            continue
        kind, weight = NOVA_SHORTHAND[group.policy]
        limit = {} if group.max_per_host is None else {"max_per_domain": group.max_per_host}
        statement = PolicyStatement(
            name=str(group.path),
            type=kind,
            members=members,
            weight=weight,
            parameters=MappingProxyType({"level": "host", **limit}),
        )
        yield statement, group.node


def _of_zones(cast: ServerIndex, servers: Sequence[Server]) -> Iterator[LocatedPolicy]:
    inside: dict[tuple[str, str], list[Server]] = {}
    for server in servers:
        if server.zone is not None:
            inside.setdefault(("zone", server.zone), []).append(server)
        if server.host is not None:
            inside.setdefault(("host", server.host), []).append(server)
    for (kind, name), some in inside.items():
        statement = PolicyStatement(
            name=f"{kind}-{name}",
            type="fence",
            members=cast.selectors_for(cast.names[one.path] for one in some),
            parameters=MappingProxyType({"domains": [name]}),
        )
        yield statement, some[0].node


def _of_hints(cast: ServerIndex, servers: Sequence[Server]) -> Iterator[LocatedPolicy]:
    """The hints `different_host` and `same_host`, between two servers each.

    Several servers in `same_host` mean any of their hosts; here all of them are to be on one.
    """
    for server in servers:
        for word, kind, others in (
            ("apart-from", "anti-affinity", server.apart_from),
            ("beside", "affinity", server.beside),
        ):
            for other in dict.fromkeys(others):
                if other not in cast.names:
                    raise server.node.invalid(
                        f"the scheduler hints of {server.path} name {other}, which is no server"
                    )
                if other == server.path:
                    raise server.node.invalid(f"{server.path} names itself in a scheduler hint")
                name, target = cast.names[server.path], cast.names[other]
                statement = PolicyStatement(
                    name=f"{name}-{word}-{target}",
                    type=kind,
                    members=cast.selectors_for((name, target)),
                    parameters=MappingProxyType({"level": "host"}),
                )
                yield statement, server.node


def _of_metadata(
    cast: ServerIndex, one: DeclaredPolicy, groups: Mapping[Path, ServerGroup]
) -> LocatedPolicy:
    source = one.node.plain()
    try:
        statement = read_statement(_with_defaults(source, one), "policy")
    except InvalidDescription as error:
        raise _with_field_location(one.node, error) from error
    if has_sides(statement.parameters):
        if one.stack.steps or not all(map(cast.is_own, statement.members)):
            raise one.node.invalid(
                "sides name roles of the whole stack, in the template that has it"
            )
        selectors = statement.members
    elif isinstance(source, dict) and ("members" in source or "zip" in source):
        selectors = _resolve_selectors(cast, statement, one)
    else:
        selectors = (
            cast.group_members(one.path)
            if one.path in groups
            else cast.resolve(Selector(everyone=True), one.path)
        )
        if not selectors:
            raise one.node.invalid("there is no member this policy could speak about")
    # A policy in a group's member definition is declared by each member separately.
    prefix = one.path if one.path.steps[-1].index else one.stack
    name = "/".join(filter(None, (str(prefix), statement.name)))
    return replace(statement, name=name, members=selectors, path=""), one.node


def _with_defaults(source: object, one: DeclaredPolicy) -> object:
    """The statement with default name and selectors."""
    if not isinstance(source, dict):
        return source
    kind = source.get("type")
    last = one.path.steps[-1]
    name = f"{kind}" if last.index else f"{last.name}-{kind}"
    filled: dict[str, object] = {"name": name, **source}
    if "members" not in source and "zip" not in source and not has_sides(source):
        filled["members"] = ["*"]
    return filled


def _resolve_selectors(
    cast: ServerIndex, statement: PolicyStatement, one: DeclaredPolicy
) -> tuple[Selector, ...]:
    columns: list[Selector] = []
    for selector in statement.members:
        found = cast.resolve(selector, one.stack)
        if not found:
            raise one.node.invalid(f"{selector} means no member")
        known = not one.stack.steps and cast.is_own(selector)
        if statement.zip and len(found) > 1 and not known:
            raise one.node.invalid(
                f"{selector} is part of several roles; zip it in the template that has them all"
            )
        columns += (selector,) if known else found
    return tuple(columns) if statement.zip else tuple(dict.fromkeys(columns))


def _with_field_location(node: YamlNode, error: InvalidDescription) -> InvalidDescription:
    """Add the location of the field to an error, or that of the statement."""
    key = (error.path or "").removeprefix("policy").lstrip(".").split(".")[0].split("[")[0]
    exact = node.value.get(key) if isinstance(node.value, dict) else None
    error.path = None
    return typed_yaml.with_location(error, node if exact is None else exact)
