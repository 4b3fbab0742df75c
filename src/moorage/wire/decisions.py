"""Decisions: how to decide, a placement and its hold."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from msgspec import UNSET, Meta, Struct, UnsetType

from moorage.wire.compliance import Impact
from moorage.wire.fields import (
    FOR_OPERATORS,
    At,
    Duration,
    Generation,
    IdempotencyKey,
    Instant,
    Length,
    Link,
    Name,
    Uuid,
)
from moorage.wire.hosts import Closing
from moorage.wire.request_mix import RoomTaken

Priority: TypeAlias = Annotated[int, Meta(ge=0, le=1000)]
Until: TypeAlias = Annotated[
    str,
    Meta(max_length=40, description="RFC 3339: when the stay ends; null for a stay without end"),
]
Preemptible: TypeAlias = Annotated[
    bool, Meta(description="Whether the stay may be ended early for a lease that needs the places")
]
StayPriority: TypeAlias = Annotated[
    int,
    Meta(ge=0, le=1000, description="Of a preemptible stay: those with less end before it does"),
]


ObjectiveName: TypeAlias = Annotated[
    Literal["spread", "pack", "balance", "room"],
    Meta(
        description=(
            "What is best among placements that meet the policies equally well: members on many"
            " hosts, on few, the fullest host filled least, or most room left for others. Default:"
            " the operator's setting"
        )
    ),
]


class Search(Struct, frozen=True, kw_only=True):
    """How the search for places is made."""

    objective: ObjectiveName | None = None
    seed: Annotated[int, Meta(ge=0, le=2**31 - 1)] = 0
    time_limit: Duration | None = None


class DecideBody(Search, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """How to decide. `hold` is how long the places are held."""

    alternatives: Annotated[
        Literal["first", "cheapest"],
        Meta(
            description=(
                "`first`: members are the first of their alternatives that they can be, whatever"
                " the objective; `cheapest`: the objective decides"
            )
        ),
    ] = "first"
    hold: Duration | None = None
    max_additional: Annotated[
        list[Name],
        Meta(
            max_length=16,
            description=(
                "Roles to count further members of; `web+db` counts how many times one more of each"
                " fits"
            ),
        ),
    ] = []
    until: Until | None = None
    preemptible: Preemptible = False
    priority: StayPriority = 0


class DecisionBody(DecideBody, frozen=True, forbid_unknown_fields=True):
    """The ensemble to decide, and how."""

    ensemble_id: Uuid
    id: IdempotencyKey | None = None


class DecisionCreate(Struct, frozen=True, forbid_unknown_fields=True):
    """POST /v1/decisions."""

    decision: DecisionBody


class DecisionPatchBody(Struct, frozen=True, forbid_unknown_fields=True):
    """A renewal: a new end, or a new hold from now on; exactly one of the two."""

    expires_at: Instant | None = None
    hold: Duration | None = None
    generation: Generation | None = None


class DecisionPatch(Struct, frozen=True, forbid_unknown_fields=True):
    """PATCH /v1/decisions/{id}."""

    decision: DecisionPatchBody


UntilBecause: TypeAlias = Annotated[
    Literal["declared", "lease", "preempted", "away"],
    Meta(
        description="declared: its owner has said so, or the operator; lease: its own lease ends;"
        " preempted: it makes way for a lease that needs its place; away: its host is planned to"
        " be away then"
    ),
]


class Interval(Struct, frozen=True):
    """A half-open period; a null end means that it never ends."""

    start: At
    end: At | None


class Solve(Struct, frozen=True):
    """How the answer was found. `value` and `bound` are costs; equal means proven optimal."""

    solver: str
    optimal: bool
    value: int
    bound: int
    gap: Annotated[
        float,
        Meta(description="The share of `value` by which a better answer could be cheaper at most"),
    ]
    ended: Annotated[
        Literal["proved", "time limit", "busy", "kept"],
        Meta(
            description="Why the search ended. time limit: the time, or that for improving a valid"
            " answer, was over; busy: no process was free to improve it; kept: known places were"
            " kept"
        ),
    ]
    wall_ms: float
    seed: int
    room: Annotated[RoomTaken | UnsetType, FOR_OPERATORS] = UNSET
    """For operators: what it took from the room for others, where that was weighed."""


class Assignment(Struct, frozen=True):
    """A member's place; `claimed_by` is a claim's id."""

    member: str
    kind: str
    domains: dict[str, str]
    claimed_by: str | None
    alternative: int | UnsetType = UNSET
    """Which of its role's alternatives the member is, from 0; absent where there are none."""
    server_provider: str | UnsetType = UNSET
    """Of a slice: the id of the server provider that it is on."""
    host: Annotated[str | UnsetType, FOR_OPERATORS] = UNSET
    """The host's name; operators only."""
    out_of_service: bool | UnsetType = UNSET
    """True where its host is not in service: a held place cannot be claimed, a server may not run.
    """
    closed: Annotated[list[Closing] | UnsetType, FOR_OPERATORS] = UNSET
    """Why, where its host is not in service; operators only."""
    allocations: Annotated[dict[str, dict[str, int]] | UnsetType, FOR_OPERATORS] = UNSET
    """Provider UUID -> amounts; operators only."""
    until: At | UnsetType = UNSET
    """When its stay ends, as things are; absent where it has no end."""
    until_because: UntilBecause | UnsetType = UNSET
    """With `until`, why then."""


class PolicyStatus(Struct, frozen=True):
    """Whether a placement meets a policy, and with which slack."""

    name: str
    satisfied: bool
    slack: int | None
    penalty: int
    standing: int
    """By how much members that stood there before violate it: accepted, and made no worse."""


class Additional(Struct, frozen=True):
    """How many more members fit. Without `exact` it means "at least"."""

    count: int
    exact: bool
    step: int = 1
    """By how many at a time they can be added: an extension by any multiple of it, up to `count`,
    is granted, and so is the next one. As many as `count`: all in one extension."""


class TicketFlavor(Struct, frozen=True):
    """The flavor of a role's tickets: Nova's servers of it take the role's held places."""

    role: str
    resource_class: str
    id: str
    name: str
    vcpus: int
    ram: Annotated[int, Meta(extra={"attribute": "memory_mb"})]
    """MiB."""
    disk: Annotated[int, Meta(extra={"attribute": "root_gb"})]
    """GiB."""
    extra_specs: dict[str, str]
    ephemeral: Annotated[int, Meta(extra={"attribute": "ephemeral_gb"})] = 0
    """GiB."""
    swap: Annotated[int, Meta(extra={"attribute": "swap_mb"})] = 0
    """MiB."""
    project_id: str = ""
    """The role's project, which may use it."""


class Decision(Struct, frozen=True):
    """A stored placement and its hold; with `dry_run` nothing was stored."""

    id: str
    ensemble_id: str
    ensemble_generation: int
    project_id: str
    status: str
    """`held`, `confirmed`, `closed`, `expired`, `released` or `superseded`; a hold of which no
    place is left is `released`."""
    expires_at: At | None
    hold: Length
    renewals: int
    interval: Interval
    objective: str
    solve: Solve
    assignments: list[Assignment]
    policies: list[PolicyStatus]
    max_additional: dict[str, Additional]
    revision: int
    generation: int
    computed_at: At
    updated_at: At
    dry_run: bool
    links: list[Link]
    preemptible: bool
    """Whether its interval may end earlier, for a lease that needs the places."""
    lease_id: str | None
    """The lease whose placement it is."""
    priority: int
    """Its lease's; of a preemptible stay: those with less end before it does."""
    withdrawn: list[str] = []
    """Members whose held places are gone, since a provider or inventory that gave them was
    deleted, and for which there are no others; with none left nothing is held."""
    ticket_flavors: list[TicketFlavor] = []
    """While it is held: the flavor of each role whose servers take its places."""


class DecisionSummary(Struct, frozen=True):
    """A decision in short."""

    id: str
    status: str
    """As a decision's."""
    expires_at: At | None
    interval: Interval
    lease_id: str | None
    """The lease whose placement it is."""
    members: int
    """How many have a place by it."""
    claimed: int
    """Of these, how many are claimed: a server is there, or is being built."""
    policies_met: int


class OneDecision(Struct, frozen=True):
    """One decision."""

    decision: Decision
    breaks: Impact | UnsetType = UNSET
    """Of a change: the violations that it begins."""


class Decisions(Struct, frozen=True):
    """A page of decisions, newest first."""

    decisions: list[Decision]
    decisions_links: list[Link]


class Confirmed(Struct, frozen=True):
    """A confirmed decision: members claimed, still building, and freed."""

    decision: Decision
    claimed: int
    building: int
    released: int
    released_members: list[str]
    members: int
    breaks: Impact | UnsetType = UNSET
    """Of a change: the violations that it begins."""
