"""A refusal whose time runs out, wherever that is, tells the conflict that is proved."""

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from moorage.testing.service import OPERATOR, Service

APART = {"name": "apart", "type": "anti-affinity", "members": ["web", "db"], "level": "rack"}
EVEN = {"name": "even", "type": "spread", "members": ["db"], "level": "rack", "max_skew": 1}


class Cut:
    """A stopwatch on which, after so many looks, a thousand seconds have passed."""

    def __init__(self) -> None:
        self.looks, self.at = 0, 10**9

    def __call__(self) -> float:
        self.looks += 1
        return 0.0 if self.looks <= self.at else 1000.0


def web(count: int, size: int) -> dict[str, Any]:
    return {"name": "web", "count": count, "resources": {"VCPU": size}}


def asked(members: dict[str, Any], *policies: dict[str, Any]) -> dict[str, Any]:
    db = {"name": "db", "count": 2, "resources": {"VCPU": 1}}
    return {"name": "late", "members": [members, db], "policies": [*policies]}


STAY = {"start": "2026-12-01T00:00:00Z", "end": "2026-12-02T00:00:00Z"}
REFUSED = {
    "a size that no host has": ("/ensembles", asked(web(3, 100_000), APART, EVEN), "static"),
    "described only": ("/ensembles", asked(web(3, 100_000), EVEN), "static"),
    "more than the fleet": ("/ensembles", asked(web(40, 8), EVEN), "static"),
    "more racks than there are": ("/ensembles", asked(web(3, 1), APART), "static"),
    "a lease": ("/leases", asked(web(3, 100_000), EVEN), "static"),
    "an offer": ("/offers", asked(web(3, 100_000), EVEN), "static"),
}


def body(case: str) -> tuple[str, dict[str, Any]]:
    path, ensemble, _ = REFUSED[case]
    if path == "/ensembles":
        more: dict[str, Any] = {} if case == "described only" else {"decide": {}}
        return path, {"ensemble": {**ensemble, **more}}
    if path == "/leases":
        return path, {"lease": {"name": "late", "ensemble": ensemble, **STAY}}
    within = {"earliest": STAY["start"], "duration": "PT1H", "hold": "PT1H"}
    return path, {"offer_request": {"ensemble": ensemble, **within}}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_proved_is_told_whenever_the_time_runs_out(case: str, three_racks: str) -> None:
    service, cut = Service(three_racks), Cut()
    service.env = replace(service.env, stopwatch=cut)
    path, request = body(case)
    whole = service.call("POST", path, request, caller=OPERATOR)
    assert whole.status_code == 409, whole.text
    why = whole.json["errors"][0]["explanation"]
    assert (why["stage"], why["complete"], why["minimal"]) == (REFUSED[case][2], True, True)
    looks, told = cut.looks, Counter[str]()
    for cut.at in range(0, looks, 1 + looks // 12):
        cut.looks = 0
        answer = service.call("POST", path, request, caller=OPERATOR)
        if answer.status_code == 503:  # nothing was proved yet
            told["nothing"] += 1
            continue
        assert answer.status_code == 409, answer.text
        found = answer.json["errors"][0]["explanation"]
        told[found["stage"]] += 1
        assert found["stage"] in {why["stage"], "unknown"}
        assert found["conflict"], (cut.at, found)
        if not found["complete"]:
            assert found["note"], (cut.at, found)
        if found["minimal"]:
            assert found["conflict"][0] == why["conflict"][0], (cut.at, found)
    service.close()
    assert told[why["stage"]] > told.total() / 2, told
