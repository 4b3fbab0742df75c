"""The outermost objects of response bodies: one key that says what is inside, and paging links."""

from __future__ import annotations

from typing import Any

from msgspec import UNSET, Struct, UnsetType

from moorage.api.native import answers
from moorage.api.native.answers import Link


class OneEnsemble(Struct, frozen=True):
    """One ensemble. After a change: the decision made with it, or what it did to the members."""

    ensemble: answers.Ensemble
    decision: answers.Decision | UnsetType | None = UNSET
    violations: list[answers.Violation] | UnsetType = UNSET
    dry_run: bool = False
    computed_at: str | UnsetType = UNSET
    revision: int | UnsetType = UNSET


class Ensembles(Struct, frozen=True):
    """A page of ensembles."""

    ensembles: list[answers.Ensemble]
    ensembles_links: list[Link]


class OneMember(Struct, frozen=True):
    """One member."""

    member: answers.Member


class Added(Struct, frozen=True):
    """What joined: members by description (perhaps placed at once), or one running server."""

    ensemble: answers.Ensemble
    member: answers.Member | UnsetType = UNSET
    decision: answers.Decision | UnsetType = UNSET
    violations: list[answers.Violation] | UnsetType = UNSET
    diff: list[answers.Difference] | UnsetType = UNSET
    """How the size of a running server differs from its role's."""
    dry_run: bool = False


class Members(Struct, frozen=True):
    """All members of an ensemble."""

    members: list[answers.Member]


class OnePolicy(Struct, frozen=True):
    """One policy, as written; after a change with its effect on the present members."""

    policy: dict[str, Any]
    violations: list[answers.Violation] | UnsetType = UNSET
    generation: int | UnsetType = UNSET
    dry_run: bool = False


class Policies(Struct, frozen=True):
    """An ensemble's policies."""

    policies: list[dict[str, Any]]


class PolicyType(Struct, frozen=True):
    """A type of policy: its parameters as JSON schema, and examples."""

    type: str
    summary: str
    description: str
    schema: dict[str, Any]
    examples: list[dict[str, Any]]


class PolicyTypes(Struct, frozen=True):
    """Every policy type known here."""

    policy_types: list[PolicyType]


class OnePolicyType(Struct, frozen=True):
    """One policy type."""

    policy_type: PolicyType


class OneDecision(Struct, frozen=True):
    """One decision."""

    decision: answers.Decision


class Decisions(Struct, frozen=True):
    """A page of decisions, newest first."""

    decisions: list[answers.Decision]
    decisions_links: list[Link]


class Confirmed(Struct, frozen=True):
    """A confirmed decision: members claimed, still building, and freed."""

    decision: answers.Decision
    claimed: int
    building: int
    released: int
    released_members: list[str]
    members: int


class OneClaim(Struct, frozen=True):
    """One claim; `decision` where the member was decided anew."""

    claim: answers.Claim
    decision: answers.Decision | UnsetType = UNSET


class Claims(Struct, frozen=True):
    """The claims of a decision."""

    claims: list[answers.Claim]


class OneExplanation(Struct, frozen=True):
    """One explanation."""

    explanation: answers.Explanation


class Explained(Struct, frozen=True):
    """The verdict on an undeclared request; `explanation` unless it is feasible."""

    verdict: str
    computed_at: str
    revision: int
    explanation: answers.Explanation | None
    solve: answers.Solve | None


class Loss(Struct, frozen=True):
    """The worst that losing one domain of a level does to a role."""

    role: str
    total: int
    keeps: int
    needed: int
    ok: bool


class Survival(Struct, frozen=True):
    """Losing any one domain of `level`."""

    level: str
    lose: int
    roles: list[Loss]


class Survivability(Struct, frozen=True):
    """Who keeps what when any one domain is lost, per level."""

    survivability: list[Survival]


class Version(Struct, frozen=True):
    """One version of this API."""

    id: str
    status: str
    min_version: str
    max_version: str
    links: list[Link]


class Versions(Struct, frozen=True):
    """The version document."""

    version: Version
