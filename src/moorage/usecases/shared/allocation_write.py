"""A request that writes allocations, and the rules by which such requests are treated.

A rule says which writes concern it and what they become. `usecases.ledger.allocation_rules` has
them in their order; a write that concerns none of them enters none of their modules.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, TypeAlias

from moorage.domain.changes import Changeset, Committed
from moorage.domain.ensembles import OnViolation
from moorage.domain.period import MINUTE

if TYPE_CHECKING:
    from collections.abc import Mapping

    from moorage.domain.changes import Change, ReplaceAllocations
    from moorage.domain.period import Duration
    from moorage.engine.state.snapshot import Snapshot
    from moorage.usecases.ports import Ids, Store

_PREFIX: Final = "req-"
"""How the ids of OpenStack's requests begin."""


@dataclass(frozen=True, slots=True)
class Lifetimes:
    """Lifetimes of consumers that declare none, and the notice of preemptible ones."""

    default: Duration | None = None
    """For projects that are not in `projects`; None: for ever."""
    projects: Mapping[str, Duration | None] = field(default_factory=lambda: MappingProxyType({}))
    notice: Duration = 5 * MINUTE

    def of(self, project_id: str) -> Duration | None:
        """The lifetime of a project's consumers; None: for ever."""
        return self.projects.get(project_id, self.default)


@dataclass(frozen=True, slots=True)
class WriteSettings:
    """Settings by which writes of allocations are judged."""

    lifetimes: Lifetimes = field(default_factory=Lifetimes)
    """Default lifetimes of consumers without a declared end."""
    refuse_spent: bool = False
    """Whether a new server is refused that presents a claim which is over."""
    misplaced_members: OnViolation = OnViolation.REFUSE
    """What becomes of a member's move that breaks required policies."""
    foreign_servers: OnViolation = OnViolation.REPORT
    """What becomes of a server on a host that an `exclusive` policy keeps from it."""
    build_retries: int = 0
    """How many other hosts are candidates of a presented claim."""


@dataclass(frozen=True, slots=True)
class AllocationWrite:
    """A request that replaces the allocations of consumers."""

    store: Store
    ids: Ids
    settings: WriteSettings
    writes: tuple[ReplaceAllocations, ...]
    virtual: bool = False
    """Whether a write has virtual resource classes."""
    request_id: str | None = None
    """The id of the request that the client itself serves; it may present a claim."""
    of_member: bool = False
    """Whether a consumer is known to be a member's server: the commit of a write tells that."""
    further: tuple[Change, ...] = ()
    """Changes to commit with the writes."""


Rest: TypeAlias = Callable[[AllocationWrite], Committed]
"""What follows a rule: the other rules, and the commit."""


@dataclass(frozen=True, slots=True)
class WriteRule:
    """A rule that changes what is written, or commits it itself."""

    concerns: Callable[[AllocationWrite], bool]
    apply: Callable[[AllocationWrite, Rest], Committed]


@dataclass(frozen=True, slots=True)
class CommitRule:
    """A rule that judges writes, and adds what is to be committed with them.

    It is applied again in each attempt, on what the ledger is then.
    """

    concerns: Callable[[AllocationWrite, Snapshot], bool]
    """By a snapshot that this process has read, which is as new as the attempt after a conflict."""
    apply: Callable[[AllocationWrite, Changeset], Changeset]


def named_by_request(request_id: str) -> str:
    """The claim or server that the id of a request names: `req-` and its UUID."""
    return request_id.lower().removeprefix(_PREFIX)
