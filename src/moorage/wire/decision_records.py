"""Records of decisions: who asked, for what, what was considered, and how to repeat it."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import UNSET, Struct, UnsetType

from moorage.wire.decisions import Interval, PolicyStatus, Solve
from moorage.wire.ensembles import Role
from moorage.wire.explanations import Counts
from moorage.wire.fields import FOR_OPERATORS, At, Length, Link


class RecordInputs(Struct, frozen=True):
    """What was asked for; null takes the configured default."""

    objective: str
    first_choices: bool
    """Whether members are the first of their alternatives that they can be."""
    seed: int
    time_limit: Length
    hold: Length | None
    until: At | None
    preemptible: bool
    priority: int
    max_additional: list[str]


class DecisionRecord(Struct, frozen=True):
    """What a decision was made from."""

    decision_id: str
    ensemble_id: str
    ensemble_generation: int
    project_id: str
    computed_at: At
    user: str | None
    """Whose request made it; of users of other projects a tenant reads only `operator` or
    `another project`."""
    user_project_id: str | None
    request_id: str | None
    global_request_id: str | None
    by: str | None
    """Instead of a user: the background work of the service, such as `waitlist`."""
    revision: int
    """The ledger's, at which hosts were looked at."""
    taken_at: At | None
    """When."""
    interval: Interval
    inputs: RecordInputs | None
    """Null: the decision was made by a version that kept no records."""
    roles: list[Role] | None
    """The description as it was decided; null: it was too large to be kept."""
    policies: list[dict[str, Any]] | None
    counts: Counts | None
    """Hosts considered, and how many each reason rejected."""
    strategy: str | None
    """How room was made: `unaided` took nothing from others."""
    attempts: int | None
    """Attempts until one was committed; the others were overtaken by other commits."""
    placed: int | None
    """Members that were placed; others stayed where they were."""
    solve: Solve
    met: list[PolicyStatus]
    """How the placement met each policy."""
    replayable: Annotated[bool | UnsetType, FOR_OPERATORS] = UNSET
    """Whether enough is kept to solve it again; for operators, as only they can."""
    places: Annotated[str | UnsetType, FOR_OPERATORS] = UNSET
    """A digest of every member's host: equal for equal placements."""
    scatter: Annotated[int | UnsetType | None, FOR_OPERATORS] = UNSET
    """The number of the planner that searched: among hosts of equal cost each has its own order."""
    displaced: Annotated[int | UnsetType, FOR_OPERATORS] = UNSET
    """Servers of others that end early for it."""
    instance: Annotated[dict[str, Any] | UnsetType, FOR_OPERATORS] = UNSET
    """The problem, which `moorage replay` solves again."""
    links: list[Link] = []


class OneDecisionRecord(Struct, frozen=True):
    """The record of one decision."""

    record: DecisionRecord
