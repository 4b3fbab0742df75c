import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from moorage.client import discovery, registry
from moorage.client.discovery import DEFAULT_ENDPOINT, Access, Wishes
from moorage.client.errors import NoEndpoint, Unreachable
from moorage.client.moorage import connect
from moorage.client.registry import Registration

NOTHING = Wishes()


def find(wishes: Wishes, environment: Mapping[str, str]) -> Access:
    """What is found where nothing has to be logged in to."""
    found = discovery.find(wishes, environment)
    assert isinstance(found, Access)
    return found


@pytest.fixture
def environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    monkeypatch.chdir(tmp_path)
    return {"XDG_STATE_HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path / "config")}


def clouds(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def simulation(environment: Mapping[str, str], name: str) -> None:
    """Register a simulation whose process is this one."""
    born = registry.start_time(os.getpid()) or ""
    sim = Registration(name, "http://127.0.0.1:9", os.getpid(), born, "boss", "/x")
    registry.write(registry.state_directory(environment), sim)


def test_without_anything_it_is_the_local_service_and_its_operator(
    environment: dict[str, str],
) -> None:
    assert find(NOTHING, environment) == Access(DEFAULT_ENDPOINT, "admin")


def test_without_anything_it_is_the_only_simulation_that_runs(environment: dict[str, str]) -> None:
    simulation(environment, "lab")
    only = find(NOTHING, environment)
    assert only == Access("http://127.0.0.1:9", "boss", simulation="lab")
    assert find(Wishes(project="p"), environment).simulation == "lab"
    for named in ({"MOORAGE_ENDPOINT": "http://b"}, {"OS_CLOUD": "lab"}):
        assert find(NOTHING, environment | named).simulation is None
    simulation(environment, "other")
    assert find(NOTHING, environment) == Access(DEFAULT_ENDPOINT, "admin")


def test_the_command_line_wins_over_the_environment(environment: dict[str, str]) -> None:
    named = {"MOORAGE_ENDPOINT": "http://b", "MOORAGE_TOKEN": "t", "OS_TOKEN": "u"}
    assert find(Wishes("http://a/", "x"), named) == Access("http://a", "x")
    assert find(NOTHING, named) == Access("http://b", "t")
    assert find(NOTHING, environment | {"OS_TOKEN": "u"}).token == "u"


def test_a_tenant_is_a_member_of_the_project_unless_said(environment: dict[str, str]) -> None:
    member = Access(DEFAULT_ENDPOINT, "p1-user:p1", ("member",))
    assert find(Wishes(project="p1"), environment) == member
    assert find(Wishes(project="p1", role="reader"), environment).roles == ("reader",)
    assert find(Wishes(role="reader"), environment).roles == ("reader",)
    assert find(NOTHING, environment | {"MOORAGE_PROJECT": "p2"}).token == "p2-user:p2"


def test_os_cloud_finds_a_running_simulation(environment: dict[str, str]) -> None:
    simulation(environment, "lab")
    environment["OS_CLOUD"] = "lab"
    assert find(NOTHING, environment) == Access("http://127.0.0.1:9", "boss")
    assert find(Wishes(project="p"), environment).token == "p-user:p"
    environment["MOORAGE_ENDPOINT"] = "http://other"
    assert find(NOTHING, environment).endpoint == "http://other"


def test_a_simulation_that_is_gone_is_said_to_be(environment: dict[str, str]) -> None:
    gone = Registration("lab", "http://127.0.0.1:9", 2**22 - 1, "1", "boss", "/x")
    registry.write(registry.state_directory(environment), gone)
    with pytest.raises(NoEndpoint, match="OS_CLOUD=lab names no running simulation"):
        find(NOTHING, environment | {"OS_CLOUD": "lab"})


def test_a_simulation_that_was_killed_can_be_taken_up_again(
    environment: dict[str, str], tmp_path: Path
) -> None:
    gone = Registration("lab", "http://127.0.0.1:9", 2**22 - 1, "1", "boss", str(tmp_path))
    registry.write(registry.state_directory(environment), gone)
    with pytest.raises(NoEndpoint, match=r"was killed .*moorage sim resume --name lab"):
        find(NOTHING, environment | {"OS_CLOUD": "lab"})


def test_os_cloud_may_be_an_entry_of_clouds_yaml(
    environment: dict[str, str], tmp_path: Path
) -> None:
    clouds(
        tmp_path / "config/openstack/clouds.yaml",
        "clouds:\n  prod:\n    ensemble_endpoint_override: https://m/\n    auth: {token: s}\n",
    )
    assert find(NOTHING, environment | {"OS_CLOUD": "prod"}) == Access("https://m", "s")


def test_a_nearer_clouds_yaml_wins(environment: dict[str, str], tmp_path: Path) -> None:
    for place, host in (("clouds.yaml", "near"), ("config/openstack/clouds.yaml", "far")):
        clouds(
            tmp_path / place,
            f"clouds: {{prod: {{ensemble_endpoint_override: 'http://{host}'}}}}\n",
        )
    assert find(NOTHING, environment | {"OS_CLOUD": "prod"}).endpoint == "http://near"
    named = tmp_path / "mine.yaml"
    clouds(named, "clouds: {prod: {ensemble_endpoint_override: 'http://mine'}}\n")
    environment |= {"OS_CLOUD": "prod", "OS_CLIENT_CONFIG_FILE": str(named)}
    assert find(NOTHING, environment).endpoint == "http://mine"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("clouds: {prod: {auth: {}}}", "neither an auth_url"),
        ("clouds: {prod: {ensemble_endpoint_override: 7}}", "neither an auth_url"),
        ("clouds: [", "cannot read"),
        ("clouds: {other: {}}", "names no running simulation"),
        ("[]", "names no running simulation"),
    ],
)
def test_a_useless_entry_is_told(
    environment: dict[str, str], tmp_path: Path, text: str, why: str
) -> None:
    clouds(tmp_path / "clouds.yaml", text)
    with pytest.raises(NoEndpoint, match=why):
        find(NOTHING, environment | {"OS_CLOUD": "prod"})


def test_secrets_may_lie_apart(environment: dict[str, str], tmp_path: Path) -> None:
    clouds(tmp_path / "clouds.yaml", "clouds: {prod: {ensemble_endpoint_override: 'http://m'}}")
    clouds(tmp_path / "secure.yaml", "clouds: {prod: {auth: {token: s}}}")
    found = find(Wishes(cloud="prod"), environment | {"MOORAGE_ENDPOINT": "http://other"})
    assert found == Access("http://m", "s"), "an option wins over a variable"
    assert "'s'" not in repr(found)


def test_what_yaml_says_of_a_broken_secret_is_not_repeated(
    environment: dict[str, str], tmp_path: Path
) -> None:
    clouds(tmp_path / "clouds.yaml", "clouds: {prod: {ensemble_endpoint_override: 'http://m'}}")
    for text in ("{token: [sesame}", "{token: sesame, until: 2026-13-45}"):
        clouds(tmp_path / "secure.yaml", f"clouds: {{prod: {{auth: {text}}}}}")
        with pytest.raises(NoEndpoint, match=r"secure\.yaml: it is no YAML") as caught:
            find(Wishes(cloud="prod"), environment)
        assert "sesame" not in str(caught.value)


KEYSTONE = {"OS_AUTH_URL": "http://127.0.0.1:9/v3", "OS_USERNAME": "ann", "OS_PASSWORD": "sesame"}


def test_keystone_out_of_reach_is_said_and_no_secret(environment: dict[str, str]) -> None:
    with pytest.raises(Unreachable, match="cannot reach Keystone at http://127") as caught:
        connect(discovery.find(NOTHING, environment | KEYSTONE)).now()
    assert "sesame" not in str(caught.value)


def test_a_token_of_ones_own_needs_no_login_but_an_endpoint(environment: dict[str, str]) -> None:
    mine = Wishes(token="t")
    with pytest.raises(NoEndpoint, match="MOORAGE_ENDPOINT"):
        find(mine, environment | KEYSTONE)
    there = environment | KEYSTONE | {"MOORAGE_ENDPOINT": "http://m"}
    assert (find(mine, there).endpoint, find(mine, there).token) == ("http://m", "t")
    override = {"OS_ENSEMBLE_ENDPOINT_OVERRIDE": "http://n/v1/"}
    assert find(mine, environment | KEYSTONE | override).endpoint == "http://n"


def test_a_project_of_ones_choice_is_not_for_keystone(environment: dict[str, str]) -> None:
    with pytest.raises(NoEndpoint, match="OS_PROJECT_NAME"):
        find(Wishes(project="p"), environment | KEYSTONE)


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ({"OS_AUTH_TYPE": "v9magic"}, "unknown auth type: v9magic"),
        ({"OS_AUTH_TYPE": "v3oidcpassword"}, "variables do not make a login: .*token-endpoint"),
    ],
)
def test_a_login_that_cannot_be_tried_says_why(
    environment: dict[str, str], said: dict[str, str], why: str
) -> None:
    with pytest.raises(NoEndpoint, match=why):
        find(NOTHING, environment | KEYSTONE | said)


@pytest.mark.parametrize(
    ("gone", "told"),
    [
        ({"OS_PASSWORD"}, "the OS_ variables lack, to log in to Keystone: password"),
        ({"OS_USERNAME"}, "to log in to Keystone: username or user_id"),
        ({"OS_USERNAME", "OS_PASSWORD"}, "username or user_id, password"),
    ],
)
def test_a_login_by_password_says_what_it_lacks(
    gone: set[str], told: str, environment: dict[str, str]
) -> None:
    given = {name: text for name, text in KEYSTONE.items() if name not in gone}
    with pytest.raises(NoEndpoint, match=told):
        discovery.find(NOTHING, environment | given)
