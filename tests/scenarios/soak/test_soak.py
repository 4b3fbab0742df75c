"""A short soak: `make soak` is the long one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.scenarios.soak.judging import worsened
from tests.scenarios.soak.report import as_markdown
from tests.scenarios.soak.soak import Plan, soak
from tests.servers import mariadb, postgres

if TYPE_CHECKING:
    from pathlib import Path

_SERVERS = {"postgres": postgres, "mariadb": mariadb}


@pytest.mark.slow
@pytest.mark.process
@pytest.mark.parametrize("kind", ["sqlite", "postgres", "mariadb"])
@pytest.mark.parametrize("kills", [0, 20], ids=["steady", "killed"])
def test_nothing_is_lost_nor_overbooked_nor_seen_late(
    tmp_path: Path, request: pytest.FixtureRequest, kind: str, kills: int
) -> None:
    """Two services, many clients; every write is looked up at once on any of the two."""
    database, restart = f"sqlite:///{tmp_path / 'ledger.db'}", None
    if kind != "sqlite" and kills:
        server = request.getfixturevalue(f"{kind}_server")
        database, restart = _SERVERS[kind].Databases(server.url).empty(), server.restart
    elif kind != "sqlite":
        database = str(request.getfixturevalue(f"{kind}_url"))
    seconds = 6 if kills else 3  # what is killed needs some of its time to come back
    plan = Plan(seconds=seconds, clients=12, services=2, kills_per_minute=kills)
    found = soak(tmp_path, database, plan=plan, restart=restart)
    told = as_markdown(found, kind=kind, command=())
    assert not found.wrong, told
    assert found.done["PUT allocations 204"] > 20, told
    assert found.least > 3, told
    assert found.looked > 3, told


def test_the_watcher_tells_a_worse_overage_from_a_smaller_stock() -> None:
    """It compares only what one and the same stock could do."""
    before = {"a": (20, 20, 1), "b": (20, 10, 1), "c": (20, 10, 1), "d": (5, 20, 1)}
    now = {"a": (21, 20, 1), "b": (19, 10, 1), "c": (21, 5, 2), "d": (20, 20, 1)}
    assert worsened(before, now) == ["a went from 20 to 21 of 20"]
