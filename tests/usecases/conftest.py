from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from moorage.testing.service import Service

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def three_racks() -> str:
    return (ROOT / "fleets/three-racks.yaml").read_text(encoding="utf-8")


@pytest.fixture
def service(three_racks: str) -> Iterator[Service]:
    made = Service(three_racks)
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
    body = {"ensemble": {**shop, "decide": {"hold": "PT10M"}}}
    answer = service.call("POST", "/ensembles", body)
    assert answer.status_code == 201, answer.text
    found: dict[str, Any] = answer.json
    return found
