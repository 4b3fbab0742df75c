"""Server providers follow their servers; when they end, everybody is told and nothing is left."""

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.domain.changes import Changeset, DeleteAllocations, ReplaceAllocations
from moorage.domain.consumers import ANY_GENERATION, Consumer
from moorage.domain.events import BEGINNING, EVERYTHING
from moorage.domain.period import HOUR, MINUTE
from moorage.engine.state.server_locations import NOWHERE, host_of
from moorage.testing.service import OPERATOR, TENANT, Service
from moorage.usecases.server_providers.change import ServerOffer, put_server_provider
from moorage.usecases.server_providers.end import delete_server_provider
from moorage.usecases.server_providers.lifecycle import ServerProviderSweeper

SERVER, SLICE, DEEP = (f"{digit * 8}-0000-4000-8000-000000000000" for digit in "abc")
SESSIONS = {"CUSTOM_SESSION": 100}


class World:
    """Ann's server offers sessions; the other consumers are of a project each."""

    def __init__(self, fleet: str) -> None:
        self.service = Service(fleet)
        self.sweeper = ServerProviderSweeper(self.service.env)
        self.stand(SERVER, "h1", project=TENANT.project_id)
        self.provider = self.offer(SERVER)

    def offer(self, server: str) -> str:
        offer = ServerOffer(SESSIONS)
        return put_server_provider(self.service.env, OPERATOR, server, offer).record.id

    def stand(self, consumer: str, *providers: str, project: str | None = None) -> None:
        snapshot = self.service.store.snapshot()
        rows = {name: snapshot.uuids[row] for row, name in enumerate(snapshot.names)}
        amounts = {
            rows.get(one, one): {"VCPU" if one in rows else "CUSTOM_SESSION": 1}
            for one in providers
        }
        who = Consumer(consumer, project or f"of {consumer[0]}", "user", "INSTANCE")
        change = ReplaceAllocations(who, amounts, ANY_GENERATION)
        self.service.store.commit(Changeset((change,)))

    def leave(self, consumer: str) -> None:
        self.service.store.commit(Changeset((DeleteAllocations(consumer),)))

    def where(self, provider: str) -> str | None:
        snapshot = self.service.store.snapshot()
        row = host_of(snapshot, snapshot.row(provider))
        return None if row == NOWHERE else snapshot.names[row]

    def told(self) -> list[tuple[str, str]]:
        page = self.service.store.event_log.page(None, BEGINNING, EVERYTHING, 1000)
        return [
            (one.type.removeprefix("server_provider."), one.subject)
            for one in page.events
            if one.type.startswith(("server_provider.", "slice."))
        ]


@pytest.fixture
def world(three_racks: str) -> Iterator[World]:
    made = World(three_racks)
    yield made
    made.service.close()


def test_moves_are_told_once_and_the_first_place_is_none(world: World) -> None:
    for host in ("h1", "h2", "h2", "h5"):
        world.stand(SERVER, host, project=TENANT.project_id)
        world.sweeper.run_round()
        world.sweeper.run_round()
    assert world.told() == [("moved", world.provider)] * 2


def test_between_two_hosts_it_is_neither_moved_nor_suspended(world: World) -> None:
    """As in an evacuation, until the old host is back."""
    world.sweeper.run_round()
    world.stand(SERVER, "h1", "h2", project=TENANT.project_id)
    world.sweeper.run_round()
    world.service.clock.pass_by(3 * HOUR)
    world.sweeper.run_round()
    assert world.told() == []
    world.stand(SERVER, "h2", project=TENANT.project_id)
    world.sweeper.run_round()
    assert world.told() == [("moved", world.provider)]


def test_a_shelved_server_is_suspended_and_resumes(world: World) -> None:
    world.stand(SLICE, world.provider)
    world.sweeper.run_round()
    world.leave(SERVER)
    world.sweeper.run_round()
    world.service.clock.pass_by(59 * MINUTE)
    world.sweeper.run_round()
    world.stand(SERVER, "h4", project=TENANT.project_id)
    world.sweeper.run_round()
    world.service.clock.pass_by(2 * HOUR)
    world.sweeper.run_round()
    assert world.told() == [("suspended", world.provider), ("resumed", world.provider)]
    assert world.service.store.consumer(SLICE) is not None


def test_without_a_server_all_ends_level_by_level(world: World) -> None:
    world.stand(SLICE, world.provider)
    deeper = world.offer(SLICE)
    world.stand(DEEP, deeper)
    assert world.where(deeper) == "h1"
    world.sweeper.run_round()
    world.leave(SERVER)
    for _ in range(3):
        world.sweeper.run_round()
        world.service.clock.pass_by(HOUR)
    world.sweeper.run_round()
    assert world.told() == [
        ("suspended", world.provider),
        ("slice.lost", SLICE),
        ("ended", world.provider),
        ("suspended", deeper),
        ("slice.lost", DEEP),
        ("ended", deeper),
    ]
    assert world.service.store.server_providers() == []
    assert world.service.store.idle_consumers() == []


def test_two_workers_tell_it_once(world: World) -> None:
    other = ServerProviderSweeper(world.service.env)
    world.leave(SERVER)
    for sweeper in (world.sweeper, other, world.sweeper, other):
        sweeper.run_round()
    assert world.told() == [("suspended", world.provider)]


def test_a_quiet_ledger_is_not_read(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.sweeper.run_round()
    world.sweeper.run_round()
    monkeypatch.setattr(world.service.store, "server_providers", None)
    world.sweeper.run_round()


hosts = st.sampled_from(["h1", "h2", "h3"])
steps = st.one_of(
    st.tuples(st.just("move"), hosts),
    st.tuples(st.just("take"), st.sampled_from("123")),
    st.tuples(st.just("drop"), st.sampled_from("123")),
)


@given(st.lists(steps, max_size=12))
def test_moves_keep_every_slice_and_its_end_tells_all(
    three_racks: str, done: list[tuple[str, Any]]
) -> None:
    world = World(three_racks)
    host, there = "h1", set[str]()
    try:
        for what, which in done:
            if what == "move":
                host = which
                world.stand(SERVER, host, project=TENANT.project_id)
            elif what == "take":
                there.add(which * 8 + SLICE[8:])
                world.stand(which * 8 + SLICE[8:], world.provider)
            elif which * 8 + SLICE[8:] in there:
                there.discard(which * 8 + SLICE[8:])
                world.leave(which * 8 + SLICE[8:])
            world.sweeper.run_round()
            assert world.where(world.provider) == host
            found = world.service.store.bookings(provider=world.provider)
            assert {who.uuid for who, _ in found} == there
        delete_server_provider(world.service.env, TENANT, SERVER, force=True)
        lost = {subject for type_, subject in world.told() if type_ == "slice.lost"}
        assert lost == there
        assert all(world.service.store.consumer(one) is None for one in there)
    finally:
        world.service.close()
