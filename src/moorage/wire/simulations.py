"""Simulations: what is supposed, and what would be; and what the fleet survives."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias

from msgspec import UNSET, Meta, Struct, UnsetType

from moorage.domain.simulations import MOST_ADDED, MOST_CHANGES
from moorage.wire.compliance import Impact
from moorage.wire.ensembles import EnsembleBody
from moorage.wire.explanations import Explanation
from moorage.wire.fields import At, Duration, Instant, Name

Verdict: TypeAlias = Literal["placed", "refused", "undecided"]
"""`undecided`: time ran out before it was known."""


class AddedHosts(Struct, frozen=True, forbid_unknown_fields=True):
    """Hosts to add, like one that there is."""

    count: Annotated[int, Meta(ge=1, le=MOST_ADDED)]
    like: Name
    """The name or UUID of that host."""
    domains: Annotated[list[Name], Meta(max_length=16)] = []
    """Where they are, at most one domain of each tree; empty: where that host is."""


class SupposedPolicy(Struct, frozen=True, forbid_unknown_fields=True):
    """A policy of an ensemble: a new one, or fields that replace those of the one of its name."""

    ensemble_id: Name
    name: Name
    fields: dict[str, Any]


class SupposedChange(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One change; one of its fields is given."""

    lose: Name | UnsetType = UNSET
    """A host, or a domain such as `rack/r2` or `power:feed/f1`, whose hosts stop running."""
    close: Name | UnsetType = UNSET
    """The same: nothing new is placed there."""
    add: AddedHosts | UnsetType = UNSET
    admit: EnsembleBody | UnsetType = UNSET
    """An ensemble that is created and placed, as `POST /v1/ensembles` takes it."""
    policy: SupposedPolicy | UnsetType = UNSET


class SimulationBody(Struct, frozen=True, forbid_unknown_fields=True):
    """What is supposed, in this order."""

    changes: Annotated[list[SupposedChange], Meta(min_length=1, max_length=MOST_CHANGES)]
    at: Instant | None = None
    """When; null: now."""
    flavors: Annotated[list[Name], Meta(max_length=20)] = []
    """The flavors whose capacity is counted; empty: the first twenty."""
    time_limit: Duration | None = None


class SimulationCreate(Struct, frozen=True, forbid_unknown_fields=True):
    """POST /v1/simulations."""

    simulation: SimulationBody


class RoleLeft(Struct, frozen=True):
    """A role of an ensemble that lost members."""

    role: str
    placed: int
    left: int
    """Of the placed ones, those whose hosts are in service."""
    needed: int
    """How many must be up: `min_available`, or 1."""
    quorum: bool


class Again(Struct, frozen=True):
    """Whether the lost members can be placed again, and where."""

    verdict: Verdict
    hosts: dict[str, str]
    """Member -> its new host."""
    why: str
    """Why not, in a sentence; empty where they can."""
    explanation: Explanation | None
    """Of the first refusals."""


class EnsembleLoss(Struct, frozen=True):
    """An ensemble with members on hosts that are supposed to be down."""

    ensemble_id: str
    ensemble: str
    project_id: str
    lost: list[str]
    quorum: bool
    """Whether each role has enough members left."""
    roles: list[RoleLeft]
    again: Again


class LossCounts(Struct, frozen=True):
    """Of all ensembles that lost members, not only of those that are listed."""

    ensembles: int
    without_quorum: int
    placed: int
    """All of whose lost members can be placed again."""
    refused: int
    undecided: int


class Admitted(Struct, frozen=True):
    """An ensemble that was to be placed."""

    ensemble: str
    verdict: Verdict
    hosts: dict[str, str]
    """Member -> host."""
    why: str
    explanation: Explanation | None


class FlavorCapacity(Struct, frozen=True):
    """How many servers of a flavor fit, if no other takes the room."""

    flavor: str
    before: int
    after: int
    """With all that is supposed."""
    left: int
    """And with the lost members placed again."""


class Simulation(Struct, frozen=True):
    """What would be; nothing is written."""

    at: At
    revision: int
    """The ledger's, from which it starts."""
    down: list[str]
    """Hosts that are supposed to be down, the first hundred; so the closed and added ones."""
    closed: list[str]
    added: list[str]
    breaks: Impact
    """The violations that begin."""
    losses: list[EnsembleLoss]
    """The first hundred, those without quorum first."""
    counts: LossCounts
    admitted: list[Admitted]
    capacity: list[FlavorCapacity]


class OneSimulation(Struct, frozen=True):
    """One simulation."""

    simulation: Simulation


class SetLeft(Struct, frozen=True):
    """Members of a role, or those that a `survive` policy selects, of which too few are left."""

    role: str | None
    policy: str | None
    total: int
    """Members in service before the loss."""
    left: int
    needed: int


class EnsembleWithoutQuorum(Struct, frozen=True):
    """An ensemble that has too few members left after a loss."""

    ensemble_id: str
    ensemble: str
    project_id: str
    lost: int
    """How many of its members in service are lost."""
    too_few: list[SetLeft]
    again: Verdict
    """Whether its lost members can be placed again now."""


class DomainLoss(Struct, frozen=True):
    """The loss of a domain, or of several together."""

    domains: list[str]
    hosts: int
    members: int
    """Members in service that are lost."""
    ensembles: int
    """How many ensembles lose any."""
    without_quorum: int
    placed: int
    """Of the ensembles without quorum, those whose lost members can all be placed again."""
    refused: int
    undecided: int
    lost: list[EnsembleWithoutQuorum]
    """The first twenty of those without quorum: those that miss most members first."""


class FleetSurvivability(Struct, frozen=True):
    """What the fleet survives."""

    level: str
    lose: int
    """How many domains are lost together."""
    at: At
    revision: int
    domains: int
    """How many domains with hosts the level has."""
    ensembles: int
    """How many ensembles have members in service."""
    already: int
    """How many have too few of them as it is; no loss counts them."""
    considered: int
    """How many losses were considered."""
    fatal: int
    """How many of these leave an ensemble without quorum."""
    losses: list[DomainLoss]
    """The first hundred of the fatal ones, the worst first."""


class OneSurvivability(Struct, frozen=True):
    """GET /v1/survivability."""

    survivability: FleetSurvivability
