"""Writes quotas and usage, and enforces quotas inside the commit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sqlalchemy import bindparam, delete, insert, select

from moorage.domain.errors import NotFound, QuotaExceeded
from moorage.domain.leases import LeaseState
from moorage.domain.offers import OfferState
from moorage.domain.quotas import (
    QuotaName,
    too_many_received,
    too_many_stored,
    too_much_held,
    uses_of,
)
from moorage.engine.time.quotas import NO_LEASES, LeaseUse, QuotaTerms, quota_violation
from moorage.store.read import bookings, leases
from moorage.store.schema import tables
from moorage.store.values import stored_bodies

if TYPE_CHECKING:
    from collections.abc import Sequence

    from moorage.domain.changes import BoundOffers, BoundStored, DropQuota, PutLease, PutQuota
    from moorage.domain.leases import Lease
    from moorage.domain.period import Period
    from moorage.domain.quotas import QuotaUse
    from moorage.store.commit.batch import Batch

_q, _u, _l = tables.quotas.c, tables.lease_uses.c, tables.leases.c
_INSERT: Final = insert(tables.quotas)
_DELETE: Final = delete(tables.quotas).where(_q.project_id == bindparam("of"))
_NEW_USES: Final = insert(tables.lease_uses)
_OFFERS: Final = select(_l.body).where(
    _l.project_id == bindparam("of"),
    _l.state == LeaseState.OFFERED.value,
    # What is kept while a series is made is no offer.
    _l.series_id.is_(None),
)
_NO_USES: Final = delete(tables.lease_uses).where(_u.lease_id == bindparam("of"))


def put_quota(batch: Batch, change: PutQuota) -> None:
    """See `PutQuota`."""
    quota = change.quota
    batch.connection.do(_DELETE, {"of": quota.project_id})
    values = {"project_id": quota.project_id, "body": stored_bodies.QUOTA.encode(quota)}
    batch.connection.do(_INSERT, values)


def drop_quota(batch: Batch, change: DropQuota) -> None:
    """See `DropQuota`.

    Raises:
        NotFound: nothing is said of the project.
    """
    if leases.quota(batch.connection, change.project_id) is None:
        raise NotFound("quota of project", change.project_id)
    batch.connection.do(_DELETE, {"of": change.project_id})


def bound_offers(batch: Batch, change: BoundOffers) -> None:
    """See `BoundOffers`.

    Raises:
        QuotaExceeded: the project has more offers, or more places.
    """
    bodies_ = batch.connection.scalars(_OFFERS, {"of": change.project_id})
    found = [one.offer for one in map(stored_bodies.LEASE.decode, bodies_) if one.offer is not None]
    there = [one for one in found if one.state_at(batch.now) is OfferState.OFFERED]
    refuse_beyond(batch, change.project_id, QuotaName.OFFERS, change.offers, len(there))
    held = bookings.held(batch.connection, change.project_id, now=batch.now)
    offered = sum(one.places for one in there)
    quota = leases.quota(batch.connection, change.project_id)
    limit = change.held if quota is None else quota.limits.get(QuotaName.HELD, change.held)
    if held + offered > limit:
        before = max(offered - change.requested, 0)
        raise too_much_held(limit=limit, used=held, requested=change.requested, offered=before)


def bound_stored(batch: Batch, change: BoundStored) -> None:
    """See `BoundStored`.

    Raises:
        QuotaExceeded: the project has more.
        OtherQuotaExceeded: it has more of what others offer to it.
    """
    name, count = change.name, leases.count(batch.connection, change.project_id, change.name)
    try:
        refuse_beyond(batch, change.project_id, name, change.limit, count, change.requested)
    except QuotaExceeded as error:
        if name is not QuotaName.SHARES_RECEIVED:
            raise
        raise too_many_received(change.project_id) from error


def refuse_beyond(
    batch: Batch, project_id: str, name: QuotaName, usual: int, count: int, new: int = 1
) -> None:
    """Let so many things pass, of which so many are new.

    Raises:
        QuotaExceeded: they are more than the project's quota allows, or `usual` where it says
            nothing.
    """
    quota = leases.quota(batch.connection, project_id)
    limit = usual if quota is None else quota.limits.get(name, usual)
    if count > limit:
        raise too_many_stored(name, limit=limit, used=count - new, requested=new)


def put_uses(batch: Batch, change: PutLease, before: Period | None) -> None:
    """Write what a lease counts for from now on.

    Args:
        batch: in which the lease is written.
        change: the lease as it becomes.
        before: the period that it had; None: it is new.

    Raises:
        QuotaExceeded: its project would have too much, and more than it had.
    """
    lease = change.lease
    used = () if before is None else leases.uses_of_lease(batch.connection, lease.id)
    uses = uses_of(lease, used, batch.now)
    if change.within is not None:
        # What has counted for nothing until now, as an offer, is judged like a new lease.
        known = before if used else None
        priority = 0 if known is not None else lease.terms.priority
        _check(batch, change, LeaseUse(lease.terms.period, uses, known, used, priority))
    if uses == used:
        return
    if used:
        batch.connection.do(_NO_USES, {"of": lease.id})
    if uses:
        batch.connection.do(_NEW_USES, _rows(lease, uses))


def _check(batch: Batch, change: PutLease, asked: LeaseUse) -> None:
    assert change.within is not None
    project, defaults = change.lease.project_id, change.within
    quota = leases.quota(batch.connection, project)
    ceiling = QuotaTerms(lambda name: defaults.limit(name, quota), defaults.window)
    lessee = NO_LEASES
    if ceiling.needs_leases:
        since = min(batch.now, asked.period.start) - defaults.window
        lessee = leases.lessee(batch.connection, project, since, batch.now, but=change.lease.id)
    if (refusal := quota_violation(ceiling, lessee, asked, batch.now)) is not None:
        raise refusal


def _rows(lease: Lease, uses: Sequence[QuotaUse]) -> list[dict[str, object]]:
    mine = {"lease_id": lease.id, "project_id": lease.project_id}
    return [{**mine, "units": u.units, "start_at": u.start, "end_at": u.end} for u in uses]
