"""The feed on MariaDB: what a crash took back is noticed, and nothing in the log is passed over."""

from collections.abc import Iterator

import pytest
from tests.servers.mariadb import Databases, MariadbServer, ask
from tests.store.hosts import claim, host, loads, opened, said

from moorage.store import Ledger

HOSTS = ("a", "b", "c", "d")


def add_hosts(store: Ledger) -> None:
    for name in HOSTS:
        host(store, name)


@pytest.fixture
def store(mariadb_url: str) -> Iterator[Ledger]:
    with opened(mariadb_url) as one:
        add_hosts(one)
        yield one


def newest(url: str) -> int:
    ((revision,),) = ask(url, "SELECT revision FROM ledger")
    return int(revision)


def test_nothing_is_loaded_wholly_while_it_can_follow(
    mariadb_url: str, store: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded = loads(monkeypatch)
    with opened(mariadb_url) as reader:
        reader.snapshot()
        for number in range(5):
            store.commit(claim(f"c{number}", "a"))
            reader.snapshot()
        reader._backend._log_connection._driver.close()  # type: ignore[attr-defined]
        store.commit(claim("c", "b"))
        assert said(reader)["b"] == (2, 2, 1, ["c"])
    assert loaded == ["everything"], "a break is no reason: the log says where it was"


@pytest.mark.nightly
@pytest.mark.slow
@pytest.mark.process
def test_numbers_that_a_crash_took_back_are_not_mistaken(mariadb_server: MariadbServer) -> None:
    """The server flushes once a second here, so a kill loses commits that readers have seen."""
    careless = "SET GLOBAL innodb_flush_log_at_trx_commit = 0"
    url = Databases(mariadb_server.url).empty()
    lost = 0
    with opened(url) as reader, opened(url) as writer:
        add_hosts(writer)
        for turn in range(12):
            ask(mariadb_server.url, careless)
            for number in range(3):
                writer.commit(claim(f"gone-{turn}-{number}", "a"))
            before, seen = said(reader), reader.snapshot()
            cursor = newest(url)
            mariadb_server.restart()
            taken_back = cursor - newest(url)
            # As many others, so that the newest number is the one the reader knows.
            for number in range(taken_back):
                writer.commit(claim(f"other-{turn}-{number}", "b"))
            with opened(url) as fresh:
                assert said(reader) == said(writer) == said(fresh)
            if taken_back:
                lost += 1
                assert said(reader) != before
                assert reader.snapshot().revision > seen.revision, "no state is named twice"
            if lost == 2:
                break
    assert lost, "no crash lost anything: nothing was tested"


def test_a_commit_that_could_not_be_seen_is_seen_with_the_next_look(
    mariadb_url: str, store: Ledger
) -> None:
    """The log as a reader may find it that looks while two commits end."""
    store.snapshot()
    number = newest(mariadb_url)
    written = "INSERT INTO changes (revision, subject, bookings_only, at) VALUES (%s, %s, 1, %s)"
    moved = "UPDATE providers SET generation = 1000, revision = revision + 1 WHERE uuid = %s"
    ask(mariadb_url, moved, "b")
    ask(mariadb_url, written, number + 2, "b", 2)
    ask(mariadb_url, "UPDATE ledger SET revision = revision + 2")
    generations = {uuid: one[0] for uuid, one in said(store).items()}  # type: ignore[index]
    assert generations == {"a": 1, "b": 1000, "c": 1, "d": 1}
    with opened(mariadb_url) as late:
        assert said(late) == said(store)
        ask(mariadb_url, moved, "a")
        ask(mariadb_url, written, number + 1, "a", 1)
        generations = {uuid: one[0] for uuid, one in said(store).items()}  # type: ignore[index]
        assert generations == {"a": 1000, "b": 1000, "c": 1, "d": 1}
        assert said(late) == said(store)


def test_bookings_beyond_a_gap_in_the_log_are_added_once(mariadb_url: str, store: Ledger) -> None:
    """Two commits, of which readers find only the second one until the first one's entry comes."""
    number = newest(mariadb_url) + 1
    of_first = "FROM changes WHERE revision = %s"
    with opened(mariadb_url) as reader:
        reader.snapshot()
        store.commit(claim("first", "a"))
        store.commit(claim("second", "b"))
        (entry,) = ask(
            mariadb_url, f"SELECT revision, subject, bookings_only, at, added {of_first}", number
        )
        assert entry[-1], "the entry says what was added"
        ask(mariadb_url, f"DELETE {of_first}", number)
        for _ in range(2):
            assert said(reader)["b"] == (2, 2, 1, ["second"])
        with opened(mariadb_url) as late:
            assert said(late)["b"] == (2, 2, 1, ["second"])
            ask(
                mariadb_url,
                "INSERT INTO changes (revision, subject, bookings_only, at, added)"
                " VALUES (%s, %s, %s, %s, %s)",
                *entry,
            )
            for each in (reader, late):
                assert said(each)["a"] == (2, 2, 1, ["first"])
                assert said(each)["b"] == (2, 2, 1, ["second"])


def test_a_database_restored_under_a_reader_is_read_anew(mariadb_url: str, store: Ledger) -> None:
    """A backup of before, put back by hand, and other commits of the same numbers on top."""
    with opened(mariadb_url) as reader:
        number = newest(mariadb_url)
        store.commit(claim("c", "a"))
        assert said(reader)["a"] == (2, 2, 1, ["c"])
        for statement in (
            "DELETE FROM bookings",
            "DELETE FROM consumers",
            "UPDATE providers SET generation = 1, revision = 1 WHERE uuid = 'a'",
            f"DELETE FROM changes WHERE revision > {number}",
            f"UPDATE ledger SET revision = {number}",
        ):
            ask(mariadb_url, statement)
        store.commit(claim("other", "b"))
        assert said(reader)["a"] == (1, 1, 0, [])
        assert said(reader)["b"] == (2, 2, 1, ["other"])
