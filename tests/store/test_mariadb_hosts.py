"""MariaDB: several servers in one URL."""

from __future__ import annotations

import logging
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from threading import Thread
from typing import TYPE_CHECKING

import pytest
from sqlalchemy import make_url
from tests.servers.mariadb import USER, MariadbServer, ask
from tests.servers.proxy import ON_MARIADB, Proxy

from moorage.domain.changes import Changeset, CreateProvider, PutInventories, ReplaceAllocations
from moorage.domain.consumers import Consumer
from moorage.domain.errors import Busy, InvalidDescription
from moorage.domain.providers import Inventory
from moorage.store import open_store
from moorage.store.database import retry
from moorage.store.mariadb import backend, hosts
from moorage.store.mariadb.backend import MariadbBackend
from moorage.store.mariadb.url import without_hosts
from moorage.store.opening import connect
from moorage.store.placement_database import read_placement

if TYPE_CHECKING:
    from collections.abc import Iterator

    from moorage.store import Ledger

    Pair = tuple[MariadbServer, MariadbServer]


def first_of(*ports: int, database: str, user: str = USER) -> str:
    hosts = "&".join(f"host=127.0.0.1:{port}" for port in ports)
    return f"mysql://{user}@/{database}?{hosts}"


def names(store: Ledger) -> set[str]:
    return set(store.snapshot().row_of)


def test_the_first_that_answers_is_used(mariadb_url: str) -> None:
    url = make_url(mariadb_url)
    assert url.database is not None
    hosts = ["127.0.0.1:1", f"{url.host}:{url.port or 3306}"]
    several = url._replace(host=None, port=None).update_query_dict({"host": hosts})
    with closing(open_store(several.render_as_string(hide_password=False))) as store:
        store.commit(Changeset((CreateProvider("a", "a"),)))
        assert names(store) == {"a"}


def test_one_that_only_reads_is_left_for_the_next(
    mariadb_server: MariadbServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was the primary is told to read only; when it may write again it is the first again."""
    ask(mariadb_server.url, "CREATE DATABASE moorage")
    port = mariadb_server.port
    with closing(open_store(first_of(port, 1, database="moorage"))) as store:
        store.commit(Changeset((CreateProvider("a", "a"),)))
    ask(mariadb_server.url, "SET GLOBAL read_only = 1")
    monkeypatch.setattr(retry, "AWAY", 0.3)
    with pytest.raises(Busy, match="the database is away"):
        open_store(first_of(port, 1, database="moorage"))
    with pytest.raises(Busy, match="the database is away"):
        open_store(first_of(1, port, database="moorage"))
    ask(mariadb_server.url, "SET GLOBAL read_only = 0")
    with closing(open_store(first_of(1, port, database="moorage"))) as store:
        assert names(store) == {"a"}


def test_all_of_them_gone_is_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retry, "AWAY", 0.3)
    with pytest.raises(Busy, match="the database is away"):
        open_store(first_of(1, 2, database="moorage"))


# --- a planned switch-over ----------------------------------------------------------------------

PLAIN = "moorage_plain"
"""A user as the guide makes it: it cannot write to a server that only reads."""


@pytest.fixture
def pair(mariadb_server: MariadbServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    """A server, and a copy that stays as it is; both with a ledger without anything."""
    ask(mariadb_server.url, "CREATE DATABASE moorage")
    ask(mariadb_server.url, f"CREATE USER '{PLAIN}'@'%'")
    ask(mariadb_server.url, f"GRANT ALL PRIVILEGES ON moorage.* TO '{PLAIN}'@'%'")
    open_store(first_of(mariadb_server.port, database="moorage")).close()
    mariadb_server.stop()
    folder = tmp_path_factory.mktemp("copy")
    for one in (folder, *folder.parents[:-2]):
        one.chmod(0o755)
    copy = MariadbServer(folder, copied_from=mariadb_server)
    mariadb_server.start()
    try:
        copy.start()
        yield mariadb_server, copy
    finally:
        copy.end()


def switch(old: MariadbServer, new: MariadbServer) -> None:
    ask(old.url, "SET GLOBAL read_only = 1")
    ask(new.url, "SET GLOBAL read_only = 0")


@pytest.mark.parametrize("user", [USER, PLAIN])
def test_a_server_that_came_to_only_read_is_not_asked_for_news(pair: Pair, user: str) -> None:
    """By whoever only reads, too: he would never hear 1290, and never see another commit."""
    first, second = pair
    url = first_of(first.port, second.port, database="moorage", user=user)
    switch(first, second)
    with closing(open_store(url)) as one:
        assert names(one) == set()
        switch(second, first)
        with closing(open_store(url)) as two:
            two.commit(Changeset((CreateProvider("a", "a"),)))
        assert names(one) == {"a"}


def test_nor_for_what_is_not_in_the_snapshot(pair: Pair) -> None:
    first, second = pair
    url = first_of(first.port, second.port, database="moorage", user=PLAIN)
    switch(first, second)
    with closing(open_store(url)) as one:
        assert one.consumer("c") is None
        switch(second, first)
        with closing(open_store(url)) as two:
            stock = PutInventories("a", (Inventory("VCPU", 1),), None)
            two.commit(Changeset((CreateProvider("a", "a"), stock)))
            change = ReplaceAllocations(Consumer("c"), {"a": {"VCPU": 1}}, None)
            two.commit(Changeset((change,)))
        assert one.consumer("c") is not None


def test_an_only_server_that_only_reads_is_read(
    mariadb_server: MariadbServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There is no other; who writes is told."""
    monkeypatch.setattr(retry, "AWAY", 0.3)
    ask(mariadb_server.url, "CREATE DATABASE moorage")
    ask(mariadb_server.url, f"CREATE USER '{PLAIN}'@'%'")
    ask(mariadb_server.url, f"GRANT ALL PRIVILEGES ON moorage.* TO '{PLAIN}'@'%'")
    with closing(open_store(f"mysql://{PLAIN}@127.0.0.1:{mariadb_server.port}/moorage")) as store:
        ask(mariadb_server.url, "SET GLOBAL read_only = 1")
        assert names(store) == set()
        assert store.consumer("c") is None
        with pytest.raises(Busy, match="the database is away"):
            store.commit(Changeset((CreateProvider("a", "a"),)))


# --- a server that hangs ------------------------------------------------------------------------


class Mute:
    """Lets clients in and says nothing."""

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._open: list[socket.socket] = []
        self.port = int(self._listener.getsockname()[1])
        Thread(target=self._accept, daemon=True).start()

    @property
    def met(self) -> int:
        return len(self._open)

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                self._open.append(self._listener.accept()[0])

    def close(self) -> None:
        for one in (self._listener, *self._open):
            one.close()


def hosts_of(mariadb_url: str, port: int, *more: str) -> str:
    """One on this port before the server of the tests."""
    url = make_url(mariadb_url)
    assert url.database is not None
    hosts = "&".join((f"host=127.0.0.1:{port}", f"host={url.host}:{url.port or 3306}", *more))
    return f"mysql://{url.username}@/{url.database}?{hosts}"


def test_one_that_says_nothing_is_left_soon(mariadb_url: str) -> None:
    began = time.monotonic()
    with closing(Mute()) as mute:
        url = hosts_of(mariadb_url, mute.port, "connect_timeout=1")
        with closing(open_store(url)) as store:
            store.commit(Changeset((CreateProvider("a", "a"),)))
            assert names(store) == {"a"}
        assert mute.met == 1
    assert time.monotonic() - began < 30


def test_an_only_server_that_says_nothing_is_away_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retry, "AWAY", 0.3)
    began = time.monotonic()
    with closing(Mute()) as mute, pytest.raises(Busy, match="the database is away"):
        open_store(f"mysql://{USER}@127.0.0.1:{mute.port}/moorage?connect_timeout=1")
    assert time.monotonic() - began < 30


def test_one_at_a_time_asks_it_again(mariadb_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """And ever less often, as each who does waits in vain."""
    monkeypatch.setattr(hosts, "_SHUNNED", 0.5)
    with closing(Mute()) as mute:
        url = hosts_of(mariadb_url, mute.port, "connect_timeout=1")
        with closing(connect(url)) as backend, ThreadPoolExecutor(6) as pool:
            assert isinstance(backend, MariadbBackend)
            time.sleep(0.6)
            waited = list(pool.map(lambda _: _seconds_of_dial(backend), range(6)))
            assert mute.met == 2
            assert sorted(one > 0.9 for one in waited) == [False] * 5 + [True]
            time.sleep(0.6)
            assert _seconds_of_dial(backend) < 0.9, "shunned twice as long"
            time.sleep(0.6)
            assert _seconds_of_dial(backend) > 0.9
            assert mute.met == 3


def _seconds_of_dial(backend: MariadbBackend) -> float:
    began = time.monotonic()
    backend._dial().close()
    return time.monotonic() - began


def test_one_that_comes_to_hang_is_left_by_all_at_once(
    mariadb_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who asks for news finds out; the others, with sixty seconds to wait, hear of it."""
    monkeypatch.setattr(backend, "_PROMPT", 1)
    url = make_url(mariadb_url)
    with Proxy(url.port or 3306, ON_MARIADB) as proxy, ThreadPoolExecutor(8) as pool:
        several = hosts_of(mariadb_url, proxy.port, "connect_timeout=1")
        with closing(open_store(several)) as store:
            store.commit(Changeset((CreateProvider("a", "a"),)))
            proxy.mute = True
            began = time.monotonic()
            asked = [pool.submit(store.consumer, "c") for _ in range(4)]
            looked = [pool.submit(store.snapshot) for _ in range(2)]
            written = pool.submit(store.commit, Changeset((CreateProvider("b", "b"),)))
            assert [one.result(60) for one in asked] == [None] * 4
            assert [one.result(60).row_of.keys() <= {"a", "b"} for one in looked] == [True] * 2
            written.result(60)
            assert names(store) == {"a", "b"}
            assert time.monotonic() - began < 30


def test_who_waited_for_a_connection_in_vain_does_not_wait_again(
    monkeypatch: pytest.MonkeyPatch, mariadb_url: str
) -> None:
    """Nobody answers any more: six that ask together do not try one after the other."""
    monkeypatch.setattr(backend, "_PROMPT", 1)
    monkeypatch.setattr(retry, "AWAY", 0.3)
    url = make_url(mariadb_url)
    with Proxy(url.port or 3306, ON_MARIADB) as proxy, ThreadPoolExecutor(6) as pool:
        one = url.set(host="127.0.0.1", port=proxy.port, query={"connect_timeout": "1"})
        with closing(open_store(one.render_as_string(hide_password=False))) as store:
            proxy.mute = True
            began = time.monotonic()
            told = [pool.submit(store.snapshot) for _ in range(6)]
            for each in told:
                with pytest.raises(Busy, match="the database is away"):
                    each.result(60)
            assert time.monotonic() - began < 30


# --- what is told -------------------------------------------------------------------------------


def test_who_is_passed_over_is_told_once_and_when_it_is_used_again(
    mariadb_url: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(hosts, "_SHUNNED", 0.1)
    caplog.set_level(logging.WARNING, "moorage.store.mariadb.hosts")
    url = make_url(mariadb_url)
    with Proxy(url.port or 3306, ON_MARIADB) as proxy:
        where = f"the database server 127.0.0.1:{proxy.port}"
        proxy.deaf = True
        with closing(connect(hosts_of(mariadb_url, proxy.port))) as backend:
            assert isinstance(backend, MariadbBackend)
            for _ in range(3):
                time.sleep(0.11)
                _seconds_of_dial(backend)
            (told,) = caplog.messages
            assert told.startswith(f"{where} is passed over: ")
            assert "Lost connection" in told
            proxy.deaf = False
            for _ in range(2):
                time.sleep(0.11)
                _seconds_of_dial(backend)
            assert caplog.messages[1:] == [f"{where} is used again"]


# --- how it is written --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [
        ("db1.example", "db1.example", 3306),
        ("db1.example:3307", "db1.example", 3307),
        ("[::1]:3307", "::1", 3307),
        ("[::1]", "::1", 3306),
    ],
)
def test_how_a_server_is_written(text: str, host: str, port: int) -> None:
    url = make_url(f"mysql://moorage@/moorage?host={text}&connect_timeout=1")
    left, found = without_hosts(url)
    assert found == [(host, port)]
    assert dict(left.query) == {"connect_timeout": "1"}


@pytest.mark.parametrize(
    "query",
    ["host=a:", "host=a:x", "host=::1", "host=a:1:2", "host=a&host=:1", "host=[a", "host=a,b"],
)
def test_what_is_no_server_is_refused(query: str) -> None:
    with pytest.raises(InvalidDescription, match="is not name, name:port"):
        open_store(f"mysql://moorage@/moorage?{query}")


def test_one_way_to_name_a_server(mariadb_url: str) -> None:
    with pytest.raises(InvalidDescription, match="both by host= and elsewhere"):
        open_store(f"{mariadb_url}?host=127.0.0.1")


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("mysql://u@:3307/d?host=a", "both by host= and elsewhere"),
        ("mysql://u@/d?host=a&unix_socket=/s", "both by host= and elsewhere"),
        ("mysql://u@/d?host=a&port=3307", "behind its server"),
        ("mysql://u@a/d?port=3307", "behind its server"),
        ("mysql://u@/d?host=a:99999", "no such port"),
        ("mysql://u@/d?host=a:0", "no such port"),
        ("mysql://u@a/d?foo=bar", "no argument foo"),
        ("mysql://u@/d?Host=a", "no argument Host"),
        ("mysql://u@a/d?compress=1", "no argument compress"),
        ("mysql://u@a/d?charset=a&charset=b", "gives charset twice"),
        ("mysql://u@a/d?connect_timeout=abc", "connect_timeout in the URL is no number"),
        ("mysql://u@a/d?read_timeout=0", "read_timeout in the URL is no number"),
    ],
)
def test_a_mistake_in_the_url_is_a_sentence(url: str, words: str) -> None:
    with pytest.raises(InvalidDescription, match=words):
        open_store(url)


def test_placements_database_may_be_on_several_servers(mariadb_url: str) -> None:
    """And they need not be ones that can be written to. This one is no Placement service's."""
    with pytest.raises(InvalidDescription, match="no table"):
        read_placement(hosts_of(mariadb_url, 1))


def test_a_mistake_in_the_url_of_placements_database_is_a_sentence() -> None:
    with pytest.raises(InvalidDescription, match="no argument foo") as told:
        read_placement("mysql+pymysql://u@/d?host=a&foo=bar")
    assert told.value.path == "from"
