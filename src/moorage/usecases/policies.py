"""Policies of an ensemble: put or delete one, with its effect on the present members."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from moorage.domain.changes import Changeset, PutEnsemble
from moorage.domain.errors import NotFound
from moorage.usecases.access import check_generation, own_ensemble
from moorage.usecases.compliance import broken_policies
from moorage.usecases.soundness import check_names, check_policies

if TYPE_CHECKING:
    from moorage.domain.ensembles import Ensemble, PolicyStatement
    from moorage.usecases.compliance import PolicyViolation
    from moorage.usecases.parts import Parts
    from moorage.usecases.ports import Caller


@dataclass(frozen=True, slots=True)
class Effect:
    """The ensemble after the change, and what the policy then finds violated."""

    ensemble: Ensemble
    violations: tuple[PolicyViolation, ...]
    dry_run: bool = False


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
    parts: Parts,
    caller: Caller,
    ensemble_id: str,
    statement: PolicyStatement,
    generation: int | None,
    *,
    dry_run: bool = False,
) -> Effect:
    """Write a policy; members that break it stay where they are and are reported.

    Raises:
        NotFound: no such ensemble for this caller.
        UnknownPolicy, UnknownName, InvalidDescription, Contradiction: as at creation.
        ConcurrentUpdate: the ensemble has another generation.
    """
    stored = own_ensemble(parts.store, caller, ensemble_id)
    check_generation(stored, generation)
    by_name = {one.name: one for one in stored.policies} | {statement.name: statement}
    policies = tuple(by_name.values())
    changed = replace(stored, policies=policies)
    check_names(parts.store, caller, parts.store.snapshot(), changed, stored.policies)
    return _write(parts, stored, policies, statement.name, dry_run=dry_run)


def delete_policy(
    parts: Parts,
    caller: Caller,
    ensemble_id: str,
    name: str,
    generation: int | None,
    *,
    dry_run: bool = False,
) -> Effect:
    """Drop a policy.

    Raises:
        NotFound: no such ensemble, or policy of it, for this caller.
        ConcurrentUpdate: the ensemble has another generation.
    """
    stored = own_ensemble(parts.store, caller, ensemble_id)
    check_generation(stored, generation)
    policy_named(stored, name)
    rest = tuple(one for one in stored.policies if one.name != name)
    return _write(parts, stored, rest, name, dry_run=dry_run)


def _write(
    parts: Parts,
    stored: Ensemble,
    policies: tuple[PolicyStatement, ...],
    name: str,
    *,
    dry_run: bool,
) -> Effect:
    snapshot = parts.store.snapshot()
    changed = replace(stored, policies=policies)
    check_policies(snapshot.topology, changed)
    broken = tuple(one for one in broken_policies(snapshot, changed) if one.policy == name)
    if not dry_run:
        changed = replace(changed, updated_at=parts.store.now())
        parts.store.commit(Changeset((PutEnsemble(changed, stored.generation),)))
        changed = parts.store.ensemble(stored.id)
    return Effect(changed, broken, dry_run)
