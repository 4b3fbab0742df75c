"""List, accept and revoke shares: roles of an ensemble that belong to another project."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from moorage.domain.changes import Changeset, DropBookings, PutEnsemble, PutEvent
from moorage.domain.derived_events import share_event
from moorage.domain.errors import Forbidden, NotFound
from moorage.usecases.decide.writes import member_departure_changes
from moorage.usecases.ensembles.change import without_members
from moorage.usecases.ensembles.consent import revocations
from moorage.usecases.shared.access import sees
from moorage.usecases.shared.retry import retry

if TYPE_CHECKING:
    from collections.abc import Sequence

    from moorage.domain.ensembles import Ensemble, Role
    from moorage.domain.shares import Share
    from moorage.usecases.environment import UseCaseEnvironment
    from moorage.usecases.paging import Page
    from moorage.usecases.ports import Caller, Store


@dataclass(frozen=True, slots=True)
class SharedRole:
    """A share with its role and ensemble; the ensemble may be more than the caller may see."""

    ensemble: Ensemble
    role: Role
    share: Share

    @property
    def id(self) -> str:
        """The share's id."""
        return self.share.id


def list_shares(
    env: UseCaseEnvironment, caller: Caller, page: Page, *, all_projects: bool = False
) -> Sequence[SharedRole]:
    """The shares that the caller's project has given and received, oldest first.

    Raises:
        Forbidden: a tenant asked for those of all projects.
        NotFound: the page's marker is no share for this caller.
    """
    if all_projects and not caller.operator:
        raise Forbidden("only operators may list other projects")
    if page.marker is not None:
        seen_share(env.store, caller, page.marker)
    found = env.store.shares(project_id=None if all_projects else caller.project_id, page=page)
    return [_shared_role(ensemble, share_id) for share_id, ensemble in found]


def seen_share(store: Store, caller: Caller, share_id: str) -> SharedRole:
    """A share that the caller's project has given or received.

    Raises:
        NotFound: there is none for this caller.
    """
    found = _shared_role(store.ensemble_of_share(share_id), share_id)
    if not any(sees(caller, one) for one in (found.ensemble.project_id, found.share.project_id)):
        raise NotFound("share", share_id)
    return found


def accept_share(env: UseCaseEnvironment, caller: Caller, share_id: str) -> SharedRole:
    """Accept a role: its members may be placed for the caller's project, from its quota.

    Raises:
        NotFound: there is no such share for this caller; the role may have changed meanwhile.
        Forbidden: it is another project's to accept.
        WrongState: it is accepted already, or revoked.
    """

    def attempt() -> SharedRole:
        found = seen_share(env.store, caller, share_id)
        if not sees(caller, found.share.project_id):
            raise Forbidden(f"only project {found.share.project_id} may accept this share")
        changed = _with_share(found, found.share.accepted(caller.user_id))
        shared = [(found.role, changed.share)]
        told = share_event(found.ensemble, shared, found.ensemble.project_id)
        ensemble = replace(changed.ensemble, updated_at=env.store.now())
        put = PutEnsemble(ensemble, found.ensemble.generation)
        env.store.commit(Changeset((put, PutEvent(told))))
        return changed

    return retry(env, attempt)


def revoke_share(env: UseCaseEnvironment, caller: Caller, share_id: str) -> SharedRole:
    """Revoke a share, by either project: the role's members leave the ensemble.

    Their servers keep running, and their allocations stay. Places that no server has are freed,
    also those of servers that are still being built.

    Raises:
        NotFound: there is no such share for this caller.
        WrongState: it is revoked already.
    """

    def attempt() -> SharedRole:
        found = seen_share(env.store, caller, share_id)
        ensemble, role = found.ensemble, found.role
        changed = _with_share(found, found.share.revoked())
        now = env.store.now()
        leaving = [one for one in ensemble.members if one.name.role == role.name]
        gone = {one.name for one in leaving}
        ended = tuple(member_departure_changes(env.store, ensemble, gone, now))
        left = replace(without_members(changed.ensemble, gone), updated_at=now)
        changes = (
            PutEnsemble(left, ensemble.generation),
            DropBookings(frozenset(one.uuid for one in leaving)),
            *ended,
            *revocations(ensemble, [(role, changed.share)]),
        )
        env.store.commit(Changeset(changes))
        return replace(changed, ensemble=left)

    return retry(env, attempt)


def _shared_role(ensemble: Ensemble, share_id: str) -> SharedRole:
    for role, share in ensemble.shared_roles:
        if share.id == share_id:
            return SharedRole(ensemble, role, share)
    raise NotFound("share", share_id)


def _with_share(found: SharedRole, share: Share) -> SharedRole:
    role = replace(found.role, share=share)
    return SharedRole(found.ensemble.with_role(role), role, share)
