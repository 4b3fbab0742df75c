"""`/v1/quotas`."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from msgspec import UNSET

from moorage.api.native import reading
from moorage.api.native.call import Call, Reply
from moorage.api.native.paging import Listing
from moorage.domain.period import format_duration
from moorage.domain.quotas import DURATIONS, UNLIMITED, QuotaName
from moorage.usecases.shared import quotas
from moorage.wire import quotas as wire

if TYPE_CHECKING:
    from moorage.wire.quotas import QuotaBody

_UNLIMITED = "unlimited"


def listing(call: Call) -> Reply:
    """GET: the caller's own quota, or a page of the quotas set for projects."""
    every = call.flag("all_projects")
    read = partial(quotas.list_quotas, call.env, call.caller, all_projects=every)
    listing_ = Listing(
        call, "quotas", read, lambda found: ((one.project_id, _view(one)) for one in found)
    )
    return listing_.reply("quotas")


def show(call: Call) -> Reply:
    """GET: a project's quota and its use."""
    return _one(call.perform(quotas.show_quota, call.path["project_id"]))


def change(call: Call) -> Reply:
    """PATCH: set limits of a project."""
    return _one(call.perform(quotas.set_quota, call.path["project_id"], limits(call.body.quota)))


def delete(call: Call) -> Reply:
    """DELETE: reset a project to the defaults."""
    call.perform(quotas.unset_quota, call.path["project_id"])
    return Reply()


def limits(body: QuotaBody) -> dict[QuotaName, int | None]:
    """The limits in a body; None where the default is to apply.

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
    return Reply(wire.OneQuota(_view(found)))


def _view(found: quotas.ProjectQuota) -> wire.Quota:
    shown: dict[str, Any] = {_field(name): _limit(name, one) for name, one in found.limits.items()}
    return wire.Quota(found.project_id, format_duration(found.window), **shown)


def _limit(name: QuotaName, one: quotas.QuotaUsage) -> wire.QuotaLimit:
    limit: int | str | None = None
    if one.limit != UNLIMITED:
        limit = format_duration(one.limit) if name in DURATIONS else one.limit
    left = None
    if one.used is not None and one.limit != UNLIMITED:
        left = max(one.limit - one.used, 0)
    return wire.QuotaLimit(limit, one.used, left, one.over, not one.own)
