"""`/v1/hosts`: the bookings of each host, and why one is closed."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from moorage.api.native.call import Reply
from moorage.api.native.compliance import impact_view
from moorage.api.native.formats import view
from moorage.api.native.paging import Listing
from moorage.usecases.ledger.host_states import close_host, open_host, report_service
from moorage.usecases.ledger.hosts import list_hosts, show_host
from moorage.usecases.ledger.member_moves import refused_move
from moorage.wire import hosts as wire

if TYPE_CHECKING:
    from moorage.api.native.call import Call
    from moorage.usecases.compliance.impact import Impact
    from moorage.usecases.ledger.hosts import HostStatus, Occupancy


def listing(call: Call) -> Reply:
    """GET: a page of hosts."""
    listing_ = Listing(
        call,
        "hosts",
        partial(list_hosts, call.env, call.caller),
        lambda found: ((one.uuid, view(wire.HostStatus, one)) for one in found),
    )
    return listing_.reply("hosts")


def show(call: Call) -> Reply:
    """GET: one host, with a page of its bookings."""
    page = call.page()
    name = call.path["name"]
    status, having, found = call.perform(show_host, name, page)
    links = call.next_links(f"hosts/{status.uuid}", [one.consumer.uuid for one in found], page)
    bookings = [_booking(one) for one in found]
    host = view(wire.ShownHost, status, having, bookings=bookings, bookings_links=links)
    return Reply(wire.OneHost(host))


def close(call: Call) -> Reply:
    """POST: close a host."""
    return _closed(*call.perform(close_host, call.path["name"], call.body.close.reason))


def reopen(call: Call) -> Reply:
    """POST: take back that operators have closed a host."""
    return _status(call.perform(open_host, call.path["name"]))


def put_service(call: Call) -> Reply:
    """PUT: what Nova says of a host's compute service."""
    service: wire.ServiceBody = call.body.service
    service_of = call.perform(
        report_service,
        call.path["name"],
        enabled=service.status == "enabled",
        up=service.state == "up",
        forced_down=service.forced_down,
    )
    return _closed(*service_of)


def _closed(one: HostStatus, impact: Impact) -> Reply:
    return Reply(wire.OneStatus(view(wire.HostStatus, one), breaks=impact_view(impact)))


def _status(one: HostStatus) -> Reply:
    return Reply(wire.OneStatus(view(wire.HostStatus, one)))


def move(call: Call) -> Reply:
    """GET: whether a server may move to a host."""
    name, server = call.path["name"], call.path["server_id"].lower()
    reason = call.perform(refused_move, name, server)
    return Reply(wire.OneHostMove(wire.HostMove(name, server, reason is None, reason)))


def _booking(one: Occupancy) -> wire.HostBooking:
    booking, consumer = one.booking, one.consumer
    return view(wire.HostBooking, one, booking, booking.period, consumer, consumer=consumer.uuid)
