"""The strategies of a decision: handed in, asked in their order, and known by no decision."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

import pytest
from tests.usecases.leases.conftest import World

from moorage.domain.errors import Infeasible
from moorage.usecases.decide.environment import RoomMaker
from moorage.usecases.decide.search import SearchContext
from moorage.usecases.decide.search_plan import PlaceUnaided
from moorage.usecases.decide.search_result import Observation, SearchResult
from moorage.usecases.preemption.displacement import EndPreemptible
from moorage.usecases.preemption.lease_preemption import PreemptLeases
from moorage.usecases.preemption.short_stay import ShortenStay
from moorage.usecases.relocation.moved_leases import MoveLeases, MoveLeasesAndEndPreemptible

Make = Callable[..., World]


@dataclass
class Counted:
    """A strategy, with the number of plain problems that it was handed each time."""

    strategy: RoomMaker
    refused: list[int] = field(default_factory=list)

    @property
    def concedes(self) -> bool:
        return self.strategy.concedes

    @property
    def name(self) -> str:
        return self.strategy.name

    def attempts(
        self, context: SearchContext, observation: Observation, refused: Sequence[SearchResult]
    ) -> Iterator[SearchResult]:
        self.refused.append(len(refused))
        return self.strategy.attempts(context, observation, refused)


def with_strategies(here: World, *makers: RoomMaker) -> World:
    """The world in which decisions have these strategies."""
    env = here.service.env
    here.service.env = replace(env, strategies=replace(env.strategies, room_makers=makers))
    return here


def test_the_service_is_given_those_first_that_cost_others_least(world: Make) -> None:
    makers = world(16).service.env.strategies.room_makers
    assert [type(one) for one in makers] == [
        PlaceUnaided,
        EndPreemptible,
        ShortenStay,
        MoveLeases,
        MoveLeasesAndEndPreemptible,
        PreemptLeases,
    ]


def test_without_strategies_nobody_gives_way(world: Make) -> None:
    here = with_strategies(world(16), PlaceUnaided())
    server = here.server(10, preemptible=True)
    with pytest.raises(Infeasible):
        here.lease(1, 2, vcpu=16)
    with_strategies(here, PlaceUnaided(), EndPreemptible())
    assert [one.consumer for one in here.lease(1, 2, vcpu=16).displaced] == [server]


def test_a_strategy_is_asked_only_where_those_before_it_give_nothing(world: Make) -> None:
    here = world(16)
    first, second = Counted(EndPreemptible()), Counted(MoveLeases())
    with_strategies(here, PlaceUnaided(), first, second)
    here.server(10, preemptible=True)
    here.lease(1, 2, vcpu=6)
    assert (first.refused, second.refused) == ([], [])
    here.lease(3, 4, vcpu=16)
    assert (first.refused, second.refused) == ([1], [])


def test_what_several_give_up_is_written_in_one_decision(world: Make) -> None:
    """A lease moves for another, and a preemptible server ends where it goes."""
    here = world(16, 8)
    there = here.lease(2, 3, vcpu=8, emptiest=True)
    assert here.host_of(there) == here.hosts[0]
    server = here.server(8, 1, preemptible=True)
    here.server(8, 0, until=2)
    made = here.lease(2, 3, vcpu=16)
    assert here.host_of(made) == here.hosts[0]
    moved = here.service.store.decision(there.lease.decision_id)
    assert {place.host for place in moved.places.values()} == {here.hosts[1]}
    assert here.booking(server).yields_to in {there.lease.id, made.lease.id}
