"""The native API against its own description: requests made from it, to a real server.

Whatever is sent, sound or not, the answer has a status, a type and a shape that the description
names, and nothing is an internal error.
"""

import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)
from tests import seeds
from tests.servers.replica import Replica

from moorage.api.native.route import Route
from moorage.api.native.routes import ROUTES
from moorage.client.fleet_file import read_fleet
from moorage.domain.fleet_expansion import expand
from moorage.domain.fleet_parts import parts
from moorage.store import open_store
from moorage.testing.service import OPERATOR
from moorage.usecases.ledger.fleet_loading import load_fleet

pytestmark = [
    pytest.mark.process,
    pytest.mark.timeout(3600),  # for the long form, MOORAGE_HYPOTHESIS=nightly
]

FLEET: Final = Path(__file__).parents[2] / "fleets" / "three-racks.yaml"
EVERYBODY: Final = {"X-Auth-Token": "op:operations", "X-Roles": "admin,member,reader"}
JSON: Final = {**EVERYBODY, "Content-Type": "application/json"}
FRAMING: Final = {"connection", "content-length", "expect", "host", "transfer-encoding", "upgrade"}
"""Headers of HTTP itself: a broken one is refused before anything of the API is reached."""
CHECKS: Final = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
]
PAIR: Final = {
    "members": [{"name": "web", "count": 2, "flavor": "m1.small"}],
    "policies": [
        {"name": "apart", "type": "anti-affinity", "members": ["web"], "level": "host"},
    ],
    "decide": {"hold": "PT10M"},
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Replica]:
    """`moorage serve` over three racks."""
    home = tmp_path_factory.mktemp("native")
    database = f"sqlite:///{home}/ledger.db"
    ledger = open_store(database)
    # Each request has places of its own, and there are more routes than the hosts had VCPU.
    roomy = FLEET.read_text(encoding="utf-8").replace("      VCPU: 16\n", "      VCPU: 160\n")
    for part in parts(expand(read_fleet(roomy))):
        load_fleet(ledger, OPERATOR, part)
    ledger.close()
    server = Replica(home, database, "--planners", "1")
    server.start()
    server.up()
    yield server
    server.down()


@pytest.fixture(scope="module")
def description(server: Replica) -> Any:
    return schemathesis.openapi.from_url(f"http://127.0.0.1:{server.port}/v1/openapi.json")


@pytest.fixture
def paths(server: Replica) -> Iterator[Mapping[str, dict[str, str]]]:
    """Items of paths that lead to something, by what the path begins with."""

    def post(path: str, body: object) -> Any:
        status, content = server.ask("POST", f"/v1{path}", body, JSON)
        assert status == 201, content
        return content

    # What other requests took, or planned to take away, of so few hosts.
    for noun, listed in (
        ("capacity/planned", "windows"),
        ("offers", "offers"),
        ("leases", "leases"),
    ):
        _, found = server.ask("GET", f"/v1/{noun}", None, JSON)
        for one in found[listed]:
            server.ask("DELETE", f"/v1/{noun}/{one['id']}", None, JSON)
    made = post("/ensembles", {"ensemble": {"name": f"pair-{uuid.uuid4()}", **PAIR}})
    own, decision = made["ensemble"]["id"], made["decision"]["id"]
    wanted = {"member": "web[0]", "server": {"name": "web-0", "flavorRef": "m1.small"}}
    claim = post(f"/decisions/{decision}/claims", {"claim": wanted})["claim"]
    yield {
        "/ensembles/{id}": {"id": own},
        "/ensembles/{id}/members/": {"id": own, "name": "web[1]"},
        "/ensembles/{id}/policies/": {"id": own, "name": "apart"},
        "/decisions/": {"id": decision},
        "/claims/": {"id": claim["id"]},
        "/flavors/": {"name": "m1.medium"},
        "/policy-types/": {"type": "spread"},
    }
    server.ask("DELETE", f"/v1/ensembles/{own}", None, JSON)


def cases(route: Route, description: Any, paths: Mapping[str, dict[str, str]]) -> Any:
    """Requests to a route: sound ones and broken ones, to what is there and to what is not."""
    path = route.path.replace(":path", "")
    operation = description[path][route.method]
    wrong = "{" in path or route.query or route.request is not None
    modes = [GenerationMode.POSITIVE, *([GenerationMode.NEGATIVE] if wrong else [])]
    known = [items for start, items in paths.items() if path.startswith(start)][-1:]
    to_something = [
        operation.as_strategy(mode, path_parameters=one) for mode in modes for one in known
    ]
    return st.one_of(*to_something, *(operation.as_strategy(mode) for mode in modes))


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: f"{route.method} {route.path}")
def test_answers_are_as_described(
    route: Route, description: Any, paths: Mapping[str, dict[str, str]]
) -> None:
    @settings(
        max_examples=seeds.cases(5, 400),
        suppress_health_check=list(HealthCheck),
        database=None,
    )
    @given(case=cases(route, description, paths))
    def ask(case: Any) -> None:
        for name in FRAMING:
            case.headers.pop(name, None)
        answer = case.call(headers=EVERYBODY, timeout=60)
        case.validate_response(answer, checks=CHECKS)

    ask()
