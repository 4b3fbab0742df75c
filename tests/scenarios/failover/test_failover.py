"""A standby takes the primary's place under services that are busy (ADR-0007)."""

from pathlib import Path

import pytest
from tests.scenarios.kills import DATABASE
from tests.scenarios.soak.report import as_markdown
from tests.scenarios.soak.soak import Plan, soak
from tests.servers.pair import SYNCHRONOUS, Pair
from tests.store.hosts import claim, host, used

from moorage.store import open_store

pytestmark = [pytest.mark.slow, pytest.mark.process]


@pytest.mark.nightly
def test_services_go_on_and_nothing_acknowledged_is_lost(
    tmp_path: Path, postgres_pair: Pair
) -> None:
    """The soak judges: every acknowledged write stands, and was seen at once on every service."""
    postgres_pair.wait_for_each_other(SYNCHRONOUS)
    plan = Plan(
        seconds=8,
        operations=400,
        clients=8,
        services=2,
        planners=0,
        kills_per_minute=30,
        aims=(DATABASE,),
    )
    found = soak(
        tmp_path,
        postgres_pair.make("moorage"),
        plan=plan,
        restart=postgres_pair.fail_over_and_replace,
    )
    told = as_markdown(found, kind="failover", command=())
    assert not found.wrong, told
    assert found.kills[DATABASE] > 0, told
    assert found.done["PUT allocations 204"] > 20, told


def test_readers_notice_that_a_standby_has_less(postgres_pair: Pair) -> None:
    """Without waiting for the standby: what they had seen and it never got is gone everywhere.

    The numbers of the lost commits are given again, to others.
    """
    url = postgres_pair.make("moorage")
    store, other = open_store(url), open_store(url)
    postgres_pair.wait_for_each_other(SYNCHRONOUS)
    host(store, "a")
    store.commit(claim("kept"))
    postgres_pair.wait_for_each_other("")
    postgres_pair.standby.kill()
    for number in range(5):
        store.commit(claim(f"lost-{number}"))
    assert [used(one) for one in (store, other)] == [6, 6]
    postgres_pair.primary.kill()
    postgres_pair.standby.start()
    postgres_pair.fail_over()
    for number in range(5):
        store.commit(claim(f"new-{number}"))
    fresh = open_store(url)
    assert [used(one) for one in (store, other, fresh)] == [6, 6, 6]
    assert store.consumer("lost-0") is None
    for one in (store, other, fresh):
        one.close()
