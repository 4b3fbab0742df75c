"""The fleet: topology, providers with their load, bookings."""

from __future__ import annotations

from typing import Annotated

from msgspec import UNSET, Meta, Struct, UnsetType

from moorage.domain.resources import MAX_AMOUNT
from moorage.wire.compliance import Impact
from moorage.wire.fields import Amount, At, Link, Name, Names, Uuid
from moorage.wire.flavors import FlavorBody
from moorage.wire.hosts import Closing, Fill, HostState

MANY = 200_000
"""Entries of one list; a larger fleet is loaded in several calls."""


class DomainBody(Struct, frozen=True, forbid_unknown_fields=True):
    """A node of a tree."""

    name: Name
    level: Name
    tree: Name = "location"
    parent: Name | None = None
    line: int | None = None


class AttachmentBody(Struct, frozen=True, forbid_unknown_fields=True):
    """A host, by the name of its root provider, in a domain."""

    host: Name
    domain: Name
    tree: Name = "location"
    line: int | None = None


class TopologyBody(Struct, frozen=True, forbid_unknown_fields=True):
    """All trees; replaces what there was."""

    levels: Annotated[
        dict[Name, Names], Meta(description="Tree -> levels from the top down, without host")
    ]
    domains: Annotated[list[DomainBody], Meta(max_length=MANY)]
    attachments: Annotated[list[AttachmentBody], Meta(max_length=MANY)] = []


class TopologyPut(Struct, frozen=True, forbid_unknown_fields=True):
    """PUT /v1/topology/domains."""

    topology: TopologyBody


class InventoryBody(Struct, frozen=True, forbid_unknown_fields=True):
    """What a provider has of one resource class."""

    total: Annotated[int, Meta(ge=1, le=MAX_AMOUNT)]
    reserved: Annotated[int, Meta(ge=0, le=MAX_AMOUNT)] = 0
    min_unit: Amount = 1
    max_unit: Amount = MAX_AMOUNT
    step_size: Amount = 1
    allocation_ratio: Annotated[float, Meta(gt=0, le=3.40282e38)] = 1.0


class ProviderBody(Struct, frozen=True, forbid_unknown_fields=True):
    """A resource provider with all it has."""

    uuid: Uuid
    name: Annotated[str, Meta(min_length=1, max_length=200)]
    parent_uuid: Uuid | None = None
    inventories: dict[Name, InventoryBody] = {}
    traits: Annotated[list[Name], Meta(max_length=1000)] = []
    aggregates: Annotated[list[Uuid], Meta(max_length=1000)] = []
    line: int | None = None


class ConsumerBody(Struct, frozen=True, forbid_unknown_fields=True):
    """Existing load: a consumer and its allocations."""

    uuid: Uuid
    allocations: Annotated[dict[Uuid, dict[Name, Amount]], Meta(min_length=1, max_length=64)]
    project_id: Name
    user_id: Name
    type: Name = "INSTANCE"


class FleetBody(Struct, frozen=True, forbid_unknown_fields=True):
    """A part of a fleet, written in this order in one transaction."""

    providers: Annotated[list[ProviderBody], Meta(max_length=MANY)] = []
    topology: TopologyBody | None = None
    flavors: Annotated[list[FlavorBody], Meta(max_length=MANY)] = []
    consumers: Annotated[list[ConsumerBody], Meta(max_length=MANY)] = []


class FleetLoad(Struct, frozen=True, forbid_unknown_fields=True):
    """POST /v1/fleet."""

    fleet: FleetBody


class Domain(Struct, frozen=True):
    """A node of a tree."""

    name: str
    level: str
    tree: str
    parent: str | None


class Attachment(Struct, frozen=True):
    """A host's place in a domain."""

    host: str
    domain: str
    tree: str


class TopologyValue(Struct, frozen=True):
    """All trees. `revision` changes when the topology does."""

    levels: dict[str, list[str]]
    domains: list[Domain]
    attachments: list[Attachment]
    revision: int


class OneTopology(Struct, frozen=True):
    """The topology."""

    topology: TopologyValue
    breaks: Impact | UnsetType = UNSET
    """What the change newly breaks; only after a change, and in its dry run."""


class Host(Struct, frozen=True):
    """A root provider, its domains and the use of its tree."""

    uuid: str
    name: str
    domains: dict[str, str]
    resources: dict[str, Fill]
    traits: list[str]
    shares: bool
    """Whether it is no host, but a store or pool that hosts take from."""
    state: HostState
    closed: list[Closing]


class FleetValue(Struct, frozen=True):
    """A page of hosts by name, at one revision."""

    revision: int
    computed_at: At
    levels: dict[str, list[str]]
    hosts: list[Host]
    hosts_links: list[Link]


class OneFleet(Struct, frozen=True):
    """The fleet."""

    fleet: FleetValue


class FleetLoaded(Struct, frozen=True):
    """What one call wrote, and how much of it existed already."""

    hosts: int
    consumers: int
    flavors: int
    unchanged: int
    revision: int


class Booking(Struct, frozen=True):
    """Amounts a consumer takes from a provider over a period."""

    consumer: str
    project_id: str
    user_id: str
    provider: str
    amounts: dict[str, int]
    start: At
    end: At | None
    state: str
    lapses_at: At | None
    binding: str
    decision: str | None
    preemptible: bool
    priority: int
    """Its lease's, or that of a preemptible stay."""
    yields_to: str | None
    """The lease for which it ends early."""
    declared_end: At | None
    """With `yields_to`, the end that it had before; null for none."""


class Bookings(Struct, frozen=True):
    """A page of bookings."""

    bookings: list[Booking]
    bookings_links: list[Link]
