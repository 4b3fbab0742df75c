"""Changes of Moorage's own resources."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from moorage.domain.capacity_windows import CapacityWindow
    from moorage.domain.decisions import Claim, Decision
    from moorage.domain.effects import Effect, EffectKind
    from moorage.domain.ensembles import Ensemble
    from moorage.domain.events import Happened
    from moorage.domain.explain import Explanation
    from moorage.domain.flavors import Flavor
    from moorage.domain.leases import Lease
    from moorage.domain.period import Instant
    from moorage.domain.quotas import Quota, QuotaDefaults
    from moorage.domain.reservables import Reservable, ReservableKind
    from moorage.domain.series import Series
    from moorage.domain.subscriptions import DeadLetter, Subscription
    from moorage.domain.templates import Template
    from moorage.domain.topology import Topology
    from moorage.domain.waitlist import WaitlistEntry


@dataclass(frozen=True, slots=True)
class PutEnsemble:
    """Write an ensemble; `generation` is the stored one expected, None for a new one."""

    ensemble: Ensemble
    generation: int | None

    @property
    def stored(self) -> Ensemble:
        """The ensemble as it is written: one generation on from the one it replaces."""
        if self.generation is None:
            return self.ensemble
        return replace(self.ensemble, generation=self.generation + 1)


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

    @property
    def stored(self) -> Decision:
        """The decision as it is written: one generation on from the one it replaces."""
        if self.generation is None:
            return self.decision
        return replace(self.decision, generation=self.generation + 1)


@dataclass(frozen=True, slots=True)
class BoundHeld:
    """Write nothing, and only if the project then holds or claims at most so many places.

    These are as many as its quota says, or `limit` where that says nothing.

    Judged after the changes before it: of several that are made at once, those that come too
    late are QuotaExceeded. `requested` is told in the error.
    """

    project_id: str
    limit: int
    requested: int


@dataclass(frozen=True, slots=True)
class BoundOffers:
    """Write nothing, and only if the project then has at most so many `offers` to accept.

    Their places, with those that it holds or claims besides, are at most as many as its quota
    says, or `held` where that says nothing. LimitExceeded, QuotaExceeded.

    Judged after the changes before it, as `BoundHeld` is. `requested` places are told in the error.
    """

    project_id: str
    offers: int
    held: int
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

    A new one gets its project's next `serial`, whatever it says.

    With `within` it is QuotaExceeded where the lease takes more than it did and its project then
    has more than its quota, or these defaults, allow. Judged after the changes before it.
    DuplicateName, NotFound, ConcurrentUpdate.
    """

    lease: Lease
    generation: int | None
    within: QuotaDefaults | None = None

    @property
    def stored(self) -> Lease:
        """The lease as it is written: one generation on from the one it replaces."""
        if self.generation is None:
            return self.lease
        return replace(self.lease, generation=self.generation + 1)


@dataclass(frozen=True, slots=True)
class PutSeries:
    """Write a series; `generation` is the stored one expected, None for a new one.

    DuplicateName, NotFound, ConcurrentUpdate.
    """

    series: Series
    generation: int | None

    @property
    def stored(self) -> Series:
        """The series as it is written: one generation on from the one it replaces."""
        if self.generation is None:
            return self.series
        return replace(self.series, generation=self.generation + 1)


@dataclass(frozen=True, slots=True)
class PutQuota:
    """Write what holds for a project; replaces what was said of it before."""

    quota: Quota


@dataclass(frozen=True, slots=True)
class DropQuota:
    """Let the defaults hold for a project again. NotFound where they do already."""

    project_id: str


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
class PutCapacityWindow:
    """Let hosts be away over a period; what is booked there stays, and nothing more gets in.

    As when an inventory shrinks, an overage that comes of it is not refused. DuplicateName;
    NotFound: one of them is no root provider.
    """

    window: CapacityWindow


@dataclass(frozen=True, slots=True)
class DropCapacityWindow:
    """Let them be there again. NotFound."""

    id: str


@dataclass(frozen=True, slots=True)
class PutTopology:
    """Replace the whole topology. Hosts are named by root provider name; UnknownName if absent."""

    topology: Topology


@dataclass(frozen=True, slots=True)
class PutEvent:
    """Tell an event that no other change means."""

    happened: Happened


@dataclass(frozen=True, slots=True)
class TrimEvents:
    """Forget events that happened before `before`, and all but the newest `keep`.

    At most `most` in one transaction, the oldest first. Subscriptions of projects in which
    nothing has happened since are beyond them afterwards: nothing was lost for them.
    """

    before: Instant
    keep: int
    most: int


@dataclass(frozen=True, slots=True)
class PutSubscription:
    """Write a subscription; `generation` is the stored one expected, None for a new one.

    DuplicateName, NotFound, ConcurrentUpdate. With `limit` a new one is LimitExceeded where the
    project has so many already.
    """

    subscription: Subscription
    generation: int | None
    limit: int | None = None


@dataclass(frozen=True, slots=True)
class PassEvents:
    """Say of subscriptions that nothing up to a position is meant for them.

    One that is not where it was seen any more is left as it is: somebody delivers to it.
    """

    passed: tuple[tuple[str, int, int], ...]
    """Id, the position that was seen, and the one that it is at then."""


@dataclass(frozen=True, slots=True)
class DeleteSubscription:
    """Forget a subscription with its dead letters. NotFound."""

    id: str


@dataclass(frozen=True, slots=True)
class PutDeadLetters:
    """Keep, or change, dead letters of one subscription; of all of it the newest `keep` stay."""

    subscription_id: str
    letters: tuple[DeadLetter, ...]
    keep: int


@dataclass(frozen=True, slots=True)
class DropDeadLetters:
    """Forget dead letters of one subscription."""

    subscription_id: str
    ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PutEntry:
    """Write an entry of the waitlist; `generation` is the stored one expected, None for a new one.

    DuplicateName, NotFound, ConcurrentUpdate. With `limit` a new one is LimitExceeded where so
    many of its project wait already.
    """

    entry: WaitlistEntry
    generation: int | None
    limit: int | None = None

    @property
    def stored(self) -> WaitlistEntry:
        """The entry as it is written: one generation on from the one it replaces."""
        if self.generation is None:
            return self.entry
        return replace(self.entry, generation=self.generation + 1)
