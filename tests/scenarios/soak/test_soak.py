"""A short soak: `make soak` is the long one."""

from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

import pytest
from tests.scenarios.kills import Database, database
from tests.scenarios.soak.judging import worsened
from tests.scenarios.soak.report import as_markdown
from tests.scenarios.soak.soak import Plan, soak

SHARED = {"postgresql": "postgres_url", "mariadb": "mariadb_url"}


@pytest.mark.slow
@pytest.mark.process
@pytest.mark.parametrize(
    ("kind", "kills"),
    [
        pytest.param("sqlite", 0, id="sqlite-steady", marks=pytest.mark.nightly),
        pytest.param("sqlite", 20, id="sqlite-killed", marks=pytest.mark.nightly),
        pytest.param("postgresql", 0, id="postgresql-steady", marks=pytest.mark.nightly),
        pytest.param("postgresql", 20, id="postgresql-killed"),
        pytest.param("mariadb", 0, id="mariadb-steady", marks=pytest.mark.nightly),
        pytest.param("mariadb", 20, id="mariadb-killed", marks=pytest.mark.nightly),
    ],
)
def test_nothing_is_lost_nor_overbooked_nor_seen_late(
    tmp_path: Path, request: pytest.FixtureRequest, kind: str, kills: int
) -> None:
    """Two services, many clients; every write is looked up at once on any of the two."""
    own: AbstractContextManager[Database] = database(kind, tmp_path)
    if kind != "sqlite" and not kills:  # the server that all tests share will do
        own = nullcontext(Database(request.getfixturevalue(SHARED[kind])))
    seconds = 6 if kills else 3  # what is killed needs some of its time to come back
    plan = Plan(
        seconds, operations=400, each=4, clients=12, services=2, kills_per_minute=kills, planners=0
    )
    with own as (url, restart):
        found = soak(tmp_path, url, plan=plan, restart=restart)
    told = as_markdown(found, kind=kind, command=())
    assert not found.wrong, told
    assert found.done["PUT allocations 204"] > 20, told
    assert found.looked > 3, told


def test_the_watcher_tells_a_worse_overage_from_a_smaller_stock() -> None:
    """It compares only what one and the same stock could do."""
    before = {"a": (20, 20, 1), "b": (20, 10, 1), "c": (20, 10, 1), "d": (5, 20, 1)}
    now = {"a": (21, 20, 1), "b": (19, 10, 1), "c": (21, 5, 2), "d": (20, 20, 1)}
    assert worsened(before, now) == ["a went from 20 to 21 of 20"]
