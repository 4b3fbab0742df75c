"""The stores that the contract is run against, and a clock that the tests set."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from moorage.store import Ledger, open_store


class SetClock:
    """A clock that stands still until told otherwise."""

    def __init__(self, instant: int = 1_000) -> None:
        self.instant = instant

    def now(self) -> int:
        return self.instant


@pytest.fixture
def clock() -> SetClock:
    return SetClock()


@pytest.fixture(params=["sqlite", "postgres", "mariadb"])
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'ledger.db'}"
    return str(request.getfixturevalue(f"{request.param}_url"))


@pytest.fixture(params=["sqlite", "postgres", "mariadb"])
def new_database_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Of a database that nobody has opened yet."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'ledger.db'}"
    return str(request.getfixturevalue(f"{request.param}_databases").empty())


@pytest.fixture
def store(database_url: str, clock: SetClock) -> Iterator[Ledger]:
    ledger = open_store(database_url, clock=clock)
    yield ledger
    ledger.close()
