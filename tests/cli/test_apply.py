"""An ensemble becomes what its file says, and a second time nothing changes."""

import json
import uuid
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import pytest
import yaml

from moorage.client import registry

from tests.cli.conftest import Cli  # isort: skip

pytestmark = pytest.mark.process


class File:
    """A description that is changed and applied again."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.body: dict[str, Any] = {
            "name": f"app-{uuid.uuid4().hex[:8]}",
            "members": [
                {"name": "db", "count": 2, "flavor": "m1.xlarge", "required": ["HW_CPU_X86_AVX2"]},
                {"name": "web", "count": 1, "resources": {"VCPU": 1, "MEMORY_MB": 512}},
            ],
            "policies": [
                {"name": "apart", "type": "anti-affinity", "members": ["db"], "level": "host"},
                "soft-anti-affinity",
            ],
        }

    @property
    def name(self) -> str:
        return str(self.body["name"])

    @property
    def members(self) -> Any:
        return self.body["members"]

    def __call__(self, cli: Cli, verb: str, *words: str) -> Any:
        self.path.write_text(yaml.safe_dump(self.body), encoding="utf-8")
        return cli("ensemble", verb, "-f", str(self.path), *words)


@pytest.fixture
def file(sim: Cli, tmp_path: Path) -> Any:
    found = File(tmp_path / "app.yaml")
    yield found
    sim("ensemble", "delete", found.name, "--yes")


def test_it_is_created_and_then_unchanged(sim: Cli, file: File) -> None:
    missing = file(sim, "diff")
    assert (missing.status, missing.out) == (1, f"+ ensemble {file.name}\n")
    assert "verdict feasible" in file(sim, "apply", "--dry-run").out
    made = file(sim, "apply", "--hold", "10m")
    assert made.status == 0, made
    assert " held until " in made.out
    generation = sim.body("ensemble", "show", file.name)["ensemble"]["generation"]
    for _ in range(2):
        assert file(sim, "apply").out == "unchanged\n"
        assert (file(sim, "diff").status, file(sim, "diff").out) == (0, "")
    assert sim.body("ensemble", "show", file.name)["ensemble"]["generation"] == generation


def test_a_flavor_of_novas_and_an_image_are_no_difference(sim: Cli, file: File) -> None:
    flavor = ("flavor", "create", "apply.safe", "--vcpus", "1", "--ram", "512")
    made = sim(
        *flavor, "--property", "trait:COMPUTE_NODE=required", "--property", "quota:cpu_shares=1"
    )
    assert made.status == 0, made
    file.members[0] = {
        **file.members[0],
        "flavor": "apply.safe",
        "boot_from_volume": True,
        "image_properties": {"trait:COMPUTE_NODE": "required"},
    }
    assert file(sim, "apply").status == 0
    assert file(sim, "apply").out == "unchanged\n"
    file.members[0]["boot_from_volume"] = False
    del file.members[0]["image_properties"]
    assert "from_volume" in file(sim, "diff").out
    assert file(sim, "apply").status == 0
    assert file(sim, "apply").out == "unchanged\n"
    role = sim.body("ensemble", "show", file.name)["ensemble"]["members"][0]
    assert (role["boot_from_volume"], role["image_properties"]) == (False, None)


def test_what_differs_is_changed_and_the_rest_stays(sim: Cli, file: File) -> None:
    assert file(sim, "apply").status == 0
    places = sim.body("member", "list", file.name)["members"]
    file.members[0]["count"] = 3
    file.members[0]["server"] = {"image": "debian"}
    file.members[1] = {"name": "cache", "count": 1, "flavor": "m1.small"}
    file.body["policies"][0]["max_per_domain"] = 2
    file.body["policies"][1] = {
        "type": "spread", "members": ["db"], "level": "host", "max_skew": 3
    }  # fmt: skip
    file.body["metadata"] = {"tier": "gold"}
    said = [
        "~ role db: count 2 -> 3",
        "~ role db: server",
        "+ role cache",
        "- role web",
        "~ policy apart: parameters",
        "+ policy spread",
        "- policy soft-anti-affinity",
        "~ metadata: value",
    ]
    told = file(sim, "diff")
    assert (told.status, told.out.splitlines()) == (1, said)
    tried = file(sim, "apply", "--dry-run")
    assert tried.status == 0, tried
    assert file(sim, "diff").status == 1
    made = file(sim, "apply")
    assert made.status == 0, made
    assert made.out.splitlines()[:-1] == said
    assert file(sim, "apply").out == "unchanged\n"
    after = {one["name"]: one for one in sim.body("member", "list", file.name)["members"]}
    assert sorted(after) == ["cache[0]", "db[0]", "db[1]", "db[2]"]
    for one in places:
        if one["role"] == "db":
            assert after[one["name"]]["domains"] == one["domains"]


def test_a_copy_of_a_group_is_added_and_removed(sim: Cli, file: File) -> None:
    policy = {"name": "near", "type": "affinity", "members": ["*"], "level": "rack"}
    cluster = {
        "name": "east",
        "kind": "ensemble",
        "count": 1,
        "members": [{"name": "web", "count": 2, "resources": {"VCPU": 1}}],
        "policies": [policy],
    }
    file.body["members"] = [cluster]
    file.body["policies"] = []
    made = file(sim, "apply")
    assert made.status == 0, made
    assert file(sim, "apply").out == "unchanged\n"
    cluster["count"] = 2
    told = file(sim, "diff")
    assert told.out.splitlines() == ["+ role east/1/web", "+ policy east/1/near"]
    made = file(sim, "apply")
    assert made.status == 0, made
    assert file(sim, "apply").out == "unchanged\n"
    shown = sim("ensemble", "show", file.name).out.splitlines()
    assert ["east/1/near", "east/1", "affinity", "level=rack", "yes"] in map(str.split, shown)
    cluster["count"] = 1
    assert file(sim, "apply").status == 0
    assert file(sim, "apply").out == "unchanged\n"
    left = [one["name"] for one in sim.body("member", "list", file.name)["members"]]
    assert left == ["east/0/web[0]", "east/0/web[1]"]


def test_a_policy_without_a_parameter_loses_it(sim: Cli, file: File) -> None:
    file.body["policies"][0]["max_per_domain"] = 2
    assert file(sim, "apply").status == 0
    del file.body["policies"][0]["max_per_domain"]
    assert file(sim, "apply").status == 0
    first = sim.body("ensemble", "show", file.name)["ensemble"]["policies"][0]
    assert "max_per_domain" not in first


def test_options_of_servers_alone_decide_nothing(sim: Cli, file: File) -> None:
    assert file(sim, "apply").status == 0
    before = sim.body("decision", "show", file.name)["decision"]["id"]
    file.members[1]["server"] = {"image": "debian"}
    assert file(sim, "apply").status == 0
    assert sim.body("decision", "show", file.name)["decision"]["id"] == before
    del file.members[1]["server"]
    assert file(sim, "apply").status == 0
    assert file(sim, "diff").status == 0


def test_a_role_gets_another_size_and_another_trait(sim: Cli, file: File) -> None:
    assert file(sim, "apply").status == 0
    before = {one["name"]: one for one in sim.body("member", "list", file.name)["members"]}
    file.members[0] = {"name": "db", "count": 2, "flavor": "m1.small", "min_available": 1}
    file.members[1] = {"name": "web", "count": 1, "flavor": "m1.small"}
    told = file(sim, "diff").out.splitlines()
    assert told == [
        "~ role db: flavor m1.xlarge -> m1.small",
        "~ role db: required",
        "~ role db: min_available none -> 1",
        "~ role web: flavor none -> m1.small",
        "~ role web: resources",
    ]
    made = file(sim, "apply")
    assert made.status == 0, made
    assert made.out.splitlines()[:-1] == told
    assert file(sim, "apply").out == "unchanged\n"
    after = {one["name"]: one for one in sim.body("member", "list", file.name)["members"]}
    assert after["db[0]"]["domains"] == before["db[0]"]["domains"]
    file.members[1] = {"name": "web", "count": 1, "resources": {"VCPU": 1, "MEMORY_MB": 512}}
    assert file(sim, "apply").status == 0
    assert file(sim, "apply").out == "unchanged\n"


def test_what_must_be_up_is_kept_unless_the_file_says_otherwise(sim: Cli, file: File) -> None:
    file.members[0]["min_available"] = 2
    assert file(sim, "apply").status == 0
    decision = sim.body("decision", "show", file.name)["decision"]["id"]
    shown = sim("ensemble", "show", file.name).out
    assert "min available" in shown
    removed = sim("member", "remove", file.name, "db[0]", "--dry-run")
    assert removed.status == 4
    assert removed.err.startswith(
        "409 ensemble.below_min_available: min_available of role db is 2,"
        " and 1 of its 2 members would be left; to let fewer be up:"
        f" moorage ensemble set {file.name} --member db:min_available=1"
    )
    lowered = sim("ensemble", "set", file.name, "--member", "db:min_available=1")
    assert lowered.status == 0, lowered
    assert sim.body("decision", "show", file.name)["decision"]["id"] == decision
    assert sim("member", "remove", file.name, "db[0]").status == 0
    file.body["members"] = [file.members[1]]
    file.body["policies"] = []
    gone = file(sim, "apply")
    assert gone.status == 0, gone
    assert [one["name"] for one in sim.body("member", "list", file.name)["members"]] == ["web[0]"]


def test_what_cannot_change_is_refused_by_name(sim: Cli, file: File) -> None:
    assert file(sim, "apply").status == 0
    file.members[0]["tags"] = ["edge"]
    file.members[0]["count"] = 1
    told = file(sim, "apply")
    assert told.status == 4
    assert "tags of role db cannot change" in told.err
    assert f"moorage ensemble delete {file.name}" in told.err
    assert len(sim.body("member", "list", file.name)["members"]) == 3


def test_released_members_are_placed_anew(sim: Cli, file: File) -> None:
    assert file(sim, "apply").status == 0
    assert sim("decision", "release", file.name).status == 0
    told = file(sim, "apply", "--hold", "20m")
    assert told.status == 0, told
    assert " held until " in told.out
    assert {one["status"] for one in sim.body("member", "list", file.name)["members"]} == {"held"}


def test_a_mistake_names_the_file_and_the_line(sim: Cli, file: File) -> None:
    file.members[0]["flavour"] = "m1.small"
    told = file(sim, "apply")
    assert told.status != 0
    assert "app.yaml" in told.err
    assert "unknown field flavour" in told.err


def test_a_role_with_alternatives_grows(sim: Cli, file: File) -> None:
    """Only its count and its servers differ, not the alternatives."""
    choices = [{"flavor": "m1.xlarge"}, {"resources": {"VCPU": 1, "MEMORY_MB": 512}}]
    file.body |= {"members": [{"name": "db", "count": 1, "alternatives": choices}], "policies": []}
    assert file(sim, "apply", "--hold", "10m").status == 0
    assert file(sim, "diff").out == ""
    file.members[0] |= {"count": 2, "server": {"image": "debian"}}
    told = file(sim, "diff").out
    assert "alternatives" not in told, told
    assert "count 1 -> 2" in told
    assert file(sim, "apply", "--hold", "10m").status == 0
    assert file(sim, "diff").out == ""


def test_a_name_that_server_groups_share_is_refused_with_their_ids(
    sim: Cli, state: Path, file: File
) -> None:
    found = registry.known(registry.state_directory({"XDG_STATE_HOME": str(state)}), "shared")
    assert found is not None
    url = f"{found.endpoint.removesuffix('/v1')}/compute/v2.1/os-server-groups"
    group = {"server_group": {"name": file.name, "policy": "anti-affinity"}}
    headers = {
        "X-Auth-Token": "admin",
        "OpenStack-API-Version": "compute 2.64",
        "Content-Type": "application/json",
    }
    ids = []
    for _ in range(2):
        with urlopen(Request(url, json.dumps(group).encode(), headers)) as answer:
            ids.append(json.load(answer)["server_group"]["id"])
    for said in (file(sim, "apply"), file(sim, "diff"), sim("ensemble", "show", file.name)):
        assert said.status != 0
        assert f"2 ensembles match '{file.name}'; use an id: " in said.err
        assert all(one[:8] in said.err for one in ids)
    assert sim("ensemble", "delete", ids[0]).status == 0
    assert sim("ensemble", "show", file.name).status == 0
