"""Moorage on a Galera cluster: a proxy leads all replicas to one node, which is lost (ADR-0018)."""

import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from pathlib import Path
from threading import Thread

import pytest
from tests.scenarios.kills import DATABASE
from tests.scenarios.soak.report import as_markdown
from tests.scenarios.soak.soak import Plan, soak
from tests.servers.galera import Cluster, NodeProxy, url
from tests.servers.proxy import ON_MARIADB, Proxy
from tests.store.hosts import claim, host, used

from moorage.domain.errors import CapacityExceeded
from moorage.store import Ledger, open_store

pytestmark = [pytest.mark.slow, pytest.mark.process]


def take(store: Ledger, consumer: str) -> None:
    """For a new consumer: a second commit of the same would be a conflict."""
    store.commit(claim(consumer))


def test_the_last_units_go_to_as_many_on_whatever_node(cluster: Cluster) -> None:
    """Each looks at its own node right after, and at that of another."""
    with ExitStack() as stack:
        urls = cluster.urls(cluster.make())
        stores = [stack.enter_context(closing(open_store(url))) for url in urls]
        host(stores[0], "a", 5)

        def want(number: int) -> bool:
            try:
                take(stores[number % 3], f"c{number}")
            except CapacityExceeded:
                return False
            return stores[(number + 1) % 3].consumer(f"c{number}") is not None

        with ThreadPoolExecutor(12) as pool:
            won = list(pool.map(want, range(12)))
        assert sum(won) == 5
        assert [used(one) for one in stores] == [5, 5, 5]


def test_a_read_anywhere_sees_what_was_acknowledged_anywhere(cluster: Cluster) -> None:
    """Without `wsrep_sync_wait` one of ten of them is late."""
    with ExitStack() as stack:
        urls = cluster.urls(cluster.make())
        stores = [stack.enter_context(closing(open_store(url))) for url in urls]
        host(stores[0], "a", 1_000)
        for number in range(100):
            writer, reader = stores[number % 3], stores[(number + 1) % 3]
            take(writer, f"c{number}")
            assert reader.consumer(f"c{number}") is not None
            assert used(reader) == number + 1


def test_a_commit_whose_end_nobody_heard_is_looked_up_on_the_next_node(cluster: Cluster) -> None:
    """And done there if it did not come through: once, either way."""
    database = cluster.make()
    first, second = cluster.nodes[:2]
    with closing(open_store(cluster.urls(database)[2])) as looking:
        host(looking, "a", 1_000)
        for number in range(8):
            with Proxy(first.port, ON_MARIADB) as proxy:
                with closing(open_store(url(database, proxy.port))) as store:
                    proxy.cut = "after" if number % 2 else "before"
                    proxy.target = second.port
                    take(store, f"c{number}")
                assert proxy.cuts == 1
            assert used(looking) == number + 1


def test_a_node_that_lost_the_others_is_left(cluster: Cluster) -> None:
    """A partition: it refuses even to read. What was in the middle goes on at the next node."""
    database = cluster.make()
    first, second = cluster.nodes[:2]
    with (
        NodeProxy(cluster) as proxy,
        closing(open_store(url(database, proxy.port))) as store,
        closing(open_store(cluster.urls(database)[1])) as other,
    ):
        host(store, "a", 1_000)
        cut = Thread(target=first.isolate, kwargs={"alone": True})
        cut.start()
        done, until = 0, time.monotonic() + 5
        while time.monotonic() < until or done <= 10:
            take(store, f"c{done}")
            done += 1
        cut.join()
        assert not first.serves()
        assert second.serves()
        assert used(other) == used(store) == done > 10
        first.isolate(alone=False)


def test_the_node_in_use_is_killed(tmp_path: Path, cluster: Cluster) -> None:
    """All replicas use the same; it is killed under load, and comes back."""

    def kill() -> None:
        (victim,) = (one for one in cluster.nodes if one.port == proxy.target)
        victim.end()
        victim.start()

    plan = Plan(
        seconds=8,
        operations=400,
        clients=8,
        services=2,
        planners=0,
        kills_per_minute=30,
        aims=(DATABASE,),
    )
    with NodeProxy(cluster) as proxy:
        where = url(cluster.make(), proxy.port)
        found = soak(tmp_path, where, plan=plan, restart=kill)
    told = as_markdown(found, kind="galera", command=())
    assert not found.wrong, told
    assert found.kills[DATABASE] > 0, told
    assert found.done["PUT allocations 204"] > 20, told
