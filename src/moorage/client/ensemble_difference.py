"""How an ensemble differs from a description of it, and the change that makes it equal."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, Final

import msgspec

from moorage.domain.describe import read_role, read_statement
from moorage.domain.describe_members import (
    CHANGEABLE,
    CHOICE_FIELDS,
    FIELDS_OF,
    PLACING,
    RoleDescription,
)
from moorage.domain.errors import Conflict
from moorage.domain.flavors import Flavor
from moorage.domain.nova.flavors import request_without_devices
from moorage.domain.nova_servers import FlavorSize, ServerOptions

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from moorage.domain.describe import EnsembleDescription
    from moorage.domain.ensembles import PolicyStatement
    from moorage.wire.ensembles import Ensemble, Role
    from moorage.wire.flavors import FlavorValue

_PLACING: Final = PLACING | {"from_volume"}  # what the field `boot_from_volume` sets
_CHANGES: Final = CHANGEABLE | _PLACING
"""Attributes of a description that the service can change."""
_FOLLOWS: Final = (
    *("root_required", "flavor_groups", "host_checks", "alternatives"),
    *("share", "others"),
)
"""Fields of a role of the service's that no description has, or not in this form."""
_COMPARED: Final = tuple(
    one.name for one in fields(RoleDescription) if one.name not in {"name", "count", "path"}
)


@dataclass(frozen=True, slots=True)
class Difference:
    """A part of the description in which the ensemble differs."""

    subject: str
    """`role`, `policy` or `metadata`."""
    name: str
    field: str | None
    """None: the whole is new, or is there and not described."""
    before: Any
    after: Any

    @property
    def possible(self) -> bool:
        """Whether the service can change it in an ensemble that is there."""
        return self.subject != "role" or self.field is None or self.field in _CHANGES

    def __str__(self) -> str:
        what = f"{self.subject} {self.name}".strip()
        if self.field is None:
            return f"{'+' if self.before is None else '-'} {what}"
        if self.field in {"count", "flavor", "min_available"}:
            before, after = self.before or "none", self.after or "none"
            return f"~ {what}: {self.field} {before} -> {after}"
        return f"~ {what}: {self.field}"


class NotChangeable(Conflict):
    """A field of a role that stays as it is for the life of the ensemble."""

    def __init__(self, ensemble: str, differences: Sequence[Difference]) -> None:
        told = ", ".join(f"{one.field} of role {one.name}" for one in differences)
        super().__init__(
            f"{told} cannot change in an ensemble that is there: describe another role beside it,"
            f" or start again: moorage ensemble delete {ensemble}"
        )


def differences(
    stored: Ensemble, wanted: EnsembleDescription, flavors: Mapping[str, FlavorValue]
) -> list[Difference]:
    """All differences, roles first; `flavors` are the service's, by name and by id."""
    return [
        *_roles(stored, wanted, flavors),
        *_policies(stored, wanted),
        *(
            [Difference("metadata", "", "value", stored.metadata, dict(wanted.metadata))]
            if stored.metadata != dict(wanted.metadata)
            else []
        ),
    ]


def change(
    stored: Ensemble, described: Mapping[str, Any], found: Sequence[Difference]
) -> dict[str, Any]:
    """The body of the change that makes the ensemble as `described`, a plain description.

    Raises:
        NotChangeable: the service cannot change all of it.
    """
    impossible = [one for one in found if not one.possible]
    if impossible:
        raise NotChangeable(stored.name, impossible)
    body: dict[str, Any] = {"generation": stored.generation}
    if any(one.subject == "role" for one in found):
        body["members"] = _changed_roles(described, found)
    changed = {one.name for one in found if one.subject == "policy"}
    if changed:
        # A changed policy is written anew: parameters that are not described end.
        body["policies"] = [_as_mapping(one) for one in described.get("policies", ())]
        there = {one["name"] for one in stored.policies}
        body["remove_policies"] = sorted(changed & there)
    if any(one.subject == "metadata" for one in found):
        body["metadata"] = dict(described.get("metadata", {}))
    return body


def _changed_roles(
    described: Mapping[str, Any], found: Sequence[Difference]
) -> list[dict[str, Any]]:
    """The described roles in their order, so that errors name their places; then those that go."""
    of_role: dict[str, list[Difference]] = {}
    for one in found:
        if one.subject == "role":
            of_role.setdefault(one.name, []).append(one)
    roles: list[dict[str, Any]] = []
    for role in described.get("members", ()):
        changes = of_role.pop(role["name"], [])
        if any(one.field is None for one in changes):
            roles.append(role)
            continue
        changed = {one.field for one in changes}
        entry: dict[str, Any] = {"name": role["name"]}
        if "count" in changed:
            entry["count"] = role.get("count", 1)
        if "server" in changed:
            entry["server"] = role.get("server", {})
        if "min_available" in changed:
            entry["min_available"] = role.get("min_available", 0)
        if changed & _PLACING:
            entry |= _placing(role)
        roles.append(entry)
    # A role that is not described needs no member to be up, either.
    return [*roles, *({"name": name, "count": 0, "min_available": 0} for name in of_role)]


def _placing(role: Mapping[str, Any]) -> dict[str, Any]:
    """All that a described role says of where its members may be: what it leaves out ends."""
    lists: dict[str, Any] = {"required": [], "forbidden": [], "member_of": []}
    image = {} if "flavor" not in role else {"image_properties": None, "boot_from_volume": False}
    return {**lists, **image, **{name: role[name] for name in PLACING if name in role}}


def _as_mapping(source: object) -> object:
    """One of Nova's four names of a policy as the mapping that it stands for."""
    if not isinstance(source, str):
        return source
    statement = read_statement(source, "policies")
    strength = "required" if statement.weight is None else {"preferred": statement.weight}
    return {
        "name": statement.name,
        "type": statement.type,
        "members": [str(one) for one in statement.members],
        "strength": strength,
        **statement.parameters,
    }


def _roles(
    stored: Ensemble, wanted: EnsembleDescription, flavors: Mapping[str, FlavorValue]
) -> Iterator[Difference]:
    there = {one.name: one for one in stored.members}
    described = {one.name: one for one in wanted.roles}
    for name, role in described.items():
        if name not in there:
            yield Difference("role", name, None, None, role)
            continue
        before = _description(there[name])
        if role.count != before.count:
            yield Difference("role", name, "count", before.count, role.count)
        after = _with_flavor(role, flavors)
        before, after = _with_choices_alone(before), _with_choices_alone(after)
        for field in _COMPARED:
            old, new = getattr(before, field), getattr(after, field)
            if _comparable(old) != _comparable(new):
                yield Difference("role", name, field, old, new)
    for name, role_there in there.items():
        if name not in described and role_there.count:
            yield Difference("role", name, None, role_there, None)


def _with_choices_alone(role: RoleDescription) -> RoleDescription:
    """The role, whose alternatives do not repeat what it says for all of them."""
    alone = (
        replace(one, count=1, tags=frozenset(), server=None, project=None)
        for one in role.alternatives
    )
    return replace(role, alternatives=tuple(alone))


def _description(role: Role) -> RoleDescription:
    """A role of the service's as its description; traits of its flavor are in it."""
    body = _said(role)
    if role.alternatives:
        for field in CHOICE_FIELDS:
            body.pop(field, None)
        body["alternatives"] = [
            {key: value for key, value in _said(one).items() if key in CHOICE_FIELDS}
            for one in role.alternatives
        ]
    return read_role(body, f"role {role.name}")


def _said(role: Role) -> dict[str, Any]:
    """The fields of a role that a description has, too, but for its alternatives."""
    body: dict[str, Any] = msgspec.to_builtins(role)
    for follows in _FOLLOWS:
        body.pop(follows, None)
    if "project_id" in body:
        body["project"] = body.pop("project_id")
    for of_others in CHOICE_FIELDS - FIELDS_OF[role.kind]:
        body.pop(of_others, None)
    if role.flavor is None:
        body.pop("flavor", None)
    if role.flavor is not None or not role.resources:
        del body["resources"]
    return body


def _with_flavor(role: RoleDescription, flavors: Mapping[str, FlavorValue]) -> RoleDescription:
    """The description with its flavor's name and traits, as the service resolves it."""
    if role.alternatives:
        others = tuple(_with_flavor(one, flavors) for one in role.alternatives)
        return replace(_with_flavor(replace(role, alternatives=()), flavors), alternatives=others)
    flavor = flavors.get(role.flavor or "")
    if flavor is None:
        return role
    asked = request_without_devices(
        _flavor(flavor), role.image_properties, from_volume=role.from_volume, others=role.groups
    )
    return replace(
        role,
        flavor=flavor.name,
        required=tuple(dict.fromkeys((*asked.required, *role.required))),
        forbidden=role.forbidden | asked.forbidden,
        isolate=role.isolate or flavor.group_policy == "isolate",
    )


def _flavor(flavor: FlavorValue) -> Flavor:
    """The flavor, as far as its traits follow from it."""
    size = flavor.size
    return Flavor(
        id=flavor.id,
        name=flavor.name,
        resources=flavor.resources,
        required=tuple(
            frozenset([one] if isinstance(one, str) else one) for one in flavor.required
        ),
        forbidden=frozenset(flavor.forbidden),
        extra_specs=flavor.extra_specs,
        size=None
        if size is None
        else FlavorSize(size.vcpus, size.ram, size.disk, size.ephemeral, size.swap),
    )


def _comparable(value: object) -> object:
    """A value without its order where that says nothing."""
    if value is None:
        return ServerOptions()
    if isinstance(value, tuple) and all(isinstance(one, frozenset) for one in value):
        return frozenset(value)
    if isinstance(value, tuple):
        return {getattr(one, "name", one): one for one in value}
    return value


def _policies(stored: Ensemble, wanted: EnsembleDescription) -> Iterator[Difference]:
    there = {one["name"]: read_statement(one, "policies") for one in stored.policies}
    described: dict[str, PolicyStatement] = {one.name: one for one in wanted.policies}
    for name, policy in described.items():
        if name not in there:
            yield Difference("policy", name, None, None, policy)
        elif there[name] != policy:
            yield Difference("policy", name, "parameters", there[name], policy)
    for name, statement in there.items():
        if name not in described:
            yield Difference("policy", name, None, statement, None)
