"""What the ledger answers about violations, and which ensembles are to be judged."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from moorage.domain.actors import Actor
    from moorage.domain.ensembles import Ensemble
    from moorage.domain.host_states import ToldHost
    from moorage.domain.period import Instant
    from moorage.domain.violations import Violation
    from moorage.usecases.paging import Page


@dataclass(frozen=True, slots=True)
class ViolationFilter:
    """Selects violations; None: whatever it is."""

    project_id: str | None = None
    ensembles: frozenset[str] | None = None
    types: frozenset[str] = frozenset()
    """Policy types and conditions of members; empty: all."""
    required: bool | None = None
    open: bool | None = True
    """Whether it lasts."""
    since: Instant | None = None
    """Those that last or ended after it."""


@dataclass(frozen=True, slots=True)
class WrittenEnsemble:
    """An ensemble, and what is known of its last change."""

    ensemble: Ensemble
    unjudged: bool
    """Whether it has changed since it was judged."""
    actor: Actor
    """Who changed it last."""


class ComplianceRecords(Protocol):
    """Violations, and the ensembles as their judgement needs them."""

    def page(self, wanted: ViolationFilter, page: Page) -> Sequence[Violation]:
        """Violations, newest first."""

    def violation(self, id_: str) -> Violation:
        """One violation. NotFound."""

    def open_of(self, ensembles: Collection[str]) -> Mapping[str, Sequence[Violation]]:
        """Ensemble -> its open violations, oldest first; ensembles without any are left out."""

    def broken(self, ensembles: Collection[str]) -> Mapping[str, int]:
        """Ensemble -> number of its open required violations, those out of service among them."""

    def counts(self) -> Mapping[tuple[str, bool], int]:
        """Type, and whether it is required -> number of open violations of the ledger."""

    def unjudged(self, most: int) -> Sequence[tuple[str, int]]:
        """Ensembles that have changed since they were judged, by creation: ids and generations."""

    def every_ensemble(self) -> Sequence[str]:
        """Ids of all ensembles, by creation, without the copies that hold places of offers."""

    def projects_of(self, ids: Collection[str]) -> Mapping[str, str]:
        """Ensemble -> its project, of those that exist."""

    def ensembles_of(self, servers: Iterable[str], decisions: Iterable[str]) -> frozenset[str]:
        """Ids of the ensembles that have any of these servers, or were decided by any of these."""

    def referring(self, ensembles: Iterable[str]) -> frozenset[str]:
        """Ids of the ensembles whose policies refer to any of these."""

    def ensembles_by_id(self, ids: Collection[str]) -> Sequence[WrittenEnsemble]:
        """Those of the ensembles that exist, by creation, with what their policies refer to."""

    def told_hosts(self) -> Mapping[str, ToldHost]:
        """Host -> what the last event said of it, of those that it did not say are open."""

    def topology_actor(self) -> Actor:
        """Who wrote the topology last."""
