"""Policies of an ensemble: put, merge or delete one, and report violations by present members."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from moorage.domain.changes import Changeset, PutEnsemble
from moorage.domain.describe import has_sides, read_statement
from moorage.domain.ensembles import ALL_PHASES
from moorage.domain.errors import InvalidDescription, NotFound
from moorage.policies.registry import parse
from moorage.usecases.compliance.judgement import broken_policies
from moorage.usecases.ensembles.policy_checks import check_names, check_policies
from moorage.usecases.ensembles.references import with_references
from moorage.usecases.shared.access import check_generation, own_ensemble
from moorage.usecases.shared.limits import check_size

if TYPE_CHECKING:
    from collections.abc import Mapping

    from moorage.domain.ensembles import Ensemble, PolicyStatement
    from moorage.usecases.compliance.judgement import PolicyViolation
    from moorage.usecases.environment import UseCaseEnvironment
    from moorage.usecases.ports import Caller


def written_statement(statement: PolicyStatement) -> dict[str, object]:
    """The statement in the form that `describe.read_statement` reads."""
    found: dict[str, object] = {
        "name": statement.name,
        "type": statement.type,
        "strength": "required" if statement.weight is None else {"preferred": statement.weight},
    }
    if not has_sides(statement.parameters):
        found["zip" if statement.zip else "members"] = [str(one) for one in statement.members]
    if statement.phases != ALL_PHASES:
        found["phase"] = sorted(phase.value for phase in statement.phases)
    if statement.on_violation is not None:
        found["on_violation"] = statement.on_violation.value
    return found | dict(statement.parameters)


def policy_meaning(statement: PolicyStatement, path: str) -> tuple[Any, ...]:
    """What a statement says, in comparable form; defaults count as if they were written.

    Raises:
        UnknownPolicy, InvalidDescription: it cannot be understood.
    """
    return (
        parse(statement, path=path),
        statement.zip,
        statement.members if statement.zip else frozenset(statement.members),
        statement.weight,
        statement.phases,
        statement.on_violation,
    )


def merged_statement(
    before: PolicyStatement, source: Mapping[str, object], path: str
) -> PolicyStatement:
    """The statement with the given fields replaced; a parameter given as null is dropped.

    Raises:
        InvalidDescription: the type would change, or the result is not valid.
    """
    if source.get("type", before.type) != before.type:
        raise InvalidDescription(
            f"policy {before.name} is of type {before.type}; remove it and add another",
            path=f"{path}.type",
        )
    base = written_statement(before)
    if "zip" in source:
        base.pop("members", None)
    if "members" in source:
        base.pop("zip", None)
    if has_sides(source):
        base = {key: value for key, value in base.items() if key not in {"members", "zip"}}
    merged = {**base, **source}
    return read_statement({k: v for k, v in merged.items() if v is not None}, path)


@dataclass(frozen=True, slots=True)
class PolicyChangeResult:
    """The changed ensemble, and its violations of the policy."""

    ensemble: Ensemble
    violations: tuple[PolicyViolation, ...]


def policy_named(ensemble: Ensemble, name: str) -> PolicyStatement:
    """The policy of that name.

    Raises:
        NotFound: there is none.
    """
    for statement in ensemble.policies:
        if statement.name == name:
            return statement
    raise NotFound("policy", name)


def put_policy(
    env: UseCaseEnvironment,
    caller: Caller,
    ensemble_id: str,
    statement: PolicyStatement,
    generation: int | None,
) -> PolicyChangeResult:
    """Write a policy; members that break it stay where they are and are reported.

    Raises:
        NotFound: no such ensemble for this caller.
        UnknownPolicy, UnknownName, InvalidDescription, Contradiction: as at creation.
        ConcurrentUpdate: the ensemble has another generation.
    """
    stored = own_ensemble(env.store, caller, ensemble_id)
    check_generation(stored, generation)
    by_name = {one.name: one for one in stored.policies} | {statement.name: statement}
    policies = tuple(by_name.values())
    changed = with_references(env.store, replace(stored, policies=policies), stored.policies)
    check_size(env.limits, changed, stored)
    check_names(env, caller, env.store.snapshot(), changed, stored.policies)
    return _write(env, stored, changed, statement.name)


def delete_policy(
    env: UseCaseEnvironment,
    caller: Caller,
    ensemble_id: str,
    name: str,
    generation: int | None,
) -> PolicyChangeResult:
    """Drop a policy.

    Raises:
        NotFound: no such ensemble, or policy of it, for this caller.
        ConcurrentUpdate: the ensemble has another generation.
    """
    stored = own_ensemble(env.store, caller, ensemble_id)
    check_generation(stored, generation)
    policy_named(stored, name)
    rest = tuple(one for one in stored.policies if one.name != name)
    return _write(env, stored, replace(stored, policies=rest), name)


def _write(
    env: UseCaseEnvironment,
    stored: Ensemble,
    changed: Ensemble,
    name: str,
) -> PolicyChangeResult:
    snapshot = env.store.snapshot()
    check_policies(snapshot.topology, changed, own=False)
    broken = tuple(one for one in broken_policies(snapshot, changed) if one.policy == name)
    changed = replace(changed, updated_at=env.store.now())
    env.store.commit(Changeset((PutEnsemble(changed, stored.generation, stored),)))
    changed = env.store.ensemble(stored.id)
    return PolicyChangeResult(changed, broken)
