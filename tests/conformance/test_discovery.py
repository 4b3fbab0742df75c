"""The documents of versions as keystoneauth finds them, for `openstack versions show` too."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from keystoneauth1 import access, discover, fixture, session
from keystoneauth1.identity.base import BaseIdentityPlugin
from tests.servers.replica import Replica

pytestmark = pytest.mark.process

PATHS = {
    "placement": "/placement",
    "ensemble": "/v1",
    "reservation": "/reservation/v1",
    "all-of-it": "",
    "leases-without-version": "/reservation",
    "compute": "/compute/v2.1",
}
"""Type of a service in the catalog -> where its endpoint is."""


class Known(BaseIdentityPlugin):
    """Somebody with a token and a catalog, without an identity service to ask."""

    def __init__(self, base: str) -> None:
        super().__init__()
        token = fixture.V3Token(user_id="u", project_id="p")
        for kind, path in PATHS.items():
            token.add_service(kind).add_standard_endpoints(public=base + path, region="one")
        self._ref = access.AccessInfoV3(token, auth_token="admin")

    def get_auth_ref(self, session: object) -> Any:
        return self._ref

    def get_cache_id_elements(self) -> dict[str, str | None]:
        return {}


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder: Path = tmp_path_factory.mktemp("served")
    mounts = ("native=/v1", "placement=/placement", "reservation=/reservation", "compute=/compute")
    served = [word for mount in mounts for word in ("--mount", mount)]
    server = Replica(folder, f"sqlite:///{folder}/ledger.db", *served)
    server.start()
    server.up()
    yield f"http://127.0.0.1:{server.port}"
    server.down()


def test_all_versions_of_a_cloud_are_listed(base: str) -> None:
    found = session.Session(auth=Known(base)).get_all_version_data(interface="public")
    told = {
        kind: [(one["version"], one["min_microversion"], one["max_microversion"], one["url"])]
        for kind, several in found["one"]["public"].items()
        for one in several
    }
    native = [("1.0", "1.0", "1.0", f"{base}/v1/")]
    leases = [("1.0", "1.0", "1.1", f"{base}/reservation/v1")]
    assert told == {
        "placement": [("1.0", "1.0", "1.39", f"{base}/placement/")],
        "ensemble": native,
        "all-of-it": native,
        "reservation": leases,
        "leases-without-version": leases,
        "compute": [("2.1", "2.1", "2.104", f"{base}/compute/v2.1/")],
    }


@pytest.mark.parametrize(
    "path", ["", "/", "/placement", "/placement/", "/v1", "/v1/", *PATHS.values()]
)
def test_each_document_has_one_current_version(base: str, path: str) -> None:
    asked = session.Session(auth=Known(base))
    (one,) = discover.Discover(asked, base + path).version_data()
    assert one["raw_status"] == "CURRENT"
    assert asked.get(one["url"]).status_code in {200, 300}


@pytest.mark.parametrize(
    ("kind", "wanted"),
    [("placement", "1"), ("ensemble", "1"), ("reservation", "1"), ("compute", "2.1")],
)
def test_a_client_finds_its_api_by_version(base: str, kind: str, wanted: str) -> None:
    asked = session.Session(auth=Known(base))
    assert asked.auth is not None
    data = asked.auth.get_endpoint_data(asked, service_type=kind, version=wanted)
    assert data is not None
    assert str(data.url).rstrip("/") == f"{base}{PATHS[kind]}"
