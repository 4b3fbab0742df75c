"""Absurd numbers: ratios beyond 64 bits, and hyperedges without end."""

from typing import Any

import pytest

from moorage.domain.changes import Changeset, CreateProvider, PutInventories
from moorage.domain.providers import Inventory
from moorage.domain.resources import MAX_AMOUNT
from moorage.testing.service import OPERATOR, Service


@pytest.mark.parametrize("objective", ["spread", "pack", "balance"])
@pytest.mark.parametrize("ratio", [1.0, 1e6, 1e9, 3e38])
def test_no_ratio_makes_the_impossible_of_the_possible(ratio: float, objective: str) -> None:
    service = Service()
    for number in range(4):
        uuid = f"33333333-3333-4333-8333-33333333333{number}"
        stock = Inventory("VCPU", MAX_AMOUNT, allocation_ratio=ratio)
        changes = (CreateProvider(uuid, f"n{number}"), PutInventories(uuid, (stock,), None))
        service.store.commit(Changeset(changes))
    body = {
        "name": "e",
        "members": [{"name": "a", "count": 4, "resources": {"VCPU": MAX_AMOUNT}}],
        "decide": {"objective": objective, "max_additional": ["a"]},
    }
    made = service.call("POST", "/ensembles", {"ensemble": body}, caller=OPERATOR)
    assert made.status_code == 201, made.text
    service.close()


def test_hyperedges_without_end_are_refused(service: Service) -> None:
    everybody: dict[str, Any] = {"type": "anti-affinity", "members": ["*"], "level": "zone"}
    body = {
        "name": "e",
        "members": [{"name": "a", "count": 5_000, "resources": {"VCPU": 1}}],
        "policies": [
            {**everybody, "name": f"p{number}", "max_per_domain": 5_000} for number in range(21)
        ],
    }
    refused = service.call("POST", "/ensembles", {"ensemble": body})
    assert refused.status_code == 403
    assert refused.json["errors"][0]["limit"] == 100_000
