"""The environment of a joint decision: the base, and the strategies that make room.

A request is first searched for with all other bookings unchanged. If that finds nothing, each
strategy (`RoomMaker`) is tried in order, those that cost others least first, and the first
placement is taken. What leases or servers give up is a `Concession`: a decision writes its changes
and relies on its providers, without knowing its kind.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from moorage.usecases.shared.environment import Environment

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from moorage.domain.changes import Change
    from moorage.domain.decisions import Decision
    from moorage.domain.ensembles import Ensemble
    from moorage.domain.errors import Infeasible, Undecided
    from moorage.domain.member_names import MemberName
    from moorage.usecases.decide.decision import DecisionBasis
    from moorage.usecases.decide.request import Proposal, RequestIdentity
    from moorage.usecases.decide.search import SearchContext
    from moorage.usecases.decide.search_queue import SearchQueue
    from moorage.usecases.decide.search_result import Observation, SearchResult
    from moorage.usecases.decide.solution import DecisionOptions


class RoomMaker(Protocol):
    """A strategy that makes room for requests that do not fit."""

    @property
    def concedes(self) -> bool:
        """Whether other leases or servers may have to give something up."""

    @property
    def name(self) -> str:
        """What it does, as records of decisions say."""

    def attempts(
        self, context: SearchContext, observation: Observation, refused: Sequence[SearchResult]
    ) -> Iterator[SearchResult]:
        """The results of the strategy's searches; none if it does not apply to the request.

        `refused` are the failed searches without any strategy.

        Raises:
            Busy: time ran out before an answer or a proof.
        """


class RestoresEnds(Protocol):
    """Restores the ends of displaced consumers whose displacement a decision makes needless."""

    def __call__(
        self, env: DecideEnvironment, proposal: Proposal, decision: Decision, answer: DecisionBasis
    ) -> Iterator[Change]:
        """The changes that restore the ends; they are the last of the changeset."""


class ExplainsRefusal(Protocol):
    """Makes the error of a request that no strategy can place."""

    def __call__(
        self,
        env: DecideEnvironment,
        proposal: Proposal,
        options: DecisionOptions,
        identity: RequestIdentity,
        result: SearchResult,
        observation: Observation,
    ) -> Infeasible:
        """The error, with the reasons; they are stored if a client may read them later."""


class CountsMoves(Protocol):
    """Counts the moves of other servers that make room for members of an ensemble."""

    def __call__(
        self, env: DecideEnvironment, ensemble: Ensemble, members: frozenset[MemberName]
    ) -> int | None:
        """How many moves a plan has that makes room; None: no such plan was found.

        Raises:
            TimeExpired: time ran out.
        """


class TellsUndecided(Protocol):
    """Makes the error of a request whose time ran out before a placement or a proof."""

    def __call__(
        self,
        env: DecideEnvironment,
        proposal: Proposal,
        unsolved: SearchResult | None,
    ) -> Undecided:
        """The error, with an explanation; `unsolved` is its problem, if it was stated."""


@dataclass(frozen=True, slots=True)
class Strategies:
    """The strategies of a process for requests that do not fit by themselves."""

    room_makers: tuple[RoomMaker, ...]
    """In the order in which they are tried: those that cost others least come first."""
    restore: RestoresEnds
    explain: ExplainsRefusal
    undecided: TellsUndecided
    count_moves: CountsMoves


@dataclass(frozen=True, slots=True)
class DecideEnvironment(Environment):
    """The ports and bounds of one process, with the strategies of its decisions."""

    strategies: Strategies
    searches: SearchQueue
    """The order of the searches of this process."""
