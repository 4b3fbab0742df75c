"""Commits that count what a project holds come one at a time: they wait without a connection."""

import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import psycopg

from moorage.domain.changes import BoundHeld, Changeset, CreateProvider
from moorage.store import open_store

CROWD = 30
"""More than a process has connections."""
_LOCK = "SELECT pg_advisory_xact_lock(hashtextextended('held project-a', 3))"


def held(project: str) -> Changeset:
    return Changeset((BoundHeld(project, 10, 1),))


def test_a_crowd_of_one_project_leaves_connections_to_everybody_else(postgres_url: str) -> None:
    with (
        closing(open_store(postgres_url)) as store,
        psycopg.connect(postgres_url) as stranger,
        ThreadPoolExecutor(CROWD + 1) as many,
    ):
        stranger.execute(_LOCK)
        waiting = [many.submit(store.commit, held("project-a")) for _ in range(CROWD)]
        deadline = time.monotonic() + 100
        while not store.connections().in_use:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        time.sleep(0.3)
        assert not any(one.done() for one in waiting)
        assert store.connections().in_use == 1
        many.submit(store.commit, Changeset((CreateProvider("a", "a"),))).result(60)
        many.submit(store.commit, held("project-b")).result(60)
        assert not any(one.done() for one in waiting)
        stranger.rollback()
        for one in waiting:
            one.result(60)
