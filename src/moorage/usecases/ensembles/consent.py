"""The consent of other projects to the roles of an ensemble that belong to them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from moorage.domain.changes import BoundShareOffers, PutEvent
from moorage.domain.derived_events import share_event
from moorage.domain.errors import ConsentMissing, InvalidDescription
from moorage.domain.period import HOUR
from moorage.domain.quotas import QuotaName
from moorage.domain.refusal_commands import to_accept_share, to_offer_first
from moorage.domain.shares import Share, ShareState
from moorage.usecases.shared.quotas import bound_stored

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from moorage.domain.changes import Change
    from moorage.domain.describe_members import RoleDescription
    from moorage.domain.ensembles import Ensemble, Role
    from moorage.usecases.environment import UseCaseEnvironment
    from moorage.usecases.ports import Ids


def owned_role(
    ids: Ids, role: Role, described: RoleDescription, project_id: str, path: str
) -> Role:
    """The role of an ensemble of `project_id`, offered to the project that its description names.

    Whether there is such a project cannot be known here: then nobody accepts it.

    Raises:
        InvalidDescription: the project is the ensemble's own.
    """
    if described.project is None:
        return role
    if described.project == project_id:
        raise InvalidDescription(
            f"role {role.name} is the ensemble's own project's already: leave out its project",
            path=f"{path}.project",
        )
    return replace(role, share=Share(ids.uuid(), described.project))


def check_consent(ensemble: Ensemble, *, stored: bool = True) -> None:
    """Check that every other project with members has accepted its roles as they are now.

    A decision writes the ensemble, and so does a consent that is given or revoked: of the two the
    later one conflicts.

    Args:
        ensemble: the ensemble to decide.
        stored: whether it is stored, so that its shares can be accepted.

    Raises:
        ConsentMissing: one has not.
    """
    for role, share in ensemble.shared_roles:
        if share.state is not ShareState.ACCEPTED and ensemble.count(role.name):
            remedy = to_accept_share(share.id) if stored else to_offer_first()
            raise ConsentMissing(role.name, share.project_id, remedy)


def offers(
    env: UseCaseEnvironment, after: Ensemble, before: Ensemble | None = None
) -> Iterator[Change]:
    """What a commit says of the roles that are offered in `after`, and were not in `before`.

    An event for each project, however many roles it is offered, and the limits of how many one
    project offers, of how many another has to answer, and of how often: what is offered and revoked
    in a loop would fill the other's events.
    """
    known = frozenset[str]()
    if before is not None:
        known = frozenset(share.id for _, share in before.shared_roles)
    offered: dict[str, list[tuple[Role, Share]]] = {}
    for role, share in after.shared_roles:
        if share.id not in known:
            offered.setdefault(share.project_id, []).append((role, share))
    if offered:
        more = sum(map(len, offered.values()))
        yield bound_stored(env, after.project_id, QuotaName.SHARES_GIVEN, more)
    for project, shared in offered.items():
        yield bound_stored(env, project, QuotaName.SHARES_RECEIVED, len(shared))
        yield BoundShareOffers(project, after.project_id, env.limits.share_offers, HOUR)
        yield PutEvent(share_event(after, shared, project))


def revocations(ensemble: Ensemble, shared: Sequence[tuple[Role, Share]]) -> Iterator[PutEvent]:
    """The events of shares that are revoked: one for each project, and one for the ensemble's."""
    revoked: dict[str, list[tuple[Role, Share]]] = {}
    for role, share in shared:
        revoked.setdefault(share.project_id, []).append((role, share))
    if revoked:
        yield PutEvent(share_event(ensemble, shared, ensemble.project_id))
    for project, some in revoked.items():
        yield PutEvent(share_event(ensemble, some, project))
