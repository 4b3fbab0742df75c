"""The API's answers as structs: the fields that programs work with.

Fields that a newer service adds are passed over, and those a caller may not see have defaults,
so one client serves operators and tenants. The untouched body is beside every struct (`Answer`).
"""

from __future__ import annotations

from typing import Any, Generic, TypeVar

import msgspec

T = TypeVar("T")


class Answer(msgspec.Struct, Generic[T], frozen=True):
    """What was answered: decoded, and word for word."""

    value: T
    body: Any
    request_id: str = ""


class Role(msgspec.Struct, frozen=True):
    """A role as described: the entry of `members` in an ensemble's body."""

    name: str
    count: int = 1
    kind: str = "server"
    flavor: str | None = None
    resources: dict[str, int] = {}
    tags: list[str] = []


class Policy(msgspec.Struct, frozen=True):
    """A policy as stored; its parameters are in the body."""

    name: str
    type: str
    members: list[Any] = []
    zip: list[Any] = []
    strength: Any = "required"


class Violation(msgspec.Struct, frozen=True):
    """One way in which a policy is broken at present."""

    policy: str
    text: str = ""
    members: list[str] = []
    amount: int = 0


class Ensemble(msgspec.Struct, frozen=True):
    """An ensemble. `generation` is what a change must name."""

    id: str
    name: str = ""
    project_id: str = ""
    generation: int = 0
    members: list[Role] = []
    policies: list[Policy] = []
    created_at: str | None = None
    updated_at: str | None = None
    decision: Decision | None = None
    compliance: list[Violation] = []
    """What is violated at present; empty too where it was not asked for."""


class Member(msgspec.Struct, frozen=True):
    """One member and what became of it."""

    name: str
    role: str = ""
    status: str = ""
    server_id: str | None = None
    domains: dict[str, str] = {}
    until: str | None = None
    """When its stay ends, as things are; None where it has no end."""
    until_because: str | None = None
    """Why then: `declared`, `lease` or `preempted`."""
    overrun: bool = False
    """Whether its end has come, and its server is there still."""


class Assignment(msgspec.Struct, frozen=True):
    """Where a member stands, by level: names for operators, opaque labels for tenants."""

    member: str
    kind: str = "server"
    domains: dict[str, str] = {}
    claimed_by: str | None = None
    until: str | None = None
    """When its stay ends, as things are; None where it has no end."""
    until_because: str | None = None
    """Why then: `declared`, `lease` or `preempted`."""


class PolicyStatus(msgspec.Struct, frozen=True):
    """How a placement stands to one policy."""

    name: str
    satisfied: bool = True
    slack: int | None = None
    penalty: int = 0
    standing: int = 0


class Solve(msgspec.Struct, frozen=True):
    """How the answer was found."""

    solver: str = ""
    optimal: bool = False
    value: float = 0
    bound: float = 0
    wall_ms: float = 0
    seed: int = 0


class Additional(msgspec.Struct, frozen=True):
    """How many more of a role would fit."""

    count: int
    exact: bool = True


class Interval(msgspec.Struct, frozen=True):
    """A half-open period; `end` is None where there is none."""

    start: str | None = None
    end: str | None = None


class Decision(msgspec.Struct, frozen=True):
    """A joint placement; `expires_at` is the end of its hold."""

    ensemble_id: str
    id: str | None = None
    status: str = ""
    project_id: str = ""
    ensemble_generation: int = 0
    generation: int = 0
    expires_at: str | None = None
    computed_at: str | None = None
    revision: int = 0
    solve: Solve = Solve()
    assignments: list[Assignment] = []
    policies: list[PolicyStatus] = []
    max_additional: dict[str, Additional] = {}
    interval: Interval = Interval()
    """When its members stay."""
    preemptible: bool = False
    priority: int = 0
    lease_id: str | None = None


class Claim(msgspec.Struct, frozen=True):
    """One member's place taken for a server."""

    id: str
    member: str
    status: str = ""
    decision_id: str = ""
    ensemble_id: str = ""
    server_id: str | None = None
    expires_at: str | None = None
    present_as: dict[str, Any] = {}


class Flavor(msgspec.Struct, frozen=True):
    """A named size."""

    id: str
    name: str
    resources: dict[str, int] = {}
    required: list[Any] = []
    forbidden: list[str] = []


class Provider(msgspec.Struct, frozen=True):
    """A resource provider as the Placement dialect lists it."""

    uuid: str
    name: str
    generation: int = 0
    parent_provider_uuid: str | None = None
    root_provider_uuid: str | None = None


class Created(msgspec.Struct, frozen=True):
    """An ensemble written (or, in a dry run, only judged), with the decision asked for."""

    ensemble: Ensemble | None = None
    decision: Decision | None = None
