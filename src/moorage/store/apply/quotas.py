"""Quotas, and what leases count for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sqlalchemy import bindparam, delete, insert

from moorage.domain.errors import NotFound
from moorage.domain.quotas import uses_of
from moorage.engine.quotas import NOBODY, Asked, Ceiling, judge
from moorage.store import bodies, read, tables

if TYPE_CHECKING:
    from collections.abc import Sequence

    from moorage.domain.changes import DropQuota, PutLease, PutQuota
    from moorage.domain.leases import Lease
    from moorage.domain.period import Period
    from moorage.domain.quotas import Use
    from moorage.store.batch import Batch

_q, _u = tables.quotas.c, tables.lease_uses.c
_INSERT: Final = insert(tables.quotas)
_DELETE: Final = delete(tables.quotas).where(_q.project_id == bindparam("of"))
_NEW_USES: Final = insert(tables.lease_uses)
_NO_USES: Final = delete(tables.lease_uses).where(_u.lease_id == bindparam("of"))


def put_quota(batch: Batch, change: PutQuota) -> None:
    """See `PutQuota`."""
    quota = change.quota
    batch.connection.do(_DELETE, {"of": quota.project_id})
    values = {"project_id": quota.project_id, "body": bodies.QUOTA.encode(quota)}
    batch.connection.do(_INSERT, values)


def drop_quota(batch: Batch, change: DropQuota) -> None:
    """See `DropQuota`.

    Raises:
        NotFound: nothing is said of the project.
    """
    if read.quota(batch.connection, change.project_id) is None:
        raise NotFound("quota of project", change.project_id)
    batch.connection.do(_DELETE, {"of": change.project_id})


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
    used = () if before is None else read.uses_of_lease(batch.connection, lease.id)
    uses = uses_of(lease, used, batch.now)
    if change.within is not None:
        # What has counted for nothing until now, as an offer, is judged like a new lease.
        known = before if used else None
        _check(batch, change, Asked(lease.terms.period, uses, known, used))
    if uses == used:
        return
    if used:
        batch.connection.do(_NO_USES, {"of": lease.id})
    if uses:
        batch.connection.do(_NEW_USES, _rows(lease, uses))


def _check(batch: Batch, change: PutLease, asked: Asked) -> None:
    assert change.within is not None
    project, defaults = change.lease.project_id, change.within
    quota = read.quota(batch.connection, project)
    ceiling = Ceiling(lambda name: defaults.limit(name, quota), defaults.window)
    lessee = NOBODY
    if ceiling.counts:
        since = min(batch.now, asked.period.start) - defaults.window
        lessee = read.lessee(batch.connection, project, since, batch.now, but=change.lease.id)
    if (refusal := judge(ceiling, lessee, asked, batch.now)) is not None:
        raise refusal


def _rows(lease: Lease, uses: Sequence[Use]) -> list[dict[str, object]]:
    mine = {"lease_id": lease.id, "project_id": lease.project_id}
    return [{**mine, "units": u.units, "start_at": u.start, "end_at": u.end} for u in uses]
