"""Plans: ordered moves of servers, and how far they have been carried out."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from msgspec import UNSET, Meta, Struct, UnsetType

from moorage.domain.ensembles import MAX_MEMBERS
from moorage.wire.ensembles import EnsembleBody
from moorage.wire.fields import At, IdempotencyKey, Instant, Link, Name, Uuid

PlanKind: TypeAlias = Literal["repair", "drain", "evacuate", "admit", "rebalance"]
PlanState: TypeAlias = Literal["ready", "running", "paused", "done", "canceled"]
MoveKind: TypeAlias = Literal["live", "cold", "evacuate"]
_AtOnce: TypeAlias = Annotated[int, Meta(ge=1, le=1_000)]


class LimitsBody(Struct, frozen=True, forbid_unknown_fields=True):
    """Bounds on what runs at the same time, and on failures. Null: the service's setting."""

    parallel: _AtOnce | None = None
    """Moves at a time."""
    per_host: _AtOnce | None = None
    """Moves at a time that leave or enter one host."""
    failures: _AtOnce | None = None
    """The plan pauses at so many failed moves."""


class PlanBody(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What a plan is to attain."""

    kind: PlanKind
    hosts: Annotated[
        list[Name],
        Meta(max_length=1_000, description="Names or UUIDs of hosts to drain or evacuate"),
    ] = []
    domains: Annotated[
        list[Name],
        Meta(max_length=100, description="Failure domains whose hosts are, such as `rack/r2`"),
    ] = []
    ensemble: Annotated[
        Uuid | None, Meta(description="The ensemble to repair, to place, or to add members to")
    ] = None
    description: Annotated[
        EnsembleBody | None, Meta(description="A new ensemble for which room is made")
    ] = None
    role: Annotated[
        Name | None, Meta(description="Room is made for `count` more members of this role")
    ] = None
    count: Annotated[int, Meta(ge=0, le=MAX_MEMBERS)] = 0
    by: Annotated[Instant | None, Meta(description="When it is to be done")] = None
    limits: LimitsBody = LimitsBody()
    cold: Annotated[bool, Meta(description="Whether servers are stopped while they move")] = False
    gain: Annotated[
        float, Meta(ge=0, description="What a move of `rebalance` gains for others at least")
    ] = 0.0
    id: IdempotencyKey | None = None


class PlanCreate(Struct, frozen=True, forbid_unknown_fields=True):
    """POST /v1/plans."""

    plan: PlanBody


class Move(Struct, frozen=True):
    """One move of a server to another host."""

    id: str
    server: str
    project_id: str
    kind: MoveKind
    source: str
    """UUID of the host that it leaves."""
    source_name: str
    target: str
    """UUID of the host to which it goes."""
    target_name: str
    allocations: dict[str, dict[str, int]]
    ensemble_id: str | None
    ensemble: str
    member: str | None
    memory_mb: int
    """Memory that is copied, in MiB."""
    after: list[int]
    """Positions in the plan of the moves that are done before it begins."""
    state: Literal["waiting", "moving", "done", "failed", "skipped"]
    error: str
    """Why it failed or was skipped."""
    began_at: At | None
    ended_at: At | None
    attempts: int


class Unmoved(Struct, frozen=True):
    """A server that the plan would have to move and cannot, or a member that it cannot place."""

    server: str
    project_id: str
    host: str
    host_name: str
    reason: str
    code: Annotated[
        str, Meta(description="`no-room`, `policy`, `pinned`, `no-order` or `undecided`")
    ]
    ensemble_id: str | None
    member: str | None


class Limits(Struct, frozen=True):
    """Bounds on what runs at the same time, and on failures."""

    parallel: int
    per_host: int
    failures: int


class PlanSummary(Struct, frozen=True, kw_only=True):
    """A plan without its moves."""

    id: str
    kind: PlanKind
    state: PlanState
    subject: str
    """What it is for: names of hosts or of the ensemble."""
    move_count: int
    done: int
    """Moves that are done or needless."""
    failed: int
    unmoved_count: int
    by: At | None
    note: str
    created_at: At
    changed_at: At


class Plan(PlanSummary, frozen=True, kw_only=True):
    """A plan with its moves, in an order in which each may be made after those before it."""

    moves: list[Move]
    unmoved: list[Unmoved]
    complete: bool
    """Whether its moves attain all that it is for."""
    lower_bound: int
    """No plan for the same has fewer moves."""
    optimal: bool
    """Whether it is proved that no plan for the same costs less."""
    memory_mb: int
    """Memory that all moves copy, in MiB."""
    hosts: list[str]
    """UUIDs of the hosts that become empty."""
    ensemble_id: str | None
    limits: Limits
    attributes: dict[str, str]
    user_id: str | None
    project_id: str | None
    revision: int
    """The ledger's revision from which it was made."""
    generation: int
    links: list[Link]


class OnePlan(Struct, frozen=True):
    """One plan."""

    plan: Plan
    dry_run: bool | UnsetType = UNSET


class Plans(Struct, frozen=True):
    """A page of plans, newest first."""

    plans: list[PlanSummary]
    plans_links: list[Link]
