"""Reading a Placement service that Keystone guards, by the variables of `openstack`."""

from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import Cli, clean
from tests.scenarios.keystone.conftest import PASSWORD, Identity, call
from tests.scenarios.processes.conftest import Served

from moorage.client.credentials import keystone
from moorage.client.placement_source import read_service
from moorage.client.placement_wire import PlacementWire

# Whoever is first also waits until Keystone is set up: five programs of several seconds each.
pytestmark = [pytest.mark.process, pytest.mark.slow, pytest.mark.timeout(300)]

HOST = "5b1f9a52-0000-4000-8000-00000000000a"


@pytest.fixture
def variables(people: Identity, guarded: Served) -> dict[str, str]:
    headers = {"x_auth_token": people.token("nova", people.project("service"))}
    body = {"name": "guarded-host", "uuid": HOST}
    call("POST", f"http://127.0.0.1:{guarded.port}/placement/resource_providers", body, **headers)
    return {
        "OS_AUTH_URL": people.url,
        "OS_USERNAME": "nova",
        "OS_PASSWORD": PASSWORD,
        "OS_PROJECT_NAME": "service",
        "OS_USER_DOMAIN_ID": "default",
        "OS_PROJECT_DOMAIN_ID": "default",
    }


def test_the_catalog_and_a_token_are_found(variables: dict[str, str], tmp_path: Path) -> None:
    ledger = {"MOORAGE_DATABASE": f"sqlite:///{tmp_path / 'ledger.db'}"}
    cli: Any = Cli(clean(tmp_path) | ledger | variables)
    found = cli.body("admin", "import", "placement", "--from", "catalog", "--keystone")
    assert found["ledger"]["resource providers"] >= 1
    assert found["differences"] == found["answered_differently"] == []


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"OS_PASSWORD": "wrong"}, "refuses the login: The request you have made requires"),
        (
            {"OS_REGION_NAME": "RegionNone"},
            "no public endpoint of type placement in region RegionNone",
        ),
        ({"OS_USERNAME": "reader-of-shop", "OS_PROJECT_NAME": "shop"}, "403"),
        ({"OS_AUTH_URL": "http://127.0.0.1:9"}, "127.0.0.1:9"),
    ],
)
def test_what_goes_wrong_is_told(
    change: dict[str, str], told: str, variables: dict[str, str], tmp_path: Path
) -> None:
    cli = Cli(clean(tmp_path) | variables | change)
    result = cli("admin", "import", "placement", "--from", "catalog", "--keystone")
    assert result.status == (5 if "refuses the login" in told else 1)
    assert told in result.err


@pytest.mark.nightly
def test_a_token_that_is_refused_is_renewed(variables: dict[str, str], people: Identity) -> None:
    admin = keystone(variables)
    revoked = {"x_auth_token": people.admin, "x_subject_token": admin.token()}
    assert call("DELETE", f"{people.url}/auth/tokens", **revoked).status == 204
    with PlacementWire(admin.endpoint("placement"), admin) as wire:
        assert HOST in read_service(wire).providers
