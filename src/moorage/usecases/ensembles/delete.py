"""Delete an ensemble: holds are released, servers keep their allocations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from moorage.domain.changes import (
    Change,
    Changeset,
    DeleteEnsemble,
    DropBookings,
)
from moorage.domain.decisions import (
    DECISION_TABLE,
    ClaimState,
    DecisionState,
    DecisionStep,
)
from moorage.domain.errors import InUse
from moorage.domain.leases import LeaseState
from moorage.domain.refusal_commands import to_delete_with_lease
from moorage.domain.shares import ShareState
from moorage.usecases.decide.writes import current_decision, end_claim, step_decision
from moorage.usecases.ensembles.consent import revocations
from moorage.usecases.shared.access import check_generation, own_ensemble
from moorage.usecases.shared.retry import retry
from moorage.usecases.shared.ticket_flavors import flavor_deletion

if TYPE_CHECKING:
    from collections.abc import Iterator

    from moorage.domain.ensembles import Ensemble
    from moorage.domain.leases import Lease
    from moorage.usecases.environment import UseCaseEnvironment
    from moorage.usecases.ports import Caller


def delete_ensemble(
    env: UseCaseEnvironment,
    caller: Caller,
    ensemble_id: str,
    generation: int | None,
) -> Ensemble:
    """Delete an ensemble. Holds and building claims end; allocations of servers stay.

    Raises:
        NotFound: no such ensemble for this caller.
        StaleGeneration: the ensemble has another generation.
        InUse: the ensemble has a lease that is not closed.
    """

    def attempt() -> Ensemble:
        ensemble = own_ensemble(env.store, caller, ensemble_id)
        check_generation(ensemble, generation)
        there = open_leases(env, ensemble)
        if there:
            why = f"it has {there[0].called}{to_delete_with_lease(ensemble.name)}"
            raise InUse("ensemble", ensemble.id, why, remedies=(CASCADE,))
        env.store.commit(Changeset(tuple(_changes(env, ensemble))))
        return ensemble

    return retry(env, attempt)


def open_leases(env: UseCaseEnvironment, ensemble: Ensemble) -> list[Lease]:
    """The leases of an ensemble that are not closed."""
    found = env.store.leases_of(ensemble.id)
    return [one for one in found if one.state is not LeaseState.CLOSED]


CASCADE: Final = "cascade=leases"
"""The parameter with which an ensemble is deleted with its lease."""


def _changes(env: UseCaseEnvironment, ensemble: Ensemble) -> Iterator[Change]:
    now = env.store.now()
    yield DropBookings(frozenset(member.uuid for member in ensemble.members) | ensemble.spares)
    decision = current_decision(env.store, ensemble)
    if decision is not None:
        if (decision.state, DecisionStep.RELEASE) in DECISION_TABLE:
            lapsed = decision.state_at(now) is DecisionState.EXPIRED
            step = DecisionStep.LAPSE if lapsed else DecisionStep.RELEASE
            yield from flavor_deletion(env, decision, ensemble, now)
            yield step_decision(decision, step, now)
        for claim in env.store.claims(decision_id=decision.id):
            if claim.state is ClaimState.BUILDING:
                yield end_claim(claim, now)
    ended = [
        (role, share.revoked())
        for role, share in ensemble.shared_roles
        if share.state is not ShareState.REVOKED
    ]
    yield from revocations(ensemble, ended)
    yield DeleteEnsemble(ensemble.id, ensemble.generation)
