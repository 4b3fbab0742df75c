"""Members of an ensemble and their places."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from moorage.wire.claims import Difference
from moorage.wire.compliance import Impact
from moorage.wire.decisions import DecideBody, Decision, UntilBecause
from moorage.wire.ensembles import Ensemble, RoleBody, Violation
from moorage.wire.fields import FOR_OPERATORS, At, IdempotencyKey, Link, Uuid
from moorage.wire.hosts import Closing


class MemberBody(Struct, frozen=True, forbid_unknown_fields=True):
    """A member to add: a description of one or more, or a running server into a known role."""

    id: IdempotencyKey | None = None
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


class Member(Struct, frozen=True):
    """A member and its place. `status`: unplaced, held, building or active."""

    name: str
    role: str
    kind: str
    status: str
    server_id: str | None
    domains: Annotated[
        dict[str, str],
        Meta(description="Level -> domain: opaque labels for tenants, names for operators"),
    ]
    alternative: int | UnsetType = UNSET
    """Which of its role's alternatives it is placed as, from 0; absent where there are none."""
    uuid: Annotated[str | UnsetType, FOR_OPERATORS] = UNSET
    """The consumer of its hold; operators only."""
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
    """When its stay ends, as things are; absent where it has no end, or no place."""
    until_because: UntilBecause | UnsetType = UNSET
    """With `until`, why then."""
    overrun: bool | UnsetType = UNSET
    """True where its end has come, it has had its time to go, and its server is there still."""


class OneMember(Struct, frozen=True):
    """One member."""

    member: Member


class Added(Struct, frozen=True):
    """What was added: members by description (perhaps placed at once), or one running server."""

    ensemble: Ensemble
    member: Member | UnsetType = UNSET
    decision: Decision | UnsetType = UNSET
    violations: list[Violation] | UnsetType = UNSET
    diff: list[Difference] | UnsetType = UNSET
    """How the size of a running server differs from its role's."""
    dry_run: bool = False
    breaks: Impact | UnsetType = UNSET
    """Of a change: the violations that it begins."""


class Removed(Struct, frozen=True):
    """A member that was taken out, and what that means for the others."""

    member: str
    freed: bool
    """Whether its place was held, or taken for a server being built, and is free now."""
    dry_run: bool = False
    further_changes: str | UnsetType = UNSET
    """Why further changes will be refused until the policies change; absent if they will not."""


class OneRemoved(Struct, frozen=True):
    """What a removal did, or would do."""

    removed: Removed
    breaks: Impact | UnsetType = UNSET
    """Of a change: the violations that it begins."""


class Members(Struct, frozen=True):
    """A page of an ensemble's members."""

    members: list[Member]
    members_links: list[Link]
