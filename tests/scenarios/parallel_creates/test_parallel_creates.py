"""Fifty at once: exactly one shop fits, and no policy is broken."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier
from typing import Any

import pytest
import yaml

from moorage.testing.ledger_copy import new_database
from moorage.testing.service import OPERATOR, OTHER, TENANT, Service

ROOT = Path(__file__).parents[3]
CALLERS = (TENANT, OTHER)


def shop() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((ROOT / "examples/shop.yaml").read_text("utf-8"))
    return found


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    """Over a file, so that every thread has a connection of its own."""
    fleet = (ROOT / "fleets/three-racks.yaml").read_text("utf-8")
    made = Service(fleet, database=new_database(tmp_path))
    yield made
    made.close()


def test_of_fifty_parallel_creations_exactly_one_succeeds(service: Service) -> None:
    start = Barrier(10)

    def create(number: int) -> Any:
        if number < 10:
            start.wait(timeout=60)
        wanted = {**shop(), "name": f"shop-{number}", "decide": {"hold": "PT10M"}}
        body = {"ensemble": wanted}
        return service.call("POST", "/ensembles", body, caller=CALLERS[number % 2])

    with ThreadPoolExecutor(10) as threads:
        answers = list(threads.map(create, range(50)))
    statuses = sorted(answer.status_code for answer in answers)
    assert statuses == [201] + [409] * 49, [
        a.text for a in answers if a.status_code not in {201, 409}
    ]
    refused = {a.json["errors"][0]["code"] for a in answers if a.status_code == 409}
    assert refused == {"ensemble.infeasible"}

    stored = service.call("GET", "/ensembles", caller=OPERATOR, query={"all_projects": "true"}).json
    (kept,) = stored["ensembles"]
    shown = service.call(
        "GET", f"/ensembles/{kept['id']}", caller=OPERATOR, query={"compliance": "true"}
    ).json["ensemble"]
    assert shown["compliance"] == []
    assert len(service.store.bookings(decision=shown["decision"]["id"])) == 9


def test_the_same_request_sent_twice_at_once_is_one_ensemble(service: Service) -> None:
    name = "aaaaaaaa-0000-4000-8000-000000000001"
    body = {"ensemble": {**shop(), "id": name, "decide": {"hold": "PT10M"}}}
    with ThreadPoolExecutor(6) as threads:
        answers = list(threads.map(lambda _: service.call("POST", "/ensembles", body), range(6)))
    assert {answer.status_code for answer in answers} == {201}, [a.text for a in answers]
    assert len({answer.json["decision"]["id"] for answer in answers}) == 1
    other = {"ensemble": {**shop(), "id": name}}
    assert service.call("POST", "/ensembles", other).status_code == 409


def test_claims_of_one_decision_at_once_all_succeed(service: Service) -> None:
    body = {"ensemble": {**shop(), "decide": {"hold": "PT10M"}}}
    decision = service.call("POST", "/ensembles", body).json["decision"]["id"]
    flavors = {"web": "m1.small", "app": "m1.medium", "db": "m1.xlarge"}
    names = [(role, index) for role in flavors for index in range(3)]

    def claim(name: tuple[str, int]) -> Any:
        server = {"flavorRef": flavors[name[0]]}
        asked = {"claim": {"member": f"{name[0]}[{name[1]}]", "server": server}}
        return service.call("POST", f"/decisions/{decision}/claims", asked)

    with ThreadPoolExecutor(6) as threads:
        answers = list(threads.map(claim, [*names, *names]))
    statuses = sorted(answer.status_code for answer in answers)
    assert statuses == [201] * 9 + [409] * 9, [a.text for a in answers]
    codes = {a.json["errors"][0]["code"] for a in answers if a.status_code == 409}
    assert codes == {"ensemble.wrong_state"}
