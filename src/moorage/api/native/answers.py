"""Response bodies. `views.py` makes them, and decides what a tenant does not see."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias

from msgspec import UNSET, Meta, Struct, UnsetType


class Link(Struct, frozen=True):
    """Where to go on."""

    rel: str
    href: str


class Group(Struct, frozen=True):
    """What a member needs of one provider beside its own resources."""

    name: str
    resources: dict[str, int]
    required: list[str | list[str]]
    forbidden: list[str]
    member_of: list[str | list[str]]
    same_subtree: bool
    """Whether it is of one subtree with what gives the member's own resources."""


class Role(Struct, frozen=True):
    """A role with the number of its members; nested lists in `required` mean "any of"."""

    name: str
    kind: str
    count: int
    flavor: str | None
    resources: dict[str, int]
    required: list[str | list[str]]
    forbidden: list[str]
    member_of: list[str | list[str]]
    tags: list[str]
    ports: list[Group] = []
    volumes: list[Group] = []
    groups: list[Group] = []
    same_subtree: list[list[str]] = []
    group_policy: Literal["none", "isolate"] = "none"


UntilBecause: TypeAlias = Annotated[
    Literal["declared", "lease", "preempted", "away"],
    Meta(
        description="declared: its owner has said so, or the operator; lease: its own lease ends;"
        " preempted: it makes way for a lease that needs its place; away: its host is planned to"
        " be away then"
    ),
]


class Member(Struct, frozen=True):
    """One member and where it stands. `status`: unplaced, held, building or active."""

    name: str
    role: str
    kind: str
    status: str
    server_id: str | None
    domains: Annotated[
        dict[str, str],
        Meta(description="Level -> domain: opaque labels for tenants, names for operators"),
    ]
    uuid: str | UnsetType = UNSET
    """The consumer of its hold; operators only."""
    host: str | UnsetType = UNSET
    """The host's name; operators only."""
    allocations: dict[str, dict[str, int]] | UnsetType = UNSET
    """Provider UUID -> amounts; operators only."""
    until: str | UnsetType = UNSET
    """When its stay ends, as things are; absent where it has no end, or no place."""
    until_because: UntilBecause | UnsetType = UNSET
    """With `until`, why then."""
    overrun: bool | UnsetType = UNSET
    """True where its end has come, it has had its time to go, and its server is there still."""


class MadeOf(Struct, frozen=True):
    """The version of a template that an ensemble was made of."""

    id: str
    version: int


class Ensemble(Struct, frozen=True):
    """An ensemble. `policies` come back as they were written."""

    id: str
    name: str
    project_id: str
    user_id: str
    metadata: dict[str, str]
    members: list[Role]
    policies: list[dict[str, Any]]
    generation: int
    created_at: str
    updated_at: str
    links: list[Link]
    decision: Decision | UnsetType | None = UNSET
    """The current one; absent in listings."""
    compliance: list[Violation] | UnsetType = UNSET
    """What is violated at present; only where it was asked for."""
    template: MadeOf | UnsetType = UNSET


class Violation(Struct, frozen=True):
    """One way a policy is broken."""

    policy: str
    members: list[str]
    text: str
    amount: int


class Interval(Struct, frozen=True):
    """A half-open period; a null end means without an end."""

    start: str
    end: str | None


class Solve(Struct, frozen=True):
    """How the answer was found. `value` and `bound` are costs; equal means proven optimal."""

    solver: str
    optimal: bool
    value: int
    bound: int
    wall_ms: float
    seed: int


class Assignment(Struct, frozen=True):
    """A member's place; `claimed_by` is a claim's id."""

    member: str
    kind: str
    domains: dict[str, str]
    claimed_by: str | None
    host: str | UnsetType = UNSET
    """The host's name; operators only."""
    allocations: dict[str, dict[str, int]] | UnsetType = UNSET
    """Provider UUID -> amounts; operators only."""
    until: str | UnsetType = UNSET
    """When its stay ends, as things are; absent where it has no end."""
    until_because: UntilBecause | UnsetType = UNSET
    """With `until`, why then."""


class PolicyStatus(Struct, frozen=True):
    """How a placement stands to a policy."""

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


class Decision(Struct, frozen=True):
    """A stored placement and its hold; with `dry_run` nothing was stored."""

    id: str
    ensemble_id: str
    ensemble_generation: int
    project_id: str
    status: str
    expires_at: str | None
    hold: str
    renewals: int
    interval: Interval
    objective: str
    solve: Solve
    assignments: list[Assignment]
    policies: list[PolicyStatus]
    max_additional: dict[str, Additional]
    revision: int
    generation: int
    computed_at: str
    updated_at: str
    dry_run: bool
    links: list[Link]
    preemptible: bool
    """Whether its interval may end earlier, for a lease that needs the places."""
    lease_id: str | None
    """The lease whose placement it is."""
    priority: int
    """Its lease's; of a preemptible stay: those with less end before it does."""


class Difference(Struct, frozen=True, omit_defaults=True):
    """One field of the second description. `effect`: exceeds, narrower, missing, ignored."""

    path: str
    effect: str
    described: Any = None
    requested: Any = None


class Comparison(Struct, frozen=True):
    """The second description against the first: `matches` or `narrower`."""

    verdict: str
    diff: list[Difference]


class PresentAs(Struct, frozen=True):
    """How the server request shows its claim to the scheduler."""

    header: dict[str, str]
    ticket_flavor: str | None


class ServerPatch(Struct, frozen=True):
    """What to add to the server request, so that the server says which member it is."""

    metadata: dict[str, str]


class Claim(Struct, frozen=True):
    """One member's place, taken for a real server."""

    id: str
    decision_id: str
    ensemble_id: str
    project_id: str
    member: str
    status: str
    expires_at: str | None
    server_id: str | None
    comparison: Comparison
    present_as: PresentAs
    server_patch: ServerPatch
    created_at: str
    updated_at: str
    links: list[Link]
    dry_run: bool = False


class ConflictPart(Struct, frozen=True, omit_defaults=True):
    """One side of a conflict: what an element needs, or what the topology has."""

    policy: str | None = None
    resources: str | None = None
    devices: str | None = None
    traits: str | None = None
    aggregates: str | None = None
    booked: str | None = None
    stay: str | None = None
    topology: str | None = None
    needs: str | None = None
    have: int | str | None = None


class Conflict(Struct, frozen=True):
    """Elements that cannot hold together; minimal when every proper subset can."""

    conflict: list[ConflictPart]
    minimal: bool


class Relaxation(Struct, frozen=True):
    """A change that a solve has shown to be feasible: `{"policy": "db-ha", "keep": [3, 2]}`."""

    change: dict[str, Any]
    cost: int
    verified: bool
    result: str


class Counts(Struct, frozen=True):
    """Hosts looked at, and how many each reason rejected; bucketed (`10+`) for tenants."""

    considered: int | str
    rejected: dict[str, int | str]


class Largest(Struct, frozen=True):
    """How many members of a role fit, of how many that were asked for."""

    role: str
    count: int
    of: int


class Explanation(Struct, frozen=True):
    """Why not. `conflict` is the first minimal conflict, `more_conflicts` disjoint others."""

    id: str
    verdict: str
    stage: str
    computed_at: str
    revision: int
    conflict: list[ConflictPart]
    minimal: bool
    more_conflicts: list[Conflict]
    relaxations: list[Relaxation]
    note: str
    earliest_start: str | None
    """The earliest start ahead at which it fits, as it is asked for; null: none was found."""
    earliest_end: str | None
    """When that window ends; null where it has none."""
    earliest_proved: bool
    """Whether it is refuted that it fits at any earlier start; without one, nothing is said. It is
    proved of what was asked for: of an ensemble, which ends nobody, that an ensemble does not fit
    earlier. A lease may, since it may end preemptible servers."""
    earliest_beyond: bool
    """Whether it ends after the end that was asked for: a stay as long as the one refused, for who
    can stay that long."""
    largest: Largest | None
    """As much of one role as fits as asked; null where less of it would not do either."""
    other_zones: list[str]
    """Zones in which it fits, where it asks for others."""
    counts: Counts
    links: list[Link]
    instance: Any = UNSET
    """The replayable problem; operators only, and only where it was asked for."""


class BrokenLease(Struct, frozen=True):
    """A lease that holds places on hosts that were to be away, and has no others."""

    id: str
    name: str
    why: str


class RefusedOccurrence(Struct, frozen=True):
    """An occurrence of a series that does not fit."""

    index: int
    start: str
    end: str
    why: str
    explanation_id: str | None
    """See `/v1/explanations/{id}`; null after a dry run."""


class InsteadOfSeries(Struct, frozen=True):
    """A change of a series that a solve has shown to fit: without some dates, or another start."""

    fits: int
    """How many occurrences there are then."""
    without: list[int] | None = None
    """The numbers of those that `as_many_as_fit` leaves out."""
    start: str | None = None
    """The first, by the clock on the wall of the series' zone; with `times` as many as `fits`."""


class Error(Struct, frozen=True, omit_defaults=True):
    """What went wrong, in the form of the API-SIG."""

    status: int
    code: str
    title: str
    detail: str
    request_id: str
    links: list[Link] = []
    path: str | None = None
    line: int | None = None
    policies: list[str] = []
    diff: list[Difference] = []
    remedies: list[str] = []
    violations: list[Violation] = []
    longest: str | None = None
    """The longest lead that a lease may have that starts then."""
    limit: int | None = None
    used: int | None = None
    requested: int | None = None
    quota: str | None = None
    """Which of a project's limits was passed; those of durations are told in seconds."""
    left: int | None = None
    passes_at: str | None = None
    """The first start with which the same lease would pass; absent: never as things stand."""
    passes: str | None = None
    """`start`: with that start; `asked`: if it is asked for then."""
    asked_from: str | None = None
    """The first time at which it may be asked for with the start `passes_at`; absent: at once."""
    leases: list[BrokenLease] = []
    earliest: str | None = None
    explanation: Explanation | None = None
    occurrences: list[RefusedOccurrence] = []
    """Of a series: those that do not fit; `explanation` is that of the first."""
    instead: list[InsteadOfSeries] = []
    oldest: str | None = None
    """The cursor from which to go on after events were lost."""
    before: str | None = None
    """Everything is kept that happened at this time or later."""


class Errors(Struct, frozen=True):
    """Every error answer."""

    errors: list[Error]
