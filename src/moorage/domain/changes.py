"""Changesets: what to write, and what the writer relied on.

Everything that changes the ledger is a tuple of these values, committed in order in one
transaction or not at all. A change that depends on how things stand names the generation it
expects; `Changeset.relies_on` names the revisions of every provider the decision looked at
closely. Capacity is judged again inside the transaction, over each booking's whole period:
no commit of bookings may make an overage worse at any instant.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping

    from moorage.domain.bookings import Booking
    from moorage.domain.consumers import AnyGeneration, Consumer
    from moorage.domain.content import AllocationSet
    from moorage.domain.decisions import Claim, Decision
    from moorage.domain.effects import Effect, EffectKind
    from moorage.domain.ensembles import Ensemble
    from moorage.domain.explain import Explanation
    from moorage.domain.flavors import Flavor
    from moorage.domain.leases import Lease
    from moorage.domain.period import Duration, Instant
    from moorage.domain.providers import Inventory, ResourceProvider
    from moorage.domain.reservables import Reservable, ReservableKind
    from moorage.domain.resources import Amounts
    from moorage.domain.templates import Template
    from moorage.domain.topology import Topology


# --- Placement's resources ---------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class CreateProvider:
    """A new provider, generation 0. DuplicateName if uuid or name is taken."""

    uuid: str
    name: str
    parent_uuid: str | None = None


@dataclass(frozen=True, slots=True)
class UpdateProvider:
    """Rename, and with `set_parent` move under `parent_uuid` (None: become a root)."""

    uuid: str
    name: str
    parent_uuid: str | None = None
    set_parent: bool = False


@dataclass(frozen=True, slots=True)
class DeleteProvider:
    """ProviderHasChildren, ProviderInUse, NotFound."""

    uuid: str


@dataclass(frozen=True, slots=True)
class PutInventories:
    """Write inventories; with `replace_all` every other class of the provider is dropped.

    With `create` a class that exists already is a ProviderConflict (POST of one inventory);
    with `update` one that does not exist is an InvalidDescription (PUT of one).
    `generation` None: not checked. Moves the provider's generation by one.
    """

    provider: str
    inventories: tuple[Inventory, ...]
    generation: int | None
    replace_all: bool = False
    create: bool = False
    update: bool = False


@dataclass(frozen=True, slots=True)
class DeleteInventories:
    """Drop one class (NotFound if absent), or with None all. InventoryInUse."""

    provider: str
    resource_class: str | None = None


@dataclass(frozen=True, slots=True)
class PutTraits:
    """Replace a provider's traits; the generation moves only if the set changes."""

    provider: str
    traits: frozenset[str]
    generation: int | None


@dataclass(frozen=True, slots=True)
class PutAggregates:
    """Replace a provider's aggregates; `generation` None: neither checked nor moved."""

    provider: str
    aggregates: frozenset[str]
    generation: int | None


@dataclass(frozen=True, slots=True)
class CreateResourceClass:
    """DuplicateName if it exists, unless `exist_ok`."""

    name: str
    exist_ok: bool = False


@dataclass(frozen=True, slots=True)
class RenameResourceClass:
    """Before microversion 1.7."""

    name: str
    new_name: str


@dataclass(frozen=True, slots=True)
class DeleteResourceClass:
    """InUse while an inventory has it."""

    name: str


@dataclass(frozen=True, slots=True)
class CreateTrait:
    """A custom trait; no error if it exists."""

    name: str


@dataclass(frozen=True, slots=True)
class DeleteTrait:
    """InUse while a provider has it."""

    name: str


# --- bookings ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Stay:
    """On what terms a consumer gets its first allocations."""

    life: Duration | None = None
    """How long they last from the commit on; None: for ever."""
    until: Instant | None = None
    """When they end at the latest."""
    preemptible: bool = False
    yields_to: str | None = None
    """The lease for which they end at `until`, before their life is over."""
    decision: str | None = None
    """The decision whose place they take."""


OPEN: Final = Stay()
"""The terms of Placement's allocations: they stay until they are deleted."""


@dataclass(frozen=True, slots=True)
class ReplaceAllocations:
    """Replace a consumer's whole set of allocations (bookings from now on).

    They end as those before them did, and are as preemptible. A consumer without any before
    gets them on the terms of `stay`; but if another consumer of the changeset gives up these very
    allocations before, on the terms of that one. `until` says another end in any case.

    `generation` is the consumer's expected one: None for "must not exist yet", ANY_GENERATION
    for "do not check". Empty `allocations` clears the consumer. The generation of each
    provider in the new set (or, when clearing, of each one cleared) moves once per changeset.
    Raises ConsumerConflict, CapacityExceeded, ConstraintViolated, UnknownName.
    """

    consumer: Consumer
    allocations: Mapping[str, Amounts]
    generation: int | AnyGeneration | None
    until: Instant | None = None
    stay: Stay = OPEN


@dataclass(frozen=True, slots=True)
class DeleteAllocations:
    """Drop a consumer's allocations; NotFound if it has none. Moves no generation."""

    consumer: str


@dataclass(frozen=True, slots=True)
class PutBookings:
    """Replace all holds of `consumer` (not its allocations) by these; they share its UUID.

    Moves no wire generation: holds do not show on Placement's wire.
    """

    consumer: Consumer
    bookings: tuple[Booking, ...]


@dataclass(frozen=True, slots=True)
class DropBookings:
    """Drop the holds of these consumers; consumers without any are passed over.

    With `decision`, only those held or reserved for it and not claimed: what another decision
    holds, or somebody has claimed meanwhile, stays.
    """

    consumers: frozenset[str]
    decision: str | None = None


@dataclass(frozen=True, slots=True)
class SwapHold:
    """A hold becomes a server's allocation.

    The member's bookings are re-written under `server` in this commit, with the same
    providers and amounts, state allocated, and no lapse.

    HoldExpired when the hold has lapsed or never was; ConsumerConflict when `server` exists
    with allocations already; NotFound when it is another project's, or not a server.
    """

    member_uuid: str
    server: Consumer


@dataclass(frozen=True, slots=True)
class TakeHold:
    """A live hold makes room for what the same changeset writes.

    What is judged is the end state, so a hold can be exchanged for an allocation on a full host,
    though not for more than was held and is free.

    HoldExpired when the hold has lapsed or never was.
    """

    member_uuid: str


@dataclass(frozen=True, slots=True)
class EndBookings:
    """Give every booking of these consumers another end.

    With `yields_to` they end early for that lease: each must be preemptible, and remembers the end
    it had. Without, what they yielded to is forgotten. Moves no wire generation. Consumers
    without bookings are passed over.

    ConcurrentUpdate: one that should yield is not preemptible. CapacityExceeded: a later end
    than before, for which there is no room.
    """

    consumers: frozenset[str]
    end: Instant
    yields_to: str | None = None


# --- taking over ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class AdoptProviders:
    """Write providers as another Placement service has them, generations included.

    Parents come before their children or are there. Those in `known` that exist are made equal:
    name, parent, inventories, traits, aggregates and generation. Any other must be new: somebody
    who made it meanwhile would lose it.
    DuplicateName, UnknownName (parent, class or trait), InventoryInUse.
    """

    providers: tuple[ResourceProvider, ...]
    known: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class AdoptAllocations:
    """Write consumers' whole sets of allocations as another Placement service has them.

    The consumers have none before. Consumer generations are written as given, provider generations
    stay. Nothing is judged: what another ledger has acknowledged is a fact, overages included.
    ConsumerConflict, UnknownName, InvalidDescription.
    """

    sets: tuple[AllocationSet, ...]


# --- Moorage's own resources ---------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PutEnsemble:
    """Write an ensemble; `generation` is the stored one expected, None for a new one."""

    ensemble: Ensemble
    generation: int | None


@dataclass(frozen=True, slots=True)
class ExpectEnsemble:
    """Write nothing, and only if the ensemble has this generation still.

    Raises ConcurrentUpdate, NotFound. For changes about members that leave the ensemble as it is.
    """

    id: str
    generation: int


@dataclass(frozen=True, slots=True)
class DeleteEnsemble:
    """Remove an ensemble; its decisions, claims and holds are the caller's to change."""

    id: str
    generation: int | None = None


@dataclass(frozen=True, slots=True)
class PutDecision:
    """Write a decision; `generation` is the stored one expected, None for a new one.

    With `not_after` it is HoldExpired from that instant on, by the commit's clock.
    """

    decision: Decision
    generation: int | None
    not_after: Instant | None = None


@dataclass(frozen=True, slots=True)
class BoundHeld:
    """Write nothing, and only if the project then holds or claims at most `limit` places.

    Judged after the changes before it: of several that are made at once, those that come too
    late are LimitExceeded. `requested` is told in the error.
    """

    project_id: str
    limit: int
    requested: int


@dataclass(frozen=True, slots=True)
class PutClaim:
    """Write a claim; `expected_state` None for a new one, else the stored state expected.

    With `not_after` it is HoldExpired from that instant on, by the commit's clock.
    """

    claim: Claim
    expected_state: str | None
    not_after: Instant | None = None


@dataclass(frozen=True, slots=True)
class PutLease:
    """Write a lease; `generation` is the stored one expected, None for a new one.

    DuplicateName, NotFound, ConcurrentUpdate.
    """

    lease: Lease
    generation: int | None


@dataclass(frozen=True, slots=True)
class ExpectLease:
    """Write nothing, and only if the lease has this generation still.

    Raises ConcurrentUpdate, NotFound. For changes about its places that leave the lease as it is.
    """

    id: str
    generation: int


@dataclass(frozen=True, slots=True)
class PutEffect:
    """Write an effect; `attempts` is the stored count expected, None for a new one.

    DuplicateName, NotFound; ConcurrentUpdate: another worker was quicker.
    """

    effect: Effect
    attempts: int | None


@dataclass(frozen=True, slots=True)
class DropEffects:
    """Forget what is still to be done for a subject (a lease's id, or a consumer).

    With `kinds`, only effects of these.
    """

    subject: str
    kinds: frozenset[EffectKind] | None = None


@dataclass(frozen=True, slots=True)
class PutExplanation:
    """Keep an explanation, with the problem as a replayable JSON instance.

    `request` is the id that the client gave to what was refused, `digest` the fingerprint of its
    request. Of the project's explanations the newest `keep` stay; None: all of them.
    """

    explanation: Explanation
    project_id: str
    instance: str
    request: str | None = None
    digest: str | None = None
    keep: int | None = None


@dataclass(frozen=True, slots=True)
class PutTemplate:
    """Write a template's next version: the first, or one after the newest.

    DuplicateName: the id of a first one, or its name in the project, is taken.
    ConcurrentUpdate: another version is the newest. NotFound: there is none to follow.
    """

    template: Template


@dataclass(frozen=True, slots=True)
class DeleteTemplate:
    """Drop every version of a template. NotFound."""

    id: str


@dataclass(frozen=True, slots=True)
class PutReservable:
    """Write what is offered for reservation.

    DuplicateName: a new one whose id or name is taken. NotFound: there is none to change.
    """

    reservable: Reservable
    new: bool


@dataclass(frozen=True, slots=True)
class DropReservable:
    """Offer it no more. NotFound."""

    kind: ReservableKind
    id: str


@dataclass(frozen=True, slots=True)
class PutFlavor:
    """Write a flavor; replaces one of the same id."""

    flavor: Flavor


@dataclass(frozen=True, slots=True)
class DeleteFlavor:
    """NotFound if there is none; by id or name."""

    id: str


@dataclass(frozen=True, slots=True)
class PutTopology:
    """Replace the whole topology. Hosts are named by root provider name; UnknownName if absent."""

    topology: Topology


Change: TypeAlias = (
    CreateProvider
    | UpdateProvider
    | DeleteProvider
    | PutInventories
    | DeleteInventories
    | PutTraits
    | PutAggregates
    | CreateResourceClass
    | RenameResourceClass
    | DeleteResourceClass
    | CreateTrait
    | DeleteTrait
    | ReplaceAllocations
    | DeleteAllocations
    | PutBookings
    | DropBookings
    | SwapHold
    | TakeHold
    | EndBookings
    | AdoptProviders
    | AdoptAllocations
    | PutEnsemble
    | ExpectEnsemble
    | DeleteEnsemble
    | PutDecision
    | BoundHeld
    | PutClaim
    | PutLease
    | ExpectLease
    | PutEffect
    | DropEffects
    | PutExplanation
    | PutTemplate
    | DeleteTemplate
    | PutReservable
    | DropReservable
    | PutFlavor
    | DeleteFlavor
    | PutTopology
)


@dataclass(frozen=True, slots=True)
class Changeset:
    """Changes applied in order, in one transaction, or not at all.

    `relies_on` maps provider UUID to the revision seen; `topology_revision`, if given, is the
    topology's, and `keepers_revision` that of all ensembles that keep others out. Any that moved
    is a ProviderConflict, and nothing is written.

    A provider in `seen` may move all the same, as long as its name, tree, traits and aggregates
    are as seen, and the consumers in `standing` have bookings on exactly the providers they had:
    then only bookings of others came or went, and capacity is judged by the commit itself.

    A consumer that gives up bounded allocations which took the place of a decision's member is
    PlaceLeft, unless `lets_go`: whoever writes says so when it has seen to the place.
    """

    changes: tuple[Change, ...]
    relies_on: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))
    seen: Mapping[str, ResourceProvider] = field(default_factory=lambda: MappingProxyType({}))
    """Of the providers in `relies_on` those of which others' bookings do not matter."""
    standing: Mapping[str, frozenset[str]] = field(default_factory=lambda: MappingProxyType({}))
    """Consumer -> providers; each of these is in `relies_on`."""
    topology_revision: int | None = None
    keepers_revision: int | None = None
    lets_go: bool = False


@dataclass(frozen=True, slots=True)
class Committed:
    """What a commit did: the ledger's new revision and the wire generations it produced."""

    revision: int
    at: int
    """The commit's instant, by the store's clock."""
    provider_generations: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))
    consumer_generations: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))
    created: frozenset[str] = frozenset()
    """Names or UUIDs of resource classes, traits and providers that this commit created."""
