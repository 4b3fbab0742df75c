"""A newcomer's claim in few steps writes, and says, what the general way would."""

from __future__ import annotations

import random
from contextlib import ExitStack, closing
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import pytest
from sqlalchemy import create_engine, select

from moorage.domain.bookings import Booking, BookingState
from moorage.domain.capacity_windows import CapacityWindow, WindowKind
from moorage.domain.changes import (
    Changeset,
    CreateProvider,
    DeleteAllocations,
    PutBookings,
    PutCapacityWindow,
    PutInventories,
    ReplaceAllocations,
    Stay,
)
from moorage.domain.consumers import ANY_GENERATION, Consumer
from moorage.domain.errors import MoorageError
from moorage.domain.period import FOREVER, Period
from moorage.domain.providers import Inventory
from moorage.store import Ledger, newcomer, open_store, tables
from moorage.store import commit as commit_module
from moorage.store.judge import EARLIER
from moorage.testing.statements import said

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from moorage.domain.changes import Change, Committed

PROVIDERS = tuple(f"{number:08d}-aaaa-4aaa-8aaa-aaaaaaaaaaaa" for number in range(4))
CONSUMERS = tuple(f"{number:08d}-cccc-4ccc-8ccc-cccccccccccc" for number in range(400))
NOWHERE = "99999999-aaaa-4aaa-8aaa-aaaaaaaaaaaa"


TICK: Final = EARLIER // 1_000
"""Microseconds. A thousand of them are what a question asked beforehand may be wrong by."""


class Clock:
    """Goes on when the test says so."""

    instant = 10_000 * TICK

    def now(self) -> int:
        return self.instant


class Ways:
    """Lets commits take the few steps, or only the general way; counts those that took few."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.short = True
        self.taken = 0
        look, settle = newcomer.newcomer_in, newcomer.settle_newcomer

        def looking(changeset: Changeset) -> ReplaceAllocations | None:
            return look(changeset) if self.short else None

        def settling(*given: Any) -> Any:
            found = settle(*given)
            self.taken += found is not None
            return found

        monkeypatch.setattr(commit_module, "newcomer_in", looking)
        monkeypatch.setattr(commit_module, "settle_newcomer", settling)


@pytest.fixture
def ways(monkeypatch: pytest.MonkeyPatch) -> Ways:
    return Ways(monkeypatch)


def fleet() -> Changeset:
    """Three hosts with rules of every kind, and one that has nothing."""
    rules: Sequence[Any] = (
        {"total": 10, "reserved": 1, "allocation_ratio": 1.5},
        {"total": 14, "min_unit": 2, "max_unit": 6, "step_size": 2},
        {"total": 11},
    )
    changes: list[Change] = [CreateProvider(uuid, uuid) for uuid in PROVIDERS]
    for uuid, rule in zip(PROVIDERS, rules, strict=False):
        stocks = (Inventory("VCPU", **rule), Inventory("MEMORY_MB", 15, min_unit=0))
        changes.append(PutInventories(uuid, stocks, 0))
    return Changeset(tuple(changes))


def drawn(dice: random.Random, now: int, came: Sequence[str]) -> Change:
    """Mostly a claim of somebody new; and what else may come between. `came` are there perhaps."""
    who, where = dice.choice(CONSUMERS), dice.choice(PROVIDERS[:3])
    match dice.choice(["claim"] * 28 + ["hold"] * 4 + ["gone"] * 16 + ["window"]):
        case "claim":
            return claim(dice, who, now)
        case "hold":
            start = now + dice.choice([0, 500]) * TICK
            end = dice.choice([start + dice.choice([700, 3_000]) * TICK, FOREVER])
            booking = Booking(
                *(who, where, {"VCPU": dice.choice([1, 2])}, Period(start, end)),
                state=BookingState.HELD,
                lapses_at=dice.choice([now + 900 * TICK, FOREVER]),
            )
            return PutBookings(Consumer(who, "project", "user"), (booking,))
        case "gone":
            return DeleteAllocations(dice.choice([*came[-20:], who]))
    period = Period(now + 300 * TICK, now + 800 * TICK)
    reason = WindowKind.MAINTENANCE
    return PutCapacityWindow(CapacityWindow(str(dice.random()), reason, (where,), period))


def claim(dice: random.Random, who: str, now: int) -> ReplaceAllocations:
    some = dice.sample(
        [*PROVIDERS[:3]] * 20 + [PROVIDERS[3], NOWHERE], dice.choice([1, 1, 1, 2, 0])
    )
    classes = ["VCPU", "MEMORY_MB"] * 20 + ["DISK_GB", "CUSTOM_NOBODY_KNOWS"]
    allocations = {
        uuid: {name: dice.choice([1, 2, 2, 2, 2, 3, 7, 0]) for name in dice.sample(classes, 2)}
        for uuid in some
    }
    if some and dice.random() < 0.05:
        allocations[some[0]] = {}
    more: Any = dice.choice(
        [{}] * 20
        + [{"until": now + 300 * TICK}] * 4
        + [
            {"stay": Stay(life=4_000 * TICK)},
            {"stay": Stay(priority=3)},
        ]
    )
    generation: Any = dice.choice([None] * 6 + [ANY_GENERATION, 1, 2])
    consumer = Consumer(who, dice.choice(["project", "other"]), "user", dice.choice([None, "A"]))
    return ReplaceAllocations(consumer, allocations, generation, **more)


def done(store: Ledger, changeset: Changeset) -> Committed | str:
    """What a commit came to, or why it was refused."""
    try:
        return store.commit(changeset)
    except MoorageError as error:
        return repr(error)


MACHINES: Final = {
    *(("changes", "at"), ("changes", "revision")),
    *(("bookings", "number"), ("capacity_windows", "number")),
}
"""Instants of the machine, and numbers that others take as well: at the server, or here before."""


DRIVERS: Final = {
    "sqlite": "sqlite",
    "postgresql": "postgresql+psycopg",
    **dict.fromkeys(("mysql", "mariadb"), "mariadb+pymysql"),
}


OTHERWISE: Final = {"ledger", "events", "traits", "resource_classes"}
"""Tables that no claim writes to, with numbers and instants of their own."""


def contents(url: str) -> dict[str, list[tuple[Any, ...]]]:
    """Every table, but for what no two ledgers have alike."""
    found: dict[str, list[tuple[Any, ...]]] = {}
    kind, rest = url.split("://", 1)
    engine = create_engine(f"{DRIVERS[kind]}://{rest}")
    with engine.connect() as connection:
        for table in tables.metadata.sorted_tables:
            if table.name in OTHERWISE:
                continue
            columns = [one for one in table.columns if (table.name, one.name) not in MACHINES]
            rows = connection.execute(select(*columns)) if columns else ()
            found[table.name] = sorted((tuple(row) for row in rows), key=repr)
    engine.dispose()
    return found


def walk(seed: int, urls: Sequence[str], ways: Ways, steps: int) -> None:
    """The same walk on two ledgers, each on its way."""
    dice, clock = random.Random(seed), Clock()
    with ExitStack() as stack:
        stores = [stack.enter_context(closing(open_store(url, clock=clock))) for url in urls]
        for store in stores:
            store.commit(fleet())
        came: list[str] = []
        for number in range(steps):
            change = drawn(dice, clock.instant, came)
            changeset = Changeset((change,))
            answers = []
            for ways.short, store in zip((True, False), stores, strict=True):
                found = done(store, changeset)
                answers.append(found if urls[0].startswith("sqlite") else told(found))
            assert answers[0] == answers[1], (number, changeset)
            if isinstance(change, ReplaceAllocations) and not isinstance(answers[0], str):
                came.append(change.consumer.uuid)
            elif isinstance(change, DeleteAllocations) and change.consumer in came:
                came.remove(change.consumer)
            clock.instant += dice.choice([0, 1, 1, 40, 200]) * TICK
            if number % 25 == 0:
                one, other = (states(store.snapshot()) for store in stores)
                assert one == other
    assert contents(urls[0]) == contents(urls[1])
    assert ways.taken > 20


def told(found: Committed | str) -> Committed | str:
    """But for the number, which on a server is the transaction's."""
    return found if isinstance(found, str) else replace(found, revision=0)


@pytest.mark.parametrize("seed", range(6))
def test_both_ways_write_and_say_the_same(seed: int, tmp_path: Path, ways: Ways) -> None:
    walk(seed, [f"sqlite:///{tmp_path / name}" for name in ("short", "general")], ways, 300)


@pytest.mark.parametrize("server", ["postgres", "mariadb"])
def test_both_ways_do_so_at_a_server(
    server: str, request: pytest.FixtureRequest, ways: Ways
) -> None:
    databases = request.getfixturevalue(f"{server}_databases")
    urls = [databases.migrated(), databases.migrated()]
    try:
        walk(8, urls, ways, 300)
    finally:
        for url in urls:
            databases.release(url)


def states(snapshot: Any) -> dict[str, object]:
    return {uuid: snapshot.state(row) for uuid, row in snapshot.row_of.items()}


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Ledger]:
    with closing(open_store(f"sqlite:///{tmp_path}/ledger")) as opened:
        opened.commit(fleet())
        yield opened


def put(amounts: dict[str, int], **more: Any) -> Changeset:
    consumer = Consumer(CONSUMERS[0], "project", "user", "INSTANCE")
    write = ReplaceAllocations(consumer, {PROVIDERS[0]: amounts}, None)
    return Changeset((write,), **more)


def test_a_plain_claim_takes_few_steps_and_its_repeat_is_told_the_conflict(
    store: Ledger, ways: Ways
) -> None:
    with said() as sent:
        first = store.commit(put({"VCPU": 3, "MEMORY_MB": 2}))
    assert len(sent) == 7, sent
    assert ways.taken == 1
    assert first.provider_generations == {PROVIDERS[0]: 2}
    assert first.consumer_generations == {CONSUMERS[0]: 1}
    assert "ConsumerConflict" in str(done(store, put({"VCPU": 3})))
    assert ways.taken == 1


def test_what_relies_on_anything_goes_the_general_way(store: Ledger, ways: Ways) -> None:
    assert "ProviderConflict" in str(done(store, put({"VCPU": 1}, relies_on={PROVIDERS[0]: 99})))
    assert "ProviderConflict" in str(done(store, put({"VCPU": 1}, topology_revision=99)))
    assert "ProviderConflict" in str(done(store, put({"VCPU": 1}, keepers_revision=99)))
    assert ways.taken == 0
