"""`/v1/topology/domains`, `/v1/fleet`, `/v1/bookings`: what operators load and see."""

from __future__ import annotations

from typing import TYPE_CHECKING

from moorage.api.native import answers_operator as told
from moorage.api.native import views
from moorage.api.native.call import Call, Reply
from moorage.api.native.flavors import flavor_of
from moorage.domain.consumers import Consumer
from moorage.domain.fleet_load import ForeignLoad
from moorage.domain.fleet_parts import FleetPart
from moorage.domain.period import format_instant
from moorage.domain.providers import Inventory, ResourceProvider
from moorage.domain.resources import amounts
from moorage.domain.topology import Attachment, Domain, Topology
from moorage.usecases.fleet_view import view_fleet
from moorage.usecases.listing import list_bookings
from moorage.usecases.load_fleet import load_fleet
from moorage.usecases.topology import put_topology

if TYPE_CHECKING:
    from moorage.api.native.requests_operator import (
        ConsumerBody,
        FleetBody,
        ProviderBody,
        TopologyBody,
    )
    from moorage.engine.snapshot import Snapshot


def show_topology(call: Call) -> Reply:
    """GET: all trees."""
    return Reply(_topology_view(call.parts.store.snapshot()))


def put(call: Call) -> Reply:
    """PUT: replace all trees."""
    put_topology(call.parts, call.caller, topology_of(call.body.topology), dry_run=call.dry_run)
    return Reply(_topology_view(call.parts.store.snapshot()))


def show(call: Call) -> Reply:
    """GET: hosts with their domains, capacity and use."""
    snapshot, hosts = view_fleet(call.parts, call.caller)
    return Reply(
        told.OneFleet(
            told.FleetValue(
                revision=snapshot.revision,
                computed_at=format_instant(snapshot.taken_at),
                levels={tree: list(names) for tree, names in snapshot.topology.levels.items()},
                hosts=[
                    told.Host(
                        uuid=host.uuid,
                        name=host.name,
                        domains={str(level): name for level, name in host.domains.items()},
                        resources={
                            name: told.Fill(fill.capacity, fill.allocated, fill.booked)
                            for name, fill in host.resources.items()
                        },
                        traits=list(host.traits),
                    )
                    for host in hosts
                ],
            )
        )
    )


def load(call: Call) -> Reply:
    """POST: write a part of a fleet in one transaction; what is there already is left alone."""
    body: FleetBody = call.body.fleet
    part = FleetPart(
        providers=_providers(body.providers),
        load=tuple(_load(one) for one in body.consumers),
        flavors=tuple(flavor_of(one, one.id or one.name) for one in body.flavors),
        topology=None if body.topology is None else topology_of(body.topology),
        lines={one.uuid: one.line for one in body.providers if one.line is not None},
    )
    done = load_fleet(call.parts.store, call.caller, part)
    return Reply(
        told.FleetLoaded(
            hosts=done.hosts,
            consumers=done.consumers,
            flavors=done.flavors,
            unchanged=done.unchanged,
            revision=done.revision,
        )
    )


def bookings(call: Call) -> Reply:
    """GET: live bookings of every state."""
    page = call.page()
    found = list_bookings(
        call.parts,
        call.caller,
        page,
        provider=call.query.get("provider"),
        consumer=call.query.get("consumer"),
        decision=call.query.get("decision"),
    )
    consumers = list(dict.fromkeys(consumer.uuid for consumer, _ in found))
    return Reply(
        told.Bookings(
            bookings=[
                told.Booking(
                    consumer=booking.consumer,
                    project_id=consumer.project_id,
                    user_id=consumer.user_id,
                    provider=booking.provider,
                    amounts=dict(booking.amounts),
                    start=format_instant(booking.period.start),
                    end=views.instant(booking.period.end),
                    state=booking.state.value,
                    lapses_at=views.instant(booking.lapses_at),
                    binding=booking.binding.value,
                    decision=booking.decision,
                    preemptible=booking.preemptible,
                    priority=booking.priority,
                    yields_to=booking.yields_to,
                    declared_end=(
                        None
                        if booking.declared_end is None
                        else views.instant(booking.declared_end)
                    ),
                )
                for consumer, booking in found
            ],
            bookings_links=call.next_links("bookings", consumers, page),
        )
    )


def topology_of(body: TopologyBody) -> Topology:
    """The checked topology.

    Raises:
        InvalidDescription: see `Topology.build`.
    """
    return Topology.build(
        {tree: tuple(names) for tree, names in body.levels.items()},
        [Domain(one.name, one.level, one.tree, one.parent, one.line) for one in body.domains],
        [Attachment(one.host, one.domain, one.tree, one.line) for one in body.attachments],
    )


def _topology_view(snapshot: Snapshot) -> told.OneTopology:
    topology = snapshot.topology
    return told.OneTopology(
        told.TopologyValue(
            levels={tree: list(names) for tree, names in topology.levels.items()},
            domains=[
                told.Domain(one.name, one.level, one.tree, one.parent)
                for one in topology.domains.values()
            ],
            attachments=[
                told.Attachment(host, domain, tree)
                for (tree, host), domain in sorted(topology.attachments.items())
            ],
            revision=snapshot.topology_revision,
        )
    )


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
