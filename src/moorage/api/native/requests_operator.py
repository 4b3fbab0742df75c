"""Request bodies that only operators send: topology, flavors, fleets, the simulated clock."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta, Struct

from moorage.api.native.requests import Amount, DecideBody, Instant, Name, Names, Uuid
from moorage.domain.resources import MAX_AMOUNT

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


class FlavorBody(Struct, frozen=True, forbid_unknown_fields=True):
    """A flavor in Placement's terms."""

    name: Name
    resources: Annotated[dict[Name, Amount], Meta(min_length=1, max_length=64)]
    id: Name | None = None
    required: Annotated[list[Name | list[Name]], Meta(max_length=64)] = []
    forbidden: Names = []
    extra_specs: dict[Name, str] = {}


class FlavorCreate(Struct, frozen=True, forbid_unknown_fields=True):
    """POST /v1/flavors."""

    flavor: FlavorBody


class FlavorLoad(Struct, frozen=True, forbid_unknown_fields=True):
    """POST /v1/flavors/load: the JSON that `openstack flavor list --long -f json` prints."""

    flavors: Annotated[list[dict[str, Any]], Meta(max_length=100_000)]


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


class ClockBody(Struct, frozen=True, forbid_unknown_fields=True):
    """A new instant, not before the present one."""

    now: Instant


class ClockPut(Struct, frozen=True, forbid_unknown_fields=True):
    """PUT /v1/simulation/clock."""

    clock: ClockBody


class HotBody(Struct, frozen=True, forbid_unknown_fields=True):
    """A Heat template and what goes with it."""

    template: Annotated[str, Meta(max_length=4_000_000)]
    environment: Annotated[str, Meta(max_length=1_000_000)] | None = None
    parameters: dict[Name, Any] = {}
    files: dict[
        Annotated[str, Meta(max_length=1024)], Annotated[str, Meta(max_length=4_000_000)]
    ] = {}
    name: Name = "stack"
    ensemble_id: Uuid | None = None
    """Use this ensemble's decision; without it a new ensemble is made, decided and held."""
    id: Uuid | None = None
    decide: DecideBody | None = None


class HotCreate(Struct, frozen=True, forbid_unknown_fields=True):
    """POST /v1/hot."""

    hot: HotBody
