"""A PostgreSQL that does not answer, and closes nothing: everybody is told soon."""

import signal
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import psycopg
import pytest
from sqlalchemy import make_url
from tests.servers.postgres import PostgresServer
from tests.servers.proxy import Proxy

from moorage.domain.changes import Changeset, CreateProvider, PutInventories, ReplaceAllocations
from moorage.domain.consumers import Consumer
from moorage.domain.errors import Busy
from moorage.domain.providers import Inventory
from moorage.store import Ledger, open_store
from moorage.store.database.retry import AWAY

BOUND = AWAY + 25
"""Seconds in which the caller must have been told on a busy machine; without an end it is never."""
THREADS = 40
"""More than there are connections, so that some wait for one."""


def host(name: str) -> Changeset:
    return Changeset((CreateProvider(name, name), PutInventories(name, (Inventory("VCPU", 1),), 0)))


def work(store: Ledger) -> list[Callable[[], object]]:
    """Whatever asks the database for anything."""
    allocation = ReplaceAllocations(Consumer("c"), {"a": {"VCPU": 1}}, None)
    return [
        store.snapshot,
        store.now,
        lambda: store.consumer("nobody"),
        lambda: store.commit(Changeset((allocation,))),
        lambda: store.commit(Changeset((CreateProvider("b", "b"),))),
    ]


def told_in_time(store: Ledger) -> list[float]:
    """Ask for everything at once; how long each caller waited to be told to come again."""

    def ask(number: int) -> float:
        began = time.monotonic()
        with pytest.raises(Busy, match=r"the database is away|look before trying again"):
            work(store)[number % 5]()
        return time.monotonic() - began

    with ThreadPoolExecutor(THREADS) as pool:
        return list(pool.map(ask, range(THREADS)))


@pytest.fixture
def stopped(postgres_server: PostgresServer) -> Iterator[Callable[[], None]]:
    """Stops every process of the server in its tracks; it goes on afterwards."""
    yield lambda: postgres_server.signal_all(signal.SIGSTOP)
    postgres_server.signal_all(signal.SIGCONT)


def test_a_server_that_is_stopped_is_given_up_in_time_by_everybody(
    postgres_server: PostgresServer, stopped: Callable[[], None]
) -> None:
    with closing(open_store(postgres_server.url)) as store:
        store.commit(host("a"))
        store.snapshot()
        stopped()
        assert max(told_in_time(store)) < BOUND
        again = told_in_time(store)  # it is known by now
        assert max(again) < AWAY
        postgres_server.signal_all(signal.SIGCONT)
        deadline = time.monotonic() + 100
        while True:
            try:
                assert store.snapshot().row_of.keys() >= {"a"}
                break
            except Busy:
                assert time.monotonic() < deadline
                time.sleep(0.1)
        store.commit(Changeset((CreateProvider("d", "d"),)))


def test_a_network_that_loses_everything_is_given_up_in_time(postgres_url: str) -> None:
    url = make_url(postgres_url)
    with Proxy(url.port or 5432) as proxy:
        through = url.set(port=proxy.port).render_as_string(hide_password=False)
        with closing(open_store(through)) as store:
            store.commit(host("a"))
            proxy.mute = True
            assert max(told_in_time(store)) < BOUND
            proxy.mute = False
            proxy.hang_up()
            deadline = time.monotonic() + 100
            while True:
                try:
                    store.snapshot()
                    break
                except Busy:
                    assert time.monotonic() < deadline
                    time.sleep(0.1)


def test_a_start_on_a_server_that_is_stopped_ends_in_time(
    postgres_server: PostgresServer, stopped: Callable[[], None]
) -> None:
    open_store(postgres_server.url).close()
    stopped()
    began = time.monotonic()
    with pytest.raises(Busy, match="the database is away"):
        open_store(postgres_server.url)
    assert time.monotonic() - began < BOUND


def test_a_writer_that_waits_for_its_turn_is_not_cut_off(postgres_url: str) -> None:
    """Longer than a server that hangs is waited for: this one answers others meanwhile."""
    with closing(open_store(postgres_url)) as store, ThreadPoolExecutor(1) as pool:
        store.commit(host("a"))
        with psycopg.connect(postgres_url) as other:
            other.execute("SELECT pg_advisory_xact_lock(hashtextextended('moorage', 0))")
            written = pool.submit(store.commit, Changeset((CreateProvider("b", "b"),)))
            time.sleep(AWAY + 2)
            assert not written.done()
        written.result(60)
        assert store.snapshot().row_of.keys() == {"a", "b"}


def test_of_several_servers_the_next_takes_over_from_one_that_hangs(postgres_url: str) -> None:
    url = make_url(postgres_url)
    with Proxy(url.port or 5432) as proxy:
        hosts = [f"127.0.0.1:{proxy.port}", f"{url.host}:{url.port or 5432}"]
        several = url._replace(host=None, port=None).update_query_dict(
            {"host": hosts, "connect_timeout": "2"}
        )
        with closing(open_store(several.render_as_string(hide_password=False))) as store:
            store.commit(host("a"))
            proxy.mute = True
            began = time.monotonic()
            store.commit(Changeset((CreateProvider("b", "b"),)))
            assert store.snapshot().row_of.keys() == {"a", "b"}
            assert time.monotonic() - began < 2 * BOUND
