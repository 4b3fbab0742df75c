"""`/v1/shares`."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from moorage.api.native.call import Call, Reply
from moorage.api.native.compliance import impact_view
from moorage.api.native.ensembles import role_view
from moorage.api.native.formats import view
from moorage.api.native.paging import listed
from moorage.usecases.ensembles.shares import (
    accept_share,
    list_shares,
    revoke_share,
    seen_share,
)
from moorage.wire import shares as wire

if TYPE_CHECKING:
    from moorage.usecases.ensembles.shares import SharedRole


def listing(call: Call) -> Reply:
    """GET: a page of the shares that the project has given and received."""
    read = partial(list_shares, call.env, call.caller, all_projects=call.flag("all_projects"))
    return listed(call, "shares", read, partial(_view, call))


def show(call: Call) -> Reply:
    """GET: one share."""
    found = seen_share(call.env.store, call.caller, call.path["id"])
    return Reply(wire.OneShare(_view(call, found)))


def accept(call: Call) -> Reply:
    """POST: accept a role."""
    changed = call.perform(accept_share, call.path["id"])
    return Reply(wire.OneShare(_view(call, changed, dry_run=call.dry_run)))


def revoke(call: Call) -> Reply:
    """POST: revoke or decline a role; its members leave the ensemble."""
    found = seen_share(call.env.store, call.caller, call.path["id"])
    changed, impact = call.perform_judged([found.ensemble.id], revoke_share, call.path["id"])
    return Reply(
        wire.OneShare(_view(call, changed, dry_run=call.dry_run), breaks=impact_view(impact))
    )


def _view(call: Call, one: SharedRole, *, dry_run: bool = False) -> wire.Share:
    ensemble, share = one.ensemble, one.share
    return view(
        wire.Share,
        share,
        status=share.state,
        ensemble_id=ensemble.id,
        ensemble=ensemble.name,
        owner_project_id=ensemble.project_id,
        role=role_view(one.role, ensemble.count(one.role.name)),
        links=[call.link("self", "shares", share.id)],
        dry_run=dry_run,
    )
