"""Access to ensembles that several projects have roles in, and to decisions about them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from moorage.domain.errors import Forbidden, InvalidDescription, NotFound, WrongState
from moorage.domain.refusal_commands import to_offer_count
from moorage.usecases.shared.access import sees, visible_project
from moorage.usecases.shared.lookup import if_stored

if TYPE_CHECKING:
    from collections.abc import Sequence

    from moorage.domain.decisions import Claim, Decision
    from moorage.domain.ensembles import Ensemble
    from moorage.usecases.paging import Page
    from moorage.usecases.ports import Caller, Store
    from moorage.usecases.shared.environment import Environment


def seen_ensemble(store: Store, caller: Caller, ensemble_id: str) -> Ensemble:
    """The ensemble, if it is the caller's, or the caller's project takes part in it.

    It is whole: what the caller may see of it says `domain.disclosure.as_seen_by`.

    Raises:
        NotFound: there is none for this caller.
    """
    ensemble = store.ensemble(ensemble_id)
    if not (sees(caller, ensemble.project_id) or ensemble.is_joined_by(caller.project_id)):
        raise NotFound("ensemble", ensemble_id)
    return ensemble


def seen_decision(store: Store, caller: Caller, decision_id: str) -> Decision:
    """The decision, if it is the caller's, or about an ensemble that its project takes part in.

    Raises:
        NotFound: there is none for this caller.
    """
    decision = store.decision(decision_id)
    if not (caller.operator or _reads(store, caller.project_id, decision)):
        raise NotFound("decision", decision_id)
    return decision


def _reads(store: Store, project_id: str, decision: Decision) -> bool:
    """Whether a decision is the project's, or about an ensemble that it takes part in."""
    if decision.project_id == project_id:
        return True
    ensemble = if_stored(store.ensemble, decision.ensemble_id)
    return ensemble is not None and ensemble.is_joined_by(project_id)


def own_decision(store: Store, caller: Caller, decision_id: str) -> Decision:
    """The decision, if it is the caller's.

    Raises:
        NotFound: there is none that the caller may see.
        Forbidden: its ensemble is another project's, and the caller's project takes part in it.
    """
    decision = seen_decision(store, caller, decision_id)
    if not sees(caller, decision.project_id):
        raise Forbidden(f"only project {decision.project_id} may do this to its decision")
    return decision


def list_decisions(
    env: Environment,
    caller: Caller,
    page: Page,
    *,
    ensemble_id: str | None = None,
    all_projects: bool = False,
) -> Sequence[Decision]:
    """The decisions that the caller's project may read, newest first.

    They are its own, and those about ensembles that it takes part in; with `ensemble_id` those
    about that ensemble.

    Raises:
        Forbidden: a tenant asked for another project's decisions.
        NotFound: no such ensemble, or no decision with the page's marker, for this caller.
    """
    if page.marker is not None:
        seen_decision(env.store, caller, page.marker)
    if ensemble_id is not None:
        ensemble = seen_ensemble(env.store, caller, ensemble_id)
        return env.store.decisions(
            project_id=ensemble.project_id, ensemble_id=ensemble.id, page=page
        )
    project = visible_project(caller, all_projects=all_projects, project_id=None)
    if project is None:
        return env.store.decisions(project_id=None, page=page)
    found: list[Decision] = []
    limit = page.limit
    while len(found) < limit:
        some = env.store.decisions_seen_by(project, page)
        found += (one for one in some if _reads(env.store, project, one))
        if len(some) < limit:
            break
        page = replace(page, marker=some[-1].id)
    return found[:limit]


def list_claims(env: Environment, caller: Caller, decision_id: str, page: Page) -> Sequence[Claim]:
    """A page of the caller's claims of a decision, oldest first.

    Raises:
        NotFound: no such decision for this caller, or the marker is none of its claims there.
    """
    decision = seen_decision(env.store, caller, decision_id)
    if page.marker is not None:
        last = if_stored(env.store.claim, page.marker)
        if last is None or last.decision_id != decision.id or not sees(caller, last.project_id):
            raise NotFound("marker", page.marker)
    own: list[Claim] = []
    limit = page.limit
    while len(own) < limit and (some := env.store.claims(decision_id=decision.id, page=page)):
        own += (one for one in some if sees(caller, one.project_id))
        page = replace(page, marker=some[-1].id)
    return own[:limit]


def sees_role(caller: Caller, ensemble: Ensemble | None, role: str) -> bool:
    """Whether the servers and claims of a role's members are the caller's to see.

    None: the ensemble is deleted; whoever sees what is left of it is its project.
    """
    return ensemble is None or sees(caller, ensemble.project_of(role))


def check_own_role(caller: Caller, ensemble: Ensemble, role: str) -> None:
    """Check that the members of a role are the caller's.

    Raises:
        NotFound: there is no such role.
        Forbidden: they are another project's.
    """
    ensemble.role(role)
    if not sees(caller, ensemble.project_of(role)):
        raise Forbidden(f"role {role} belongs to project {ensemble.project_of(role)}")


def check_unshared(ensemble: Ensemble, role: str, remedy: str | None = None) -> None:
    """Check that a role belongs to the ensemble's own project.

    `remedy` is the end of the refusal; None: a change of its count is offered to the other project.

    Raises:
        WrongState: it belongs to another one.
    """
    project = ensemble.project_of(role)
    if project != ensemble.project_id:
        remedy = to_offer_count(ensemble.name, role) if remedy is None else remedy
        raise WrongState(f"role {role} belongs to project {project}{remedy}")


def check_no_shares(ensemble: Ensemble, why: str) -> None:
    """Check that all roles belong to the ensemble's own project; `why` ends the refusal.

    Raises:
        InvalidDescription: one belongs to another project.
    """
    for role, share in ensemble.shared_roles:
        raise InvalidDescription(
            f"role {role.name} belongs to project {share.project_id}; {why}", path="members"
        )
