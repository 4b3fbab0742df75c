"""Groups in descriptions: ensembles within an ensemble, made flat.

A member of kind `ensemble` has members and policies of its own, and may have copies. Its roles get
the path to them as a name (see `role_paths`), and its policies select within their copy.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from moorage.domain import plain_values
from moorage.domain.ensembles import MAX_MEMBERS, ROLE_NAME, SIDES, TAGGED
from moorage.domain.errors import InvalidDescription
from moorage.domain.references import REFERENCE

if TYPE_CHECKING:
    from collections.abc import Sequence

GROUP_KIND: Final = "ensemble"
"""The kind of a member that is a group."""
MAX_DEPTH: Final = 5
"""Groups within each other."""
_FIELDS: Final = frozenset({"name", "kind", "count", "members", "policies"})


@dataclass(frozen=True, slots=True)
class Located:
    """A part of a description, under the name that it has in the ensemble, and its place."""

    source: object
    path: str


@dataclass(frozen=True, slots=True)
class FlatDescription:
    """The roles and policies of a description and of all groups in it."""

    roles: list[Located] = field(default_factory=list)
    policies: list[Located] = field(default_factory=list)

    def add(self, fields: Mapping[str, object], prefix: str, path: str, depth: int) -> None:
        """Add the members and policies of a group; the ensemble itself has no prefix."""
        policies = plain_values.listed(fields.get("policies", ()), f"{path}policies")
        for i, one in enumerate(policies):
            where = f"{path}policies[{i}]"
            self.policies.append(Located(_within(one, prefix, where) if prefix else one, where))
        members = plain_values.listed(fields.get("members", ()), f"{path}members")
        _check_names(members, f"{path}members", nested=bool(prefix))
        for i, one in enumerate(members):
            where = f"{path}members[{i}]"
            if _is_group(one, where):
                self._add_group(plain_values.mapping(one, where), prefix, where, depth + 1)
            else:
                self.roles.append(Located(_named(one, prefix), where))
        if max(len(self.roles), len(self.policies)) > MAX_MEMBERS:
            raise InvalidDescription(
                f"more than {MAX_MEMBERS} roles or policies, with those of all copies of groups",
                path=f"{path}members",
            )

    def _add_group(self, fields: Mapping[str, object], prefix: str, path: str, depth: int) -> None:
        """Add every copy of a group."""
        plain_values.only(fields, _FIELDS, path)
        if depth > MAX_DEPTH:
            raise InvalidDescription(f"more than {MAX_DEPTH} groups within each other", path=path)
        if not plain_values.listed(fields.get("members", ()), f"{path}.members"):
            raise InvalidDescription("a group needs members", path=f"{path}.members")
        whole = f"{prefix}/{fields['name']}" if prefix else f"{fields['name']}"
        if "count" not in fields:
            self.add(fields, whole, f"{path}.", depth)
            return
        count = plain_values.count(fields["count"], f"{path}.count")
        if not count:
            raise InvalidDescription("a group has at least one copy", path=f"{path}.count")
        for copy in range(count):
            self.add(fields, f"{whole}/{copy}", f"{path}.", depth)


def flattened(fields: Mapping[str, object]) -> FlatDescription:
    """The roles and policies of a description, those of groups after its own.

    What else is wrong with a role or policy is left to who reads it.

    Raises:
        InvalidDescription: groups nested too deeply or with too many copies, an empty group, a name
            that comes twice or cannot be part of a path, or a policy of a group that selects a tag.
    """
    found = FlatDescription()
    found.add(fields, "", "", 0)
    return found


def flat_body(body: Mapping[str, Any]) -> dict[str, Any]:
    """A valid description as a plain body without groups."""
    flat = flattened(body)
    return {
        **body,
        "members": [one.source for one in flat.roles],
        "policies": [one.source for one in flat.policies],
    }


def _is_group(source: object, path: str) -> bool:
    if not isinstance(source, Mapping):
        return False
    if "members" in source and source.get("kind") != GROUP_KIND:
        raise InvalidDescription(
            f"what has members is a group: write kind: {GROUP_KIND}", path=f"{path}.kind"
        )
    return source.get("kind") == GROUP_KIND


def _check_names(members: Sequence[object], path: str, *, nested: bool) -> None:
    """Check the names of groups, and in groups those of roles, too: they become steps of paths.

    Raises:
        InvalidDescription: a name that is no step, or that of another group or role.
    """
    groups: list[str] = []
    roles: list[tuple[str, str]] = []
    for i, one in enumerate(members):
        if not isinstance(one, Mapping):
            continue
        name, where = one.get("name"), f"{path}[{i}].name"
        if one.get("kind") == GROUP_KIND:
            groups.append(_step(name, where))
        elif isinstance(name, str):
            roles.append((_step(name, where) if nested else name, where))
    plain_values.unique(groups, path)
    known = frozenset(groups)
    for name, where in roles:
        first = name.partition("/")[0]
        if first in known:
            told = "has the name of a group" if first == name else f"is a path into group {first}"
            raise InvalidDescription(f"role {name} {told}; describe it in there", path=where)


def _step(name: object, path: str) -> str:
    if name is None:
        raise InvalidDescription("a group needs a name, such as east", path=path)
    found = plain_values.text(name, path)
    if (
        ROLE_NAME.fullmatch(found) is None
        or "/" in found
        or found.isdigit()
        or found.startswith((TAGGED, REFERENCE))
    ):
        raise InvalidDescription(
            f"{found!r} cannot name a group or what is in one: a name begins with a letter, a digit"
            " or _, goes on with these and . : -, and is not only a number",
            path=path,
        )
    return found


def _named(source: object, prefix: str) -> object:
    """A role with its path for a name."""
    if not prefix or not isinstance(source, Mapping) or not isinstance(source.get("name"), str):
        return source
    return {**source, "name": f"{prefix}/{source['name']}"}


def _within(source: object, prefix: str, path: str) -> object:
    """A policy of a group, as one of the whole ensemble."""
    if isinstance(source, str):  # one of Nova's four names of policies
        soft = source.startswith("soft-")
        source = {
            "name": source,
            "type": source.removeprefix("soft-"),
            "members": ["*"],
            "strength": "preferred" if soft else "required",
        }
    if not isinstance(source, Mapping):
        return source
    fields = dict(source)
    name = fields.get("name", fields.get("type"))
    if isinstance(name, str):
        fields["name"] = f"{prefix}/{name}"
    for field_name in ("members", "zip"):
        if field_name in fields:
            where = f"{path}.{field_name}"
            fields[field_name] = _selectors_within(fields[field_name], prefix, where)
    sides = fields.get(SIDES)
    if isinstance(sides, list | tuple):
        where = f"{path}.{SIDES}"
        fields[SIDES] = [
            _selectors_within(one, prefix, f"{where}[{i}]") for i, one in enumerate(sides)
        ]
    return fields


def _selectors_within(source: object, prefix: str, path: str) -> list[object]:
    return [
        _selector_within(one, prefix, f"{path}[{i}]")
        for i, one in enumerate(plain_values.listed(source, path))
    ]


def _selector_within(source: object, prefix: str, path: str) -> object:
    if isinstance(source, Mapping) or (isinstance(source, str) and source.startswith(TAGGED)):
        raise InvalidDescription(
            "a policy of a group names roles and groups in it: tags are of the whole ensemble",
            path=path,
        )
    if not isinstance(source, str):
        return source
    if source.startswith(REFERENCE):
        return source
    return prefix if source == "*" else f"{prefix}/{source}"
