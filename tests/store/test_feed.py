"""The feed: by difference while the log reaches back, from scratch when it does not."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import func, select
from tests.store.hosts import claim, host, opened, used

from moorage.domain.changes import Changeset, CreateProvider, DeleteProvider
from moorage.domain.placement import Occupant
from moorage.store import open_store
from moorage.store.changelog import entries
from moorage.store.read import provider_states
from moorage.store.schema import tables


@pytest.fixture
def short_log(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(entries, "TRIM_EVERY", 5)
    monkeypatch.setattr(entries, "KEPT", 3)


def test_who_slept_longer_than_the_log_loads_everything(tmp_path: Path, short_log: None) -> None:
    url = f"sqlite:///{tmp_path / 'ledger.db'}"
    writer, sleeper = open_store(url), open_store(url)
    writer.commit(Changeset((CreateProvider("gone", "gone"),)))
    assert sleeper.snapshot().uuids == ("gone",)
    writer.commit(Changeset((DeleteProvider("gone"),)))
    for number in range(12):
        writer.commit(Changeset((CreateProvider(f"p{number}", f"p{number}"),)))
    start, oldest = writer._backend.read(
        lambda connection: (
            connection.scalars(select(tables.ledger.c.log_start)).one(),
            connection.scalars(select(func.min(tables.changes.c.revision))).one(),
        )
    )
    assert (start, oldest) == (7, 8), "the log was cut, at the revision it says"
    awake = sleeper.snapshot()
    assert awake.revision == 14
    assert set(awake.row_of) == {f"p{number}" for number in range(12)}
    writer.close()
    sleeper.close()


def test_the_log_is_bounded_by_rows_and_keeps_those_of_the_newest_commit(
    tmp_path: Path, short_log: None
) -> None:
    with closing(open_store(f"sqlite:///{tmp_path / 'ledger.db'}")) as store:
        kept = select(tables.changes.c.revision).order_by(tables.changes.c.revision)
        rows = []
        for commit in range(10):
            names = [f"{commit}-{number}" for number in range(6)]
            store.commit(Changeset(tuple(CreateProvider(name, name) for name in names)))
            rows.append(store._backend.read(lambda connection: connection.scalars(kept).all()))
            assert len(store.snapshot().uuids) == 6 * (commit + 1)
    assert rows[3] == sorted([1, 2, 3, 4] * 6)
    assert (rows[4], rows[9]) == ([5] * 6, [10] * 6)


def test_a_difference_loads_only_what_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = open_store(f"sqlite:///{tmp_path / 'ledger.db'}")
    store.commit(Changeset(tuple(CreateProvider(name, name) for name in "abc")))
    store.snapshot()
    loaded: list[str] = []
    load = provider_states.states

    def watched(connection: object, uuids: set[str]) -> object:
        loaded.extend(sorted(uuids))
        return load(connection, uuids)  # type: ignore[arg-type]

    monkeypatch.setattr(provider_states, "states", watched)
    store.commit(Changeset((CreateProvider("d", "d"), DeleteProvider("b"))))
    assert set(store.snapshot().row_of) == {"a", "c", "d"}
    assert loaded == ["b", "d"]
    store.snapshot()
    assert loaded == ["b", "d"], "nothing is loaded when nothing changed"
    store.close()


def test_a_load_keeps_one_text_for_each_consumer(tmp_path: Path) -> None:
    with opened(f"sqlite:///{tmp_path / 'ledger.db'}") as store:
        host(store, "a")
        store.commit(claim("server"))
    with opened(f"sqlite:///{tmp_path / 'ledger.db'}") as store:
        state = store.snapshot().state(0)
        assert state.occupants[0].consumer is state.bookings[0].consumer


def test_bookings_of_a_consumer_that_somebody_deleted_count_and_are_reported(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "ledger.db"
    with opened(f"sqlite:///{file}") as store:
        host(store, "a")
        store.commit(claim("server"))
    with closing(sqlite3.connect(file, isolation_level=None)) as connection:
        connection.execute("DELETE FROM consumers")
    with opened(f"sqlite:///{file}") as store:
        assert used(store) == 1
        assert store.snapshot().state(0).occupants == (Occupant("server", ""),)
        errors = [record for record in caplog.records if record.levelname == "ERROR"]
        [told] = {record.getMessage() for record in errors}
        assert "consumer server has bookings and no row" in told
        store.commit(claim("other"))
        assert used(store) == 2
