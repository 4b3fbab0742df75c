"""Moves to a host that is named: nova-api's answer has Moorage's reason."""

import json
from typing import Any

import pytest
from tests.nova_filter.test_group_joins import SERVICE, built, declared, joined
from tests.nova_filter.test_hints import TOKEN, Cloud, cloud

from moorage.client.discovery import OPERATOR_TOKEN

__all__ = ["cloud"]

MOVED = "aaaaaaaa-0000-4000-8000-000000000000"


def act(cloud: Cloud, body: Any, token: str = OPERATOR_TOKEN) -> tuple[int, Any]:
    """The answer to an action on the server that moves."""
    path = {"PATH_INFO": f"/v2.1/servers/{MOVED}/action", "HTTP_X_ROLES": "admin"}
    return cloud.send(json.dumps(body).encode(), token, environ=path)


def host_names(cloud: Cloud) -> dict[str, str]:
    found = cloud.moorage.simulate_get("/placement/resource_providers", headers=SERVICE)
    return {one["uuid"]: one["name"] for one in found.json["resource_providers"]}


@pytest.mark.parametrize("action", ["os-migrateLive", "migrate", "evacuate", "unshelve"])
def test_a_host_that_breaks_a_policy_is_refused_with_the_reason(cloud: Cloud, action: str) -> None:
    group = declared(cloud)
    home, other = (built(cloud, joined(cloud, group), number) for number in range(2))
    names = host_names(cloud)
    seen = len(cloud.nova.seen)
    status, answer = act(cloud, {action: {"host": names[other], "force": True}})
    assert status == 409
    told = answer["conflictingRequest"]["message"]
    assert told.startswith("m1.small[0] of ensemble web would break anti-affinity on ")
    assert len(cloud.nova.seen) == seen
    free = next(one for one in names.values() if one not in {names[home], names[other]})
    for body in (
        {action: {"host": free}},
        {action: {"host": None}},
        {action: {"host": "no-such-host"}},
        {action: None},
        {"os-stop": {"host": names[other]}},
        {"addFixedIp": "x"},
    ):
        assert act(cloud, body) == (202, {})
        assert cloud.nova.seen[-1] == body
        assert cloud.nova.global_ids[-1] == f"req-{MOVED}"


def test_tenants_are_left_to_nova(cloud: Cloud) -> None:
    """They may name no host, and are told of none."""
    group = declared(cloud)
    _, other = (built(cloud, joined(cloud, group), number) for number in range(2))
    body = {"os-migrateLive": {"host": host_names(cloud)[other]}}
    text = json.dumps(body).encode()
    path = {"PATH_INFO": f"/v2.1/servers/{MOVED}/action"}
    assert cloud.send(text, TOKEN, environ=path) == (202, {})


def test_nova_goes_on_where_moorage_does_not_answer(cloud: Cloud) -> None:
    path = {"PATH_INFO": f"/v2.1/servers/{MOVED}/action"}
    options = {"endpoint": "http://127.0.0.1:9/v1"}
    body = b'{"migrate": {"host": "h1"}}'
    assert cloud.send(body, OPERATOR_TOKEN, options, environ=path) == (202, {})
