"""Encodes a joint request as plain JSON values, and decodes it."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from moorage.domain.ensembles import (
    Group,
    GroupKind,
    MemberName,
    Phase,
    PolicyStatement,
    Role,
    Selector,
)
from moorage.domain.period import Period
from moorage.domain.requests import EnsembleRequest, Objective

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


def encode_request(request: EnsembleRequest) -> dict[str, object]:
    """Plain values, sets sorted."""
    return {
        "project_id": request.project_id,
        "roles": [_role(role) for role in request.roles],
        "members": [str(member) for member in request.members],
        "policies": [_statement(one) for one in request.policies],
        "period": [request.period.start, request.period.end],
        "objective": str(request.objective),
        "fixed": {str(member): host for member, host in sorted(request.fixed.items())},
        "own_consumers": sorted(request.own_consumers),
        "released": sorted(request.released),
        "restated": sorted(request.restated),
    }


def decode_request(values: Mapping[str, Any]) -> EnsembleRequest:
    """The request that `encode_request` wrote."""
    fixed = {MemberName.parse(text): host for text, host in values["fixed"].items()}
    return EnsembleRequest(
        project_id=values["project_id"],
        roles=tuple(_read_role(one) for one in values["roles"]),
        members=tuple(MemberName.parse(text) for text in values["members"]),
        policies=tuple(_read_statement(one) for one in values["policies"]),
        period=Period(*values["period"]),
        objective=Objective(values["objective"]),
        fixed=MappingProxyType(fixed),
        own_consumers=frozenset(values["own_consumers"]),
        released=frozenset(values["released"]),
        restated=frozenset(values["restated"]),
    )


def _role(role: Role) -> dict[str, object]:
    return {
        "name": role.name,
        "resources": dict(role.resources),
        "kind": role.kind,
        "flavor": role.flavor,
        "required": _lists(role.required),
        "forbidden": sorted(role.forbidden),
        "member_of": _lists(role.member_of),
        "tags": sorted(role.tags),
        "groups": [_group(one) for one in role.groups],
        "same_subtree": _lists(role.same_subtree),
        "isolate": role.isolate,
    }


def _group(one: Group) -> dict[str, object]:
    return {
        "name": one.name,
        "resources": dict(one.resources),
        "kind": str(one.kind),
        "required": _lists(one.required),
        "forbidden": sorted(one.forbidden),
        "member_of": _lists(one.member_of),
        "beside": one.beside,
    }


def _read_group(values: Mapping[str, Any]) -> Group:
    return Group(
        name=values["name"],
        resources=MappingProxyType(dict(values["resources"])),
        kind=GroupKind(values["kind"]),
        required=tuple(frozenset(one) for one in values["required"]),
        forbidden=frozenset(values["forbidden"]),
        member_of=tuple(frozenset(one) for one in values["member_of"]),
        beside=values["beside"],
    )


def _read_role(values: Mapping[str, Any]) -> Role:
    return Role(
        name=values["name"],
        resources=MappingProxyType(dict(values["resources"])),
        kind=values["kind"],
        flavor=values["flavor"],
        required=tuple(frozenset(one) for one in values["required"]),
        forbidden=frozenset(values["forbidden"]),
        member_of=tuple(frozenset(one) for one in values["member_of"]),
        tags=frozenset(values["tags"]),
        groups=tuple(_read_group(one) for one in values.get("groups", ())),
        same_subtree=tuple(frozenset(one) for one in values.get("same_subtree", ())),
        isolate=values.get("isolate", False),
    )


def _statement(one: PolicyStatement) -> dict[str, object]:
    return {
        "name": one.name,
        "type": one.type,
        "members": [str(selector) for selector in one.members],
        "zip": one.zip,
        "weight": one.weight,
        "phases": sorted(one.phases),
        "parameters": {name: _plain(value) for name, value in one.parameters.items()},
    }


def _read_statement(values: Mapping[str, Any]) -> PolicyStatement:
    return PolicyStatement(
        name=values["name"],
        type=values["type"],
        members=tuple(Selector.parse(text) for text in values["members"]),
        zip=values["zip"],
        weight=values["weight"],
        phases=frozenset(Phase(one) for one in values["phases"]),
        parameters=MappingProxyType(dict(values["parameters"])),
    )


def _plain(value: object) -> object:
    if isinstance(value, frozenset | set):
        return sorted(value)
    return list(value) if isinstance(value, tuple) else value


def _lists(sets: Iterable[frozenset[str]]) -> list[list[str]]:
    return [sorted(one) for one in sets]
