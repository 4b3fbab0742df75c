"""`/v1/topology/domains`, `/v1/fleet`, `/v1/bookings`: the fleet, for operators."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from moorage.api.native.call import Call, Reply
from moorage.api.native.compliance import impact_view
from moorage.api.native.flavors import flavor_of
from moorage.api.native.formats import view
from moorage.api.native.paging import ENCODER, Listing, array, of_sequence
from moorage.domain.consumers import Consumer
from moorage.domain.fleet_load import ForeignLoad
from moorage.domain.fleet_parts import FleetPart
from moorage.domain.period import format_instant
from moorage.domain.providers import Inventory, ResourceProvider
from moorage.domain.resources import amounts
from moorage.domain.topology import Attachment, Domain, Topology
from moorage.usecases.ledger.fleet_loading import JUDGING, load_fleet, put_topology
from moorage.usecases.ledger.hosts import view_fleet
from moorage.usecases.shared.access import list_bookings
from moorage.wire import fleet as wire

if TYPE_CHECKING:
    from collections.abc import Iterator

    from moorage.domain.bookings import Booking
    from moorage.usecases.ledger.hosts import HostView
    from moorage.wire.fleet import ConsumerBody, FleetBody, ProviderBody, TopologyBody


def show_topology(call: Call) -> Reply:
    """GET: all trees; for tenants the levels, and the domains that they may name.

    Whoever may replace the trees sees all of them, since clients write back what they have read.
    """
    snapshot = call.env.store.snapshot()
    if call.caller.operator or call.may("moorage:topology:update"):
        return Reply(parts=_topology_parts(snapshot.topology, snapshot.topology_revision))
    disclosure = call.env.limits.disclosure
    seen = snapshot.topology.only(lambda one: disclosure.may_name(one.level))
    return Reply(parts=_topology_parts(seen, snapshot.topology_revision))


def put(call: Call) -> Reply:
    """PUT: replace all trees, those of the revision in `If-Match` if it is given."""
    topology = topology_of(call.body.topology)
    seconds = None if call.dry_run else JUDGING
    impact = call.perform(put_topology, topology, call.matched, seconds)
    snapshot = call.env.store.snapshot()
    breaks = ENCODER.encode(impact_view(impact))
    return Reply(parts=_topology_parts(snapshot.topology, snapshot.topology_revision, breaks))


def show(call: Call) -> Reply:
    """GET: a page of hosts with their domains, capacity and use."""
    fleet = call.perform(view_fleet)
    snapshot = fleet.snapshot
    listing = Listing(
        call,
        "fleet",
        of_sequence(fleet.uuids, str),
        lambda uuids: ((uuid, _host(fleet.host(uuid))) for uuid in uuids),
    )
    more = {
        "revision": snapshot.revision,
        "computed_at": format_instant(snapshot.taken_at),
        "levels": {tree: list(names) for tree, names in snapshot.topology.levels.items()},
    }
    return listing.reply("hosts", more, within="fleet")


def _host(host: HostView) -> wire.Host:
    return view(wire.Host, host)


def load(call: Call) -> Reply:
    """POST: load a part of a fleet in one transaction; what exists already is left alone."""
    body: FleetBody = call.body.fleet
    part = FleetPart(
        providers=_providers(body.providers),
        load=tuple(_load(one) for one in body.consumers),
        flavors=tuple(
            flavor_of(one, one.id or one.name, call.env.limits.nova) for one in body.flavors
        ),
        topology=None if body.topology is None else topology_of(body.topology),
        lines={one.uuid: one.line for one in body.providers if one.line is not None},
    )
    done = load_fleet(call.env.store, call.caller, part)
    return Reply(view(wire.FleetLoaded, done))


def bookings(call: Call) -> Reply:
    """GET: live bookings of every state."""
    read = partial(
        list_bookings,
        call.env,
        call.caller,
        provider=call.query.get("provider"),
        consumer=call.query.get("consumer"),
        decision=call.query.get("decision"),
    )
    listing = Listing(
        call,
        "bookings",
        read,
        lambda found: ((owner.uuid, _booking(owner, booking)) for owner, booking in found),
    )
    return listing.reply("bookings")


def _booking(consumer: Consumer, booking: Booking) -> wire.Booking:
    return view(wire.Booking, booking, booking.period, consumer)


def topology_of(body: TopologyBody) -> Topology:
    """The topology of a body, checked.

    Raises:
        InvalidDescription: see `Topology.build`.
    """
    return Topology.build(
        {tree: tuple(names) for tree, names in body.levels.items()},
        [Domain(one.name, one.level, one.tree, one.parent, one.line) for one in body.domains],
        [Attachment(one.host, one.domain, one.tree, one.line) for one in body.attachments],
    )


def _topology_parts(
    topology: Topology, revision: int, breaks: bytes | None = None
) -> Iterator[bytes]:
    """All trees as JSON, in parts: a client that changes them writes all of them back."""
    levels = {tree: list(names) for tree, names in topology.levels.items()}
    domains = (view(wire.Domain, one) for one in topology.domains.values())
    attachments = (
        wire.Attachment(host, domain, tree)
        for (tree, host), domain in sorted(topology.attachments.items())
    )
    yield b'{"topology":{"levels":%b,"domains":' % ENCODER.encode(levels)
    yield from array(domains)
    yield b',"attachments":'
    yield from array(attachments)
    yield b',"revision":%d}' % revision
    yield b"}" if breaks is None else b',"breaks":%b}' % breaks


def _providers(bodies: list[ProviderBody]) -> tuple[ResourceProvider, ...]:
    """Providers with their roots; a parent may be in the same part, before its children."""
    roots: dict[str, str] = {}
    found = []
    for one in bodies:
        parent = one.parent_uuid
        roots[one.uuid] = one.uuid if parent is None else roots.get(parent, parent)
        found.append(
            ResourceProvider(
                uuid=one.uuid,
                name=one.name,
                parent_uuid=parent,
                root_uuid=roots[one.uuid],
                inventories=tuple(
                    Inventory(
                        name,
                        item.total,
                        item.reserved,
                        item.min_unit,
                        item.max_unit,
                        item.step_size,
                        item.allocation_ratio,
                    )
                    for name, item in one.inventories.items()
                ),
                traits=frozenset(one.traits),
                aggregates=frozenset(one.aggregates),
            )
        )
    return tuple(found)


def _load(body: ConsumerBody) -> ForeignLoad:
    return ForeignLoad(
        consumer=Consumer(body.uuid, body.project_id, body.user_id, body.type),
        allocations={
            provider: amounts(some, path=f"consumers.{body.uuid}")
            for provider, some in body.allocations.items()
        },
    )
