"""Four clients on a fleet that is used up: each is answered, and none is told to come back."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from tests.scenarios.processes.conftest import StartService
from tests.scenarios.processes.test_one_tenant import ADMIN, call

from moorage.client.discovery import Access
from moorage.client.moorage import connect
from moorage.testing.in_process import load

pytestmark = pytest.mark.process

RACKS = 24
FLEET = f"""\
fleet: used-up
topology:
  location:
    levels: [rack]
    domains:
      - {{name: "r{{n}}", count: {RACKS}, level: rack}}
hosts:
  - name: "h{{n}}"
    count: {4 * RACKS}
    inventories: {{VCPU: 5}}
    place:
      location: {{name: "r{{n}}", count: {RACKS}}}
"""
"""Each rack holds eight members of two VCPU: a cell of five, and three more, which are no cell."""


def cells(name: str) -> dict[str, Any]:
    """A cell more than there are racks, of less than two thirds of all members that fit."""
    roles = [{"name": f"cell{n}", "count": 5, "resources": {"VCPU": 2}} for n in range(RACKS + 1)]
    near = [
        {
            "name": f"near-{one['name']}",
            "type": "affinity",
            "members": [one["name"]],
            "level": "rack",
        }
        for one in roles
    ]
    ensemble = {"name": name, "members": roles, "policies": near, "decide": {"hold": "PT10M"}}
    return {"ensemble": ensemble}


def test_what_a_used_up_fleet_cannot_hold_is_refused_and_not_put_off(start: StartService) -> None:
    """The exact solver finds no proof within the time limit; four at once were answered 503."""
    service = start("--planners", "1", "--log-level", "warning")
    service.eventually(lambda: service.get("/readyz")[0] == 200)
    with connect(Access(f"http://127.0.0.1:{service.port}", ADMIN["X-Auth-Token"])) as operator:
        load(operator, FLEET)

    def ask(client: int) -> list[tuple[int, str]]:
        who = {"X-Auth-Token": f"u{client}:project-{client}", "X-Roles": "member"}
        answers = [call(service, "POST", "/v1/ensembles", who, cells(f"e{n}")) for n in range(2)]
        return [(status, str(body["errors"][0]["code"])) for status, _, body in answers]

    with ThreadPoolExecutor(4) as clients:
        found = [one for answers in clients.map(ask, range(4)) for one in answers]
    assert found == [(409, "ensemble.infeasible")] * 8
