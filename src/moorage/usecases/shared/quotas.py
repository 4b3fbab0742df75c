"""Quotas of projects: set, read, and checked early; the commit checks them again."""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from moorage.domain.changes import BoundStored, Changeset, DropQuota, PutQuota
from moorage.domain.errors import InvalidDescription, NotFound
from moorage.domain.offers import OfferState
from moorage.domain.quotas import (
    UNLIMITED,
    Quota,
    QuotaName,
    too_high,
    too_many_stored,
    uses_of,
)
from moorage.engine.time.quotas import (
    NO_LEASES,
    LeaseUse,
    ProjectLeases,
    QuotaTerms,
    free_units,
    peak_use,
    quota_violation,
)
from moorage.usecases.shared.access import require_operator, sees, visible_project

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from moorage.domain.errors import QuotaExceeded
    from moorage.domain.leases import Lease
    from moorage.domain.offers import Offer
    from moorage.domain.period import Duration, Instant, Period
    from moorage.domain.quotas import QuotaDefaults
    from moorage.usecases.paging import Page
    from moorage.usecases.ports import Caller, Store
    from moorage.usecases.shared.environment import Environment
    from moorage.usecases.shared.limits import Limits

_LONGEST_ID: Final = 255
_OVER_TIME: Final = (QuotaName.UNITS, QuotaName.UNIT_HOURS)


@dataclass(frozen=True, slots=True)
class QuotaUsage:
    """One limit of a project; `used` is None for limits that do not add up, such as a priority."""

    limit: int
    """In the units of `QuotaName`; UNLIMITED for none."""
    own: bool
    """Whether the limit is the project's own, not a default."""
    used: int | None

    @property
    def over(self) -> bool:
        """Whether usage exceeds the limit, after it was lowered; then nothing new is allowed."""
        return self.used is not None and self.used > self.limit


@dataclass(frozen=True, slots=True)
class ProjectQuota:
    """All limits of a project with their usage."""

    project_id: str
    window: Duration
    limits: Mapping[QuotaName, QuotaUsage]


USUALLY_STORED: Final[Mapping[QuotaName, int]] = MappingProxyType(
    {
        QuotaName.ENSEMBLES: 10_000,
        QuotaName.TEMPLATES: 1_000,
        QuotaName.SERIES: 1_000,
        QuotaName.OFFERS: 10,
        QuotaName.WAITLIST: 100,
        QuotaName.SUBSCRIPTIONS: 100,
        QuotaName.SHARES_GIVEN: 200,
        QuotaName.SHARES_RECEIVED: 1_000,
    }
)
"""Default limits of stored objects, unless the settings or the project's quota have others."""


def defaults(limits: Limits) -> QuotaDefaults:
    """The limits of projects without a quota of their own."""
    said = {QuotaName.HELD: limits.held_members, **USUALLY_STORED, **limits.quotas.limits}
    return replace(limits.quotas, limits=MappingProxyType(said))


def set_quota(
    env: Environment,
    caller: Caller,
    project_id: str,
    limits: Mapping[QuotaName, int | None],
) -> ProjectQuota:
    """Set limits of a project; None restores a default, limits not named are unchanged.

    A limit may be below the present usage: it blocks new objects, and removes none.

    Raises:
        Forbidden: the caller is no operator.
        InvalidDescription: no valid project id, or a negative limit.
    """
    require_operator(caller)
    if not 0 < len(project_id) <= _LONGEST_ID:
        raise InvalidDescription("a project's id has 1 to 255 characters", path="project_id")
    for name, limit in limits.items():
        if limit is not None and limit < 0:
            raise InvalidDescription("a limit is not negative", path=f"quota.{name}")
    stored = env.store.quota(project_id)
    said = {**(stored.limits if stored else {}), **limits}
    kept = MappingProxyType({name: said[name] for name in QuotaName if said.get(name) is not None})
    quota = Quota(project_id, kept, env.store.now())  # type: ignore[arg-type]  # None is left out
    env.store.commit(Changeset((PutQuota(quota),)))
    return _seen(env, quota)


def unset_quota(env: Environment, caller: Caller, project_id: str) -> None:
    """Delete a project's quota, so that the defaults apply.

    Raises:
        Forbidden: the caller is no operator.
        NotFound: the project has no quota of its own.
    """
    require_operator(caller)
    env.store.commit(Changeset((DropQuota(project_id),)))


def show_quota(env: Environment, caller: Caller, project_id: str) -> ProjectQuota:
    """The limits of a project, and its usage.

    Raises:
        NotFound: it is another project, and the caller is no operator.
    """
    if not sees(caller, project_id):
        raise NotFound("quota of project", project_id)
    return _seen(env, env.store.quota(project_id) or Quota(project_id))


def list_quotas(
    env: Environment, caller: Caller, page: Page, *, all_projects: bool
) -> Sequence[ProjectQuota]:
    """The quota of the caller's project, or a page of the quotas set for all projects.

    Raises:
        Forbidden: a tenant asked for the quotas of all projects.
    """
    if not all_projects:
        own = caller.project_id
        return () if page.marker == own else (show_quota(env, caller, own),)
    visible_project(caller, all_projects=True, project_id=None)
    return tuple(_seen(env, one) for one in env.store.quotas(page))


def quota_limits(limits: Limits, *, any_priority: bool) -> QuotaDefaults:
    """The default limits for checking a lease; `any_priority` waives the limit of its priority."""
    waived = frozenset({QuotaName.PRIORITY} if any_priority else ())
    return replace(defaults(limits), waived=waived)


def check_priority(env: Environment, project_id: str, priority: int) -> None:
    """Check that a project may request a priority.

    Raises:
        QuotaExceeded: it is higher than the project's limit.
    """
    limit = defaults(env.limits).limit(QuotaName.PRIORITY, env.store.quota(project_id))
    if priority > limit:
        raise too_high(limit=limit, requested=priority)


def check_quota(
    env: Environment, lease: Lease, before: Lease | None, within: QuotaDefaults | None = None
) -> None:
    """Check that a project's quota allows a lease; the commit checks it again.

    `before` is the stored lease, None for a new one. For `within` see `quota_limits`; None: the
    service's defaults.

    Raises:
        QuotaExceeded: the quota does not allow it.
    """
    store, now = env.store, env.store.now()
    used = () if before is None else tuple(store.uses_of_lease(lease.id))
    use = LeaseUse(
        lease.terms.period,
        uses_of(lease, used, now),
        None if before is None else before.terms.period,
        used,
        lease.terms.priority if before is None else 0,
    )
    ceiling = _ceiling(env, lease.project_id, within)
    others = _others(
        store, ceiling, lease.project_id, min(now, lease.terms.period.start), but=lease.id
    )
    if (refusal := quota_violation(ceiling, others, use, now)) is not None:
        raise refusal


class Allowance:
    """The quota left to a project while several new leases are counted one after the other."""

    def __init__(
        self, env: Environment, project_id: str, first: Instant, within: QuotaDefaults
    ) -> None:
        """For leases that start at `first` or later, with the limits `within` (`quota_limits`)."""
        self._now = env.store.now()
        self._ceiling = _ceiling(env, project_id, within)
        self._others = _others(env.store, self._ceiling, project_id, min(self._now, first))

    def refusal(self, lease: Lease) -> QuotaExceeded | None:
        """The quota that does not allow a new lease beside those counted so far; None: allowed."""
        return quota_violation(self._ceiling, self._others, self._use_of(lease), self._now)

    def take(self, lease: Lease) -> None:
        """Count a new lease."""
        use, others = self._use_of(lease), self._others
        self._others = ProjectLeases((*others.uses, *use.uses), (*others.ends, use.period.end))

    def _use_of(self, lease: Lease) -> LeaseUse:
        terms = lease.terms
        return LeaseUse(terms.period, uses_of(lease, (), self._now), priority=terms.priority)


def quota_allows(env: Environment, project_id: str, period: Period) -> int | None:
    """How many places one more lease of a project may have in a period; None: any number."""
    now = env.store.now()
    since = min(now, period.start) - env.limits.quotas.window
    others = env.store.lessee(project_id, since)
    return free_units(_ceiling(env, project_id), others, period, now)


def stored_limit(env: Environment, project_id: str, name: QuotaName) -> int:
    """How many objects of a kind a project may store."""
    return defaults(env.limits).limit(name, env.store.quota(project_id))


def bound_stored(env: Environment, project_id: str, name: QuotaName, more: int = 1) -> BoundStored:
    """The condition of a commit that stores so many more objects of a kind."""
    return BoundStored(project_id, name, defaults(env.limits).limit(name, None), more)


def check_stored(env: Environment, project_id: str, name: QuotaName) -> None:
    """Check that a project may store one more object; the commit checks `bound_stored` again.

    Raises:
        QuotaExceeded: the project has as many as it may.
    """
    limit = stored_limit(env, project_id, name)
    used = env.store.stored(project_id)[name]
    if used >= limit:
        raise too_many_stored(name, limit=limit, used=used, requested=1)


def held_limit(env: Environment, project_id: str) -> int:
    """How many places a project may hold outside of leases."""
    return defaults(env.limits).limit(QuotaName.HELD, env.store.quota(project_id))


def _others(
    store: Store, ceiling: QuotaTerms, project_id: str, since: Instant, but: str = ""
) -> ProjectLeases:
    """The project's leases that count beside one from `since` on, except the lease `but`."""
    if not ceiling.needs_leases:
        return NO_LEASES
    return store.lessee(project_id, since - ceiling.window, but=but)


def _ceiling(env: Environment, project_id: str, within: QuotaDefaults | None = None) -> QuotaTerms:
    quota, usual = env.store.quota(project_id), within or defaults(env.limits)
    return QuotaTerms(lambda name: usual.limit(name, quota), usual.window)


def _seen(env: Environment, quota: Quota) -> ProjectQuota:
    store, usual = env.store, defaults(env.limits)
    now = store.now()
    ceiling = QuotaTerms(lambda name: usual.limit(name, quota), usual.window)
    project = quota.project_id
    stored = {**store.stored(project), QuotaName.OFFERS: len(open_offers(store, project))}
    return ProjectQuota(
        project,
        usual.window,
        {
            name: QuotaUsage(
                usual.limit(name, quota),
                own=name in quota.limits,
                used=stored[name] if name in stored else _used(store, project, ceiling, name, now),
            )
            for name in QuotaName
        },
    )


def open_offers(store: Store, project_id: str) -> Sequence[Offer]:
    """The offers of a project that are neither accepted, withdrawn nor expired."""
    now = store.now()
    found = (one.offer for one in store.offers(project_id=project_id))
    return [one for one in found if one is not None and one.state_at(now) is OfferState.OFFERED]


def _used(
    store: Store, project_id: str, ceiling: QuotaTerms, name: QuotaName, now: Instant
) -> int | None:
    if name is QuotaName.HELD:
        return store.held(project_id)
    if name is QuotaName.LEASES:
        return len(store.lessee(project_id, now).ends)
    if name in _OVER_TIME:
        uses = store.lessee(project_id, now - ceiling.window).uses
        return peak_use(ceiling, uses, name, now)
    return None


__all__ = [
    "UNLIMITED",
    "Allowance",
    "ProjectQuota",
    "QuotaUsage",
    "bound_stored",
    "check_priority",
    "check_quota",
    "check_stored",
    "defaults",
    "held_limit",
    "list_quotas",
    "open_offers",
    "quota_allows",
    "quota_limits",
    "set_quota",
    "show_quota",
    "stored_limit",
    "unset_quota",
]
