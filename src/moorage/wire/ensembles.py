"""Ensembles: what is described, and what is stored of it."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias

from msgspec import UNSET, Meta, Struct, UnsetType

from moorage.domain.describe_groups import MAX_GROUPS
from moorage.domain.describe_members import MAX_IMAGE_PROPERTIES
from moorage.domain.describe_server_options import MAX_NETWORKS, MAX_USER_DATA, MAX_VOLUME
from moorage.wire.compliance import Impact
from moorage.wire.decisions import DecideBody, Decision, DecisionSummary
from moorage.wire.fields import (
    Alternatives,
    Amount,
    AnyOf,
    At,
    Count,
    Generation,
    IdempotencyKey,
    Link,
    Metadata,
    Name,
    Names,
)
from moorage.wire.groups import Group

Policy: TypeAlias = Annotated[
    dict[str, Any] | Name,
    Meta(
        description=(
            "`name`, `type`, `members` or `zip` (selectors), `strength` (`required` or"
            " `{preferred: weight}`), `phase`, `on_violation`, and the parameters of its type"
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
    """A port on a device. `vnic_type` is Neutron's; it does not matter for placement.

    `resource_request` is the attribute of Neutron's port, and replaces resources and traits.
    """

    vnic_type: Name | UnsetType = UNSET
    resource_request: dict[str, Any] | UnsetType | None = UNSET


class VolumeBody(GroupBody, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A volume. Without `resources` it takes its size as `DISK_GB`."""

    size_gb: Amount | UnsetType = UNSET


class ServerBody(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """How a role's servers are created, beside the flavor; it does not matter for placement.

    Images and networks are names or ids; `user_data` is text. Instead of networks, `auto` or
    `none`.
    """

    image: Name | UnsetType = UNSET
    networks: (
        Annotated[list[Name], Meta(max_length=MAX_NETWORKS)] | Literal["auto", "none"] | UnsetType
    ) = UNSET
    key_name: Name | UnsetType = UNSET
    user_data: Annotated[str, Meta(max_length=MAX_USER_DATA)] | UnsetType = UNSET
    security_groups: Annotated[list[Name], Meta(max_length=64)] | UnsetType = UNSET
    config_drive: bool | UnsetType = UNSET
    volume_gb: Annotated[int, Meta(ge=1, le=MAX_VOLUME)] | UnsetType = UNSET
    """Of the volume that a role boots from; the flavor's disk by default."""
    metadata: Metadata | UnsetType = UNSET


class ChoiceBody(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, kw_only=True):
    """What places a member: a flavor's name or explicit resources, and what its host must be."""

    kind: Literal["server", "baremetal", "slice", "volume", "port", "ensemble"] | UnsetType = UNSET
    """A role may be of kind `ensemble`, an alternative not."""
    flavor: Name | UnsetType = UNSET
    resources: Annotated[dict[Name, Amount], Meta(min_length=1, max_length=64)] | UnsetType = UNSET
    required: AnyOf | UnsetType = UNSET
    forbidden: Names | UnsetType = UNSET
    member_of: AnyOf | UnsetType = UNSET
    ports: Annotated[list[PortBody], Meta(max_length=MAX_GROUPS)] | UnsetType = UNSET
    volumes: Annotated[list[VolumeBody], Meta(max_length=MAX_GROUPS)] | UnsetType = UNSET
    groups: Annotated[list[GroupBody], Meta(max_length=MAX_GROUPS)] | UnsetType = UNSET
    same_subtree: Annotated[list[Names], Meta(max_length=MAX_GROUPS)] | UnsetType = UNSET
    group_policy: Literal["none", "isolate"] | UnsetType = UNSET
    image_properties: (
        Annotated[
            dict[Name, str | bool | int],
            Meta(
                max_length=MAX_IMAGE_PROPERTIES,
                description="Those of the servers' image; they need a flavor. Null: nothing is"
                " said of them",
            ),
        ]
        | UnsetType
        | None
    ) = UNSET
    boot_from_volume: bool | UnsetType = UNSET
    on_server: (
        Annotated[
            Name, Meta(description="Of slices: the only server for them; its id or its provider's")
        ]
        | UnsetType
    ) = UNSET
    servers_of: (
        Annotated[
            Names,
            Meta(
                description="Of slices: whose servers they may be on besides those of their own"
                " project: ids of projects that share theirs, or `operators`, for all that an"
                " operator offers"
            ),
        ]
        | UnsetType
    ) = UNSET


class RoleBody(
    ChoiceBody, frozen=True, forbid_unknown_fields=True, omit_defaults=True, kw_only=True
):
    """A role: what places its members, or alternatives of that, and the number of members.

    With `kind` `ensemble` it is a group: only `members` and `policies`, and the number of its
    copies.
    """

    name: Annotated[str, Meta(min_length=1, max_length=128)]
    count: Count | UnsetType = UNSET
    min_available: (
        Annotated[
            Count,
            Meta(
                description="The quorum: how many of the members must be up, at most `count`;"
                " a change that would leave fewer members is refused"
            ),
        ]
        | UnsetType
    ) = UNSET
    tags: Names | UnsetType = UNSET
    server: ServerBody | UnsetType = UNSET
    project: (
        Annotated[
            Name,
            Meta(description="Id of the project whose servers its members are, if another's"),
        ]
        | UnsetType
    ) = UNSET
    alternatives: (
        Annotated[
            list[ChoiceBody],
            Meta(
                min_length=2,
                max_length=8,
                description="In order; the role itself then says none of these things",
            ),
        ]
        | UnsetType
    ) = UNSET
    members: Annotated[list[RoleBody], Meta(min_length=1, max_length=1000)] | UnsetType = UNSET
    policies: Annotated[list[Policy], Meta(max_length=1000)] | UnsetType = UNSET


class EnsembleBody(Struct, frozen=True, forbid_unknown_fields=True):
    """An ensemble to create; with `decide` it is placed and held in the same transaction."""

    name: Name
    id: IdempotencyKey | None = None
    metadata: Metadata = {}
    members: Annotated[list[RoleBody], Meta(max_length=1000)] = []
    policies: Annotated[list[Policy], Meta(max_length=1000)] = []
    decide: DecideBody | None = None


class EnsembleCreate(Struct, frozen=True, forbid_unknown_fields=True):
    """POST /v1/ensembles."""

    ensemble: EnsembleBody


class EnsembleChangeBody(Struct, frozen=True, forbid_unknown_fields=True):
    """What changes. A known role takes a new `count`, a known policy new parameters.

    A known role also takes `min_available`, `server`, and what places its members: `flavor` or
    `resources`, `required`, `forbidden`, `member_of`, and the image.
    """

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


class RoleShare(Struct, frozen=True):
    """The consent of the project that a role belongs to: offered, accepted or revoked."""

    id: str
    status: Literal["offered", "accepted", "revoked"]


class Role(Struct, frozen=True):
    """A role with the number of its members; nested lists in `required` mean "any of"."""

    name: str
    kind: str
    count: int
    flavor: str | None
    resources: dict[str, int]
    required: Alternatives
    forbidden: list[str]
    member_of: Alternatives
    tags: list[str]
    ports: list[Group] = []
    volumes: list[Group] = []
    groups: list[Group] = []
    same_subtree: list[list[str]] = []
    group_policy: Literal["none", "isolate"] = "none"
    server: ServerBody | UnsetType = UNSET
    root_required: list[str] = []
    """Traits of the host itself."""
    flavor_groups: list[Group] = []
    """Numbered groups and devices of the flavor."""
    image_properties: dict[str, str] | None = None
    """Null: nothing is said of the image."""
    boot_from_volume: bool = False
    on_server: str | None = None
    servers_of: list[str] = []
    host_checks: list[str] = []
    """Extra specs and image properties that Nova, and not Moorage, compares with the host."""
    alternatives: list[Role] = []
    """What each member is one of, in order; the role itself is as the first."""
    project_id: str | UnsetType = UNSET
    """The project whose servers its members are, if another than the ensemble's."""
    share: RoleShare | UnsetType = UNSET
    """With `project_id`."""
    min_available: int | UnsetType = UNSET
    """How many of its members must be up; absent where nothing is said."""
    others: bool = False
    """Whether another project than the caller's claims places for its members."""


class MadeOf(Struct, frozen=True):
    """The template version from which an ensemble was created."""

    id: str
    version: int


class Violation(Struct, frozen=True):
    """One way a policy is broken."""

    policy: str
    members: list[str]
    text: str
    amount: int


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
    created_at: At
    updated_at: At
    links: list[Link]
    decision: Decision | UnsetType | None = UNSET
    """The current one; in listings there is `decision_summary` instead."""
    decision_summary: DecisionSummary | UnsetType | None = UNSET
    """In listings, of the current decision; null: it was never decided."""
    compliance: list[Violation] | UnsetType = UNSET
    """What is violated at present; only where it was asked for."""
    broken: int | UnsetType = UNSET
    """How many required policies are recorded as broken and members as out of service; only in
    listings."""
    template: MadeOf | UnsetType = UNSET
    headroom: dict[str, int] = {}
    """Role -> how many places are held for members that it does not have yet."""


class OneEnsemble(Struct, frozen=True):
    """One ensemble. After a change: the decision made with it, or its effect on the members."""

    ensemble: Ensemble
    decision: Decision | UnsetType | None = UNSET
    violations: list[Violation] | UnsetType = UNSET
    to_resize: list[str] | UnsetType = UNSET
    """Members whose servers keep the size that their role had before: Nova resizes servers."""
    dry_run: bool = False
    computed_at: At | UnsetType = UNSET
    revision: int | UnsetType = UNSET
    breaks: Impact | UnsetType = UNSET
    """Of a change: the violations that it begins."""


class Ensembles(Struct, frozen=True):
    """A page of ensembles."""

    ensembles: list[Ensemble]
    ensembles_links: list[Link]


class Loss(Struct, frozen=True):
    """The worst that losing one domain of a level does to a role."""

    role: str
    total: int
    in_service: int
    """Of the total, those whose hosts are in service."""
    keeps: int
    needed: int
    ok: bool
    hosts_left: int | str | None = None
    """If a policy bounds how many of its members are on a host: the hosts that are left at worst
    and could have some; rounded (`10+`) for tenants. Null: no policy does."""
    hosts_needed: int | None = None
    """How many hosts its members need by that policy."""


class Survival(Struct, frozen=True):
    """Losing any one domain of `level`."""

    level: str
    lose: int
    roles: list[Loss]
    again: Literal["placed", "refused", "undecided"] | None = None
    """Whether the members that are lost with any one domain can all be placed again now; null: none
    is lost."""
    stuck: list[str] = []
    """The domains whose lost members cannot; by the ensemble's own labels for tenants."""


class Survivability(Struct, frozen=True):
    """How many members survive the loss of any one domain, per level, and what is placed again."""

    survivability: list[Survival]
