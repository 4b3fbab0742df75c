"""Listings and single reads that need no decision."""

from __future__ import annotations

from typing import TYPE_CHECKING

from moorage.usecases.access import for_operators, own_decision, own_ensemble, visible_project

if TYPE_CHECKING:
    from collections.abc import Sequence

    from moorage.domain.bookings import Booking
    from moorage.domain.consumers import Consumer
    from moorage.domain.decisions import Claim, Decision
    from moorage.domain.ensembles import Ensemble
    from moorage.usecases.parts import Parts
    from moorage.usecases.ports import Caller, Page


def list_ensembles(
    parts: Parts,
    caller: Caller,
    page: Page,
    *,
    name: str | None = None,
    project_id: str | None = None,
    all_projects: bool = False,
) -> Sequence[Ensemble]:
    """The caller's ensembles, oldest first.

    Raises:
        Forbidden: a tenant asked for another project's.
        NotFound: the page's marker is no ensemble for this caller.
    """
    project = visible_project(caller, all_projects=all_projects, project_id=project_id)
    if page.marker is not None:
        own_ensemble(parts.store, caller, page.marker)
    return parts.store.ensembles(project_id=project, name=name, page=page)


def list_decisions(
    parts: Parts,
    caller: Caller,
    page: Page,
    *,
    ensemble_id: str | None = None,
    all_projects: bool = False,
) -> Sequence[Decision]:
    """The caller's decisions, newest first; with `ensemble_id` only about that one.

    Raises:
        Forbidden: a tenant asked for another project's.
        NotFound: no such ensemble for this caller, or the page's marker is no decision for it.
    """
    if page.marker is not None:
        own_decision(parts.store, caller, page.marker)
    if ensemble_id is not None:
        ensemble = own_ensemble(parts.store, caller, ensemble_id)
        return parts.store.decisions(
            project_id=ensemble.project_id, ensemble_id=ensemble.id, page=page
        )
    project = visible_project(caller, all_projects=all_projects, project_id=None)
    return parts.store.decisions(project_id=project, page=page)


def list_claims(parts: Parts, caller: Caller, decision_id: str) -> Sequence[Claim]:
    """The claims of a decision, oldest first.

    Raises:
        NotFound: no such decision for this caller.
    """
    return parts.store.claims(decision_id=own_decision(parts.store, caller, decision_id).id)


def list_bookings(
    parts: Parts,
    caller: Caller,
    page: Page,
    *,
    provider: str | None = None,
    consumer: str | None = None,
    decision: str | None = None,
) -> Sequence[tuple[Consumer, Booking]]:
    """Live bookings of every state.

    Raises:
        Forbidden: the caller is no operator.
    """
    for_operators(caller)
    return parts.store.bookings(provider=provider, consumer=consumer, decision=decision, page=page)
