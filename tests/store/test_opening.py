"""Opening a ledger: standard names, and errors one can act on."""

import os
import sqlite3
import stat
from pathlib import Path

import pytest
from sqlalchemy import literal, select

from moorage.domain.changes import Changeset, CreateProvider
from moorage.domain.errors import Busy, InvalidDescription
from moorage.store import is_missing, open_store
from moorage.store.opening import connect
from moorage.store.sqlite import backend
from moorage.store.sqlite.backend import SqliteBackend


def test_opening_again_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"

    def dump() -> list[str]:
        connection = sqlite3.connect(path)
        found = list(connection.iterdump())
        connection.close()
        return found

    open_store(f"sqlite:///{path}").close()
    first = dump()
    open_store(f"sqlite:///{path}").close()
    assert dump() == first


def test_standard_names_that_are_missing_are_added(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'ledger.db'}"
    open_store(url).close()
    connection = sqlite3.connect(tmp_path / "ledger.db")
    connection.execute("DELETE FROM resource_classes WHERE name IN ('VCPU', 'PGPU')")
    connection.execute("DELETE FROM traits WHERE name = 'HW_CPU_X86_AVX2'")
    connection.execute("UPDATE resource_classes SET place = 77 WHERE name = 'DISK_GB'")
    connection.commit()
    connection.close()
    store = open_store(url)
    assert [one.name for one in store.resource_classes()][:3] == ["VCPU", "MEMORY_MB", "DISK_GB"]
    assert "HW_CPU_X86_AVX2" in {one.name for one in store.traits()}
    store.close()


def test_the_database_is_safe_against_power_loss_and_dangling_rows(tmp_path: Path) -> None:
    backend = connect(f"sqlite:///{tmp_path / 'ledger.db'}")
    names = ("journal_mode", "synchronous", "foreign_keys")
    pragmas = backend.read(
        lambda connection: {
            name: connection.exec_driver_sql(f"PRAGMA {name}").scalar_one() for name in names
        }
    )
    assert pragmas == {"journal_mode": "wal", "synchronous": 2, "foreign_keys": 1}
    backend.close()


def test_a_file_that_is_made_is_its_owners_alone(tmp_path: Path) -> None:
    before = os.umask(0o000)
    try:
        store = open_store(f"sqlite:///{tmp_path / 'ledger.db'}")
        store.commit(Changeset((CreateProvider("a", "a"),)))
        modes = {one.name: one.stat().st_mode & 0o777 for one in tmp_path.iterdir()}
        store.close()
    finally:
        os.umask(before)
    beside = ("", "-wal", "-shm", "-writer")
    assert modes == dict.fromkeys((f"ledger.db{one}" for one in beside), 0o600)


def test_a_file_that_is_there_stays_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    path.touch(0o660)
    path.chmod(0o660)
    open_store(f"sqlite:///{path}").close()
    assert {one.stat().st_mode & 0o777 for one in tmp_path.iterdir()} == {0o660}


def test_a_private_database_is_gone_when_closed() -> None:
    backend = connect("sqlite://")
    assert isinstance(backend, SqliteBackend)
    folder = backend._private
    assert folder is not None
    assert folder.is_dir()
    backend.close()
    assert not folder.exists()


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("nonsense", "^not a database URL, such as sqlite:///path"),
        (
            "postgresql://me@one:5432,two:5432/db",
            r"several hosts of PostgreSQL .*host=one:5432&",
        ),
        ("oracle://host/db", "no support for oracle"),
        ("sqlite:////no/such/directory/ledger.db", "no such directory"),
    ],
)
def test_an_unusable_url_is_a_clear_error(url: str, message: str) -> None:
    with pytest.raises(InvalidDescription, match=message):
        open_store(url)


def test_a_file_that_is_no_database_is_a_clear_error(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    path.write_bytes(b"this is a letter to my aunt, not a database " * 100)
    with pytest.raises(InvalidDescription, match="cannot open"):
        open_store(f"sqlite:///{path}")


def test_a_directory_as_database_is_a_clear_error(tmp_path: Path) -> None:
    (tmp_path / "ledger.db").mkdir(mode=stat.S_IRWXU)
    with pytest.raises(InvalidDescription, match="cannot open"):
        open_store(f"sqlite:///{tmp_path / 'ledger.db'}")


def test_a_foreign_lock_ends_in_busy_and_writes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backend, "_PRAGMAS", ("PRAGMA busy_timeout = 20", *backend._PRAGMAS[1:]))
    path = tmp_path / "ledger.db"
    store = open_store(f"sqlite:///{path}")
    stranger = sqlite3.connect(path, isolation_level=None)
    stranger.execute("BEGIN IMMEDIATE")
    with pytest.raises(Busy):
        store._backend.write(lambda _: pytest.fail("nobody may write now"))
    assert store.snapshot().revision == 0, "readers do not wait"
    stranger.execute("ROLLBACK")
    assert store._backend.write(lambda session: session.scalar(select(literal(1)))) == 1
    stranger.close()
    store.close()


@pytest.mark.parametrize("kind", ["postgres", "mariadb"])
def test_looking_for_a_ledger_makes_none(request: pytest.FixtureRequest, kind: str) -> None:
    databases = request.getfixturevalue(f"{kind}_databases")
    url = databases.empty()
    assert is_missing(url)
    assert is_missing(url)
    open_store(url).close()
    assert not is_missing(url)
