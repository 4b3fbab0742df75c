"""Servers of Heat's stacks find their places by the hints that Heat adds to them."""

import json
from typing import Any

import pytest
from tests.nova_filter.test_hints import NOVAS_OWN, SERVER, Cloud, cloud

__all__ = ["cloud"]

STACK = "7b0c44f8-21d7-4c2c-9d3a-3a2c6f1f0b11"


def stacks_server(name: str, *above: str, root: str = STACK) -> dict[str, Any]:
    """The hints that Heat adds to a server: lists of texts."""
    path = ["shop", *(f"{one},shop-{one}-x1y2" for one in above)]
    return {
        "heat_root_stack_id": [root],
        "heat_stack_id": [root],
        "heat_stack_name": ["shop"],
        "heat_path_in_stack": path,
        "heat_resource_name": [name],
        "heat_resource_uuid": [NOVAS_OWN],
    }


@pytest.fixture
def stack(cloud: Cloud) -> Cloud:
    """A stack of Heat's with a group, an autoscaling group and a server, held."""
    server = {"type": "OS::Nova::Server", "properties": {"flavor": "m1.xlarge", "image": "i"}}
    resources = {
        "web": {
            "type": "OS::Heat::ResourceGroup",
            "properties": {"count": 2, "resource_def": server},
        },
        "workers": {
            "type": "OS::Heat::AutoScalingGroup",
            "properties": {"min_size": 2, "max_size": 5, "resource": server},
        },
        "db": server,
    }
    body = {
        "name": "stack",
        "template": json.dumps({"heat_template_version": "2021-04-16", "resources": resources}),
        "decide": {"hold": "PT10M"},
    }
    made = cloud.call("PUT", f"/stacks/{STACK}", {"stack": body})
    cloud.ensemble, cloud.decision = STACK, made["stack"]["decision"]["id"]
    return cloud


@pytest.mark.parametrize(
    ("hints", "member"),
    [
        (stacks_server("1", "web"), "web[1]"),
        (stacks_server("db"), "db[0]"),
        (stacks_server("xk2d7qmabcde", "workers"), "workers[0]"),
    ],
)
def test_heats_hints_find_the_place_of_a_server(stack: Cloud, hints: Any, member: str) -> None:
    assert stack.boot(hints) == (202, {})
    assert [name for name, now in stack.members().items() if now == "building"] == [member]
    claim = str(stack.nova.global_ids[0]).removeprefix("req-")
    claimed = {**hints, "moorage_claim": claim}
    assert stack.nova.seen == [{"server": SERVER, "os:scheduler_hints": claimed}]


@pytest.mark.parametrize(
    "hints",
    [
        stacks_server("db", root=NOVAS_OWN),
        stacks_server("other"),
        stacks_server("9", "web"),
        stacks_server("db", "inner"),
        stacks_server("db") | {"heat_path_in_stack": "shop"},
        stacks_server("db") | {"heat_root_stack_id": ["x"]},
        stacks_server("db") | {"heat_resource_name": ["db", "web"]},
    ],
)
def test_servers_of_no_place_in_a_stack_pass(stack: Cloud, hints: Any) -> None:
    assert stack.boot(hints) == (202, {})
    assert stack.nova.global_ids == [None]


def test_a_member_of_a_stack_without_a_held_place_is_refused(stack: Cloud) -> None:
    for name in ("a1b2c3", "d4e5f6"):
        assert stack.boot(stacks_server(name, "workers"))[0] == 202
    status, body = stack.boot(stacks_server("g7h8i9", "workers"))
    assert status == 409
    assert "workers/g7h8i9" in body["conflictingRequest"]["message"]
    assert len(stack.nova.seen) == 2


def test_the_hint_moorage_comes_before_heats(stack: Cloud) -> None:
    hints = stacks_server("db") | {"moorage": f"{STACK}/web[0]"}
    assert stack.boot(hints) == (202, {})
    assert stack.members()["web[0]"] == "building"


def test_a_stack_unknown_to_moorage_may_still_name_a_group(cloud: Cloud) -> None:
    hints = stacks_server("db") | {"group": cloud.ensemble}
    assert cloud.boot(hints) == (202, {})
    assert "building" in cloud.members().values()


@pytest.mark.parametrize(("mode", "expected"), [("refuse", 503), ("ordinary", 202)])
def test_servers_of_stacks_insist_on_an_answer(cloud: Cloud, mode: str, expected: int) -> None:
    options = {"endpoint": "http://127.0.0.1:9/v1", "failure_mode": mode, "timeout": "1"}
    assert cloud.boot(stacks_server("db"), options=options)[0] == expected
