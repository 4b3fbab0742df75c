"""Quotas and the operator's check at Blazar's door: refusals in its form."""

import json
from dataclasses import replace

from falcon.testing import TestClient
from tests.api.leases.conftest import Door, instances
from tests.api.leases.test_changes import part, put
from tests.api.leases.test_wire import late
from tests.outward.conftest import Answer, receiving

from moorage.api.leases import create_app
from moorage.domain.quotas import QuotaName
from moorage.outward.config import OutwardConfig
from moorage.outward.outgoing_calls import lease_check
from moorage.testing.service import OPERATOR, TENANT
from moorage.usecases.shared.quotas import set_quota


def test_what_a_quota_refuses_is_403_with_its_words(one: Door) -> None:
    set_quota(one.service.env, OPERATOR, TENANT.project_id, {QuotaName.UNITS: 3})
    lease = one.lease("10:00", "12:00", instances(2, 1)).json["lease"]
    refused = late(one.lease("11:00", "13:00", instances(2, 1)), 403)
    assert refused.startswith("lease-units limit 3 used 2 requested 2   passes at 2026-12-07T12:00")
    assert "limit 3" in late(put(one, lease, part(lease, amount=4)), 403)
    assert put(one, lease, part(lease, amount=3)).status_code == 200


def test_what_the_check_refuses_is_403_with_its_words(one: Door) -> None:
    answer = json.dumps({"message": "no budget left"}).encode()
    with receiving(lambda _: Answer(403, answer)) as receiver:
        asks = lease_check(OutwardConfig(check=receiver.url))
        client = TestClient(create_app(replace(one.service.env, check=asks)))
        body = {
            "name": "l",
            "start_date": "2026-12-07 10:00",
            "end_date": "2026-12-07 12:00",
            "reservations": [instances(2, 1)],
            "events": [],
        }
        extras = {"moorage.caller": TENANT, "moorage.request_id": "req-here"}
        refused = client.simulate_post("/v1/leases", json=body, extras=extras)
        assert late(refused, 403) == "no budget left"
