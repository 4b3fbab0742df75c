"""Request bodies. Types and bounds are here; meaning is judged by `domain.describe` and below."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias

from msgspec import UNSET, Meta, Struct, UnsetType

from moorage.domain.describe_groups import MAX_GROUPS
from moorage.domain.ensembles import MAX_MEMBERS
from moorage.domain.resources import MAX_AMOUNT

Name: TypeAlias = Annotated[str, Meta(min_length=1, max_length=255)]
Uuid: TypeAlias = Annotated[
    str, Meta(pattern="^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$")
]
Duration: TypeAlias = Annotated[
    str, Meta(min_length=1, max_length=32, description="ISO 8601 (`PT10M`) or short (`10m`)")
]
Instant: TypeAlias = Annotated[str, Meta(max_length=40, description="RFC 3339 with an offset")]
Amount: TypeAlias = Annotated[int, Meta(ge=1, le=MAX_AMOUNT)]
Count: TypeAlias = Annotated[int, Meta(ge=0, le=MAX_MEMBERS)]
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
Generation: TypeAlias = Annotated[int, Meta(ge=0)]
AnyOf: TypeAlias = Annotated[
    list[Name | Annotated[list[Name], Meta(min_length=1, max_length=64)]],
    Meta(max_length=64, description="All of these; a nested list means any one of its entries"),
]
Names: TypeAlias = Annotated[list[Name], Meta(max_length=256)]
Metadata: TypeAlias = Annotated[dict[Name, Annotated[str, Meta(max_length=1024)]], Meta()]
Policy: TypeAlias = Annotated[
    dict[str, Any] | Name,
    Meta(
        description=(
            "`name`, `type`, `members` or `zip` (selectors), `strength` (`required` or"
            " `{preferred: weight}`), `phase`, and the parameters of its type"
            " (see `/v1/policy-types`); or one of Nova's four names"
        )
    ),
]


class GroupBody(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What one provider gives a member beside its own resources."""

    name: Name
    resources: Annotated[dict[Name, Amount], Meta(min_length=1, max_length=64)] | UnsetType = UNSET
    required: AnyOf | UnsetType = UNSET
    forbidden: Names | UnsetType = UNSET
    member_of: AnyOf | UnsetType = UNSET
    same_subtree: bool | UnsetType = UNSET


class PortBody(GroupBody, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A port on a device. `vnic_type` is Neutron's; it does not matter for placement."""

    vnic_type: Name | UnsetType = UNSET


class VolumeBody(GroupBody, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A volume. Without `resources` it takes its size as `DISK_GB`."""

    size_gb: Amount | UnsetType = UNSET


class RoleBody(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A role: a flavor's name or explicit resources, and how many members."""

    name: Annotated[str, Meta(min_length=1, max_length=128)]
    kind: Literal["server"] | UnsetType = UNSET
    count: Count | UnsetType = UNSET
    flavor: Name | UnsetType = UNSET
    resources: Annotated[dict[Name, Amount], Meta(min_length=1, max_length=64)] | UnsetType = UNSET
    required: AnyOf | UnsetType = UNSET
    forbidden: Names | UnsetType = UNSET
    member_of: AnyOf | UnsetType = UNSET
    tags: Names | UnsetType = UNSET
    ports: Annotated[list[PortBody], Meta(max_length=MAX_GROUPS)] | UnsetType = UNSET
    volumes: Annotated[list[VolumeBody], Meta(max_length=MAX_GROUPS)] | UnsetType = UNSET
    groups: Annotated[list[GroupBody], Meta(max_length=MAX_GROUPS)] | UnsetType = UNSET
    same_subtree: Annotated[list[Names], Meta(max_length=MAX_GROUPS)] | UnsetType = UNSET
    group_policy: Literal["none", "isolate"] | UnsetType = UNSET


class DecideBody(Struct, frozen=True, forbid_unknown_fields=True):
    """How to decide. `hold` keeps the places for so long."""

    hold: Duration | None = None
    time_limit: Duration | None = None
    objective: Literal["spread", "pack", "balance"] = "spread"
    seed: Annotated[int, Meta(ge=0, le=2**31 - 1)] = 0
    max_additional: Annotated[
        list[Name], Meta(max_length=16, description="Roles to count further members of")
    ] = []
    until: Until | None = None
    preemptible: Preemptible = False
    priority: StayPriority = 0


class EnsembleBody(Struct, frozen=True, forbid_unknown_fields=True):
    """An ensemble to create; with `decide` it is placed and held in the same transaction."""

    name: Name
    id: Uuid | None = None
    metadata: Metadata = {}
    members: Annotated[list[RoleBody], Meta(max_length=1000)] = []
    policies: Annotated[list[Policy], Meta(max_length=1000)] = []
    decide: DecideBody | None = None


class EnsembleCreate(Struct, frozen=True, forbid_unknown_fields=True):
    """POST /v1/ensembles."""

    ensemble: EnsembleBody


class EnsembleChangeBody(Struct, frozen=True, forbid_unknown_fields=True):
    """What changes. A known role takes a new `count`, a known policy new parameters."""

    name: Name | None = None
    metadata: Metadata | None = None
    members: Annotated[list[RoleBody], Meta(max_length=1000)] = []
    policies: Annotated[
        list[dict[str, Any]],
        Meta(max_length=1000, description="Merged by `name` into those there are, or added"),
    ] = []
    remove_policies: Names = []
    decide: DecideBody | None = None
    generation: Generation | None = None


class EnsembleChange(Struct, frozen=True, forbid_unknown_fields=True):
    """PATCH /v1/ensembles/{id}."""

    ensemble: EnsembleChangeBody


class MemberBody(Struct, frozen=True, forbid_unknown_fields=True):
    """A member to add: a description of one or more, or a running server into a known role."""

    id: Uuid | None = None
    """For safe retry: the same request under the same id adds nothing more."""
    role: RoleBody | None = None
    server_id: Uuid | None = None
    name: Annotated[str, Meta(min_length=1, max_length=128)] | None = None
    """With `server_id`: the role it joins."""
    on_violation: Literal["reject", "accept_and_report"] = "reject"
    decide: DecideBody | None = None


class MemberCreate(Struct, frozen=True, forbid_unknown_fields=True):
    """POST /v1/ensembles/{id}/members."""

    member: MemberBody


class PolicyPut(Struct, frozen=True, forbid_unknown_fields=True):
    """PUT /v1/ensembles/{id}/policies/{name}."""

    policy: dict[str, Any]
    generation: Generation | None = None


class DecisionBody(Struct, frozen=True, forbid_unknown_fields=True):
    """Which ensemble to decide, and how."""

    ensemble_id: Uuid
    id: Uuid | None = None
    hold: Duration | None = None
    time_limit: Duration | None = None
    objective: Literal["spread", "pack", "balance"] = "spread"
    seed: Annotated[int, Meta(ge=0, le=2**31 - 1)] = 0
    max_additional: Annotated[list[Name], Meta(max_length=16)] = []
    until: Until | None = None
    preemptible: Preemptible = False
    priority: StayPriority = 0


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


class ClaimBody(Struct, frozen=True, forbid_unknown_fields=True):
    """The second step: `server` is the server request, as it would go to Nova."""

    member: Annotated[str, Meta(min_length=4, max_length=140)]
    server: dict[str, Any]
    id: Uuid | None = None
    lifetime: Duration | None = None
    on_mismatch: Literal["refuse", "redecide_member"] = "refuse"


class ClaimCreate(Struct, frozen=True, forbid_unknown_fields=True):
    """POST /v1/decisions/{id}/claims."""

    claim: ClaimBody


class ClaimPatchBody(Struct, frozen=True, forbid_unknown_fields=True):
    """How the build went. `active` needs the server's id."""

    status: Literal["active", "failed"]
    server_id: Uuid | None = None
    on_failure: Literal["release", "redecide"] = "release"


class ClaimPatch(Struct, frozen=True, forbid_unknown_fields=True):
    """PATCH /v1/claims/{id}."""

    claim: ClaimPatchBody


class ExplanationBody(Struct, frozen=True, forbid_unknown_fields=True):
    """An undeclared request to explain: nothing is stored but the explanation."""

    members: Annotated[list[RoleBody], Meta(min_length=1, max_length=1000)]
    policies: Annotated[list[Policy], Meta(max_length=1000)] = []
    objective: Literal["spread", "pack", "balance"] = "spread"
    seed: Annotated[int, Meta(ge=0, le=2**31 - 1)] = 0


class ExplanationCreate(Struct, frozen=True, forbid_unknown_fields=True):
    """POST /v1/explanations."""

    explanation: ExplanationBody
