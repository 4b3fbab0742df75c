"""Ensemble descriptions, read from plain mappings.

YAML files, JSON bodies and Heat metadata arrive as dictionaries; here they become checked
values. Nothing is looked up: a flavor is still a name, a policy's parameters are still as
written (`policies` checks them). Unknown fields are errors that name their place.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, Final

from moorage.domain import deadline, plain_values
from moorage.domain.describe_members import CHOICE_FIELDS, RoleDescription, read_choice
from moorage.domain.describe_nested import flattened
from moorage.domain.describe_server_options import read_server_options
from moorage.domain.ensembles import (
    ALL_PHASES,
    MAX_MEMBERS,
    OF_NOVA,
    ROLE_NAME,
    SIDES,
    TAGGED,
    OnViolation,
    Phase,
    PolicyStatement,
    Selector,
)
from moorage.domain.errors import InvalidDescription, UnknownPolicy
from moorage.domain.references import REFERENCE
from moorage.domain.words import counted, shown

NOVA_SHORTHAND: Final[Mapping[str, tuple[str, int | None]]] = MappingProxyType(
    {
        "affinity": ("affinity", None),
        "anti-affinity": ("anti-affinity", None),
        "soft-affinity": ("affinity", 1),
        "soft-anti-affinity": ("anti-affinity", 1),
    }
)
"""Nova's four names -> (type, weight); each stands for a policy on `*` at host level."""

MAX_WEIGHT: Final = 1_000_000
MAX_METADATA: Final = 128
_ZIPPED: Final = 2
"""Selectors that a zip needs at least: a hyperedge of one member says nothing."""
_ROLE_FIELDS: Final = CHOICE_FIELDS | {
    *("name", "count", "tags", "server", "alternatives", "project", "min_available"),
}
FEWEST_ALTERNATIVES: Final = 2
MOST_ALTERNATIVES: Final = 8
STATEMENT_FIELDS: Final = frozenset(
    {"name", "type", "members", "zip", "strength", "phase", "on_violation"}
)
"""What every policy has, beside the parameters of its type."""


@dataclass(frozen=True, slots=True)
class EnsembleDescription:
    """An ensemble as described."""

    name: str
    roles: tuple[RoleDescription, ...] = ()
    policies: tuple[PolicyStatement, ...] = ()
    metadata: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    template: tuple[str, int] | None = None
    """Id and version of the template that it was made of."""


def read_ensemble(source: object) -> EnsembleDescription:
    """Read `{"name", "members", "policies", "metadata"}`; groups are made flat.

    Raises:
        InvalidDescription: a missing, unknown or ill-typed field; `path` names it.
    """
    fields = plain_values.mapping(source, "ensemble")
    plain_values.only(fields, {"name", "members", "policies", "metadata"}, "")
    flat = flattened(fields)
    roles = tuple(replace(read_role(one.source, one.path), path=one.path) for one in flat.roles)
    plain_values.unique((role.name for role in roles), "members")
    if sum(role.count for role in roles) > MAX_MEMBERS:
        raise InvalidDescription(f"more than {MAX_MEMBERS} members", path="members")
    statements = tuple(read_statement(one.source, one.path) for one in flat.policies)
    plain_values.unique((statement.name for statement in statements), "policies")
    return EnsembleDescription(
        name=plain_values.name(fields.get("name"), "name"),
        roles=roles,
        policies=statements,
        metadata=read_metadata(fields.get("metadata", {})),
    )


def read_metadata(source: object) -> Mapping[str, str]:
    """Read free metadata: a flat mapping of strings.

    Raises:
        InvalidDescription: another form, or more than `MAX_METADATA` entries.
    """
    entries = plain_values.mapping(source, "metadata")
    if len(entries) > MAX_METADATA:
        raise InvalidDescription(f"more than {MAX_METADATA} metadata entries", path="metadata")
    return MappingProxyType(
        {
            plain_values.name(key, "metadata"): plain_values.text(
                value, f"metadata.{key}", most=1024
            )
            for key, value in sorted(entries.items())
        }
    )


def read_role(source: object, path: str) -> RoleDescription:
    """Read one entry of `members`; traits and aggregates may nest a list for "any of".

    Raises:
        InvalidDescription: a missing, unknown or ill-typed field, or a role that asks for nothing.
    """
    fields = plain_values.mapping(source, path)
    plain_values.only(fields, _ROLE_FIELDS, path)
    deadline.check()
    name = _role_name(fields.get("name"), f"{path}.name")
    common: dict[str, Any] = {
        "count": plain_values.count(fields.get("count", 1), f"{path}.count"),
        "tags": plain_values.names(fields.get("tags", ()), f"{path}.tags"),
        "server": None
        if "server" not in fields
        else read_server_options(fields["server"], f"{path}.server"),
        "project": None
        if "project" not in fields
        else plain_values.name(fields["project"], f"{path}.project"),
    }
    common["min_available"] = _min_available(name, fields, common["count"], path)
    role = _read_choices(name, fields, common, path)
    kinds = {one.kind for one in (role, *role.alternatives)}
    if role.server is not None and kinds.isdisjoint(OF_NOVA):
        raise InvalidDescription(
            f"role {name} is of kind {role.kind}, which has no server", path=f"{path}.server"
        )
    return role


def _min_available(name: str, fields: Mapping[str, object], count: int, path: str) -> int:
    """How many of the role's `count` members must be up; 0: nothing is said.

    Raises:
        InvalidDescription: no number of members, or more than there are.
    """
    where = f"{path}.min_available"
    if isinstance(said := fields.get("min_available"), str):
        raise InvalidDescription(
            f"min_available is a number of members, 0 to {count}, not {shown(said)}", path=where
        )
    least = plain_values.count(fields.get("min_available", 0), where)
    if least > count:
        has = counted(count, "member")
        raise InvalidDescription(
            f"role {name} has {has}, so min_available is 0 to {count}, not {least}", path=where
        )
    return least


def _read_choices(
    name: str, fields: Mapping[str, object], common: Mapping[str, Any], path: str
) -> RoleDescription:
    """What the members are, each alternative with what the role says for all of them."""
    if "alternatives" not in fields:
        chosen = {key: value for key, value in fields.items() if key in CHOICE_FIELDS}
        return read_choice(name, chosen, path, common)
    if beside := sorted(CHOICE_FIELDS & fields.keys()):
        raise InvalidDescription(
            f"role {name} has alternatives, which say what its members are",
            path=f"{path}.{beside[0]}",
        )
    place = f"{path}.alternatives"
    entries = plain_values.listed(fields["alternatives"], place)
    if not FEWEST_ALTERNATIVES <= len(entries) <= MOST_ALTERNATIVES:
        raise InvalidDescription(
            f"{FEWEST_ALTERNATIVES} to {MOST_ALTERNATIVES} alternatives, not {len(entries)}",
            path=place,
        )
    first, *others = (
        read_choice(name, one, f"{place}[{i}]", common) for i, one in enumerate(entries)
    )
    return replace(first, alternatives=tuple(others))


def _role_name(source: object, path: str) -> str:
    if source is None:
        raise InvalidDescription("a role needs a name, such as web", path=path)
    name = plain_values.text(source, path)
    if ROLE_NAME.fullmatch(name) is None:
        raise InvalidDescription(
            f"{name!r} cannot name a role: a name begins with a letter, a digit or _, goes on with"
            " these and . / : -, and has at most 128 characters",
            path=path,
        )
    if name.startswith((TAGGED, REFERENCE)):
        raise InvalidDescription(
            f"{name!r} cannot name a role: {TAGGED} in a selector means all roles with a tag,"
            f" {REFERENCE} another ensemble",
            path=path,
        )
    return name


def read_statement(source: object, path: str) -> PolicyStatement:
    """Read one entry of `policies`: a mapping, or one of Nova's four names.

    `members` lists selectors that make one hyperedge, `zip` selectors whose i-th members make
    one each; sides in `between` stand for the former. Every field that is not the statement's own
    is a parameter of its type.

    Raises:
        InvalidDescription: a missing or ill-typed field.
    """
    if isinstance(source, str):
        return _shorthand(source, path)
    fields = plain_values.mapping(source, path)
    if fields.get("type") is None:
        raise InvalidDescription("a policy needs a type, such as spread", path=f"{path}.type")
    kind = plain_values.text(fields["type"], f"{path}.type")
    zipped = "zip" in fields
    where = f"{path}.{'zip' if zipped else 'members'}"
    read = _selectors(fields, path)
    if zipped and (len(read) < _ZIPPED or len(set(read)) < len(read)):
        raise InvalidDescription("zip joins members of two different selectors or more", path=where)
    return PolicyStatement(
        name=plain_values.name(fields.get("name", kind), f"{path}.name"),
        type=kind,
        members=read,
        zip=zipped,
        weight=read_strength(fields.get("strength", "required"), f"{path}.strength"),
        phases=_phases(fields.get("phase"), f"{path}.phase"),
        parameters=MappingProxyType(
            {name: fields[name] for name in sorted(fields) if name not in STATEMENT_FIELDS}
        ),
        on_violation=_on_violation(fields, f"{path}.on_violation"),
        path=path,
    )


def _selectors(fields: Mapping[str, object], path: str) -> tuple[Selector, ...]:
    """The selectors of a policy: its members, those of a zip, or those of its sides."""
    sides = fields.get(SIDES)
    of_sides: set[str] = set()
    named = [one for one in ("members", "zip") if one in fields]
    if has_sides(fields):
        if named:
            raise InvalidDescription(
                f"the sides in {SIDES} say whom the policy is about: leave out {named[0]}",
                path=f"{path}.{named[0]}",
            )
        where = f"{path}.{SIDES}"
        lists = [(one, f"{where}[{i}]") for i, one in enumerate(plain_values.listed(sides, where))]
        of_sides = {place for _, place in lists}
    elif len(named) == 1:
        lists = [(fields[named[0]], f"{path}.{named[0]}")]
    else:
        raise InvalidDescription(
            "a policy says whom it is about: give members or zip, and not both", path=path
        )
    found = [
        read_selector(one, f"{where}[{i}]")
        for source, where in lists
        for i, one in enumerate(plain_values.listed(source, where))
        if where not in of_sides or not (isinstance(one, str) and one.startswith(REFERENCE))
    ]
    if not found:
        where = lists[0][1] if lists else f"{path}.{SIDES}"
        raise InvalidDescription("a policy needs at least one selector", path=where)
    return tuple(found)


def has_sides(fields: Mapping[str, object]) -> bool:
    """Whether a policy names sides, which then say whom it is about."""
    return isinstance(fields.get(SIDES), list | tuple)


def read_selector(source: object, path: str) -> Selector:
    """Read `role`, `role[i]`, `*`, `tag:x` or `{"tag": x}`.

    Raises:
        InvalidDescription: another form.
    """
    if isinstance(source, Mapping):
        plain_values.only(source, {"tag"}, path)
        return Selector(tag=plain_values.name(source.get("tag"), f"{path}.tag"))
    text = plain_values.text(source, path)
    try:
        selector = Selector.parse(text)
    except InvalidDescription as error:
        raise InvalidDescription(error.message, path=path) from error
    if selector.role is not None and ROLE_NAME.fullmatch(selector.role) is None:
        raise InvalidDescription(
            f"{text!r} selects nothing: write a role (web), a member (web[0]), a tag (tag:edge)"
            " or * for everyone",
            path=path,
        )
    return selector


def read_strength(source: object, path: str) -> int | None:
    """Read `required`, `preferred` (weight 1) or `{"preferred": weight}`; None is required.

    Raises:
        InvalidDescription: another form, or a weight outside `1..MAX_WEIGHT`.
    """
    if source == "required":
        return None
    if source == "preferred":
        return 1
    if isinstance(source, Mapping) and set(source) == {"preferred"}:
        weight = source["preferred"]
        if isinstance(weight, int) and not isinstance(weight, bool) and 1 <= weight <= MAX_WEIGHT:
            return weight
    raise InvalidDescription(
        f"strength is required, preferred or {{preferred: 1..{MAX_WEIGHT}}}, not {source!r}",
        path=path,
    )


def _shorthand(text: str, path: str) -> PolicyStatement:
    if text not in NOVA_SHORTHAND:
        near = difflib.get_close_matches(text, NOVA_SHORTHAND, n=1, cutoff=0.5)
        hint = f"did you mean {near[0]}?" if near else f"there are: {', '.join(NOVA_SHORTHAND)}"
        raise UnknownPolicy(f"unknown policy name {text!r}; {hint}", path=path)
    kind, weight = NOVA_SHORTHAND[text]
    return PolicyStatement(
        name=text,
        type=kind,
        members=(Selector(everyone=True),),
        weight=weight,
        parameters=MappingProxyType({"level": "host"}),
        path=path,
    )


def _on_violation(fields: Mapping[str, object], path: str) -> OnViolation | None:
    said = fields.get("on_violation")
    if said is None:
        return None
    if not isinstance(said, str) or said not in {*OnViolation}:
        known = ", ".join(OnViolation)
        raise InvalidDescription(f"on_violation is one of {known}, not {said!r}", path=path)
    if fields.get("strength", "required") != "required":
        raise InvalidDescription("only a required policy has on_violation", path=path)
    return OnViolation(said)


def _phases(source: object, path: str) -> frozenset[Phase]:
    if source is None:
        return ALL_PHASES
    names = plain_values.names([source] if isinstance(source, str) else source, path)
    try:
        phases = frozenset(Phase(name) for name in names)
    except ValueError as error:
        known = ", ".join(Phase)
        raise InvalidDescription(f"phases are {known}: {error}", path=path) from error
    if not phases:
        raise InvalidDescription("a policy needs at least one phase", path=path)
    return phases
