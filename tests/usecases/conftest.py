from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import pytest
import yaml

from moorage.domain.changes import Changeset, Committed
from moorage.domain.period import Instant
from moorage.store import Ledger
from moorage.testing.service import Service
from moorage.usecases.environment import UseCaseEnvironment

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def three_racks() -> str:
    return (ROOT / "fleets/three-racks.yaml").read_text(encoding="utf-8")


@pytest.fixture
def service(request: pytest.FixtureRequest, three_racks: str) -> Iterator[Service]:
    """Over the FLEET of the test's module, or the three racks; within its LIMITS."""
    fleet = getattr(request.module, "FLEET", three_racks)
    made = Service(fleet, limits=getattr(request.module, "LIMITS", None))
    yield made
    made.close()


@pytest.fixture(scope="session")
def shop() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(
        (ROOT / "examples/shop.yaml").read_text(encoding="utf-8")
    )
    return found


@pytest.fixture
def held(service: Service, shop: dict[str, Any]) -> dict[str, Any]:
    """The shop of the tenant, placed and held for ten minutes."""
    body = {"ensemble": {**shop, "decide": {"hold": "PT10M", "objective": "balance"}}}
    answer = service.call("POST", "/ensembles", body)
    assert answer.status_code == 201, answer.text
    found: dict[str, Any] = answer.json
    return found


class Between:
    """The store; just before its next commit, once, somebody else does something."""

    def __init__(self, store: Ledger, act: Callable[[], object]) -> None:
        self._store = store
        self._acts = [act]

    def commit(self, changeset: Changeset) -> Committed:
        if self._acts:
            self._acts.pop()()
        return self._store.commit(changeset)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)


@pytest.fixture
def overtaken(service: Service) -> Callable[[Callable[[], object]], UseCaseEnvironment]:
    """UseCaseEnvironment with which one use case is overtaken by an act of somebody else."""
    return lambda act: replace(service.env, store=Between(service.store, act))


@pytest.fixture
def ticking(service: Service, monkeypatch: pytest.MonkeyPatch) -> Callable[[Instant], None]:
    """From the given instant on, the clock moves by a microsecond at every read."""

    def start(instant: Instant) -> None:
        reads = count(instant)
        monkeypatch.setattr(service.clock, "now", lambda: next(reads))

    return start
