"""What is said of a provider for the first time: one round trip, and the same as any commit."""

from __future__ import annotations

import random
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
from sqlalchemy import make_url
from tests.servers.proxy import Proxy

from moorage.domain.changes import (
    Changeset,
    CreateProvider,
    CreateTrait,
    DeleteProvider,
    DeleteTrait,
    PutAggregates,
    PutInventories,
    PutTraits,
)
from moorage.domain.errors import ConcurrentUpdate, DuplicateName, MoorageError
from moorage.domain.happened import TELLING
from moorage.domain.providers import Inventory
from moorage.store import Ledger, first, open_store, tables, visible
from moorage.store.commit import commit
from moorage.store.postgres import PostgresBackend
from moorage.store.watch import Unwatched

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from tests.servers.postgres import Databases

    from moorage.domain.changes import Change, Committed
    from moorage.store.footprint import Footprint
    from moorage.store.session import Question, Rows, Session

A, B, C = (f"{number:08d}-aaaa-4aaa-8aaa-aaaaaaaaaaaa" for number in range(3))
AVX, SSE = "HW_CPU_X86_AVX", "HW_CPU_X86_SSE"


class CountingBackend(PostgresBackend):
    """Counts its transactions that take several round trips."""

    writes = 0

    def write(self, work: Callable[[Session], Any]) -> Any:
        self.writes += 1
        return super().write(work)


class OrdinaryBackend(PostgresBackend):
    """Gains nothing by one round trip."""

    def at_once(
        self, touches: Callable[[], Footprint], writes: Callable[[], Question]
    ) -> Rows | None:
        del touches, writes
        return None


@contextmanager
def opened(url: str, kind: type[PostgresBackend] = CountingBackend) -> Iterator[Ledger]:
    with closing(Ledger(kind(make_url(url)), None)) as store:
        yield store


@pytest.fixture
def store(postgres_url: str) -> Iterator[Ledger]:
    with opened(postgres_url) as one:
        yield one


@pytest.fixture
def ordinary_url(postgres_databases: Databases) -> Iterator[str]:
    url = postgres_databases.migrated()
    yield url
    postgres_databases.release(url)


def writes(store: Ledger) -> int:
    return int(store._backend.writes)  # type: ignore[attr-defined]


def stock(uuid: str, generation: int | None = 0, *names: str) -> PutInventories:
    inventories = tuple(
        Inventory(name, 8, reserved=1, max_unit=4, step_size=2, allocation_ratio=1.5)
        for name in names or ("VCPU", "MEMORY_MB")
    )
    return PutInventories(uuid, inventories, generation, replace_all=True)


def traits(uuid: str, generation: int | None, *names: str) -> PutTraits:
    return PutTraits(uuid, frozenset(names or (AVX, SSE)), generation)


def aggregates(uuid: str, generation: int | None, *names: str) -> PutAggregates:
    return PutAggregates(uuid, frozenset(names or (B, C)), generation)


DESCRIPTION: tuple[Change, ...] = (
    *(CreateProvider(A, "a"), stock(A, 0)),
    *(traits(A, 1), aggregates(A, 2)),
)


def done(store: Ledger, change: Change) -> Committed | str:
    """What a commit came to, or why it was refused."""
    try:
        return store.commit(Changeset((change,)))
    except MoorageError as error:
        return repr(error)


class Marks:
    """Numbers and instants of one ledger's commits, by which commit they are of."""

    def __init__(self) -> None:
        self._of: dict[int, str] = {}
        self._next = 0

    def of(self, found: Committed | str) -> Committed | str:
        if isinstance(found, str):
            return found
        self._next += 1
        self._of[found.revision] = f"number {self._next}"
        self._of[found.at] = f"instant {self._next}"
        marks: dict[str, Any] = {
            name: self.named(getattr(found, name)) for name in ("revision", "at", "traits_at")
        }
        return replace(found, **marks)

    def named(self, value: int | None) -> str | None:
        return None if value is None else self._of.get(value, "before")


INSTANTS = {"at", "created_at", "updated_at", "events_start_at"}


def contents(url: str, marks: Marks) -> dict[str, list[tuple[Any, ...]]]:
    """Every table, with numbers and instants by the commits that they are of."""
    found: dict[str, list[tuple[Any, ...]]] = {}
    with psycopg.connect(url) as connection:
        for table in tables.metadata.sorted_tables:
            dated = {
                place
                for place, column in enumerate(table.columns)
                if column.name in INSTANTS or (table.name, column.name) == ("changes", "revision")
            }
            columns = ", ".join(column.name for column in table.columns)
            every = connection.execute(f"SELECT {columns} FROM {table.name}").fetchall()
            found[table.name] = sorted(
                (
                    tuple(
                        marks.named(value) if place in dated else value
                        for place, value in enumerate(row)
                    )
                    for row in every
                ),
                key=repr,
            )
    return found


def drawn(dice: random.Random, generations: dict[str, int]) -> Change:
    """Something that is said of one of a few providers, mostly for the first time."""
    uuids = [f"{number:08d}-cccc-4ccc-8ccc-cccccccccccc" for number in range(60)]
    uuid = dice.choice(uuids)
    known = generations.get(uuid, 0)
    generation = dice.choice([known] * 12 + [None, known + 1, 0, 1, 2])
    match dice.choice(["create"] * 3 + ["stock", "traits", "aggregates"] * 4 + ["delete", "trait"]):
        case "create":
            parent = dice.choice([None, None, dice.choice(uuids)])
            return CreateProvider(uuid, dice.choice([uuid, uuid, "one name"]), parent)
        case "stock":
            classes = dice.choices(["VCPU", "MEMORY_MB", "DISK_GB", "VGPU", "PCPU"], k=3)
            names = classes if dice.random() < 0.1 else sorted(set(classes))
            if dice.random() < 0.1:
                names = ["CUSTOM_NOWHERE"]
            change = stock(uuid, generation, *names)
            only: list[dict[str, Any]] = [{"create": True}, {"update": True}, {"inventories": ()}]
            how = dice.choice([{}] * 8 + only)
            return replace(change, replace_all=dice.random() < 0.8, **how)
        case "traits":
            every = [AVX, SSE, "HW_NIC_SRIOV", "STORAGE_DISK_SSD", "CUSTOM_A", "CUSTOM_B"]
            return PutTraits(uuid, frozenset(dice.sample(every, dice.randrange(4))), generation)
        case "aggregates":
            named = frozenset(dice.sample(uuids, dice.randrange(3)))
            return PutAggregates(uuid, named, generation)
        case "delete":
            return DeleteProvider(uuid)
    custom = CreateTrait("CUSTOM_A"), CreateTrait("CUSTOM_B"), DeleteTrait("CUSTOM_A")
    some: Change = dice.choice(custom)
    return some


@pytest.mark.parametrize("seed", range(3))
def test_one_round_trip_leaves_what_two_do(postgres_url: str, ordinary_url: str, seed: int) -> None:
    dice, generations = random.Random(seed), dict[str, int]()
    own, others, tried = Marks(), Marks(), 400
    with opened(postgres_url) as store, opened(ordinary_url, OrdinaryBackend) as ordinary:
        for _ in range(tried):
            change = drawn(dice, generations)
            answer = own.of(done(store, change))
            assert answer == others.of(done(ordinary, change)), change
            if not isinstance(answer, str):
                generations |= answer.provider_generations
            if isinstance(change, DeleteProvider) and not isinstance(answer, str):
                del generations[change.uuid]
        assert 0.1 * tried < writes(store) < 0.9 * tried, "both ways were gone"
    found = contents(postgres_url, own)
    assert found == contents(ordinary_url, others)
    assert all(found[one] for one in ("providers", "inventories", "provider_traits", "changes"))


def test_what_is_noted_as_this_processs_own_is_the_same(store: Ledger) -> None:
    backend = store._backend
    assert backend.at_once is not None
    for change in DESCRIPTION:
        committed, ended = first.commit_first(
            backend.at_once, Changeset((change,)), lambda: pytest.fail("it is not done at once")
        )
        assert (ended.mark, ended.added) == ((committed.revision, committed.at), {})
    changeset = Changeset((CreateProvider(B, "b"),))
    committed, ended = backend.write(lambda one: commit(one, changeset, log=backend.log))
    assert (ended.mark, ended.added) == ((committed.revision, committed.at), {})


class Onlooker(Unwatched):
    """Counts commits, done and refused."""

    def __init__(self) -> None:
        self.seen = 0

    def commit(self, work: Callable[[], Any]) -> Any:
        self.seen += 1
        return super().commit(work)


def test_who_looks_on_sees_each_commit_once(postgres_url: str) -> None:
    onlooker = Onlooker()
    with closing(Ledger(PostgresBackend(make_url(postgres_url)), None, onlooker)) as store:
        for expected, change in enumerate(DESCRIPTION, start=1):
            done(store, change)
            assert onlooker.seen == expected
        done(store, DESCRIPTION[0])
        assert onlooker.seen == len(DESCRIPTION) + 1


def test_nothing_that_is_bet_on_means_an_event() -> None:
    assert TELLING.isdisjoint(map(type, DESCRIPTION))


# --- bets that are lost -------------------------------------------------------------------------

LOST: dict[str, tuple[Sequence[Change], Change]] = {
    "inventories of another generation": ((), stock(B, 1)),
    "traits of another generation": ((), traits(B, 1)),
    "aggregates of another generation": ((), aggregates(B, 2)),
    "a trait that is not there": ((), traits(B, 0, AVX, "CUSTOM_NOWHERE")),
    "a class that is not there": ((), stock(B, 0, "CUSTOM_NOWHERE")),
    "inventories that are there": ((stock(B),), stock(B, 1, "DISK_GB")),
    "the same inventories": ((stock(B),), stock(B, 1)),
    "traits that are there": ((traits(B, 0, AVX),), traits(B, 1)),
    "the same traits": ((traits(B, 0),), traits(B, 1)),
    "aggregates that are there": ((aggregates(B, 0, A),), aggregates(B, 1)),
    "a uuid that is taken": ((), CreateProvider(B, "another")),
    "a name that is taken": ((), CreateProvider(A, "b")),
    "a parent that is not there": ((), CreateProvider(A, "a", C)),
    "its own parent": ((), CreateProvider(A, "a", A)),
    "inventories of nobody": ((), stock(C)),
    "traits of nobody": ((), traits(C, 0)),
    "aggregates of nobody": ((), aggregates(C, 0)),
    "a name that is too long": ((), CreateProvider(A, "a" * 200, C)),
}


@pytest.mark.parametrize("why", LOST)
def test_a_lost_bet_is_what_it_would_be_without(
    postgres_url: str, ordinary_url: str, why: str
) -> None:
    before, change = LOST[why]
    own, others = Marks(), Marks()
    with opened(postgres_url) as store, opened(ordinary_url, OrdinaryBackend) as ordinary:
        for one in (CreateProvider(B, "b"), *before):
            assert own.of(done(store, one)) == others.of(done(ordinary, one))
        assert writes(store) == 0, "no bet was lost up to here"
        assert own.of(done(store, change)) == others.of(done(ordinary, change))
        assert writes(store) == 1
    assert contents(postgres_url, own) == contents(ordinary_url, others)


# --- many at once -------------------------------------------------------------------------------


def test_of_many_who_say_the_same_one_is_heard(postgres_url: str) -> None:
    hosts = [f"{number:08d}-bbbb-4bbb-8bbb-bbbbbbbbbbbb" for number in range(25)]

    def describe(number: int) -> list[tuple[str, type]]:
        mine = []
        with opened(postgres_url) as store:
            for uuid in hosts:
                for change in (
                    CreateProvider(uuid, uuid),
                    stock(uuid, 0),
                    traits(uuid, 1),
                    aggregates(uuid, 2, str(number)),
                ):
                    try:
                        store.commit(Changeset((change,)))
                    except (DuplicateName, ConcurrentUpdate):
                        continue
                    mine.append((uuid, type(change)))
        return mine

    with ThreadPoolExecutor(8) as pool:
        every = [one for mine in pool.map(describe, range(8)) for one in mine]
    assert sorted(every, key=repr) == sorted(
        ((uuid, type(change)) for uuid in hosts for change in DESCRIPTION), key=repr
    )
    with opened(postgres_url) as store:
        for uuid in hosts:
            found = store.provider(uuid)
            assert (found.generation, found.revision) == (3, 4)
            assert len(found.inventories) == len(found.traits) == 2
            assert len(found.aggregates) == 1
    with psycopg.connect(postgres_url) as connection:
        logged = connection.execute("SELECT count(*) FROM changes GROUP BY subject").fetchall()
    assert logged == [(4,)] * len(hosts)


# --- who reads ----------------------------------------------------------------------------------


def test_who_reads_elsewhere_sees_what_was_acknowledged(postgres_url: str, store: Ledger) -> None:
    with opened(postgres_url) as elsewhere:
        snapshot = elsewhere.snapshot()
        for generation, change in enumerate(DESCRIPTION):
            store.commit(Changeset((change,)))
            snapshot = elsewhere.snapshot()
            assert int(snapshot.generation[snapshot.row(A)]) == generation
        assert int(snapshot.classes["VCPU"].total[0]) == 8
        assert elsewhere.provider(A).traits == {AVX, SSE}
    assert writes(store) == 0


def test_the_log_is_cut_in_its_turn(
    postgres_url: str, store: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(visible, "TRIM_EVERY", 5)
    monkeypatch.setattr(visible, "KEPT", 3)
    for number in range(30):
        store.commit(Changeset((CreateProvider(f"{number}", f"{number}"),)))
    with psycopg.connect(postgres_url) as connection:
        row = connection.execute("SELECT count(*) FROM changes").fetchone()
    assert row is not None
    assert row[0] < 10
    assert writes(store) == 5, "after each five one that is not done at once"


def test_one_round_trip_each(postgres_url: str) -> None:
    asked = []
    for backend in (PostgresBackend, OrdinaryBackend):
        with Proxy(make_url(postgres_url).port or 5432) as proxy:
            url = make_url(postgres_url).set(host="127.0.0.1", port=proxy.port)
            with opened(url.render_as_string(hide_password=False), backend) as store:
                for change in DESCRIPTION:
                    uuid = backend.__name__
                    told: Any = {"provider": uuid}
                    if isinstance(change, CreateProvider):
                        told = {"uuid": uuid, "name": uuid}
                    before = proxy.heard
                    store.commit(Changeset((replace(change, **told),)))
                    asked.append(proxy.heard - before)
    assert asked == [1] * 4 + [2] * 4


def test_a_clock_that_is_set_tells_the_instant(postgres_url: str) -> None:
    class Noon:
        def now(self) -> int:
            return 1_000

    store = open_store(postgres_url, clock=Noon())
    for change in DESCRIPTION:
        assert store.commit(Changeset((change,))).at == 1_000
    assert store.provider(A).updated_at == 1_000
    store.close()
