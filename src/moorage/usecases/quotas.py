"""Quotas of projects: operators say them, everybody reads their own."""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from moorage.domain.changes import Changeset, DropQuota, PutQuota
from moorage.domain.errors import InvalidDescription, NotFound
from moorage.domain.quotas import UNLIMITED, Quota, QuotaName, too_high, uses_of
from moorage.engine.quotas import NOBODY, Asked, Ceiling, Lessee, judge, peak, room
from moorage.usecases.access import for_operators, sees, visible_project

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from moorage.domain.errors import QuotaExceeded
    from moorage.domain.leases import Lease
    from moorage.domain.period import Duration, Instant, Period
    from moorage.domain.quotas import QuotaDefaults
    from moorage.usecases.limits import Limits
    from moorage.usecases.parts import Parts
    from moorage.usecases.ports import Caller, Store

_LONGEST_ID: Final = 255
_OVER_TIME: Final = (QuotaName.UNITS, QuotaName.UNIT_HOURS)


@dataclass(frozen=True, slots=True)
class Standing:
    """One limit of a project; `used` is None of what nothing adds up to."""

    limit: int
    """In the units of `QuotaName`; UNLIMITED for none."""
    own: bool
    """Whether it is said of the project, not by default."""
    used: int | None

    @property
    def over(self) -> bool:
        """Whether more is used than may be: it was lowered since, and blocks what is new."""
        return self.used is not None and self.used > self.limit


@dataclass(frozen=True, slots=True)
class ProjectQuota:
    """Everything that limits a project, and how much of it is used."""

    project_id: str
    window: Duration
    limits: Mapping[QuotaName, Standing]


def defaults(limits: Limits) -> QuotaDefaults:
    """What holds where nothing is said of a project."""
    said = {QuotaName.HELD: limits.held_members, **limits.quotas.limits}
    return replace(limits.quotas, limits=MappingProxyType(said))


def set_quota(
    parts: Parts,
    caller: Caller,
    project_id: str,
    limits: Mapping[QuotaName, int | None],
    *,
    dry_run: bool = False,
) -> ProjectQuota:
    """Say what a project may have; None gives a limit back to its default, others stay.

    A limit below what is used is taken: it blocks what is new, and takes nothing away.

    Raises:
        Forbidden: the caller is no operator.
        InvalidDescription: no project, or a limit below nothing.
    """
    for_operators(caller)
    if not 0 < len(project_id) <= _LONGEST_ID:
        raise InvalidDescription("a project's id has 1 to 255 characters", path="project_id")
    for name, limit in limits.items():
        if limit is not None and limit < 0:
            raise InvalidDescription("a limit is not negative", path=f"quota.{name}")
    stored = parts.store.quota(project_id)
    said = {**(stored.limits if stored else {}), **limits}
    kept = MappingProxyType({name: said[name] for name in QuotaName if said.get(name) is not None})
    quota = Quota(project_id, kept, parts.store.now())  # type: ignore[arg-type]  # None is left out
    if not dry_run:
        parts.store.commit(Changeset((PutQuota(quota),)))
    return _seen(parts, quota)


def unset_quota(parts: Parts, caller: Caller, project_id: str, *, dry_run: bool = False) -> None:
    """Let the defaults hold for a project again.

    Raises:
        Forbidden: the caller is no operator.
        NotFound: they do already.
    """
    for_operators(caller)
    if not dry_run:
        parts.store.commit(Changeset((DropQuota(project_id),)))


def show_quota(parts: Parts, caller: Caller, project_id: str) -> ProjectQuota:
    """What a project may have, and has.

    Raises:
        NotFound: it is another project's, and the caller no operator.
    """
    if not sees(caller, project_id):
        raise NotFound("quota of project", project_id)
    return _seen(parts, parts.store.quota(project_id) or Quota(project_id))


def list_quotas(parts: Parts, caller: Caller, *, all_projects: bool) -> Sequence[ProjectQuota]:
    """The caller's own, or every project's of which something is said.

    Raises:
        Forbidden: a tenant asked for every project's.
    """
    if not all_projects:
        return (show_quota(parts, caller, caller.project_id),)
    visible_project(caller, all_projects=True, project_id=None)
    return tuple(_seen(parts, one) for one in parts.store.quotas())


def judged_by(limits: Limits, *, any_priority: bool) -> QuotaDefaults:
    """What a new lease is judged by; `any_priority` of who may ask for each there is."""
    waived = frozenset({QuotaName.PRIORITY} if any_priority else ())
    return replace(defaults(limits), waived=waived)


def check_priority(parts: Parts, project_id: str, priority: int) -> None:
    """Let a priority pass that the project may ask for.

    Raises:
        QuotaExceeded: it may not.
    """
    limit = defaults(parts.limits).limit(QuotaName.PRIORITY, parts.store.quota(project_id))
    if priority > limit:
        raise too_high(limit=limit, requested=priority)


def check_quota(
    parts: Parts, lease: Lease, before: Lease | None, within: QuotaDefaults | None = None
) -> None:
    """Let a lease pass that its project may have; the commit judges once more.

    Args:
        parts: the service's.
        lease: as it becomes.
        before: as it is; None: it is new.
        within: see `judged_by`; None: the service's defaults.

    Raises:
        QuotaExceeded: it may not.
    """
    store, now = parts.store, parts.store.now()
    window = parts.limits.quotas.window
    used = () if before is None else tuple(store.uses_of_lease(lease.id))
    asked = Asked(
        lease.terms.period,
        uses_of(lease, used, now),
        None if before is None else before.terms.period,
        used,
        lease.terms.priority if before is None else 0,
    )
    ceiling, others = _ceiling(parts, lease.project_id, within), NOBODY
    if ceiling.counts:
        since = min(now, lease.terms.period.start) - window
        others = store.lessee(lease.project_id, since, but=lease.id)
    if (refusal := judge(ceiling, others, asked, now)) is not None:
        raise refusal


class Allowance:
    """What a project may lease still, as it takes one new lease after the other."""

    def __init__(
        self, parts: Parts, project_id: str, first: Instant, within: QuotaDefaults
    ) -> None:
        """Of leases that start at `first` or later, judged by `within` (see `judged_by`)."""
        now = parts.store.now()
        self._now = now
        self._ceiling = _ceiling(parts, project_id, within)
        self._others = NOBODY
        if self._ceiling.counts:
            since = min(now, first) - parts.limits.quotas.window
            self._others = parts.store.lessee(project_id, since)

    def refusal(self, lease: Lease) -> QuotaExceeded | None:
        """Why a new lease may not be beside those that were taken; None: it may."""
        return judge(self._ceiling, self._others, self._asked(lease), self._now)

    def take(self, lease: Lease) -> None:
        """Count a lease from now on."""
        asked, others = self._asked(lease), self._others
        self._others = Lessee((*others.uses, *asked.uses), (*others.ends, asked.period.end))

    def _asked(self, lease: Lease) -> Asked:
        terms = lease.terms
        return Asked(terms.period, uses_of(lease, (), self._now), priority=terms.priority)


def quota_allows(parts: Parts, project_id: str, period: Period) -> int | None:
    """How many places one more lease of the project over a period may have; None: any number."""
    now = parts.store.now()
    since = min(now, period.start) - parts.limits.quotas.window
    others = parts.store.lessee(project_id, since)
    return room(_ceiling(parts, project_id), others, period, now)


def held_limit(parts: Parts, project_id: str) -> int:
    """How many places a project may hold that are not a lease's."""
    return defaults(parts.limits).limit(QuotaName.HELD, parts.store.quota(project_id))


def _ceiling(parts: Parts, project_id: str, within: QuotaDefaults | None = None) -> Ceiling:
    quota, usual = parts.store.quota(project_id), within or defaults(parts.limits)
    return Ceiling(lambda name: usual.limit(name, quota), usual.window)


def _seen(parts: Parts, quota: Quota) -> ProjectQuota:
    store, usual = parts.store, defaults(parts.limits)
    now = store.now()
    ceiling = Ceiling(lambda name: usual.limit(name, quota), usual.window)
    return ProjectQuota(
        quota.project_id,
        usual.window,
        {
            name: Standing(
                usual.limit(name, quota),
                own=name in quota.limits,
                used=_used(store, quota.project_id, ceiling, name, now),
            )
            for name in QuotaName
        },
    )


def _used(
    store: Store, project_id: str, ceiling: Ceiling, name: QuotaName, now: Instant
) -> int | None:
    if name is QuotaName.HELD:
        return store.held(project_id)
    if name is QuotaName.LEASES:
        return len(store.lessee(project_id, now).ends)
    if name in _OVER_TIME:
        uses = store.lessee(project_id, now - ceiling.window).uses
        return peak(ceiling, uses, name, now)
    return None


__all__ = [
    "UNLIMITED",
    "Allowance",
    "ProjectQuota",
    "Standing",
    "check_priority",
    "check_quota",
    "defaults",
    "held_limit",
    "judged_by",
    "list_quotas",
    "quota_allows",
    "set_quota",
    "show_quota",
    "unset_quota",
]
