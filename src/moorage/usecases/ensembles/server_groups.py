"""Server groups: ensembles with a policy that Nova has a word for; see `domain.server_groups`."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from types import MappingProxyType
from typing import TYPE_CHECKING

from moorage.domain.changes import Changeset, PutEnsemble
from moorage.domain.describe import EnsembleDescription
from moorage.domain.errors import NotFound
from moorage.domain.quotas import QuotaName
from moorage.domain.server_groups import JOINABLE, GroupPolicy, group_policy
from moorage.usecases.decide.member_places import bookings_of
from moorage.usecases.ensembles.create import described_ensemble
from moorage.usecases.ensembles.delete import delete_ensemble
from moorage.usecases.shared.access import every_ensemble, owned
from moorage.usecases.shared.quotas import bound_stored, check_stored
from moorage.usecases.shared.role_access import sees_role

if TYPE_CHECKING:
    from collections.abc import Sequence

    from moorage.domain.ensembles import Ensemble
    from moorage.engine.state.snapshot import Snapshot
    from moorage.usecases.environment import UseCaseEnvironment
    from moorage.usecases.ports import Caller


@dataclass(frozen=True, slots=True)
class ServerGroup:
    """An ensemble as a server group."""

    ensemble: Ensemble
    policy: GroupPolicy
    servers: tuple[str, ...]
    """The caller's servers of its members that have allocations, in the order of the members."""


def create_server_group(
    env: UseCaseEnvironment, caller: Caller, name: str, policy: GroupPolicy
) -> ServerGroup:
    """Create an ensemble without members, whose policy is about all members that it will have.

    Each server that names it as its group becomes a member. As in Nova, a project may have several
    groups of one name.

    Raises:
        InvalidDescription: the name or the policy cannot be an ensemble's.
        QuotaExceeded: the project has as many ensembles as it may.
    """
    joinable = MappingProxyType(dict([JOINABLE]))
    described = EnsembleDescription(name, policies=(policy.statement(),), metadata=joinable)
    ensemble = described_ensemble(env, caller, described)
    check_stored(env, ensemble.project_id, QuotaName.ENSEMBLES)
    bound = bound_stored(env, ensemble.project_id, QuotaName.ENSEMBLES)
    env.store.commit(Changeset((PutEnsemble(ensemble, None), bound)))
    return ServerGroup(env.store.ensemble(ensemble.id), policy, ())


def list_server_groups(
    env: UseCaseEnvironment, caller: Caller, *, all_projects: bool, offset: int, limit: int
) -> Sequence[ServerGroup]:
    """The caller's ensembles that are server groups, oldest first.

    As in Nova, a tenant who asks for all projects gets the own.
    """
    project = None if all_projects and caller.operator else caller.project_id
    snapshot = env.store.snapshot()
    found = (
        group
        for ensemble in every_ensemble(env.store, project, at_once=env.limits.page)
        if (group := _as_group(caller, snapshot, ensemble)) is not None
    )
    return tuple(islice(found, offset, offset + limit))


def show_server_group(env: UseCaseEnvironment, caller: Caller, group_id: str) -> ServerGroup:
    """One server group.

    Raises:
        NotFound: no such ensemble for this caller, or none that is a server group.
    """
    ensemble = owned(caller, "ensemble", group_id, env.store.ensemble(group_id))
    group = _as_group(caller, env.store.snapshot(), ensemble)
    if group is None:
        raise NotFound("server group", group_id)
    return group


def delete_server_group(env: UseCaseEnvironment, caller: Caller, group_id: str) -> None:
    """Delete a server group: its ensemble, with what that holds. Servers keep their allocations.

    Raises:
        NotFound: no such ensemble for this caller, or none that is a server group.
        InUse: the ensemble has a lease that is not closed.
    """
    group = show_server_group(env, caller, group_id)
    delete_ensemble(env, caller, group.ensemble.id, None)


def _as_group(caller: Caller, snapshot: Snapshot, ensemble: Ensemble) -> ServerGroup | None:
    policy = group_policy(ensemble)
    if policy is None:
        return None
    own = (one for one in ensemble.members if sees_role(caller, ensemble, one.name.role))
    servers = (one.server_id for one in own if one.server_id is not None)
    there = tuple(one for one in servers if bookings_of(snapshot, one))
    return ServerGroup(ensemble, policy, there)
