"""Changes of Moorage's own records."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from moorage.domain.decision_records import DecisionRecord
    from moorage.domain.decisions import Claim, Decision
    from moorage.domain.effects import Effect, EffectKind
    from moorage.domain.ensembles import Ensemble
    from moorage.domain.events import DerivedEvent
    from moorage.domain.explain import Explanation, RefusedRequest
    from moorage.domain.flavors import Flavor
    from moorage.domain.leases import Lease
    from moorage.domain.period import Instant
    from moorage.domain.plans import Plan
    from moorage.domain.quotas import Quota, QuotaDefaults
    from moorage.domain.records import RecordKind
    from moorage.domain.request_mix import StatedMix
    from moorage.domain.reservables import Reservable, ReservableKind
    from moorage.domain.series import Series
    from moorage.domain.server_providers import ServerProvider
    from moorage.domain.subscriptions import DeadLetter, Subscription
    from moorage.domain.templates import Template
    from moorage.domain.topology import Topology
    from moorage.domain.violations import Violation
    from moorage.domain.waitlist import WaitlistEntry


@dataclass(frozen=True, slots=True)
class PutEnsemble:
    """Write an ensemble; `generation` is the stored one expected, None for a new one."""

    ensemble: Ensemble
    generation: int | None
    described: Ensemble | None = None
    """As it was described before, where somebody has described it otherwise: that is an event."""

    @property
    def stored(self) -> Ensemble:
        """The ensemble to store, with the generation after the one it replaces."""
        if self.generation is None:
            return self.ensemble
        return replace(self.ensemble, generation=self.generation + 1)


@dataclass(frozen=True, slots=True)
class ExpectEnsemble:
    """Refuse the commit unless the ensemble still has this generation.

    Raises ConcurrentUpdate, NotFound. For changes about members that leave the ensemble as it is.
    """

    id: str
    generation: int


@dataclass(frozen=True, slots=True)
class PutViolation:
    """Write a violation; `generation` is the stored one expected, None for a new one.

    ConcurrentUpdate: another of its key is open, or it was changed; NotFound: the ensemble is gone.
    """

    violation: Violation
    generation: int | None
    worse: bool = False
    """Whether one that lasts is told again, as it has become worse."""

    @property
    def stored(self) -> Violation:
        """The violation to store, with the generation after the one it replaces."""
        if self.generation is None:
            return self.violation
        return replace(self.violation, generation=self.generation + 1)


@dataclass(frozen=True, slots=True)
class MarkJudged:
    """Note that ensembles were judged as they were at these generations.

    One that has another generation by now, or is deleted, is left as it is.
    """

    judged: tuple[tuple[str, int], ...]
    """Id and generation."""


@dataclass(frozen=True, slots=True)
class DeleteEnsemble:
    """Delete an ensemble; its decisions, claims and holds are changed by the caller."""

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
    record: DecisionRecord | None = None
    """Of a new one: what it was made from."""

    @property
    def stored(self) -> Decision:
        """The decision to store, with the generation after the one it replaces."""
        if self.generation is None:
            return self.decision
        return replace(self.decision, generation=self.generation + 1)


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
        """The lease to store, with the generation after the one it replaces."""
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
        """The series to store, with the generation after the one it replaces."""
        if self.generation is None:
            return self.series
        return replace(self.series, generation=self.generation + 1)


@dataclass(frozen=True, slots=True)
class PutQuota:
    """Write a project's quota; replaces an earlier one."""

    quota: Quota


@dataclass(frozen=True, slots=True)
class DropQuota:
    """Delete a project's quota, so that the defaults apply. NotFound if it has none."""

    project_id: str


@dataclass(frozen=True, slots=True)
class ExpectLease:
    """Refuse the commit unless the lease still has this generation.

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
    """Delete the pending effects of a subject (a lease's id, or a consumer).

    With `kinds`, only effects of these.
    """

    subject: str
    kinds: frozenset[EffectKind] | None = None


@dataclass(frozen=True, slots=True)
class PutExplanation:
    """Store an explanation, with what is kept of the problem (`usecases.shared.instances`).

    `request` is the id that the client gave to what was refused, `digest` the fingerprint of its
    request. Of the project's explanations the newest `keep` stay; None: all of them.
    """

    explanation: Explanation
    project_id: str
    instance: str
    request: str | None = None
    digest: str | None = None
    keep: int | None = None
    asked: RefusedRequest | None = None
    """What was refused, for listings and events of refusals."""
    silent: bool = False
    """Whether it has no event: the request only asked for an explanation."""


@dataclass(frozen=True, slots=True)
class FinishExplanation:
    """Replace a stored explanation by what its search has found since it was answered.

    Nothing is written if it is no longer kept.
    """

    explanation: Explanation


@dataclass(frozen=True, slots=True)
class PutTemplate:
    """Write a template's next version: the first, or one after the newest.

    DuplicateName: the id of a first one, or its name in the project, is taken.
    ConcurrentUpdate: another version is the newest. NotFound: there is none to follow.
    """

    template: Template


@dataclass(frozen=True, slots=True)
class DeleteTemplate:
    """Delete every version of a template. NotFound."""

    id: str


@dataclass(frozen=True, slots=True)
class PutReservable:
    """Write a reservable host, address or property.

    DuplicateName: a new one whose id or name is taken. NotFound: there is none to change.
    """

    reservable: Reservable
    new: bool


@dataclass(frozen=True, slots=True)
class DropReservable:
    """Withdraw a reservable. NotFound."""

    kind: ReservableKind
    id: str


@dataclass(frozen=True, slots=True)
class PutFlavor:
    """Write a flavor; replaces one of the same id."""

    flavor: Flavor


@dataclass(frozen=True, slots=True)
class DeleteFlavor:
    """Delete a flavor by id or name. NotFound if there is none."""

    id: str


@dataclass(frozen=True, slots=True)
class PutServerProvider:
    """Write whose a server provider is and who may use it; it goes when the provider is deleted.

    `generation` None: it is new. DuplicateName, NotFound, ConcurrentUpdate.
    """

    server_provider: ServerProvider
    generation: int | None


@dataclass(frozen=True, slots=True)
class PutTopology:
    """Replace the whole topology. Hosts are named by root provider name; UnknownName if absent."""

    topology: Topology


@dataclass(frozen=True, slots=True)
class PutRequestMix:
    """Replace the mix of requests that decisions weigh; None: it is counted from the ledger."""

    mix: StatedMix | None


@dataclass(frozen=True, slots=True)
class PutEvent:
    """Write an event that follows from no other change."""

    happened: DerivedEvent


@dataclass(frozen=True, slots=True)
class TrimEvents:
    """Delete events that happened before `before`, and of each project all but the newest `keep`.

    At most `most` old ones, and `most` of each project, the oldest first. Subscriptions of projects
    in which nothing has happened since are beyond them afterwards: nothing was lost for them.
    """

    before: Instant
    keep: int
    most: int


@dataclass(frozen=True, slots=True)
class DeleteRecords:
    """Delete records of one kind that ended before an instant, with those that belong to them.

    One that ended later, or that something in use refers to by now, stays; see `store.records`.
    This makes no event.
    """

    kind: RecordKind
    ids: tuple[str, ...]
    before: Instant


@dataclass(frozen=True, slots=True)
class PutSubscription:
    """Write a subscription; `generation` is the stored one expected, None for a new one.

    DuplicateName, NotFound, ConcurrentUpdate. With `limit` a new one is QuotaExceeded where the
    project has as many as its quota allows, or so many where that says nothing.
    """

    subscription: Subscription
    generation: int | None
    limit: int | None = None


@dataclass(frozen=True, slots=True)
class PassEvents:
    """Move subscriptions past positions at which no event matches them.

    One that is no longer at the given position is left as it is: a delivery is under way.
    """

    passed: tuple[tuple[str, int, int], ...]
    """Id, the expected position, and the new one."""


@dataclass(frozen=True, slots=True)
class DeleteSubscription:
    """Delete a subscription with its dead letters. NotFound."""

    id: str


@dataclass(frozen=True, slots=True)
class PutDeadLetters:
    """Write dead letters of one subscription, of which at most the newest `keep` are stored."""

    subscription_id: str
    letters: tuple[DeadLetter, ...]
    keep: int


@dataclass(frozen=True, slots=True)
class DropDeadLetters:
    """Delete dead letters of one subscription."""

    subscription_id: str
    ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PutEntry:
    """Write an entry of the waitlist; `generation` is the stored one expected, None for a new one.

    DuplicateName, NotFound, ConcurrentUpdate. With `limit` a new one is QuotaExceeded where as
    many of its project wait as its quota allows, or so many where that says nothing.
    """

    entry: WaitlistEntry
    generation: int | None
    limit: int | None = None

    @property
    def stored(self) -> WaitlistEntry:
        """The entry to store, with the generation after the one it replaces."""
        if self.generation is None:
            return self.entry
        return replace(self.entry, generation=self.generation + 1)


@dataclass(frozen=True, slots=True)
class PutPlan:
    """Write a plan; `generation` is the stored one expected, None for a new one.

    DuplicateName, NotFound, ConcurrentUpdate.
    """

    plan: Plan
    generation: int | None
    targets: bool = False
    """Whether its targets are held from now on, or no longer, or those of other moves. It
    conflicts with commits that rely on all exclusive ensembles, as these know of held targets."""

    @property
    def stored(self) -> Plan:
        """The plan to store, with the generation after the one it replaces."""
        if self.generation is None:
            return self.plan
        return replace(self.plan, generation=self.generation + 1)


@dataclass(frozen=True, slots=True)
class DeletePlan:
    """Delete a plan; `generation` is the stored one expected. NotFound, ConcurrentUpdate."""

    id: str
    generation: int
