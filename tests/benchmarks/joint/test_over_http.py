"""The measurement over HTTP: a small fleet in a real service."""

import json

import pytest
from benchmarks.joint import over_http, report
from benchmarks.joint.fleet import make_fleet


def test_a_service_decides_for_one_client_and_for_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(over_http, "SINGLE", 1)
    monkeypatch.setattr(over_http, "PER_CLIENT", 1)
    found = over_http.measure(over_http.Service("sqlite", "1"), 400, 0.4, "tune", members=12)
    assert found["bookings"] > 400
    assert found["refused"] == {}
    assert found["sixteen"]["statuses"] == {"201": over_http.CLIENTS * over_http.ROUNDS}
    page = "\n".join(report.page({"http": [found | {"machine": MACHINE}]}))
    assert "Measured on x, 2 cores, Python 3.\n" in page
    assert f"| {over_http.CLIENTS * over_http.ROUNDS} x 201 |" in page


MACHINE = {"processor": "x", "cores": 2, "python": "3"}


def test_a_body_says_what_the_request_says() -> None:
    fleet = make_fleet(400, load=0.4, seed=1)
    instance = next(over_http._instances(fleet, "tune", 12, 0))
    ensemble = json.loads(over_http.body_of(instance.request, "one"))["ensemble"]
    assert sum(role["count"] for role in ensemble["members"]) == len(instance.request.members)
    assert len(ensemble["policies"]) == len(instance.request.policies)
