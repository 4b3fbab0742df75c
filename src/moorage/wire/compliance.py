"""Compliance of ensembles: broken policies, members out of service, and what was recorded."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import UNSET, Struct, UnsetType

from moorage.wire.fields import FOR_OPERATORS, At, Link


class Cause(Struct, frozen=True):
    """What began or ended a violation, as far as the service can tell."""

    kind: Literal[
        "host",
        "member_moved",
        "member_removed",
        "neighbour",
        "ensemble",
        "topology",
        "reference",
        "found",
    ]
    hosts: Annotated[list[str] | UnsetType, FOR_OPERATORS] = UNSET
    """The hosts concerned, at most some of them; only operators see it."""
    reason: Annotated[str | UnsetType, FOR_OPERATORS] = UNSET
    """Why a host is out of service; only operators see it."""
    user: str | None = None
    """Whose request did it; null: nobody's, or it is not known. Of users of other projects a
    tenant reads only `operator` or `another project`."""
    request_id: str | None = None
    by: str | None = None
    """Instead of a user: the background work of the service, such as `expiry`."""


class ViolationRecord(Struct, frozen=True):
    """A broken policy or a member out of service, from when it was found until it was not."""

    id: str
    ensemble_id: str
    ensemble: str
    """The ensemble's name when it began."""
    project_id: str
    policy: str | None
    """Null: a member is out of service."""
    type: str
    """The policy's type; of a member `at_risk` or `lost`."""
    required: bool
    members: list[str]
    """Who breaks it, as far as that is known, or is out of service."""
    amount: int
    """How much is broken, in the policy's own measure; 1 for a member."""
    text: str
    since: At
    until: At | None
    """Null while it lasts."""
    because: Cause
    ended_by: Cause | None
    servers: dict[str, str] = {}
    """Member -> its server when it began, of members out of service."""


class Violations(Struct, frozen=True):
    """A page of violations, newest first."""

    violations: list[ViolationRecord]
    violations_links: list[Link]


class PolicyCompliance(Struct, frozen=True):
    """Whether the placed members keep a policy now."""

    name: str
    type: str
    required: bool
    ok: bool
    members: list[str] = []
    """Who breaks it, as far as that is known."""
    amount: int = 0
    text: str | None = None
    since: At | None = None
    """When it was found to be broken; null of one that is not recorded yet."""
    because: Cause | None = None


class MemberOutOfService(Struct, frozen=True):
    """A member whose host is not in service."""

    member: str
    condition: str
    """`at_risk`: the host takes no new servers; `lost`: what is there does not run."""
    server: str | None
    text: str
    since: At | None
    """Null of one that is not recorded yet."""
    because: Cause | None


class Compliance(Struct, frozen=True):
    """How an ensemble complies now. `compliant`: no required policy is broken, no member out."""

    ensemble_id: str
    ensemble: str
    compliant: bool
    placed: int
    """How many members have places."""
    policies: list[PolicyCompliance]
    out_of_service: list[MemberOutOfService]
    not_judged: list[str]
    """Placed members of whom no policy can be judged: what they have booked is no host's."""
    judged_at: At
    history: list[ViolationRecord] | UnsetType = UNSET
    """Violations that have ended, newest first; only where it was asked for."""
    history_links: list[Link] | UnsetType = UNSET


class OneCompliance(Struct, frozen=True):
    """The compliance of one ensemble."""

    compliance: Compliance


class NewlyBroken(Struct, frozen=True):
    """A violation that a change begins. No tenant reads names of hosts or domains in its text."""

    ensemble_id: str
    ensemble: str
    project_id: str
    policy: str | None
    """Null: a member is out of service."""
    type: str
    required: bool
    members: list[str]
    amount: int
    text: str


class Impact(Struct, frozen=True):
    """What a change newly breaks, of the ensembles that were judged in time."""

    violations: list[NewlyBroken]
    """The first hundred."""
    found: int
    """How many there are."""
    judged: int
    """How many ensembles were judged."""
    ensembles: int
    """How many there are."""


class Broken(Struct, frozen=True):
    """What a deletion newly breaks."""

    breaks: Impact
