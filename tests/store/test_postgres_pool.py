"""Connections to PostgreSQL: how many there are, and what a break does to the others."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from threading import Barrier

import psycopg
from sqlalchemy import text

from moorage.domain.changes import Changeset, CreateProvider
from moorage.store import Ledger, open_store
from moorage.store.database.session import Session
from moorage.store.postgresql.connect import CONNECTIONS

_PROCESS = text("SELECT pg_backend_pid()")


def at_once(store: Ledger, many: int) -> set[int]:
    """The processes of the server that answer so many transactions at a time."""
    together = Barrier(many)

    def ask(session: Session) -> int:
        together.wait(30)
        return int(session.scalar(_PROCESS))

    with ThreadPoolExecutor(many) as pool:
        return set(pool.map(lambda _: store._backend.read(ask), range(many)))


def test_no_more_are_made_than_there_may_be_and_all_are_kept(postgres_url: str) -> None:
    with closing(open_store(postgres_url)) as store:
        first = at_once(store, CONNECTIONS)
        assert len(first) == CONNECTIONS
        found = store.connections()
        assert (found.in_use, found.idle, found.limit) == (0, CONNECTIONS, CONNECTIONS)
        assert at_once(store, CONNECTIONS) == first


def test_where_one_has_broken_the_others_are_made_anew(postgres_url: str) -> None:
    with closing(open_store(postgres_url)) as store:
        before = at_once(store, 4)
        with psycopg.connect(postgres_url, autocommit=True) as other:
            newest = store._backend.read(lambda session: session.scalar(_PROCESS))
            other.execute("SELECT pg_terminate_backend(%s, 10000)", (newest,))
        store.commit(Changeset((CreateProvider("a", "a"),)))
        assert not before & at_once(store, 4)


def test_a_connection_of_a_refused_commit_is_lent_again(postgres_url: str) -> None:
    with closing(open_store(postgres_url)) as store:
        (before,) = at_once(store, 1)

        class RefusedError(Exception):
            pass

        def refuse(session: Session) -> None:
            session.scalar(_PROCESS)
            raise RefusedError

        for _ in range(CONNECTIONS + 1):
            try:
                store._backend.write(refuse)
            except RefusedError:
                continue
        assert at_once(store, 1) == {before}
