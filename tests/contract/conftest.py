"""The stores that the contract is run against, and a clock that the tests set."""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest

from moorage.domain.changes import Changeset
from moorage.domain.errors import MoorageError
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


@pytest.fixture
def store(database_url: str, clock: SetClock) -> Iterator[Ledger]:
    ledger = open_store(database_url, clock=clock)
    yield ledger
    ledger.close()


def how_many_pass(store: Ledger, commits: Sequence[Changeset], refusal: type[MoorageError]) -> int:
    """Commit all of them at once; each passes or is refused so."""
    ready = Barrier(len(commits))

    def passes(one: Changeset) -> bool:
        ready.wait()
        try:
            store.commit(one)
        except refusal:
            return False
        return True

    with ThreadPoolExecutor(len(commits)) as pool:
        return sum(pool.map(passes, commits))
