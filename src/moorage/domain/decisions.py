"""Decisions and claims: a stored placement, its hold, and the second step.

Lifecycles are tables. `decision_after` and `claim_after` are the only ways to move.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import Final

from moorage.domain.ensembles import MemberKind
from moorage.domain.errors import WrongState
from moorage.domain.member_names import MemberName
from moorage.domain.period import FOREVER, Duration, Instant, Period
from moorage.domain.placement import Place
from moorage.domain.request_mix import RoomTaken
from moorage.domain.requests import Objective
from moorage.domain.resources import Amounts


class DecisionState(StrEnum):
    """`held -> confirmed -> closed`, or one of the ways out."""

    HELD = "held"
    CONFIRMED = "confirmed"
    """Unclaimed places are freed; claims still building keep their own expiry."""
    CLOSED = "closed"
    """Confirmed, and no claim is still building."""
    EXPIRED = "expired"
    RELEASED = "released"
    SUPERSEDED = "superseded"


class DecisionStep(StrEnum):
    """The steps of a decision's lifecycle."""

    RENEW = "renew"
    CONFIRM = "confirm"
    CLOSE = "close"
    LAPSE = "lapse"
    RELEASE = "release"
    SUPERSEDE = "supersede"


class ClaimState(StrEnum):
    """`building -> active`, or one of the ways out."""

    BUILDING = "building"
    ACTIVE = "active"
    FAILED = "failed"
    EXPIRED = "expired"
    ENDED = "ended"
    """Was active; its server has been deleted."""


class ClaimStep(StrEnum):
    """The steps of a claim's lifecycle."""

    ACTIVATE = "activate"
    FAIL = "fail"
    LAPSE = "lapse"
    END = "end"


DECISION_TABLE: Final[Mapping[tuple[DecisionState, DecisionStep], DecisionState]] = (
    MappingProxyType(
        {
            (DecisionState.HELD, DecisionStep.RENEW): DecisionState.HELD,
            (DecisionState.HELD, DecisionStep.CONFIRM): DecisionState.CONFIRMED,
            (DecisionState.HELD, DecisionStep.LAPSE): DecisionState.EXPIRED,
            (DecisionState.HELD, DecisionStep.RELEASE): DecisionState.RELEASED,
            (DecisionState.HELD, DecisionStep.SUPERSEDE): DecisionState.SUPERSEDED,
            (DecisionState.CONFIRMED, DecisionStep.CLOSE): DecisionState.CLOSED,
            (DecisionState.CONFIRMED, DecisionStep.RELEASE): DecisionState.RELEASED,
            (DecisionState.CONFIRMED, DecisionStep.SUPERSEDE): DecisionState.SUPERSEDED,
            (DecisionState.CLOSED, DecisionStep.SUPERSEDE): DecisionState.SUPERSEDED,
        }
    )
)

CLAIM_TABLE: Final[Mapping[tuple[ClaimState, ClaimStep], ClaimState]] = MappingProxyType(
    {
        (ClaimState.BUILDING, ClaimStep.ACTIVATE): ClaimState.ACTIVE,
        (ClaimState.BUILDING, ClaimStep.FAIL): ClaimState.FAILED,
        (ClaimState.BUILDING, ClaimStep.LAPSE): ClaimState.EXPIRED,
        (ClaimState.ACTIVE, ClaimStep.END): ClaimState.ENDED,
    }
)


def decision_after(state: DecisionState, step: DecisionStep) -> DecisionState:
    """The state after a step.

    Raises:
        WrongState: the table has no such step from `state`.
    """
    try:
        return DECISION_TABLE[state, step]
    except KeyError:
        raise WrongState(f"cannot {step} a decision that is {state}") from None


def claim_after(state: ClaimState, step: ClaimStep) -> ClaimState:
    """The state after a step.

    Raises:
        WrongState: the table has no such step from `state`.
    """
    try:
        return CLAIM_TABLE[state, step]
    except KeyError:
        raise WrongState(f"cannot {step} a claim that is {state}") from None


class SolveEnd(StrEnum):
    """Why a search ended."""

    PROVED = "proved"
    """The answer is known to be the best, or it is known that there is none."""
    TIME_LIMIT = "time limit"
    """The time for the search, or for improving its answer, was over."""
    BUSY = "busy"
    """No process was free to improve the answer."""
    KEPT = "kept"
    """Nothing was searched for: known places were kept."""


@dataclass(frozen=True, slots=True)
class Solve:
    """How an answer was found: solver, time, cost and bound, and why the search ended.

    `value` and `bound` are costs: scale x penalties + the objective's cost (see `Objective`);
    the penalties themselves are those of the decision's `PolicyStatus`es.
    """

    solver: str
    value: int
    bound: int
    proven: bool
    wall_ms: float
    seed: int
    ended: SolveEnd = SolveEnd.TIME_LIMIT
    room: RoomTaken | None = None
    """What the placement took from the room for others; None: that was not weighed."""

    @property
    def gap(self) -> float:
        """The share of the cost by which a better answer could be cheaper at most; 0 if proven."""
        return 0.0 if self.proven or self.value <= 0 else 1 - self.bound / self.value


@dataclass(frozen=True, slots=True)
class PolicyStatus:
    """Whether a placement meets one policy, and with which slack.

    `slack` is how much worse its measured quantity may become before it is violated, or None
    where that has no meaning; `penalty` is what a preferred policy costs here. `standing` is by
    how much a required policy is violated by members that stood there before: accepted, and made
    no worse.
    """

    name: str
    satisfied: bool
    slack: int | None = None
    penalty: int = 0
    standing: int = 0


@dataclass(frozen=True, slots=True)
class Decision:
    """A stored placement and the hold that keeps it until `expires_at`."""

    id: str
    ensemble_id: str
    project_id: str
    ensemble_generation: int
    state: DecisionState
    period: Period
    expires_at: Instant
    hold: Duration
    objective: Objective
    solve: Solve
    places: Mapping[MemberName, Place]
    """Every member's place, also of members decided earlier and kept."""
    policies: tuple[PolicyStatus, ...]
    revision: int
    """The ledger's revision the decision was made at."""
    renewals: int = 0
    max_additional: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))
    """Role -> how many more of it fit, everything placed staying put; only for roles asked."""
    steps: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))
    """Role -> by how many its `max_additional` can be reached; see `AdditionalMembers`."""
    at_least: frozenset[str] = frozenset()
    """Roles whose `max_additional` is only a lower bound; all others are exact."""
    digest: str = ""
    """Fingerprint of the request that made it: the same request again gets the same answer."""
    created_at: Instant = 0
    updated_at: Instant = 0
    generation: int = 0
    first_choices: bool = True
    """Whether members were placed as early ones of their alternatives, whatever the objective."""
    preemptible: bool = False
    """Whether its members may be ended early for a lease that needs their places."""
    priority: int = 0
    """Its lease's, or that of a preemptible stay; see `Booking.priority`."""
    lease_id: str | None = None
    """The lease whose placement it is; its places are claimed while that is active."""
    ticket: str = ""
    """Names the ticket classes of its roles: the id of the first of the decisions that held these
    places one after another. Empty: a lease's, whose reservations have classes of their own."""
    endings: Mapping[MemberName, Instant] = field(default_factory=lambda: MappingProxyType({}))
    """Preemptible members whose stay ends before `period` does, for a lease that needs their
    places, and when; as it was decided: later they may get time back, or less."""
    away: tuple[MemberName, ...] = ()
    """Of these, those whose host is planned to be away from then on: no lease needs the place."""
    withdrawn: tuple[MemberName, ...] = ()
    """Members whose held places are gone, since a provider or inventory that gave them was
    deleted."""

    def state_at(self, now: Instant) -> DecisionState:
        """The state at `now`: lapsed once the hold has ended, even if that is not recorded yet."""
        if self.state is DecisionState.HELD and self.expires_at <= now:
            return decision_after(self.state, DecisionStep.LAPSE)
        return self.state

    def told_at(self, now: Instant) -> DecisionState:
        """The state to tell at `now`: a hold of which no place is left is released.

        What is stored stays held: until its end, members that lost their places may be placed anew,
        and new ones may join.
        """
        state = self.state_at(now)
        if state is DecisionState.HELD and not self.places:
            return decision_after(state, DecisionStep.RELEASE)
        return state


@dataclass(frozen=True, slots=True)
class Claim:
    """One member's place taken for a real server."""

    id: str
    decision_id: str
    ensemble_id: str
    project_id: str
    member: MemberName
    state: ClaimState
    lapses_at: Instant = FOREVER
    server_id: str | None = None
    description: Mapping[str, object] = field(default_factory=lambda: MappingProxyType({}))
    """`server`: the second description; `verdict`, `diff`: how it compared with the first;
    `key`: the idempotency key, if the client sent one."""
    digest: str = ""
    """Fingerprint of the request that made it, as `Decision.digest`."""
    created_at: Instant = 0
    updated_at: Instant = 0
    lease_id: str | None = None
    """The lease whose place it is, as `Decision.lease_id`."""
    kind: str = MemberKind.SERVER
    """The kind of the member."""
    server_provider: str | None = None
    """Of a slice: the id of the server provider that has its place."""
    resources: Amounts = field(default_factory=lambda: MappingProxyType({}))
    """Of a slice: what it takes there."""
    reason: str = ""
    """Why it failed, as it was reported."""

    def state_at(self, now: Instant) -> ClaimState:
        """The state at `now`: lapsed after `lapses_at`, even if that is not recorded yet."""
        if self.state is ClaimState.BUILDING and self.lapses_at <= now:
            return claim_after(self.state, ClaimStep.LAPSE)
        return self.state
