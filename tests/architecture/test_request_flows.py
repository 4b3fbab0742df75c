"""The page "How a request flows" names modules that the two requests really enter."""

import re
import sys
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from falcon.testing import TestClient

from moorage.api import placement
from moorage.http.kernel import CALLER
from moorage.testing.service import OPERATOR, TENANT, Service

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/how-a-request-flows.md"
SOURCE = ROOT / "src/moorage"
OF_THE_SERVER = {"http/transport", "http/kernel"}
"""What stands before the application, which these requests do not pass."""
ENSEMBLE = {
    "name": "shop",
    "members": [{"name": "web", "count": 3, "resources": {"VCPU": 1}}],
    "policies": [
        {"name": "apart", "type": "anti-affinity", "members": ["web"], "level": "host"},
    ],
}


@pytest.fixture(scope="module")
def service() -> Iterator[Service]:
    made = Service((ROOT / "fleets/three-racks.yaml").read_text(encoding="utf-8"))
    yield made
    made.close()


def entered(work: Callable[[], object]) -> set[str]:
    """The modules that are entered, as paths below the source without a suffix."""
    files: set[str] = set()

    def note(frame: FrameType, event: str, _: Any) -> None:
        if event == "call":
            files.add(frame.f_code.co_filename)

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(before)
    inside = (Path(one) for one in files if Path(one).is_relative_to(SOURCE))
    return {str(one.relative_to(SOURCE).with_suffix("")) for one in inside}


def named(heading: str) -> set[str]:
    """The modules that the drawing under a heading names."""
    section = PAGE.read_text(encoding="utf-8").partition(f"## {heading}")[2]
    drawing = section.split("```")[1]
    found = set(re.findall(r"(?<![\w/])(?:\w+/)+\w+", drawing))
    missing = [one for one in found if not (SOURCE / f"{one}.py").exists()]
    assert set(missing) <= {"http/transport"}, f"no such modules: {missing}"
    return found - OF_THE_SERVER


def test_a_claim_enters_what_the_page_names(service: Service) -> None:
    snapshot = service.store.snapshot()
    host = snapshot.uuids[int(snapshot.roots[0])]
    client = TestClient(placement.create_app(service.store, service.env.ids))
    body = {
        "allocations": {host: {"resources": {"VCPU": 1}}},
        "project_id": "p",
        "user_id": "u",
        "consumer_generation": None,
        "consumer_type": "INSTANCE",
    }

    def claim() -> None:
        answer = client.simulate_put(
            f"/allocations/{uuid.uuid4()}",
            json=body,
            headers={"OpenStack-API-Version": "placement 1.39"},
            extras={CALLER: OPERATOR, "moorage.request_id": "req-1"},
        )
        assert answer.status_code == 204, answer.text

    wanted = named("A claim")
    assert wanted
    assert wanted - entered(claim) == set()


def test_a_joint_decision_enters_what_the_page_names(service: Service) -> None:
    def decide() -> None:
        body = {"ensemble": {**ENSEMBLE, "decide": {}}}
        answer = service.call("POST", "/ensembles", body, caller=TENANT)
        assert answer.status_code == 201, answer.text

    wanted = named("A joint decision")
    assert wanted
    assert wanted - entered(decide) == set()
