"""Does a description, such as a template's, describe this ensemble?

Roles are compared by what they ask for, not by how it was written: a flavor by its resources,
a policy by its parameters with their defaults. The ensemble may have policies the description
does not state; the other way round is a difference.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from moorage.engine.wishes import words
from moorage.policies.registry import parse
from moorage.usecases.compare import difference
from moorage.usecases.roles import resolve

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from moorage.domain.describe import EnsembleDescription
    from moorage.domain.ensembles import Ensemble, PolicyStatement, Role
    from moorage.usecases.ports import Store


def differences(
    store: Store, description: EnsembleDescription, ensemble: Ensemble
) -> tuple[Mapping[str, object], ...]:
    """Every field in which the description differs from the ensemble.

    `described` is the ensemble's value, `requested` the description's, as in a claim's answer.

    Raises:
        UnknownName: the description names a flavor, class or trait that is not known here.
        UnknownPolicy, InvalidDescription: a policy of the description cannot be understood.
    """
    roles = {role.name: role for role in resolve(store, description.roles)}
    counts = {role.name: role.count for role in description.roles}
    found = [
        difference(role.name, "missing", "a role", None)
        for role in ensemble.roles
        if role.name not in roles
    ]
    for name, role in roles.items():
        known = next((one for one in ensemble.roles if one.name == name), None)
        if known is None:
            found.append(difference(name, "unknown", None, "a role"))
            continue
        if counts[name] != ensemble.count(name):
            found.append(difference(f"{name}.count", "differs", ensemble.count(name), counts[name]))
        found += _roles_differ(known, role)
    return (*found, *_policies_differ(description.policies, ensemble))


def _roles_differ(known: Role, role: Role) -> Iterator[Mapping[str, object]]:
    for name in sorted(known.resources.keys() | role.resources.keys()):
        held, asked = known.resources.get(name, 0), role.resources.get(name, 0)
        if held != asked:
            effect = "exceeds" if asked > held else "narrower"
            yield difference(f"{role.name}.{name}", effect, held, asked)
    fields: tuple[tuple[str, object, object], ...] = (
        ("required", _groups(known.required), _groups(role.required)),
        ("forbidden", sorted(known.forbidden), sorted(role.forbidden)),
        ("member_of", _groups(known.member_of), _groups(role.member_of)),
        ("tags", sorted(known.tags), sorted(role.tags)),
        ("groups", _devices(known), _devices(role)),
    )
    for field, before, after in fields:
        if before != after:
            yield difference(f"{role.name}.{field}", "differs", before, after)


def _devices(role: Role) -> list[list[str]]:
    """Ports, volumes and groups with what they ask for, and how they hang together."""
    asked = [
        [one.kind, one.name, words(one.resources, one.required), f"beside: {one.beside}"]
        + sorted(one.forbidden)
        + ["|".join(sorted(any_of)) for any_of in one.member_of]
        for one in sorted(role.groups, key=lambda one: (one.kind, one.name))
    ]
    together = [["same_subtree", *sorted(names)] for names in role.same_subtree]
    return [*asked, *sorted(together), *([["isolate"]] if role.isolate else [])]


def _groups(groups: tuple[frozenset[str], ...]) -> list[list[str]]:
    return sorted(sorted(group) for group in set(groups))


def _policies_differ(
    statements: tuple[PolicyStatement, ...], ensemble: Ensemble
) -> Iterator[Mapping[str, object]]:
    known = {one.name: one for one in ensemble.policies}
    for index, statement in enumerate(statements):
        path = f"policies.{statement.name}"
        meaning = _meaning(statement, f"policies[{index}]")
        there = known.get(statement.name)
        if there is None:
            yield difference(path, "unknown", None, statement.type)
        elif _meaning(there, path) != meaning:
            yield difference(path, "differs", there.type, statement.type)


def _meaning(statement: PolicyStatement, path: str) -> tuple[Any, ...]:
    return (
        parse(statement, path=path),
        statement.zip,
        statement.members if statement.zip else frozenset(statement.members),
        statement.weight,
        statement.phases,
    )
