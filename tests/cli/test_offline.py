"""What works without a server: check, policy."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from moorage.policies.registry import discover
from moorage.testing.service import OPERATOR, Service


def test_the_shop_is_sound(offline: Any) -> None:
    told = offline("ensemble", "check", "shop.yaml")
    assert (told.status, told.err) == (0, "")
    assert told.out == (
        "OK 3 roles, 9 members, 4 policies; statically satisfiable on any fleet with >= 3 racks\n"
    )


def test_the_sixty_are_sound(offline: Any) -> None:
    body = offline.body("ensemble", "check", "sixty.yaml")["check"]
    assert (body["roles"], body["members"], body["policies"]) == (8, 60, 14)
    assert body["settled"]
    assert body["least_domains"] == {"zone": 3, "rack": 9, "power:feed": 2, "host": 12}


def test_a_contradiction_is_status_3(offline: Any, tmp_path: Path) -> None:
    shop = Path(__file__).parents[2] / "examples" / "shop.yaml"
    bad = tmp_path / "bad.yaml"
    bad.write_text(shop.read_text("utf-8").replace("keep: 2", "keep: 3"), encoding="utf-8")
    told = offline("ensemble", "check", str(bad))
    assert told.status == 3
    assert told.err.startswith("infeasible [static]  conflict (minimal): db-ha needs more than")


def test_the_service_says_of_a_contradiction_what_the_check_says(
    offline: Any, tmp_path: Path
) -> None:
    here = {"name": "here", "type": "fence", "members": ["a"], "domains": ["r1"]}
    described = {
        "name": "e",
        "members": [{"name": "a", "count": 2, "resources": {"VCPU": 1}}],
        "policies": [here, {**here, "name": "not-here", "type": "ban"}],
    }
    file = tmp_path / "e.yaml"
    file.write_text(yaml.safe_dump(described), encoding="utf-8")
    told = offline("ensemble", "check", str(file))
    assert told.status == 3
    service = Service()
    refused = service.call("POST", "/ensembles", {"ensemble": described}, caller=OPERATOR)
    service.close()
    (error,) = refused.json["errors"]
    assert error["detail"] in told.err
    assert error["detail"] == (
        "conflict (minimal): here needs hosts in r1 for 2 x a  <->  "
        "not-here needs hosts outside r1 for 2 x a"
    )


def test_the_service_says_of_a_node_that_is_not_whole_what_the_check_says(
    offline: Any, tmp_path: Path
) -> None:
    node = {"name": "node", "kind": "baremetal", "resources": {"VCPU": 1}}
    described = {"name": "e", "members": [node]}
    file = tmp_path / "e.yaml"
    file.write_text(yaml.safe_dump(described), encoding="utf-8")
    told = offline("ensemble", "check", str(file))
    assert told.status == 1
    service = Service()
    refused = service.call("POST", "/ensembles", {"ensemble": described})
    service.close()
    (error,) = refused.json["errors"]
    assert error["detail"] in told.err
    assert "a whole node" in error["detail"]
    gold = {**node, "resources": {"CUSTOM_GOLD": 1}}
    file.write_text(yaml.safe_dump({"name": "e", "members": [gold]}), encoding="utf-8")
    assert offline("ensemble", "check", str(file)).status == 0


@pytest.mark.parametrize(
    ("policy", "told"),
    [
        (
            "type: anti-affinity, level: rakc",
            "policies[0].level: no such level: rakc; did you mean rack?",
        ),
        (
            "type: anti-affinity, level: vm",
            "no such level: vm; there are: region, cloud, site, zone, az,",
        ),
        ("type: isolate, at: vm", "policies[0].at: no such level: vm; there are: region, cloud,"),
    ],
)
def test_a_level_with_an_unusual_name_is_refused_unless_the_fleet_has_it(
    policy: str, told: str, offline: Any, tmp_path: Path
) -> None:
    odd, level = tmp_path / "odd.yaml", policy.rpartition(" ")[2]
    odd.write_text(
        f"name: odd\nmembers: [{{name: web, count: 2, flavor: m1.small}}]\n"
        f"policies: [{{members: [web], {policy}}}]\n",
        encoding="utf-8",
    )
    refused = offline("ensemble", "check", str(odd))
    assert refused.status == 1
    assert told in refused.err
    assert f"; if the fleet has that level: --level {level}" in refused.err
    assert offline("ensemble", "check", str(odd), "--level", level).status == 0


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"name: x\nmembers: [{name: a}]\n", "line 2, members[0].flavor: "),
        (b"name: x\nmembers: []\npolicies: [{name: p, type: nope, members: [a]}]\n", "nope"),
        (b"name: x\nmembers: [\n", "not YAML"),
        (b"name: x\nmembers:\n\t- {name: a}\n", "line 3: not YAML: there is a tab; indent with"),
        (b"name: x\nmembers: {name: a}\n", "members must be a list, not a mapping"),
        (b"name: x\nmembers: [{name: a, resources: {VCPU: 2G}}]\n", "a whole number, not '2G'"),
        (
            b"name: x\nmembers: [{name: a, count: 2, flavor: f, min_available: 50%}]\n",
            "min_available is a number of members, 0 to 2, not '50%'",
        ),
        (b"name: \xff\xfe\n", "line 1 is not UTF-8"),
        (b"", "empty"),
    ],
)
def test_mistakes_in_a_file_are_one_line(
    content: bytes, said: str, offline: Any, tmp_path: Path
) -> None:
    file = tmp_path / "x.yaml"
    file.write_bytes(content)
    told = offline("ensemble", "check", str(file))
    assert told.status == 1
    assert said in told.err
    assert len(told.err.splitlines()) == 1


@pytest.mark.parametrize("name", ["missing.yaml", "/tmp", "no/such/file"])
def test_a_file_that_cannot_be_read_is_named(name: str, offline: Any) -> None:
    told = offline("ensemble", "check", name)
    assert told.status == 1
    assert told.err.startswith(f"{name}: ")


def test_every_policy_is_listed_and_shown(offline: Any) -> None:
    listed = offline("policy", "list")
    body = offline.body("policy", "list")
    assert [one["type"] for one in body["policy_types"]] == list(discover())
    for kind, policy in discover().items():
        assert f"\n{kind} " in listed.out
        shown = offline("policy", "show", kind)
        assert shown.status == 0
        assert policy.summary in shown.out
        assert shown.out.count("\nholds ") + shown.out.count("\nbroken ") == len(policy.examples)


def test_a_policy_nobody_knows(offline: Any) -> None:
    told = offline("policy", "show", "gravity")
    assert told.status == 1
    assert "known are: affinity, " in told.err


def test_yaml_says_the_same_as_json(offline: Any) -> None:
    as_yaml = offline("policy", "show", "survive", "-f", "yaml").out
    as_json = offline("policy", "show", "survive", "-f", "json").out
    assert yaml.safe_load(as_yaml) == json.loads(as_json)


def test_what_is_piped_has_no_colour_and_no_trailing_blanks(offline: Any) -> None:
    for line in offline("policy", "list").out.splitlines():
        assert "\x1b" not in line
        assert line == line.rstrip()


@pytest.mark.parametrize(
    ("policy", "said"),
    [
        ("{type: fence, domains: [r2, r1]}", "any fleet with hosts in r1 or r2"),
        ("{type: fence, traits: [CUSTOM_A]}", "any fleet with hosts in CUSTOM_A"),
        ("{type: anti-affinity, level: hots}", "any fleet with >= 1 of level hots"),
    ],
)
def test_a_check_says_what_it_takes_for_granted(
    policy: str, said: str, offline: Any, tmp_path: Path
) -> None:
    file = tmp_path / "x.yaml"
    rule = policy.replace("{", "{name: p, members: [a], ")
    file.write_text(
        f"name: x\nmembers: [{{name: a, count: 1, flavor: m1.small}}]\npolicies: [{rule}]\n",
        encoding="utf-8",
    )
    told = offline("ensemble", "check", str(file), "--level", "hots").out
    assert told.startswith("OK 1 role, 1 member, 1 policy; ")
    assert said in told


def test_a_mistake_names_its_file(offline: Any, tmp_path: Path) -> None:
    file = tmp_path / "x.yaml"
    file.write_text("name: x\nmembers: [{name: a}]\n", encoding="utf-8")
    for words in (("ensemble", "check"), ("fleet", "load"), ("topology", "load")):
        told = offline(*words, str(file))
        assert told.status == 1
        assert told.err.startswith(f"{file}: "), told.err


@pytest.mark.parametrize("other", ["east[1]", "east/web", "east/1/web"])
def test_a_side_in_another_one_is_told_with_its_line(
    offline: Any, tmp_path: Path, other: str
) -> None:
    role = {"name": "web", "count": 2, "resources": {"VCPU": 1}}
    described = {
        "name": "e",
        "members": [{"name": "east", "kind": "ensemble", "count": 2, "members": [role]}],
        "policies": [{"type": "separation", "level": "rack", "between": [["east"], [other]]}],
    }
    file = tmp_path / "e.yaml"
    file.write_text(yaml.safe_dump(described), encoding="utf-8")
    told = offline("ensemble", "check", str(file))
    assert told.status != 0
    assert "between[1]: role east/" in told.err
    assert "is on two sides" in told.err
    assert ": line " in told.err
    described["policies"][0]["between"] = [["east[0]"], ["east[1]"]]  # type: ignore[index]
    file.write_text(yaml.safe_dump(described), encoding="utf-8")
    told = offline("ensemble", "check", str(file))
    assert told.out.startswith("OK 2 roles, 4 members, 1 policy; ")
    assert ">= 2 racks" in told.out
