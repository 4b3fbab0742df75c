"""Request bodies about leases. Types and bounds are here; meaning is judged below."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from msgspec import UNSET, Meta, Struct, UnsetType

from moorage.api.native.requests import (
    Amount,
    AnyOf,
    Count,
    Duration,
    Generation,
    Instant,
    Metadata,
    Name,
    Names,
    Policy,
    RoleBody,
    Uuid,
)
from moorage.api.native.requests_templates import ChosenTemplate
from moorage.domain.ensembles import MAX_MEMBERS

Members: TypeAlias = Annotated[int, Meta(ge=1, le=MAX_MEMBERS)]
Start: TypeAlias = Annotated[
    str, Meta(max_length=40, description="RFC 3339 with an offset; null means now")
]
Actions: TypeAlias = Annotated[
    list[Annotated[str, Meta(min_length=1, max_length=255)]],
    Meta(
        max_length=16,
        description="`notify`, `notify:PT24H`, `release`, `delete` or `hook:<name>`",
    ),
]
Before: TypeAlias = Annotated[
    list[Literal["bounded", "preemptible"]],
    Meta(max_length=2, description="Who may use its capacity before it starts; null: both"),
]


class LeasedBody(Struct, frozen=True, forbid_unknown_fields=True):
    """An ensemble to create with its lease; without a name it is called as the lease is."""

    members: Annotated[list[RoleBody], Meta(min_length=1, max_length=1000)]
    policies: Annotated[list[Policy], Meta(max_length=1000)] = []
    metadata: Metadata = {}
    name: Name | None = None


class AmountBody(Struct, frozen=True, forbid_unknown_fields=True):
    """So many servers of a flavor, or of explicit resources: one role called `server`."""

    count: Members
    flavor: Name | None = None
    resources: Annotated[dict[Name, Amount], Meta(min_length=1, max_length=64)] | None = None
    required: AnyOf = []
    forbidden: Names = []
    policies: Annotated[list[Policy], Meta(max_length=1000)] = []


class WaitBody(Struct, frozen=True, forbid_unknown_fields=True):
    """What is waited for where the lease cannot be had at once; see the waitlist."""

    latest_start: Instant | None = None
    """The last start that would do; without it the lease's own, or any if it has none."""
    until: Instant | None = None
    """When to stop waiting; without it when the last start has passed."""


class LeaseBody(Struct, frozen=True, forbid_unknown_fields=True):
    """What is promised, for when, and on which terms.

    Exactly one of `ensemble_id`, `ensemble`, `template` and `amount` says what, exactly one of
    `end` and `duration` how long.
    """

    name: Name
    id: Uuid | None = None
    ensemble_id: Uuid | None = None
    ensemble: LeasedBody | None = None
    template: ChosenTemplate | None = None
    amount: AmountBody | None = None
    start: Start | None = None
    end: Instant | None = None
    duration: Duration | None = None
    lead: Duration | None = None
    """Time before the start in which the places are kept free already."""
    cleaning: Duration | None = None
    """Time after the end in which the places are kept free still."""
    expiry: Duration | None = None
    """How long after the start what nobody claimed is kept; without it, to the end."""
    priority: Annotated[int, Meta(ge=0, le=1000)] = 0
    before_start: Before | None = None
    on_start: Actions = []
    before_end: Actions = []
    on_end: Actions = []
    wait: WaitBody | None = None
    """Wait on the waitlist where it cannot be had; null: it is granted now or refused."""
    objective: Literal["spread", "pack", "balance"] = "spread"
    seed: Annotated[int, Meta(ge=0, le=2**31 - 1)] = 0
    time_limit: Duration | None = None


class LeaseCreate(Struct, frozen=True, forbid_unknown_fields=True):
    """POST /v1/leases."""

    lease: LeaseBody


class LeaseChangeBody(Struct, frozen=True, forbid_unknown_fields=True):
    """What changes: extend, shrink and move by `start` and `end`, grow by `counts`."""

    name: Name | None = None
    start: Start | UnsetType | None = UNSET
    end: Instant | None = None
    duration: Duration | None = None
    """With `start`, instead of `end`."""
    counts: Annotated[
        dict[Name, Count], Meta(max_length=1000, description="Role -> its new number of members")
    ] = {}
    generation: Generation | None = None


class LeaseChange(Struct, frozen=True, forbid_unknown_fields=True):
    """PATCH /v1/leases/{id}."""

    lease: LeaseChangeBody
