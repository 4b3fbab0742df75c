"""MariaDB: opening, and what the server refuses."""

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from sqlalchemy import make_url
from sqlalchemy.exc import IntegrityError
from tests.servers.mariadb import Databases, MariadbServer, ask, connected
from tests.store.hosts import claim, host, used

from moorage.domain.changes import (
    Changeset,
    CreateProvider,
    CreateResourceClass,
    PutInventories,
    RenameResourceClass,
    ReplaceAllocations,
)
from moorage.domain.consumers import Consumer
from moorage.domain.errors import Busy, ConsumerConflict, InvalidDescription
from moorage.domain.providers import Inventory
from moorage.logs import Lasting
from moorage.store import Ledger, open_store
from moorage.store.database import retry
from moorage.store.database.session import Session
from moorage.store.mariadb import backend as mariadb_backend
from moorage.store.mariadb import connect as mariadb_connect
from moorage.store.opening import connect
from moorage.store.schema import tables


@pytest.fixture
def store(mariadb_url: str) -> Iterator[Ledger]:
    one = open_store(mariadb_url)
    yield one
    one.close()


# --- opening ------------------------------------------------------------------------------------


def test_text_is_compared_by_code_points_whatever_the_database_was_made_with(
    mariadb_databases: Databases,
) -> None:
    url = mariadb_databases.empty("CHARACTER SET latin1 COLLATE latin1_swedish_ci")
    store = open_store(url)
    for name in ("host", "Host", "host ", "höst", "hôst", "東京-1"):
        store.commit(Changeset((CreateProvider(name, name),)))
    assert len(store.snapshot().row_of) == 6
    told = (
        "SELECT DISTINCT engine, table_collation FROM information_schema.tables"
        " WHERE table_schema = DATABASE()"
    )
    (row,) = ask(url, told)
    assert row in {("InnoDB", one) for one in mariadb_backend._COLLATION.values()}
    store.close()


def test_bookings_follow_their_class(store: Ledger) -> None:
    stock = PutInventories("a", (Inventory("CUSTOM_OLD", 10),), None)
    store.commit(Changeset((CreateResourceClass("CUSTOM_OLD"), CreateProvider("a", "a"), stock)))
    change = ReplaceAllocations(Consumer("c"), {"a": {"CUSTOM_OLD": 3}}, None)
    store.commit(Changeset((change,)))
    store.commit(Changeset((RenameResourceClass("CUSTOM_OLD", "CUSTOM_NEW"),)))
    assert store.snapshot().classes["CUSTOM_NEW"].used.tolist() == [3]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"database": "nowhere"}, "Unknown database 'nowhere'"),
        ({"database": None}, "names no database"),
        ({"username": "nobody", "password": "wrong"}, "Access denied for user 'nobody'"),
    ],
)
def test_a_mistake_in_the_url_is_a_clear_error(
    mariadb_url: str, change: dict[str, Any], words: str
) -> None:
    began = time.monotonic()
    url = make_url(mariadb_url)
    wrong = url._replace(**change).render_as_string(hide_password=False)
    with pytest.raises(InvalidDescription, match=words) as told:
        open_store(wrong)
    assert "wrong" not in str(told.value)
    assert time.monotonic() - began < retry.AWAY, "nothing to wait for"


def test_a_server_too_old_is_refused(mariadb_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mariadb_backend, "_OLDEST", {"MariaDB": (99, 1), "MySQL": (99, 1)})
    with pytest.raises(InvalidDescription, match=r"is too old; 99\.1 or newer"):
        open_store(mariadb_url)


def test_an_upgrade_that_was_cut_off_is_said(mariadb_databases: Databases) -> None:
    """And so are the tables of another program: nothing of them is touched."""
    url = mariadb_databases.empty()
    ask(url, "CREATE TABLE traits (id INT PRIMARY KEY)")
    with pytest.raises(InvalidDescription, match="cut off half-way"):
        open_store(url)
    assert ask(url, "SELECT COUNT(*) FROM traits") == ((0,),)


def test_a_dump_is_restored_on_another_server(
    store: Ledger, mariadb_url: str, mariadb_server: MariadbServer, tmp_path: Path
) -> None:
    host(store, "a")
    for number in range(5):
        store.commit(claim(f"c{number}"))
    url = make_url(mariadb_url)
    dump = tmp_path / "moorage.sql"
    where = (f"--host={url.host}", f"--port={url.port}", f"--user={url.username}")
    password = (f"--password={url.password or ''}",)
    words = ("--single-transaction", "--skip-lock-tables", str(url.database))
    with dump.open("wb") as written:
        mariadb_server.run("mariadb-dump", *where, *password, *words, stdout=written)
    empty = Databases(mariadb_server.url).empty()
    with dump.open("rb") as read:
        mariadb_server.run("mariadb", str(make_url(empty).database), stdin=read)
    restored = open_store(empty)
    assert used(restored) == 5
    restored.commit(claim("c5"))
    assert used(restored) == 6
    with pytest.raises(ConsumerConflict):
        restored.commit(claim("c0"))
    restored.close()


# --- others who lock ----------------------------------------------------------------------------


def test_a_commit_that_loses_a_deadlock_is_done_again(store: Ledger, mariadb_url: str) -> None:
    """Somebody works in the tables by hand, and locks them the other way round."""
    for name in ("a", *map(str, range(20))):
        host(store, name)
    with connected(mariadb_url) as stranger, connected(mariadb_url) as onlooker:
        hand, eye = stranger.cursor(), onlooker.cursor()
        # Who has written more is not the one to lose.
        hand.execute("UPDATE providers SET created_at = created_at + 1")
        with ThreadPoolExecutor(1) as pool:
            done = pool.submit(store.commit, claim("c"))
            deadline = time.monotonic() + 100
            waiting = "SELECT COUNT(*) FROM information_schema.innodb_trx WHERE trx_state = %s"
            while eye.execute(waiting, ("LOCK WAIT",)) and eye.fetchone() == (0,):
                assert time.monotonic() < deadline, "the commit does not wait"
                time.sleep(0.2)  # asked more often, the server answers from memory
            hand.execute("SELECT revision FROM ledger WHERE id = 1 FOR UPDATE")
            stranger.rollback()
            assert done.result(100).consumer_generations == {"c": 1}
    assert used(store) == 1


def test_a_key_that_another_node_has_just_given_is_met_once(
    store: Ledger, mariadb_url: str
) -> None:
    """As of a cluster: the other's commit is there before this one is refused (ADR-0018)."""
    host(store, "a")
    backend = connect(mariadb_url)
    again = tables.traits.insert().values(name="HW_CPU_X86_AVX2", updated_at=1)
    attempts = 0

    def work(session: Session, *, always: bool) -> str:
        nonlocal attempts
        attempts += 1
        if always or attempts == 1:
            session.execute(again)
        return "done"

    assert backend.write(partial(work, always=False)) == "done"
    assert attempts == 2
    with pytest.raises(IntegrityError):
        backend.write(partial(work, always=True))
    assert attempts == 2 + retry.CONFLICT.attempts
    backend.close()


def test_a_turn_that_does_not_come_is_busy(
    mariadb_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    short = mariadb_connect._SETTINGS.replace("lock_wait_timeout = 30", "lock_wait_timeout = 1")
    monkeypatch.setattr(mariadb_connect, "_SETTINGS", short)
    store = open_store(mariadb_url)
    with connected(mariadb_url) as stranger:
        stranger.cursor().execute("SELECT revision FROM ledger WHERE id = 1 FOR UPDATE")
        with pytest.raises(Busy, match="too many writers"):
            host(store, "a")
        assert store.snapshot().row_of == {}, "readers do not wait"
        stranger.rollback()
        host(store, "a")
    store.close()


def test_a_writer_that_stands_still_loses_its_turn(
    store: Ledger, mariadb_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    idle = {
        "MariaDB": "SET SESSION idle_transaction_timeout = 1",
        "MySQL": "SET SESSION wait_timeout = 1",
    }
    monkeypatch.setattr(mariadb_connect, "_IDLE", idle)
    host(store, "a")
    backend, begun, go_on, tries = connect(mariadb_url), Event(), Event(), []

    def stand_still(session: object) -> None:
        backend.log.enter(session, None)  # type: ignore[arg-type]
        tries.append(1)
        begun.set()
        go_on.wait(60)

    with ThreadPoolExecutor(1) as pool:
        standing = pool.submit(backend.write, stand_still)
        assert begun.wait(100)
        store.commit(claim("c"))
        go_on.set()
        standing.result(60)
    assert len(tries) == 2, "and does its work again, from the beginning"
    backend.close()


def test_a_server_that_only_reads_is_busy_until_it_writes_again(
    mariadb_server: MariadbServer,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """As after a failover, for those who still talk to the old primary."""
    monkeypatch.setattr(retry, "AWAY", 0.3)
    monkeypatch.setattr(retry, "_lasting", Lasting())  # what other tests met was said before
    databases = Databases(mariadb_server.url)
    url = make_url(databases.empty())
    ask(databases.admin, "CREATE USER moorage@'%' IDENTIFIED BY 'secret'")
    ask(databases.admin, f"GRANT ALL PRIVILEGES ON {url.database}.* TO moorage@'%'")
    mine = url.set(username="moorage", password="secret", drivername="mariadb")
    store = open_store(mine.render_as_string(hide_password=False))
    host(store, "a")
    ask(databases.admin, "SET GLOBAL read_only = 1")
    with pytest.raises(Busy, match="the database is away"):
        store.commit(claim("c"))
    assert "read-only" in caplog.text, "the log says why"
    assert used(store) == 0, "reading goes on"
    ask(databases.admin, "SET GLOBAL read_only = 0")
    store.commit(claim("c"))
    assert used(store) == 1
    store.close()
