"""A short soak: `make soak` is the long one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.scenarios.soak.soak import soak

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.slow
@pytest.mark.process
@pytest.mark.parametrize("kind", ["sqlite", "postgres", "mariadb"])
@pytest.mark.parametrize("kills", [0, 20], ids=["steady", "killed"])
def test_nothing_is_lost_nor_overbooked_nor_seen_late(
    tmp_path: Path, request: pytest.FixtureRequest, kind: str, kills: int
) -> None:
    """Two services, many clients; every write is looked up at once on any of the two."""
    database = f"sqlite:///{tmp_path / 'ledger.db'}"
    if kind != "sqlite":
        database = str(request.getfixturevalue(f"{kind}_url"))
    found = soak(tmp_path, database, seconds=6, clients=12, services=2, kills_per_minute=kills)
    assert not found.wrong, found.told()
    assert found.done["PUT allocations 204"] > 20, found.told()
    assert found.least > 3, found.told()
