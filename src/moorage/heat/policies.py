"""Collects the ensemble's policies from the places in a template that declare them.

Three things do: Nova's server groups, through the hints of servers; zones, as a fence; and
`metadata: {moorage: {policies: …}}`. A policy without selectors speaks about the members at or
below the resource it is written on (at a server group: those that belong to it).
"""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING

from moorage.domain.describe import NOVA_SHORTHAND, read_statement
from moorage.domain.ensembles import PolicyStatement, Selector
from moorage.domain.errors import InvalidDescription
from moorage.heat import typed_yaml

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from moorage.heat.expanded_template import Declared, Server, ServerGroup
    from moorage.heat.paths import Path
    from moorage.heat.selectors import Cast
    from moorage.heat.yaml_tree import Marked

Placed = tuple[PolicyStatement, "Marked"]
"""A policy, and the place of the template that states it."""


def statements(
    cast: Cast,
    servers: Sequence[Server],
    groups: Sequence[ServerGroup],
    declared: Sequence[Declared],
) -> tuple[Placed, ...]:
    """Every policy of the ensemble with its place; names are unique.

    Raises:
        InvalidDescription: a hint to something that is no server group, a selector that means
            nobody, a name used twice, or a statement that cannot be read.
    """
    known = {group.path: group for group in groups}
    for server in servers:
        for group in server.groups:
            if group not in known:
                raise server.node.invalid(f"the group of {server.path} is no server group: {group}")
    result: dict[str, Placed] = {}
    for statement, node in (
        *_of_groups(cast, groups),
        *_of_zones(cast, servers),
        *(_of_metadata(cast, one, known) for one in declared),
    ):
        if statement.name in result:
            raise node.invalid(f"two policies are called {statement.name}")
        result[statement.name] = (statement, node)
    return tuple(result.values())


def _of_groups(cast: Cast, groups: Sequence[ServerGroup]) -> Iterator[Placed]:
    for group in groups:
        members = cast.of_group(group.path)
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


def _of_zones(cast: Cast, servers: Sequence[Server]) -> Iterator[Placed]:
    zones: dict[str, list[Server]] = {}
    for server in servers:
        if server.zone is not None:
            zones.setdefault(server.zone, []).append(server)
    for zone, inside in zones.items():
        statement = PolicyStatement(
            name=f"zone-{zone}",
            type="fence",
            members=cast.shortest(one.path.member_name() for one in inside),
            parameters=MappingProxyType({"domains": [zone]}),
        )
        yield statement, inside[0].node


def _of_metadata(cast: Cast, one: Declared, groups: Mapping[Path, ServerGroup]) -> Placed:
    source = one.node.plain()
    try:
        statement = read_statement(_filled(source, one), "policy")
    except InvalidDescription as error:
        raise _at(one.node, error) from error
    if isinstance(source, dict) and ("members" in source or "zip" in source):
        selectors = _seen(cast, statement, one)
    else:
        selectors = (
            cast.of_group(one.path)
            if one.path in groups
            else cast.selected(Selector(everyone=True), one.path)
        )
        if not selectors:
            raise one.node.invalid("there is no member this policy could speak about")
    # What a group's definition states, each of its members states for itself.
    prefix = one.path if one.path.steps[-1].index else one.stack
    name = "/".join(filter(None, (str(prefix), statement.name)))
    return replace(statement, name=name, members=selectors), one.node


def _filled(source: object, one: Declared) -> object:
    """The statement with the defaults of its place."""
    if not isinstance(source, dict):
        return source
    kind = source.get("type")
    last = one.path.steps[-1]
    name = f"{kind}" if last.index else f"{last.name}-{kind}"
    filled: dict[str, object] = {"name": name, **source}
    if "members" not in source and "zip" not in source:
        filled["members"] = ["*"]
    return filled


def _seen(cast: Cast, statement: PolicyStatement, one: Declared) -> tuple[Selector, ...]:
    columns: list[Selector] = []
    for selector in statement.members:
        found = cast.selected(selector, one.stack)
        if not found:
            raise one.node.invalid(f"{selector} means no member")
        if statement.zip and len(found) > 1 and one.stack.steps:
            raise one.node.invalid(
                f"{selector} is part of several roles; zip it in the template that has them all"
            )
        columns += found if one.stack.steps else (selector,)
    return tuple(columns) if statement.zip else tuple(dict.fromkeys(columns))


def _at(node: Marked, error: InvalidDescription) -> InvalidDescription:
    """Add the place of the field in question to an error, where it can be found."""
    key = (error.path or "").removeprefix("policy").lstrip(".").split(".")[0].split("[")[0]
    exact = node.value.get(key) if isinstance(node.value, dict) else None
    error.path = None
    return typed_yaml.placed(error, node if exact is None else exact)
