"""`/v1/server-providers`."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from moorage.api.native import reading
from moorage.api.native.call import Call, Reply
from moorage.api.native.formats import view
from moorage.api.native.paging import Listing, listed
from moorage.domain.decisions import ClaimState
from moorage.usecases.server_providers.change import ServerOffer, put_server_provider
from moorage.usecases.server_providers.end import delete_server_provider
from moorage.usecases.server_providers.queries import (
    ShownServerProvider,
    list_server_providers,
    show_server_provider,
)
from moorage.usecases.server_providers.slices import (
    ShownSlice,
    SliceReport,
    list_slices,
    report_slice,
)
from moorage.wire import server_providers as wire

if TYPE_CHECKING:
    from moorage.wire.server_providers import ServerProviderBody, Sharing, SlicePatchBody


def listing(call: Call) -> Reply:
    """GET: a page of what the project's slices may stand on."""
    every = call.flag("all_projects")
    read = partial(list_server_providers, call.env, call.caller, all_projects=every)
    listing_ = Listing(
        call, "server-providers", read, lambda found: ((one.record.id, _view(one)) for one in found)
    )
    return listing_.reply("server_providers")


def show(call: Call) -> Reply:
    """GET: what a server offers."""
    return Reply(wire.OneServerProvider(_view(call.perform(show_server_provider, _server(call)))))


def put(call: Call) -> Reply:
    """PUT: all that a server offers."""
    found = call.perform(put_server_provider, _server(call), _offer(call.body.server_provider))
    return Reply(wire.OneServerProvider(_view(found), dry_run=call.dry_run))


def delete(call: Call) -> Reply:
    """DELETE: offer nothing any more."""
    call.perform(delete_server_provider, _server(call), force=call.flag("force"))
    return Reply()


def slices(call: Call) -> Reply:
    """GET: a page of the slices on a server that are building or active."""
    server = _server(call)
    read = partial(list_slices, call.env, call.caller, server)
    return listed(call, "slices", read, _slice_view, path=f"server-providers/{server}/slices")


def change_slice(call: Call) -> Reply:
    """PATCH: a claimed slice is there, could not be made, or is gone."""
    body: SlicePatchBody = call.body.slice
    report = SliceReport(ClaimState(body.status), body.slice_id, body.reason or "")
    found = call.perform(report_slice, _server(call), call.path["id"], report)
    return Reply(wire.OneSlice(_slice_view(found), dry_run=call.dry_run))


def _slice_view(one: ShownSlice) -> wire.Slice:
    return view(wire.Slice, one, status=one.state)


def _server(call: Call) -> str:
    return reading.uuid(call.path["server_id"])


def _offer(body: ServerProviderBody) -> ServerOffer:
    with_ = body.shared_with
    shared = None if with_ == "everyone" else frozenset(() if with_ == "nobody" else with_)
    return ServerOffer(dict(body.resources), frozenset(body.traits), shared)


def _view(one: ShownServerProvider) -> wire.ServerProvider:
    record = one.record
    own: dict[str, Any] = {
        name: getattr(record, name) if one.own else None
        for name in ("server_id", "project_id", "created_at", "updated_at")
    }
    return view(
        wire.ServerProvider,
        one,
        id=record.id,
        status="active" if one.placed else "suspended",
        resources={
            name: wire.OfferedResource(total, one.used.get(name, 0) if one.own else None)
            for name, total in one.totals.items()
        },
        shared_with=_sharing(record.shared_with) if one.own else None,
        offered_by=_offering(one),
        **own,
    )


def _offering(one: ShownServerProvider) -> Literal["own", "operator", "project"]:
    if one.record.by_operator:
        return "operator"
    return "own" if one.own else "project"


def _sharing(projects: frozenset[str] | None) -> Sharing:
    if projects is None:
        return "everyone"
    return sorted(projects) or "nobody"
