"""What is said of a provider for the first time over a connection that breaks: it is done once."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Literal

import psycopg
import pytest
from sqlalchemy import make_url, text
from tests.servers.proxy import Proxy

from moorage.domain.changes import (
    Changeset,
    CreateProvider,
    PutAggregates,
    PutInventories,
    PutTraits,
)
from moorage.domain.errors import Busy, DuplicateName, ProviderConflict
from moorage.domain.providers import Inventory
from moorage.store import Ledger, open_store
from moorage.store.opening import connect

if TYPE_CHECKING:
    from collections.abc import Iterator

A = "00000000-aaaa-4aaa-8aaa-aaaaaaaaaaaa"
DESCRIPTION = (
    CreateProvider(A, "a"),
    PutInventories(A, (Inventory("VCPU", 8),), 0, replace_all=True),
    PutTraits(A, frozenset({"HW_CPU_X86_AVX"}), 1),
    PutAggregates(A, frozenset({A}), 2),
)
STEPS = range(len(DESCRIPTION))
WHOLE = b"WITH now AS"
"""How the statement begins where a connection sees it for the first time."""
UNKNOWN = "broke off while committing"
KILL = "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity"
OURS = " WHERE application_name = 'moorage' AND datname = current_database()"


@pytest.fixture
def store(postgres_url: str) -> Iterator[Ledger]:
    one = open_store(postgres_url)
    yield one
    one.close()


@pytest.fixture
def admin(postgres_url: str) -> Iterator[psycopg.Connection]:
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        yield connection


def describe(store: Ledger, steps: int) -> None:
    for change in DESCRIPTION[:steps]:
        store.commit(Changeset((change,)))


def check(store: Ledger, admin: psycopg.Connection, steps: int) -> None:
    """So many steps were done, each of them once."""
    found = store.provider(A)
    assert (found.generation, found.revision) == (steps - 1, steps)
    has = (found.inventories, found.traits, found.aggregates)
    assert [len(one) for one in has] == [int(steps > step) for step in (1, 2, 3)]
    logged = admin.execute("SELECT count(*) FROM changes WHERE subject = %s", (A,)).fetchone()
    assert logged == (steps,)
    snapshot = store.snapshot()
    assert int(snapshot.generation[snapshot.row(A)]) == steps - 1


# --- before anything was sent -------------------------------------------------------------------


@pytest.mark.parametrize("step", STEPS)
def test_a_connection_that_broke_before_costs_nothing(
    store: Ledger, admin: psycopg.Connection, step: int
) -> None:
    describe(store, step)
    admin.execute(KILL + OURS)
    store.commit(Changeset((DESCRIPTION[step],)))
    check(store, admin, step + 1)


def test_what_is_refused_anyway_is_so_after_a_restart(
    store: Ledger, admin: psycopg.Connection
) -> None:
    describe(store, 1)
    admin.execute(KILL + OURS)
    with pytest.raises(DuplicateName):
        store.commit(Changeset((DESCRIPTION[0],)))
    check(store, admin, 1)


# --- while it waits for its locks ---------------------------------------------------------------


@contextmanager
def locked(url: str) -> Iterator[psycopg.Connection]:
    """Somebody else is busy with the provider."""
    with psycopg.connect(url) as connection:
        connection.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 2))", (A,))
        yield connection


def wait_for_a_waiter(admin: psycopg.Connection, besides: int = 0) -> int:
    """The process of a connection of ours that waits for a lock."""
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        found = admin.execute(
            "SELECT pid FROM pg_stat_activity" + OURS + " AND wait_event_type = 'Lock'"
            " AND pid <> %s",
            (besides,),
        ).fetchone()
        if found is not None:
            return int(found[0])
        time.sleep(0.01)
    raise AssertionError("nobody waits")


@pytest.mark.parametrize("step", STEPS)
def test_who_is_cut_off_while_waiting_is_done_once(
    store: Ledger, admin: psycopg.Connection, postgres_url: str, step: int
) -> None:
    describe(store, step)
    with ThreadPoolExecutor(1) as pool:
        with locked(postgres_url):
            told = pool.submit(store.commit, Changeset((DESCRIPTION[step],)))
            first = wait_for_a_waiter(admin)
            admin.execute("SELECT pg_terminate_backend(%s, 5000)", (first,))
            wait_for_a_waiter(admin, first)
        assert told.result(20).provider_generations == {A: step}
    check(store, admin, step + 1)


def test_who_is_cut_off_and_then_refused_says_that_nobody_knows(
    store: Ledger, admin: psycopg.Connection, postgres_url: str
) -> None:
    describe(store, 1)
    with ThreadPoolExecutor(1) as pool:
        with locked(postgres_url) as other:
            told = pool.submit(store.commit, Changeset((DESCRIPTION[1],)))
            first = wait_for_a_waiter(admin)
            admin.execute("SELECT pg_terminate_backend(%s, 5000)", (first,))
            wait_for_a_waiter(admin, first)
            other.execute("UPDATE providers SET generation = 1 WHERE uuid = %s", (A,))
        with pytest.raises(Busy, match=UNKNOWN):
            told.result(20)
    assert store.provider(A).inventories == ()


def test_who_waits_sees_what_was_done_meanwhile(
    store: Ledger, admin: psycopg.Connection, postgres_url: str
) -> None:
    """Whatever isolation the database would give by itself."""
    describe(store, 1)
    name = make_url(postgres_url).database
    admin.execute(f"ALTER DATABASE {name} SET default_transaction_isolation = 'repeatable read'")
    try:
        backend = connect(postgres_url)
        (rows,) = backend.ask((text("SHOW transaction_isolation"), {}))
        assert rows.scalar_one() == "read committed"
        backend.close()
        with ThreadPoolExecutor(1) as pool, closing(open_store(postgres_url)) as fresh:
            with locked(postgres_url) as other:
                told = pool.submit(fresh.commit, Changeset((DESCRIPTION[1],)))
                wait_for_a_waiter(admin)
                other.execute("UPDATE providers SET generation = 1 WHERE uuid = %s", (A,))
            with pytest.raises(ProviderConflict, match="expected 0, found 1"):
                told.result(20)
    finally:
        admin.execute(f"ALTER DATABASE {name} RESET default_transaction_isolation")


# --- where the answer is lost -------------------------------------------------------------------


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("cut", ["before", "after"])
def test_an_answer_that_is_lost_is_never_a_wrong_one(
    postgres_url: str,
    store: Ledger,
    admin: psycopg.Connection,
    cut: Literal["before", "after"],
    step: int,
) -> None:
    describe(store, step)
    with Proxy(make_url(postgres_url).port or 5432, WHOLE) as proxy:
        url = make_url(postgres_url).set(host="127.0.0.1", port=proxy.port)
        through = open_store(url.render_as_string(hide_password=False))
        proxy.cut = cut
        if cut == "before":
            through.commit(Changeset((DESCRIPTION[step],)))
        else:
            with pytest.raises(Busy, match=UNKNOWN):
                through.commit(Changeset((DESCRIPTION[step],)))
        assert proxy.cuts == 1
        with pytest.raises((DuplicateName, ProviderConflict)):
            through.commit(Changeset((DESCRIPTION[step],)))
        through.close()
    check(store, admin, step + 1)


# --- other trouble ------------------------------------------------------------------------------


@pytest.mark.parametrize("step", STEPS)
def test_what_was_prepared_for_other_columns_is_prepared_anew(
    store: Ledger, admin: psycopg.Connection, step: int
) -> None:
    for change in DESCRIPTION:
        store.commit(Changeset((change,)))
    admin.execute("TRUNCATE providers, inventories, provider_traits, provider_aggregates, changes")
    describe(store, step)
    for table, column in (("providers", "name"), ("inventories", "resource_class")):
        admin.execute(f"ALTER TABLE {table} ALTER COLUMN {column} TYPE text")
    try:
        store.commit(Changeset((DESCRIPTION[step],)))
        found = store.provider(A)
        assert (found.generation, found.revision) == (step, step + 1)
    finally:
        admin.execute("ALTER TABLE providers ALTER COLUMN name TYPE varchar(200)")
        admin.execute("ALTER TABLE inventories ALTER COLUMN resource_class TYPE varchar(255)")


def test_who_gets_no_lock_in_time_is_told_to_come_again(
    store: Ledger, admin: psycopg.Connection, postgres_url: str
) -> None:
    describe(store, 1)
    with ThreadPoolExecutor(1) as pool, locked(postgres_url):
        told = pool.submit(store.commit, Changeset((DESCRIPTION[1],)))
        admin.execute("SELECT pg_cancel_backend(%s)", (wait_for_a_waiter(admin),))
        with pytest.raises(Busy, match="too many writers"):
            told.result(20)
    check(store, admin, 1)
