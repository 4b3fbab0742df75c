"""`/v1/hosts`: the bookings of each host, and why one is closed."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from moorage.api.native.call import Reply
from moorage.api.native.formats import instant
from moorage.api.native.paging import Listing
from moorage.domain.period import format_instant
from moorage.usecases.ledger.hosts import list_hosts, show_host
from moorage.usecases.ledger.member_moves import refused_move
from moorage.wire import hosts as wire

if TYPE_CHECKING:
    from moorage.api.native.call import Call
    from moorage.usecases.ledger.hosts import Closing, HostStatus, Occupancy


def listing(call: Call) -> Reply:
    """GET: a page of hosts."""
    listing_ = Listing(
        call,
        "hosts",
        partial(list_hosts, call.env, call.caller),
        lambda found: ((one.uuid, wire.HostStatus(**_fields(one))) for one in found),
    )
    return listing_.reply("hosts")


def show(call: Call) -> Reply:
    """GET: one host, with a page of its bookings."""
    page = call.page()
    name = call.path["name"]
    status, found = call.perform(show_host, name, page)
    links = call.next_links(f"hosts/{status.uuid}", [one.consumer.uuid for one in found], page)
    bookings = [_booking(one) for one in found]
    host = wire.ShownHost(**_fields(status), bookings=bookings, bookings_links=links)
    return Reply(wire.OneHost(host))


def move(call: Call) -> Reply:
    """GET: whether a server may move to a host."""
    name, server = call.path["name"], call.path["server_id"].lower()
    reason = call.perform(refused_move, name, server)
    return Reply(wire.OneHostMove(wire.HostMove(name, server, reason is None, reason)))


def closing(one: Closing) -> wire.Closing:
    """A reason why a host is closed."""
    return wire.Closing(
        why=one.why.value,
        start=None if one.start is None else format_instant(one.start),
        end=None if one.end is None else format_instant(one.end),
        capacity_window=one.window,
        kind=one.kind,
        reason=one.reason,
    )


def _fields(one: HostStatus) -> dict[str, Any]:
    return {
        "uuid": one.uuid,
        "name": one.name,
        "domains": {str(level): name for level, name in one.domains.items()},
        "shares": one.shares,
        "open": one.is_open,
        "closed": [closing(each) for each in one.closed],
        "consumers": one.consumers,
        "until": None if one.until is None else instant(one.until),
    }


def _booking(one: Occupancy) -> wire.HostBooking:
    return wire.HostBooking(
        consumer=one.consumer.uuid,
        project_id=one.consumer.project_id,
        state=one.booking.state.value,
        amounts=dict(one.amounts),
        start=format_instant(one.booking.period.start),
        end=instant(one.booking.period.end),
        lapses_at=instant(one.booking.lapses_at),
        decision=one.booking.decision,
        ensemble=one.ensemble,
        ensemble_name=one.ensemble_name,
        member=one.member,
        lease=one.lease,
    )
