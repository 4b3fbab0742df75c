"""The services that the agent reports to: Moorage in this process, and the reference Placement."""

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from tests.agent.reporting import NodeAgent, Placement, WithRoles, placement_over
from tests.servers.reference import reference

from moorage.client.placement_wire import within
from moorage.testing import in_process


@pytest.fixture(scope="module")
def reference_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("reference")
    with reference(folder, f"sqlite:///{folder}/placement.db") as found:
        yield found.url


@pytest.fixture
def roles() -> str:
    """The roles of the agent's user."""
    return "admin,service"


@pytest.fixture(params=["moorage", "reference"])
def placement(request: pytest.FixtureRequest, roles: str) -> Iterator[Placement]:
    """Either service; of the reference all tests of a module share one: names must differ."""
    if request.param == "reference":
        url = request.getfixturevalue("reference_url")
        with placement_over(WithRoles(httpx.HTTPTransport(), roles), url) as found:
            yield found
    else:
        with in_process.app() as application:
            transport = WithRoles(within(application), roles)
            with placement_over(transport, "http://moorage.invalid/placement") as found:
                yield found


@pytest.fixture
def agent(placement: Placement, tmp_path: Path) -> NodeAgent:
    return NodeAgent(placement, tmp_path)
