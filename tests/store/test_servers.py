"""PostgreSQL and MariaDB alike: whose clock counts; a log that is cut; a server away or killed."""

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from threading import Event, Thread
from types import ModuleType
from typing import Any, Final, Literal

import psycopg
import pytest
from sqlalchemy import make_url
from tests.servers import mariadb, postgres
from tests.servers.proxy import ON_MARIADB, ON_POSTGRESQL, Proxy
from tests.store.hosts import claim, host, loads, opened, said, used

from moorage.domain.errors import Busy, ConsumerConflict
from moorage.store import Ledger, open_store
from moorage.store.changelog import entries
from moorage.store.database import retry
from moorage.store.postgresql import log as postgresql_log


def ask_postgres(url: str, statement: str) -> tuple[Any, ...]:
    with psycopg.connect(url) as connection:
        return tuple(connection.execute(statement).fetchall())


def kill_a_backend(server: postgres.PostgresServer, url: str) -> None:
    """One backend killed: the server throws everybody out and recovers."""
    with psycopg.connect(url) as connection:
        victim = connection.execute(
            "SELECT pid FROM pg_stat_activity WHERE application_name = 'moorage'"
            " ORDER BY random() LIMIT 1"
        ).fetchone()
    assert victim is not None
    server.kill_a_backend(victim[0])
    server.wait()


def kill_connections(server: mariadb.MariadbServer, url: str) -> None:
    server.kill_connections(make_url(url).database, 3)


@dataclass(frozen=True)
class Kind:
    """What differs between the two."""

    name: str
    nowhere: str
    """The URL of a server that is not there."""
    port: int
    commit: bytes
    """How a COMMIT goes over the wire."""
    ask: Callable[[str, str], tuple[Any, ...]]
    """The rows that a statement finds in the database of a URL."""
    clock: str
    """The statement for the seconds that the server shows."""
    log: ModuleType
    """Where its log is cut."""
    disturb: Callable[[Any, str], None]
    """Kills some of what a server does for a URL's database."""


KINDS: Final = (
    Kind(
        "postgres",
        "postgresql://postgres@127.0.0.1:1/nowhere",
        5432,
        ON_POSTGRESQL,
        ask_postgres,
        "SELECT extract(epoch FROM clock_timestamp())",
        postgresql_log,
        kill_a_backend,
    ),
    Kind(
        "mariadb",
        "mariadb://root@127.0.0.1:1/nowhere",
        3306,
        ON_MARIADB,
        mariadb.ask,
        "SELECT UNIX_TIMESTAMP(NOW(6))",
        entries,
        kill_connections,
    ),
)
WRITERS: Final = 6


@pytest.fixture(params=KINDS, ids=lambda kind: kind.name)
def kind(request: pytest.FixtureRequest) -> Kind:
    found: Kind = request.param
    return found


@pytest.fixture
def url(kind: Kind, request: pytest.FixtureRequest) -> str:
    """A database of the test's own, up to date."""
    return str(request.getfixturevalue(f"{kind.name}_url"))


def test_a_server_that_is_not_there_is_waited_for_a_little(
    kind: Kind, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retry, "AWAY", 0.3)
    with pytest.raises(Busy, match="the database is away"):
        open_store(kind.nowhere)


def test_the_clock_is_the_databases(kind: Kind, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A replica whose own clock is hours off books and lapses like all others."""
    monkeypatch.setattr(time, "time_ns", lambda: 0)
    monkeypatch.setattr(time, "time", lambda: 0.0)
    with closing(open_store(url)) as store:
        ((seconds,),) = kind.ask(url, kind.clock)
        before = int(float(seconds) * 1e6)
        host(store, "a")
        at = store.commit(claim("c")).at
        assert before <= at <= store.now() < before + 200_000_000
        assert before <= store.snapshot().taken_at <= store.now()


def test_who_slept_longer_than_the_log_loads_everything(
    kind: Kind, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kind.log, "TRIM_EVERY", 5)
    monkeypatch.setattr(kind.log, "KEPT", 3)
    loaded = loads(monkeypatch)
    with opened(url) as store, opened(url) as sleeper:
        for name in "ab":
            host(store, name)
        sleeper.snapshot()
        for number in range(30):
            store.commit(claim(f"c{number}"))
        ((count, first),) = kind.ask(url, "SELECT count(*), min(revision) FROM changes")
        ((start,),) = kind.ask(url, "SELECT log_start FROM ledger")
        assert count < 20, "the log is cut"
        assert 0 < start < first, "where it says"
        assert start == first - 1 or kind.name == "postgres", "whose numbers have gaps"
        assert said(sleeper) == said(store)
        assert loaded == ["everything"] * 3
        store.commit(claim("after", "b"))
        assert said(sleeper) == said(store)
        assert loaded == ["everything"] * 3


# --- commits whose end nobody heard -------------------------------------------------------------


@pytest.fixture
def proxy(kind: Kind, url: str) -> Iterator[Proxy]:
    with Proxy(make_url(url).port or kind.port, kind.commit) as one:
        yield one


@pytest.fixture
def through(url: str, proxy: Proxy) -> Iterator[Ledger]:
    """A ledger behind the proxy."""
    behind = make_url(url).set(host="127.0.0.1", port=proxy.port)
    with closing(open_store(behind.render_as_string(hide_password=False))) as store:
        yield store


@pytest.mark.parametrize("cut", ["before", "after"])
def test_a_commit_cut_off_is_done_once_and_reported_as_done(
    through: Ledger, proxy: Proxy, cut: Literal["before", "after"]
) -> None:
    host(through, "a")
    proxy.cut = cut
    done = through.commit(claim("c"))
    assert proxy.cuts == 1
    assert done.consumer_generations == {"c": 1}
    assert used(through) == 1
    with pytest.raises(ConsumerConflict):
        through.commit(claim("c"))


def test_connections_that_break_between_requests_are_replaced(
    through: Ledger, proxy: Proxy
) -> None:
    host(through, "a")
    for number in range(5):
        proxy.hang_up()
        through.commit(claim(f"c{number}"))
        proxy.hang_up()
        assert used(through) == number + 1
        proxy.hang_up()
        assert through.now() > 0


def test_a_database_that_stays_away_is_busy_and_comes_back(
    through: Ledger, proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    host(through, "a")
    monkeypatch.setattr(retry, "AWAY", 0.3)
    proxy.deaf = True
    proxy.hang_up()
    for ask in (through.snapshot, through.traits, lambda: through.commit(claim("c")), through.now):
        with pytest.raises(Busy) as busy:
            ask()
        assert busy.value.retry_after >= 1
    proxy.deaf = False
    through.commit(claim("c"))
    assert used(through) == 1


# --- a server that is killed --------------------------------------------------------------------


def go_on(done: list[str], steps: int) -> None:
    """Wait until so many more are done."""
    enough, deadline = len(done) + steps, time.monotonic() + 100
    while len(done) < enough:
        assert time.monotonic() < deadline, "nobody gets on"
        time.sleep(0.01)


@pytest.mark.slow
@pytest.mark.process
def test_restarts_and_crashes_lose_nothing_acknowledged(
    kind: Kind, request: pytest.FixtureRequest
) -> None:
    """Threads write through kills of connections and of the whole server."""
    server = request.getfixturevalue(f"{kind.name}_server")
    databases = {"postgres": postgres, "mariadb": mariadb}[kind.name].Databases(server.url)
    url, stop = databases.empty(), Event()
    store = open_store(url)
    host(store, "a")
    acknowledged: list[str] = []
    wrong: list[object] = []

    def write(number: int) -> None:
        turn = 0
        while not stop.is_set():
            name, turn = f"w{number}-{turn}", turn + 1
            try:
                store.commit(claim(name))
                acknowledged.append(name)
                count = len(acknowledged)
                if used(store) < count - WRITERS:  # others may not have counted theirs yet
                    wrong.append(f"{used(store)} of {count}")
            except Busy:
                time.sleep(0.05)
            except Exception as error:  # noqa: BLE001 - told below
                wrong.append(error)
                return

    writers = [Thread(target=write, args=(number,)) for number in range(WRITERS)]
    for writer in writers:
        writer.start()
    try:
        for turn in range(6):
            go_on(acknowledged, 20)
            if turn % 3 == 2:
                server.restart()
            else:
                kind.disturb(server, url)
        go_on(acknowledged, 20)
    finally:
        stop.set()
        for writer in writers:
            writer.join()
    assert not wrong
    with ThreadPoolExecutor(4) as pool:
        assert None not in list(pool.map(store.consumer, acknowledged))
    with closing(store), closing(open_store(url)) as other:
        assert used(store) == used(other) >= len(acknowledged)
