"""A body that is nested deeply is refused, at whatever depth Python gives up."""

from collections.abc import Callable
from uuid import UUID

import pytest
from falcon.testing import TestClient

from moorage.api import placement
from moorage.http.kernel import CALLER
from moorage.testing.service import OPERATOR, Service

DEPTHS = (10, 100, *range(300, 1_000, 20), 2_000, 20_000)


@pytest.mark.parametrize(
    "body",
    [
        lambda depth: '{"allocations":' + '{"a":' * depth + "1" + "}" * (depth + 1),
        lambda depth: '{"a":' * depth + "1" + "}" * depth,
        lambda depth: "[" * depth + "]" * depth,
    ],
    ids=["below a known field", "objects", "lists"],
)
def test_a_deeply_nested_body_is_refused(body: Callable[[int], str]) -> None:
    service = Service()
    client = TestClient(placement.create_app(service.store, service.env.ids))
    for depth in DEPTHS:
        answer = client.simulate_put(
            f"/allocations/{UUID(int=1)}",
            body=body(depth),
            headers={
                "OpenStack-API-Version": "placement 1.28",
                "Content-Type": "application/json",
            },
            extras={CALLER: OPERATOR, "moorage.request_id": "req-1"},
        )
        assert answer.status_code == 400, (depth, answer.text[:200])
    service.close()
