"""Unique names: no two ensembles in use of one project have the same name, but server groups."""

from __future__ import annotations

from typing import TYPE_CHECKING

from moorage.domain.changes import ExpectUniqueName
from moorage.domain.decisions import DecisionState
from moorage.domain.errors import NameTaken
from moorage.domain.leases import LeaseState
from moorage.domain.server_groups import group_policy
from moorage.usecases.decide.member_places import locate_members
from moorage.usecases.decide.writes import current_decision

if TYPE_CHECKING:
    from moorage.domain.ensembles import Ensemble
    from moorage.usecases.ports import Store


def unique_name_condition(ensemble: Ensemble) -> tuple[ExpectUniqueName]:
    """The commit's condition that the ensemble's name is unique in its project."""
    return (ExpectUniqueName(ensemble.project_id, ensemble.name, ensemble.id),)


def check_unique_name(store: Store, ensemble: Ensemble) -> None:
    """Check that no other ensemble of the project has the name.

    Raises:
        NameTaken: another ensemble has it.
    """
    named = store.ensembles_named(ensemble.project_id, ensemble.name)
    other = next((one for one in named if one != ensemble.id), None)
    if other is not None:
        raise NameTaken("ensemble", ensemble.name, other)


def reclaimed_name_condition(store: Store, ensemble: Ensemble) -> tuple[ExpectUniqueName, ...]:
    """The condition of a commit that places a stored ensemble: its name must be unique again.

    Empty for an ensemble in use, which keeps its name, and for a server group, which may share its
    name as in Nova. One that is out of use does not reserve its name, so another ensemble may have
    it.

    Raises:
        NameTaken: another ensemble has the name.
    """
    if group_policy(ensemble) is not None or _in_use(store, ensemble):
        return ()
    check_unique_name(store, ensemble)
    return unique_name_condition(ensemble)


def _in_use(store: Store, ensemble: Ensemble) -> bool:
    """Whether the ensemble is in use, so that its name counts as taken.

    It is until it was decided once, and then as long as a member has a place, be it held, claimed
    or a server's, or a lease is not closed. Headroom alone is no use.
    """
    leases = store.leases_of(ensemble.id)
    if leases:
        return any(one.state is not LeaseState.CLOSED for one in leases)
    decision = current_decision(store, ensemble)
    if decision is None or decision.state_at(store.now()) is DecisionState.HELD:
        return True
    return bool(locate_members(store.snapshot(), ensemble).places)
