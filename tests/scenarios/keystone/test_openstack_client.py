"""The `openstack` client finds Moorage in Keystone's catalog, and logs in for the plug-in."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from tests.scenarios.keystone.conftest import PASSWORD, Identity
from tests.scenarios.processes.conftest import Served
from tests.servers.openstack_shell import Ran, openstack

pytestmark = [
    pytest.mark.process,
    pytest.mark.slow,
    pytest.mark.timeout(300),
    # The client's own deprecations are not ours to repair.
    pytest.mark.filterwarnings("ignore"),
]
Run = Callable[..., Ran]


@pytest.fixture
def client(people: Identity, guarded: Served, tmp_path: Path) -> Run:
    """A command line of a user of the project shop."""

    def run(user: str, *words: str, changed: Mapping[str, str] | None = None) -> Ran:
        own = {
            "OS_AUTH_URL": people.url,
            "OS_USERNAME": user,
            "OS_PASSWORD": PASSWORD,
            "OS_PROJECT_NAME": "shop",
            "OS_USER_DOMAIN_ID": "default",
            "OS_PROJECT_DOMAIN_ID": "default",
            "OS_IDENTITY_API_VERSION": "3",
            "HOME": str(tmp_path),
        }
        return openstack(*words, environment=own | dict(changed or {}))

    return run


def test_the_catalog_is_enough(people: Identity, client: Run, tmp_path: Path) -> None:
    file = tmp_path / "by-plugin.yaml"
    file.write_text("{name: by-plugin, members: []}")
    made = client("member-of-shop", "ensemble", "create", "--file", str(file), "--describe-only")
    assert made.status == 0, made
    try:
        listed = client("reader-of-shop", "ensemble", "list", "-f", "json")
        (one,) = json.loads(listed.out)["ensembles"]
        assert one["project_id"] == people.id_of("projects", "shop")
        refused = client("reader-of-shop", "ensemble", "delete", "by-plugin")
        assert (refused.status, "403 ensemble.forbidden" in refused.err) == (5, True)
    finally:
        assert client("member-of-shop", "ensemble", "delete", "by-plugin").status == 0


def test_placement_is_called_where_the_catalog_says(client: Run) -> None:
    gone = client("admin-of-shop", "ensemble", "provider", "tree", "nosuch")
    assert (gone.status, "no resource provider nosuch" in gone.err) == (6, True), gone


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"OS_REGION_NAME": "Atlantis"}, "no public endpoint of type ensemble in region Atlantis"),
        ({"OS_PASSWORD": "wrong-horse"}, "401"),
        ({"OS_AUTH_URL": "http://127.0.0.1:1/v3"}, "127.0.0.1:1"),
        ({"OS_ENSEMBLE_ENDPOINT_OVERRIDE": "http://127.0.0.1:1"}, "cannot reach Moorage at"),
    ],
)
def test_what_fails_is_said_without_secrets(
    client: Run, changed: dict[str, str], said: str
) -> None:
    told = client("member-of-shop", "ensemble", "list", changed=changed)
    assert (told.status, told.out) == (1, "")
    assert said in told.err
    for secret in (PASSWORD, "wrong-horse"):
        assert secret not in told.err
