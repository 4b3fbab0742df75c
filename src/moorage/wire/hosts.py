"""Hosts: their bookings, and why one is closed."""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import UNSET, Struct, UnsetType

from moorage.wire.compliance import Impact
from moorage.wire.fields import At, Link, Reason

HostState: TypeAlias = Literal["open", "closed", "down"]
"""`closed`: nothing new is placed there, what is there may still run; `down`: that does not run."""


class Closing(Struct, frozen=True):
    """Why a host is closed: `disabled`, `away`, and so on; or `planned` to be away."""

    why: Literal[
        "disabled",
        "operator",
        "service down",
        "forced down",
        "no capacity",
        "away",
        "planned",
        "no inventory",
    ]
    start: At | None
    """The start of a planned window; when an operator closed it, or Nova's word was learned."""
    end: At | None
    capacity_window: str | None
    kind: str | None
    reason: str
    user_id: str | None
    """The operator who closed the host."""


class HostStatus(Struct, frozen=True):
    """A host, or several that share a reason: why it is closed, and when its last booking ends."""

    uuid: str
    name: str
    domains: dict[str, str]
    shares: bool
    state: HostState
    open: bool
    """Whether members may be placed on it now: its state is `open`."""
    closed: list[Closing]
    consumers: int
    """How many have live bookings on it."""
    until: At | None
    """When the last of them ends; null: there are none, or one has no end."""


class Hosts(Struct, frozen=True):
    """A page of hosts, by UUID."""

    hosts: list[HostStatus]
    hosts_links: list[Link]


class Fill(Struct, frozen=True):
    """One resource class of a host's tree: `booked` is the peak of everything live, holds too."""

    capacity: int
    allocated: int
    booked: int


class HostBooking(Struct, frozen=True):
    """One consumer's bookings on a host."""

    consumer: str
    project_id: str
    state: str
    amounts: dict[str, int]
    start: At
    end: At | None
    lapses_at: At | None
    decision: str | None
    ensemble: str | None
    ensemble_name: str | None
    member: str | None
    lease: str | None


class ShownHost(HostStatus, frozen=True):
    """A host with what it has and a page of its consumers."""

    resources: dict[str, Fill]
    traits: list[str]
    bookings: list[HostBooking]
    bookings_links: list[Link]


class CloseBody(Struct, frozen=True, forbid_unknown_fields=True):
    """Why a host is closed."""

    reason: Reason


class HostClose(Struct, frozen=True, forbid_unknown_fields=True):
    """POST /v1/hosts/{name}/close."""

    close: CloseBody


class ServiceBody(Struct, frozen=True, forbid_unknown_fields=True):
    """A compute service as Nova lists it."""

    status: Literal["enabled", "disabled"]
    state: Literal["up", "down"]
    forced_down: bool = False


class HostServicePut(Struct, frozen=True, forbid_unknown_fields=True):
    """PUT /v1/hosts/{name}/service."""

    service: ServiceBody


class OneStatus(Struct, frozen=True):
    """A host without its bookings."""

    host: HostStatus
    breaks: Impact | UnsetType = UNSET
    """Which violations begin by it; only where it is closed."""


class OneHost(Struct, frozen=True):
    """One host."""

    host: ShownHost


class HostMove(Struct, frozen=True):
    """Whether a server may move to a host, as far as the policies of its ensembles go."""

    host: str
    server_id: str
    allowed: bool
    reason: str | None
    """Why not."""


class OneHostMove(Struct, frozen=True):
    """GET /v1/hosts/{name}/moves/{server_id}."""

    move: HostMove
