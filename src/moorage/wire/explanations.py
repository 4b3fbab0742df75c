"""Explanations: why a request does not fit."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import UNSET, Meta, Struct, UnsetType

from moorage.wire.decisions import ObjectiveName, Solve
from moorage.wire.ensembles import Policy, RoleBody
from moorage.wire.fields import At, Link


class ExplanationBody(Struct, frozen=True, forbid_unknown_fields=True):
    """An undeclared request to explain: nothing is stored but the explanation."""

    members: Annotated[list[RoleBody], Meta(min_length=1, max_length=1000)]
    policies: Annotated[list[Policy], Meta(max_length=1000)] = []
    objective: ObjectiveName | None = None
    seed: Annotated[int, Meta(ge=0, le=2**31 - 1)] = 0


class ExplanationCreate(Struct, frozen=True, forbid_unknown_fields=True):
    """POST /v1/explanations."""

    explanation: ExplanationBody


class ConflictPart(Struct, frozen=True, omit_defaults=True):
    """One side of a conflict: what an element needs, or what the topology has."""

    policy: str | None = None
    resources: str | None = None
    devices: str | None = None
    traits: str | None = None
    aggregates: str | None = None
    closed: str | None = None
    booked: str | None = None
    stay: str | None = None
    quota: str | None = None
    topology: str | None = None
    needs: str | None = None
    have: int | str | None = None
    """How many there are; null where `topology` says it all."""
    needed: int | None = None
    """More than there are; null where the number contradicts nothing by itself."""


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
    """Hosts considered, and how many each reason rejected; rounded (`10+`) for tenants.

    For slices, hosts are the servers that offer some to their project.
    """

    considered: int | str
    rejected: dict[str, int | str]
    """No reason counts more than are considered; a host may count for several reasons."""


class Largest(Struct, frozen=True):
    """The largest number of members of a role that fit, and the number requested."""

    role: str
    count: int
    of: int


class Explanation(Struct, frozen=True):
    """Why not. `conflict` is the first minimal conflict, `more_conflicts` disjoint others."""

    id: str
    verdict: str
    stage: str
    computed_at: At
    revision: int
    conflict: list[ConflictPart]
    minimal: bool
    more_conflicts: list[Conflict]
    relaxations: list[Relaxation]
    note: str
    complete: bool
    """False: time ran out before every search was finished; `note` says what that leaves open."""
    earliest_start: At | None
    """The earliest start ahead at which it fits, as it is asked for; null: none was found."""
    earliest_end: At | None
    """When that window ends; null where it has none."""
    earliest_proved: bool
    """Whether it is proved that no earlier start fits; meaningless without one. It is proved for
    the request as made: for an ensemble, which displaces no server, that an ensemble does not fit
    earlier. A lease may, since it may end preemptible servers."""
    earliest_beyond: bool
    """Whether it ends after the requested end: a stay of the same length, if it may end later."""
    largest: Largest | None
    """As much of one role as fits as asked; null where less of it would not do either."""
    moves: int | None
    """How many moves of other servers make room, by a plan that was found; null: none was, or it is
    not shown. `POST /v1/plans` with kind `admit` makes such a plan."""
    other_zones: list[str]
    """Zones in which it fits, where it asks for others."""
    counts: Counts
    links: list[Link]
    instance: Any = UNSET
    """The replayable problem; operators only, and only where it was asked for."""
    pending: bool = False
    """True: the search for relaxations goes on after this answer; read the explanation again."""
    project_id: str | UnsetType = UNSET
    """With the next two: only where the explanation is read; who was refused knows them."""
    ensemble_id: str | UnsetType | None = UNSET
    """Of the ensemble that was to be placed; if it is stored, `links` has it as `ensemble`."""
    ensemble: str | UnsetType | None = UNSET
    """Its name, or that of the lease that was asked for."""


class Refusal(Struct, frozen=True):
    """A refusal in short; the explanation with its id is the full text."""

    id: str
    project_id: str
    user_id: str | None
    """Null of one that an older version kept; so with the ensemble."""
    ensemble_id: str | None
    """Of the ensemble that was to be placed; it need not be stored."""
    ensemble: str | None
    """Its name, or that of the lease that was asked for."""
    verdict: str
    stage: str
    why: str
    computed_at: At
    links: list[Link]


class Explanations(Struct, frozen=True):
    """A page of refusals, newest first."""

    explanations: list[Refusal]
    explanations_links: list[Link]


class OneExplanation(Struct, frozen=True):
    """One explanation."""

    explanation: Explanation


class Explained(Struct, frozen=True):
    """The verdict on an undeclared request; `explanation` unless it is feasible."""

    verdict: str
    computed_at: At
    revision: int
    explanation: Explanation | None
    solve: Solve | None
