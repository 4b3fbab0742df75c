"""The waitlist: leases that could not be granted and wait for capacity or quota (ADR-0015).

An entry keeps the request. Its lifecycle is the table `ENTRY_TABLE`. Entries are ordered by their
priority, then by the time of entry; the store orders those of one instant.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import Final

from moorage.domain.ensembles import Ensemble
from moorage.domain.errors import WrongState
from moorage.domain.leases import Terms
from moorage.domain.period import Duration, Instant, Period
from moorage.domain.requests import Objective


class EntryState(StrEnum):
    """`waiting`, then one of the ways out."""

    WAITING = "waiting"
    GRANTED = "granted"
    """It is a lease, by the same id."""
    EXPIRED = "expired"
    """Its last start has passed, or its owner did not want to wait any longer."""
    CANCELLED = "cancelled"
    """Its owner has given it up."""
    FAILED = "failed"
    """It can no longer be granted, whatever is freed; `why` has the reason."""


class EntryStep(StrEnum):
    """The steps of an entry's lifecycle."""

    GRANT = "grant"
    EXPIRE = "expire"
    CANCEL = "cancel"
    FAIL = "fail"


ENTRY_TABLE: Final[Mapping[tuple[EntryState, EntryStep], EntryState]] = MappingProxyType(
    {
        (EntryState.WAITING, EntryStep.GRANT): EntryState.GRANTED,
        (EntryState.WAITING, EntryStep.EXPIRE): EntryState.EXPIRED,
        (EntryState.WAITING, EntryStep.CANCEL): EntryState.CANCELLED,
        (EntryState.WAITING, EntryStep.FAIL): EntryState.FAILED,
    }
)


def entry_after(state: EntryState, step: EntryStep) -> EntryState:
    """The state after a step.

    Raises:
        WrongState: the table has no such step from `state`.
    """
    try:
        return ENTRY_TABLE[state, step]
    except KeyError:
        raise WrongState(f"cannot {step} an entry of the waitlist that is {state}") from None


class WaitsFor(StrEnum):
    """What an entry waits for."""

    CAPACITY = "capacity"
    """Free places: others must end, or hosts be added."""
    QUOTA = "quota"
    """Its project's quota: entries behind it do not wait for it."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """The earliest window in which it would fit as the ledger stands. No promise."""

    start: Instant
    end: Instant
    proved: bool
    """Whether nothing earlier would do."""


@dataclass(frozen=True, slots=True)
class WaitlistEntry:
    """A lease that waits. `terms` are those of its earliest start."""

    id: str
    """Its lease's as well, once it is granted."""
    project_id: str
    """Whose lease it becomes."""
    user_id: str
    name: str
    terms: Terms
    latest: Instant
    """The last start that would do."""
    until: Instant
    """When its owner stops waiting."""
    entered_at: Instant
    """What its place in the order counts from."""
    ensemble_id: str
    ensemble: Ensemble | None = None
    """Given where it was described with the lease: then it is not stored yet."""
    units: int = 0
    """How many places it needs."""
    classes: frozenset[str] = frozenset()
    """Resource classes that it needs some of."""
    roles: frozenset[str] = frozenset()
    """The requesting user's roles."""
    any_priority: bool = False
    """Whether the requester may exceed the project's quota of priority."""
    asked_from: str = ""
    """The project in which it was asked for."""
    actions: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: MappingProxyType({}))
    annotations: Mapping[str, object] = field(default_factory=lambda: MappingProxyType({}))
    objective: Objective = Objective.SPREAD
    seed: int = 0
    state: EntryState = EntryState.WAITING
    waits_for: WaitsFor = WaitsFor.CAPACITY
    why: str = ""
    """What was in the way when it was last refused or estimated; of one that failed, why it did."""
    explanation: str | None = None
    """The id of the explanation of its refusal, while that is kept."""
    estimate: Estimate | None = None
    estimate_note: str = ""
    """Why there is none, or what else it takes."""
    estimated_at: Instant = 0
    estimated_from: str = ""
    """Fingerprint of what the estimate was made from: if it differs now, it is out of date."""
    digest: str = ""
    """Fingerprint of the request that made it: the same request again gets the same answer."""
    generation: int = 0
    created_at: Instant = 0
    updated_at: Instant = 0

    @property
    def length(self) -> Duration:
        """The length of its exclusive use: with lead and cleaning."""
        return self.terms.occupied.end - self.terms.occupied.start

    @property
    def whole(self) -> Period:
        """The period from the start of its first window to the end of its last."""
        moved = self.latest - self.terms.period.start
        return Period(self.terms.occupied.start, self.terms.occupied.end + moved)

    def first_at(self, now: Instant) -> Instant:
        """The first possible start from `now` on: its lead begins then."""
        return max(self.terms.period.start, now + self.terms.lead)

    def over_at(self, now: Instant) -> bool:
        """Whether no possible start is left at `now`."""
        return now > self.latest - self.terms.lead or now >= self.until

    def state_at(self, now: Instant) -> EntryState:
        """The state at `now`, expired after its end even if that is not recorded yet."""
        if self.state is EntryState.WAITING and self.over_at(now):
            return EntryState.EXPIRED
        return self.state


def needed(ensemble: Ensemble) -> frozenset[str]:
    """The resource classes that its members request."""
    return frozenset(
        name
        for role in ensemble.roles
        for amounts in (role.resources, *(group.resources for group in role.groups))
        for name, amount in amounts.items()
        if amount
    )
