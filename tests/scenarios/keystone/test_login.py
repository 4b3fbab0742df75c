"""The command line logs in as every OpenStack client does, and finds both APIs in the catalog."""

import io
import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml
from tests.scenarios.keystone.conftest import PASSWORD, Identity
from tests.scenarios.processes.conftest import Served

from moorage.cli.program import Program
from moorage.client.discovery import Access, Wishes, find
from moorage.client.moorage import connect

# Whoever is first also waits until Keystone is set up: five programs of several seconds each.
pytestmark = [pytest.mark.process, pytest.mark.slow, pytest.mark.timeout(300)]


@dataclass(frozen=True)
class Ran:
    """What a command line did."""

    status: int
    out: str
    err: str


Run = Callable[..., Ran]


@pytest.fixture
def moorage(guarded: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """The program in this process, in a directory of its own."""
    monkeypatch.chdir(tmp_path)
    for name in list(os.environ):
        if name.startswith(("OS_", "MOORAGE_")):
            monkeypatch.delenv(name)
    home = {"HOME": str(tmp_path), "XDG_STATE_HOME": str(tmp_path)}

    def run(environment: Mapping[str, str], *words: str) -> Ran:
        out, err = io.StringIO(), io.StringIO()
        with pytest.MonkeyPatch.context() as patch:
            for name, text in (home | dict(environment)).items():
                patch.setenv(name, text)
            status = Program(stdout=out, stderr=err).run(words)
        return Ran(status, out.getvalue(), err.getvalue())

    return run


def variables(people: Identity, user: str, **more: str) -> dict[str, str]:
    """What an `openrc` file exports."""
    return {
        "OS_AUTH_URL": people.url,
        "OS_USERNAME": user,
        "OS_PASSWORD": PASSWORD,
        "OS_PROJECT_NAME": "shop",
        "OS_USER_DOMAIN_ID": "default",
        "OS_PROJECT_DOMAIN_ID": "default",
        "OS_IDENTITY_API_VERSION": "3",
        **more,
    }


def projects(ran: Ran) -> list[str]:
    assert ran.status == 0, ran.err
    return [one["project_id"] for one in json.loads(ran.out)["ensembles"]]


def test_the_usual_variables_log_in_and_the_catalog_leads_here(
    people: Identity, moorage: Run, tmp_path: Path
) -> None:
    member = variables(people, "member-of-shop")
    (tmp_path / "mine.yaml").write_text("{name: mine, members: []}")
    made = moorage(member, "ensemble", "create", "-f", "mine.yaml", "--describe-only")
    assert (made.status, made.err) == (0, "")
    shop = people.id_of("projects", "shop")
    assert projects(moorage(member, "ensemble", "list", "-f", "json")) == [shop]
    reader = variables(people, "reader-of-shop")
    assert projects(moorage(reader, "ensemble", "list", "-f", "json")) == [shop]
    refused = moorage(reader, "ensemble", "delete", "mine")
    assert (refused.status, refused.out) == (5, "")
    assert "403" in refused.err
    assert moorage(member, "ensemble", "delete", "mine").status == 0


def test_a_cloud_of_clouds_yaml_with_its_secret_apart(
    people: Identity, moorage: Run, tmp_path: Path
) -> None:
    cloud = {
        "region_name": "RegionOne",
        "interface": "internal",
        "auth": {
            "auth_url": people.url,
            "username": "admin-of-shop",
            "project_name": "shop",
            "user_domain_id": "default",
            "project_domain_id": "default",
        },
    }
    (tmp_path / "clouds.yaml").write_text(yaml.safe_dump({"clouds": {"prod": cloud}}))
    secret = {"clouds": {"prod": {"auth": {"password": PASSWORD}}}}
    (tmp_path / "secure.yaml").write_text(yaml.safe_dump(secret))
    for words in (("--os-cloud", "prod"), ()):
        shown = moorage({"OS_CLOUD": "prod"} if not words else {}, *words, "fleet", "show")
        assert (shown.status, shown.err) == (0, "")
    cloud["region_name"] = "Atlantis"
    (tmp_path / "clouds.yaml").write_text(yaml.safe_dump({"clouds": {"prod": cloud}}))
    lost = moorage({}, "--os-cloud", "prod", "fleet", "show")
    assert lost.status == 1
    assert "no internal endpoint of type ensemble in region Atlantis" in lost.err


def test_a_token_is_enough_to_log_in(people: Identity, moorage: Run) -> None:
    token = people.token("member-of-shop", people.project("shop"))
    environment = variables(people, "")
    for name in ("OS_USERNAME", "OS_PASSWORD", "OS_USER_DOMAIN_ID"):
        del environment[name]
    environment["OS_TOKEN"] = token
    assert projects(moorage(environment, "ensemble", "list", "-f", "json")) == []


def test_a_named_endpoint_needs_no_catalog(people: Identity, guarded: Served, moorage: Run) -> None:
    there = {"MOORAGE_ENDPOINT": f"http://127.0.0.1:{guarded.port}"}
    environment = variables(people, "member-of-shop") | there
    assert projects(moorage(environment, "ensemble", "list", "-f", "json")) == []
    token = people.token("member-of-shop", people.project("shop"))
    assert (
        projects(moorage(there | {"MOORAGE_TOKEN": token}, "ensemble", "list", "-f", "json")) == []
    )


@pytest.mark.parametrize(
    ("changed", "status", "said"),
    [
        ({"OS_PASSWORD": "wrong-horse"}, 5, "refuses the login"),
        ({"OS_USERNAME": "stranger"}, 5, "refuses the login"),
        ({"OS_PROJECT_NAME": "other"}, 5, "refuses the login"),
        ({"OS_AUTH_URL": "http://127.0.0.1:1/v3"}, 1, "cannot reach Keystone"),
        ({"OS_PROJECT_NAME": ""}, 1, "catalog"),
    ],
)
def test_a_login_that_fails_says_so_in_a_line_without_secrets(
    people: Identity, moorage: Run, changed: dict[str, str], status: int, said: str
) -> None:
    told = moorage(variables(people, "member-of-shop") | changed, "ensemble", "list")
    assert (told.status, told.out) == (status, "")
    assert said in told.err
    assert len(told.err.splitlines()) == 1
    for secret in (PASSWORD, "wrong-horse"):
        assert secret not in told.err


def test_both_apis_are_called_where_the_catalog_says(people: Identity, guarded: Served) -> None:
    found = find(Wishes(), variables(people, "admin-of-shop"))
    assert not isinstance(found, Access)
    assert found.endpoint("ensemble") == f"http://127.0.0.1:{guarded.port}/v1"
    assert found.endpoint("placement") == f"http://127.0.0.1:{guarded.port}/placement"
    with connect(found) as client:
        # Both answer for the same ledger; what others have put there does not matter.
        providers = {one.name for one in client.placement.providers()}
        assert {one["name"] for one in client.fleet.show().value["hosts"]} <= providers
