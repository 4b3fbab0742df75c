"""`/v1/quotas`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import UNSET

from moorage.api.native import answers_quotas as told
from moorage.api.native import reading
from moorage.api.native.call import Call, Reply
from moorage.domain.period import format_duration
from moorage.domain.quotas import DURATIONS, UNLIMITED, QuotaName
from moorage.usecases import quotas

if TYPE_CHECKING:
    from moorage.api.native.requests_quotas import QuotaBody

_UNLIMITED = "unlimited"


def listing(call: Call) -> Reply:
    """GET: the caller's own, or every project's of which something is said."""
    found = quotas.list_quotas(call.parts, call.caller, all_projects=call.flag("all_projects"))
    return Reply(told.Quotas([_view(one) for one in found]))


def show(call: Call) -> Reply:
    """GET: what a project may have, and has."""
    return _one(quotas.show_quota(call.parts, call.caller, call.path["project_id"]))


def change(call: Call) -> Reply:
    """PATCH: say what a project may have."""
    return _one(
        quotas.set_quota(
            call.parts,
            call.caller,
            call.path["project_id"],
            limits(call.body.quota),
            dry_run=call.dry_run,
        )
    )


def delete(call: Call) -> Reply:
    """DELETE: let the defaults hold again."""
    quotas.unset_quota(call.parts, call.caller, call.path["project_id"], dry_run=call.dry_run)
    return Reply()


def limits(body: QuotaBody) -> dict[QuotaName, int | None]:
    """What a body says, None where the default is to hold.

    Raises:
        InvalidDescription: not a duration.
    """
    said: dict[QuotaName, int | None] = {}
    for name in QuotaName:
        written: Any = getattr(body, _field(name))
        if written is UNSET:
            continue
        if written == _UNLIMITED:
            said[name] = UNLIMITED
        elif name in DURATIONS:
            said[name] = reading.duration(written, f"quota.{_field(name)}")
        else:
            said[name] = written
    return said


def _field(name: QuotaName) -> str:
    return name.value.replace("-", "_")


def _one(found: quotas.ProjectQuota) -> Reply:
    return Reply(told.OneQuota(_view(found)))


def _view(found: quotas.ProjectQuota) -> told.Quota:
    shown: dict[str, Any] = {_field(name): _limit(name, one) for name, one in found.limits.items()}
    return told.Quota(found.project_id, format_duration(found.window), **shown)


def _limit(name: QuotaName, one: quotas.Standing) -> told.QuotaLimit:
    limit: int | str | None = None
    if one.limit != UNLIMITED:
        limit = format_duration(one.limit) if name in DURATIONS else one.limit
    left = None
    if one.used is not None and one.limit != UNLIMITED:
        left = max(one.limit - one.used, 0)
    return told.QuotaLimit(limit, one.used, left, one.over, not one.own)
