"""Whose is it: every read of a project's things goes through here.

A thing of another project is NotFound, never Forbidden: that it exists is not the caller's to
know. `Caller.operator` sees every project.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from moorage.domain.errors import Forbidden, NotFound, StaleGeneration

if TYPE_CHECKING:
    from moorage.domain.decisions import Claim, Decision
    from moorage.domain.ensembles import Ensemble
    from moorage.domain.explain import Explanation
    from moorage.domain.leases import Lease
    from moorage.domain.series import Series
    from moorage.usecases.ports import Caller, Store


def sees(caller: Caller, project_id: str) -> bool:
    """Whether things of the project exist for the caller."""
    return caller.operator or caller.project_id == project_id


def own_ensemble(store: Store, caller: Caller, ensemble_id: str) -> Ensemble:
    """The ensemble, if it is the caller's.

    Raises:
        NotFound: there is none, or it is another project's.
    """
    ensemble = store.ensemble(ensemble_id)
    if not sees(caller, ensemble.project_id):
        raise NotFound("ensemble", ensemble_id)
    return ensemble


def own_decision(store: Store, caller: Caller, decision_id: str) -> Decision:
    """The decision, if it is the caller's.

    Raises:
        NotFound: there is none, or it is another project's.
    """
    decision = store.decision(decision_id)
    if not sees(caller, decision.project_id):
        raise NotFound("decision", decision_id)
    return decision


def check_generation(stored: Ensemble | Decision | Lease | Series, generation: int | None) -> None:
    """Let a change pass whose caller knows the newest generation, or names none.

    Raises:
        StaleGeneration: it names another.
    """
    if generation is not None and generation != stored.generation:
        kind = type(stored).__name__.lower()
        raise StaleGeneration(kind, stored.id, expected=generation, actual=stored.generation)


def own_claim(store: Store, caller: Caller, claim_id: str) -> Claim:
    """The claim, if it is the caller's.

    Raises:
        NotFound: there is none, or it is another project's.
    """
    claim = store.claim(claim_id)
    if not sees(caller, claim.project_id):
        raise NotFound("claim", claim_id)
    return claim


def own_explanation(store: Store, caller: Caller, explanation_id: str) -> tuple[Explanation, str]:
    """The explanation and its replayable instance, if it is the caller's.

    The instance names hosts and loads: `replayable` decides who gets it.

    Raises:
        NotFound: there is none, or it is another project's.
    """
    explanation, project_id, instance = store.explanation(explanation_id)
    if not sees(caller, project_id):
        raise NotFound("explanation", explanation_id)
    return explanation, instance


def own_refusal(store: Store, caller: Caller, request: str) -> tuple[Explanation, str]:
    """As `own_explanation`, by the id that the client gave to the request that was refused.

    Raises:
        NotFound: no request of that id was refused, or it was another project's.
    """
    project = None if caller.operator else caller.project_id
    explanation, _, instance = store.refusal(request, project_id=project)
    return explanation, instance


def for_operators(caller: Caller) -> None:
    """Let operators pass.

    Raises:
        Forbidden: the caller is none.
    """
    if not caller.operator:
        raise Forbidden("only operators may do this")


def visible_project(caller: Caller, *, all_projects: bool, project_id: str | None) -> str | None:
    """Which project a listing is about; None means every one.

    Raises:
        Forbidden: a tenant asked for another project's.
    """
    if project_id is None and not all_projects:
        return caller.project_id
    if not caller.operator and (all_projects or project_id != caller.project_id):
        raise Forbidden("only operators may list other projects")
    return None if all_projects else project_id
