"""What of a stack of Heat's goes to Moorage."""

import json

import pytest
from tests.heat_plugin.heat_objects import Group, Instance, Server, Stack

from moorage.heat_plugin.stack_body import (
    adopted_servers,
    is_annotated,
    present_servers,
    removed_names,
    stack_body,
)


def test_servers_are_named_by_their_path() -> None:
    """Nested stacks are walked; a server under another type's name is known by its class."""
    inner = Stack("inner", {"0": Server("s0"), "1": Server(None), "port": Group("p", None)})
    stack = Stack(
        "shop",
        {
            "web": Group("g", inner),
            "db": Server("s2", type_name="My::Server"),
            "old": Instance("s3"),
            "making": Group(None, None),
        },
    )
    assert dict(present_servers(stack)) == {"web/0": "s0", "db": "s2", "old": "s3"}


@pytest.mark.parametrize(
    ("server", "is_kept"),
    [
        (Server("s", status="COMPLETE", in_error=True), True),
        (Server("s", status="IN_PROGRESS", in_error=True), True),
        (Server("s", status="FAILED"), True),
        (Server("s", status="FAILED", in_error=True), False),
    ],
)
def test_a_failed_server_that_heat_replaces_is_none(server: Server, *, is_kept: bool) -> None:
    assert dict(present_servers(Stack("shop", {"db": server}))) == ({"db": "s"} if is_kept else {})


def test_names_that_a_group_gives_no_more() -> None:
    inner = Stack("inner", {"0": Group("g0", Stack("s", {}), "7,9"), "2": Server("s2")})
    stack = Stack(
        "shop",
        {"web": Group("g", inner, "1"), "db": Group("d", None, None), "new": Group(None, None)},
    )
    assert dict(removed_names(stack)) == {"web": ["1"], "web/0": ["7", "9"]}


def test_servers_of_a_stack_that_is_adopted() -> None:
    data = {
        "resources": {
            "db": {"type": "OS::Nova::Server", "resource_id": "s0", "metadata": {}},
            "net": {"type": "OS::Neutron::Net", "resource_id": "n"},
            "lost": {"type": "OS::Nova::Server", "resource_id": None},
            "web": {
                "type": "OS::Heat::ResourceGroup",
                "resource_id": "g",
                "resources": {"0": {"type": "OS::Nova::Server", "resource_id": "s1"}},
            },
        }
    }
    assert dict(adopted_servers(data)) == {"db": "s0", "web/0": "s1"}
    assert dict(adopted_servers(None)) == {}


def test_the_body_is_text() -> None:
    stack = Stack("shop", {}, files={"file:///pod.yaml": "a: 1", "file:///key": b"\xff"})
    stack.t.env.parameters["count"] = 3
    body = stack_body(stack, stack, {"db": "s"}, 7200)
    assert json.loads(body["template"]) == stack.t.t
    assert json.loads(body["environment"])["parameters"] == {"count": 3}
    assert body["files"] == {"file:///pod.yaml": "a: 1", "file:///key": "\ufffd"}
    assert body["servers"] == {"db": "s"}
    assert body["decide"] == {"hold": "PT3600S"}
    shorter = stack_body(stack, stack, {}, 1800)
    assert shorter["decide"] == {"hold": "PT1800S"}, "as long as the operator allows"


@pytest.mark.parametrize(
    ("text", "annotated"),
    [
        ("metadata: {moorage: {policies: []}}", True),
        ("metadata:\n  moorage:\n    policies: []", True),
        ('{"metadata": {"moorage" : {}}}', True),
        ("type: OS::Moorage::Ensemble", False),
        ("name: moorage", False),
        ("metadata: {'moorage:ensemble': x}", False),
        ("metadata: {not-moorage: x}", False),
    ],
)
def test_annotations_are_found_in_templates_and_files(text: str, *, annotated: bool) -> None:
    assert is_annotated({"template": text, "files": {}}) is annotated
    assert is_annotated({"template": "{}", "files": {"file:///pod.yaml": text}}) is annotated
