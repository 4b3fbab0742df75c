"""Changesets: the changes of one transaction, and the generations they rely on.

Everything that changes the ledger is a tuple of these values, committed in order in one
transaction or not at all. A change that depends on how things stand names the generation it
expects; `Changeset.relies_on` names the revisions of every provider the decision looked at
closely. Capacity is judged again inside the transaction, over each booking's whole period:
no commit of bookings may make an overage worse at any instant.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from moorage.domain.changes.bookings import (
    OPEN,
    BindAllocations,
    DeleteAllocations,
    DropBookings,
    EndBookings,
    PutBookings,
    ReplaceAllocations,
    Stay,
    SwapHold,
    TakeHold,
)
from moorage.domain.changes.bounds import (
    BoundHeld,
    BoundOfferedNames,
    BoundOffers,
    BoundShareOffers,
    BoundStored,
    ExpectUniqueName,
)
from moorage.domain.changes.hosts import (
    CloseHost,
    DropCapacityWindow,
    PutCapacityWindow,
    PutHostService,
    TellHost,
)
from moorage.domain.changes.moorage_records import (
    DeleteEnsemble,
    DeleteFlavor,
    DeletePlan,
    DeleteRecords,
    DeleteSubscription,
    DeleteTemplate,
    DropDeadLetters,
    DropEffects,
    DropQuota,
    DropReservable,
    ExpectEnsemble,
    ExpectLease,
    FinishExplanation,
    MarkJudged,
    PassEvents,
    PutClaim,
    PutDeadLetters,
    PutDecision,
    PutEffect,
    PutEnsemble,
    PutEntry,
    PutEvent,
    PutExplanation,
    PutFlavor,
    PutLease,
    PutPlan,
    PutQuota,
    PutRequestMix,
    PutReservable,
    PutSeries,
    PutServerProvider,
    PutSubscription,
    PutTemplate,
    PutTopology,
    PutViolation,
    TrimEvents,
)
from moorage.domain.changes.providers import (
    AdoptAllocations,
    AdoptNames,
    AdoptProviders,
    CreateProvider,
    CreateResourceClass,
    CreateTrait,
    DeleteInventories,
    DeleteProvider,
    DeleteResourceClass,
    DeleteTrait,
    DropOfferedNames,
    PutAggregates,
    PutInventories,
    PutTraits,
    RenameResourceClass,
    UpdateProvider,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from moorage.domain.providers import ResourceProvider

__all__ = [
    "OPEN",
    "AdoptAllocations",
    "AdoptNames",
    "AdoptProviders",
    "BindAllocations",
    "BoundHeld",
    "BoundOfferedNames",
    "BoundOffers",
    "BoundShareOffers",
    "BoundStored",
    "Change",
    "Changeset",
    "CloseHost",
    "Committed",
    "CreateProvider",
    "CreateResourceClass",
    "CreateTrait",
    "DeleteAllocations",
    "DeleteEnsemble",
    "DeleteFlavor",
    "DeleteInventories",
    "DeletePlan",
    "DeleteProvider",
    "DeleteRecords",
    "DeleteResourceClass",
    "DeleteSubscription",
    "DeleteTemplate",
    "DeleteTrait",
    "DropBookings",
    "DropCapacityWindow",
    "DropDeadLetters",
    "DropEffects",
    "DropOfferedNames",
    "DropQuota",
    "DropReservable",
    "EndBookings",
    "ExpectEnsemble",
    "ExpectLease",
    "ExpectUniqueName",
    "FinishExplanation",
    "MarkJudged",
    "PassEvents",
    "PutAggregates",
    "PutBookings",
    "PutCapacityWindow",
    "PutClaim",
    "PutDeadLetters",
    "PutDecision",
    "PutEffect",
    "PutEnsemble",
    "PutEntry",
    "PutEvent",
    "PutExplanation",
    "PutFlavor",
    "PutHostService",
    "PutInventories",
    "PutLease",
    "PutPlan",
    "PutQuota",
    "PutRequestMix",
    "PutReservable",
    "PutSeries",
    "PutServerProvider",
    "PutSubscription",
    "PutTemplate",
    "PutTopology",
    "PutTraits",
    "PutViolation",
    "RenameResourceClass",
    "ReplaceAllocations",
    "Stay",
    "SwapHold",
    "TakeHold",
    "TellHost",
    "TrimEvents",
    "UpdateProvider",
]

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
    | DropOfferedNames
    | ReplaceAllocations
    | DeleteAllocations
    | PutBookings
    | DropBookings
    | SwapHold
    | TakeHold
    | TellHost
    | EndBookings
    | BindAllocations
    | AdoptNames
    | AdoptProviders
    | AdoptAllocations
    | PutEnsemble
    | ExpectEnsemble
    | PutViolation
    | MarkJudged
    | DeleteEnsemble
    | PutDecision
    | BoundHeld
    | BoundOffers
    | BoundOfferedNames
    | BoundShareOffers
    | BoundStored
    | ExpectUniqueName
    | PutClaim
    | PutLease
    | ExpectLease
    | PutEffect
    | DropEffects
    | PutExplanation
    | FinishExplanation
    | PutTemplate
    | DeleteTemplate
    | PutReservable
    | DropReservable
    | PutQuota
    | PutSeries
    | PutServerProvider
    | DropQuota
    | PutFlavor
    | DeleteFlavor
    | PutCapacityWindow
    | DropCapacityWindow
    | CloseHost
    | PutHostService
    | PutTopology
    | PutRequestMix
    | DeleteSubscription
    | DropDeadLetters
    | PassEvents
    | PutDeadLetters
    | PutEntry
    | PutEvent
    | PutPlan
    | DeletePlan
    | PutSubscription
    | TrimEvents
    | DeleteRecords
)


_none: Final[Callable[[], Mapping[Any, Any]]] = partial(MappingProxyType, {})


@dataclass(frozen=True, slots=True)
class Changeset:
    """Changes applied in order, in one transaction, or not at all.

    `relies_on` maps provider UUID to the revision seen; `topology_revision`, if given, is the
    topology's, and `exclusive_revision` that of all exclusive ensembles. Any that moved
    is a ProviderConflict, and nothing is written.

    A provider in `seen` may move all the same, as long as its name, tree, traits and aggregates
    are as seen, and the consumers in `standing` have bookings on exactly the providers they had:
    then only bookings of others came or went, and capacity is judged by the commit itself.

    A consumer that gives up allocations which took the place of a decision's member is PlaceLeft,
    unless `releases_places`: the writer sets it when it has dealt with the place. A member's server
    that gets allocations is ServerOfMember if the writer `expects_no_members`.
    """

    changes: tuple[Change, ...]
    relies_on: Mapping[str, int] = field(default_factory=_none)
    seen: Mapping[str, ResourceProvider] = field(default_factory=_none)
    """Of the providers in `relies_on` those of which others' bookings do not matter."""
    standing: Mapping[str, frozenset[str]] = field(default_factory=_none)
    """Consumer -> providers; each of these is in `relies_on`."""
    topology_revision: int | None = None
    exclusive_revision: int | None = None
    releases_places: bool = False
    expects_no_members: bool = False


@dataclass(frozen=True, slots=True)
class Committed:
    """The result of a commit: the ledger's new revision and the wire generations it produced."""

    revision: int
    at: int
    """The commit's instant, by the store's clock."""
    provider_generations: Mapping[str, int] = field(default_factory=_none)
    consumer_generations: Mapping[str, int] = field(default_factory=_none)
    created: frozenset[str] = frozenset()
    """Names or UUIDs of resource classes, traits and providers that this commit created."""
    traits_at: int | None = None
    """When the newest was made of the traits that it gave to providers; None for none."""
    serials: Mapping[str, int] = field(default_factory=_none)
    """Of each lease that it made, by its id: see `Lease.serial`."""
    written: bool = True
    """Whether the ledger has it; False in a dry run."""
