"""Response bodies about the fleet: for operators, with names and exact counts."""

from __future__ import annotations

from msgspec import Struct

from moorage.api.native.answers import Decision, Ensemble, Link


class Booking(Struct, frozen=True):
    """Amounts a consumer takes from a provider over a period."""

    consumer: str
    project_id: str
    user_id: str
    provider: str
    amounts: dict[str, int]
    start: str
    end: str | None
    state: str
    lapses_at: str | None
    binding: str
    decision: str | None
    preemptible: bool
    priority: int
    """Its lease's, or that of a preemptible stay."""
    yields_to: str | None
    """The lease for which it ends early."""
    declared_end: str | None
    """With `yields_to`, the end that it had before; null for none."""


class Bookings(Struct, frozen=True):
    """A page of bookings."""

    bookings: list[Booking]
    bookings_links: list[Link]


class Domain(Struct, frozen=True):
    """A node of a tree."""

    name: str
    level: str
    tree: str
    parent: str | None


class Attachment(Struct, frozen=True):
    """A host in a domain."""

    host: str
    domain: str
    tree: str


class TopologyValue(Struct, frozen=True):
    """All trees. `revision` moves when the topology does."""

    levels: dict[str, list[str]]
    domains: list[Domain]
    attachments: list[Attachment]
    revision: int


class OneTopology(Struct, frozen=True):
    """The topology."""

    topology: TopologyValue


class FlavorValue(Struct, frozen=True):
    """A flavor in Placement's terms; nested lists in `required` mean "any of"."""

    id: str
    name: str
    resources: dict[str, int]
    required: list[str | list[str]]
    forbidden: list[str]
    extra_specs: dict[str, str]


class OneFlavor(Struct, frozen=True):
    """One flavor."""

    flavor: FlavorValue


class Flavors(Struct, frozen=True):
    """Flavors, by name."""

    flavors: list[FlavorValue]


class Fill(Struct, frozen=True):
    """One resource class of a host's tree: `booked` is the peak of everything live, holds too."""

    capacity: int
    allocated: int
    booked: int


class Host(Struct, frozen=True):
    """A root provider, where it stands and how full its tree is."""

    uuid: str
    name: str
    domains: dict[str, str]
    resources: dict[str, Fill]
    traits: list[str]


class FleetValue(Struct, frozen=True):
    """Hosts by name, at one revision."""

    revision: int
    computed_at: str
    levels: dict[str, list[str]]
    hosts: list[Host]


class OneFleet(Struct, frozen=True):
    """The fleet."""

    fleet: FleetValue


class FleetLoaded(Struct, frozen=True):
    """What one call wrote, and how much of it was there already."""

    hosts: int
    consumers: int
    flavors: int
    unchanged: int
    revision: int


class ClockValue(Struct, frozen=True):
    """The simulation's instant."""

    now: str


class OneClock(Struct, frozen=True):
    """The simulation's clock."""

    clock: ClockValue


class NotPlaced(Struct, frozen=True):
    """A resource of a template that takes no place of its own, and why."""

    path: str
    type: str
    why: str


class Hot(Struct, frozen=True):
    """A template placed: the decision, and the template that carries it."""

    ensemble: Ensemble
    decision: Decision
    keys: dict[str, str]
    """Member -> its path in the stack."""
    not_placed: list[NotPlaced]
    notes: list[str]
    template: str
    """The same template, carrying the decision in metadata that plain Heat passes over.

    It needs no environment. After a dry run the template as it came: there is no decision to
    carry.
    """
    files: dict[str, str]
    """The nested templates and other files that go with it, by name relative to it."""
    dry_run: bool
