"""What autoscaling groups ask of a real Moorage before they grow or shrink."""

import json
from dataclasses import replace
from typing import Any

import pytest
from tests.heat_plugin.heat_objects import Stack
from tests.heat_plugin.test_stack_decision import Cloud, cloud

from moorage.heat_plugin.group_size import (
    Granted,
    ScaledGroup,
    ScalingRefused,
    ask,
    finish,
    roles_below,
)
from moorage.heat_plugin.native_api import NativeApi

__all__ = ["cloud"]


def workers(cloud: Cloud, size: int = 2) -> tuple[Stack, ScaledGroup]:
    """A stack with an autoscaling group on hosts of its members' own."""
    server = {"type": "OS::Nova::Server", "properties": {"flavor": "m1.xlarge", "image": "i"}}
    group: dict[str, Any] = {
        "type": "OS::Heat::AutoScalingGroup",
        "metadata": {"moorage": {"policies": [{"type": "anti-affinity", "level": "host"}]}},
        "properties": {"min_size": size, "max_size": 50, "resource": server},
    }
    stack = cloud.stack({"heat_template_version": "2021-04-16", "resources": {"workers": group}})
    cloud.decisions().before(stack, "CREATE")
    return stack, scaled(stack, size)


def scaled(stack: Stack, size: int) -> ScaledGroup:
    """The group as Heat has it, before it made a server."""
    return ScaledGroup(stack.id, "workers", size, servers=frozenset(), takes_less=False, hold=600)


def asked(cloud: Cloud, stack: Stack, group: ScaledGroup, wanted: int, **how: Any) -> Granted:
    settings = replace(cloud.settings, **how)
    return ask(settings, NativeApi(settings, stack.context), group, wanted)


def test_growth_is_held_before_it_happens(cloud: Cloud) -> None:
    stack, group = workers(cloud)
    granted = asked(cloud, stack, group, 5)
    assert granted.size == 5
    assert granted.decision == cloud.shown(stack)["decision"]["id"]
    assert len(cloud.shown(stack)["keys"]) == 5


def test_a_step_that_does_not_fit_is_refused_or_taken_in_part(cloud: Cloud) -> None:
    stack, group = workers(cloud)
    with pytest.raises(ScalingRefused, match=r"^Moorage: "):
        asked(cloud, stack, group, 12)
    assert len(cloud.shown(stack)["keys"]) == 2
    granted = asked(cloud, stack, replace(group, takes_less=True), 12)
    assert 2 < granted.size < 12
    assert granted.size == len(cloud.shown(stack)["keys"])
    assert f"places for {granted.size - 2} of 10 more" in str(granted.told)
    with pytest.raises(ScalingRefused):
        asked(cloud, stack, replace(group, size=granted.size), granted.size + 1)


def test_a_signal_that_comes_again_adds_nothing_twice(cloud: Cloud) -> None:
    """As after heat-engine died with a step half made: what that held is used, or free."""
    stack, group = workers(cloud)
    for wanted in (5, 5, 3):
        assert asked(cloud, stack, group, wanted).size == wanted
        assert len(cloud.shown(stack)["keys"]) == wanted
    assert asked(cloud, stack, group, 1).size == 1
    assert len(cloud.shown(stack)["keys"]) == 1


def pods(cloud: Cloud) -> Stack:
    """A stack with an autoscaling group of two members, each of two servers."""
    server = {"type": "OS::Nova::Server", "properties": {"flavor": "m1.small", "image": "i"}}
    pod = {"heat_template_version": "2021-04-16", "resources": {"app": server, "db": server}}
    group: dict[str, Any] = {
        "type": "OS::Heat::AutoScalingGroup",
        "properties": {"min_size": 2, "max_size": 9, "resource": {"type": "pod.yaml"}},
    }
    stack = cloud.stack({"heat_template_version": "2021-04-16", "resources": {"workers": group}})
    stack.t.files["pod.yaml"] = json.dumps(pod)
    cloud.decisions().before(stack, "CREATE")
    return stack


def test_members_of_several_servers_grow_as_far_as_they_fit(cloud: Cloud) -> None:
    stack = pods(cloud)
    with pytest.raises(ScalingRefused, match=r"^Moorage: "):
        asked(cloud, stack, scaled(stack, 2), 400)
    granted = asked(cloud, stack, replace(scaled(stack, 2), takes_less=True), 400)
    assert 2 < granted.size < 400
    assert len(cloud.shown(stack)["keys"]) == 2 * granted.size
    again = asked(cloud, stack, replace(scaled(stack, 2), takes_less=True), 400)
    assert again.size == granted.size, "a signal that comes again"
    with pytest.raises(ScalingRefused):
        asked(cloud, stack, scaled(stack, granted.size), granted.size + 1)


def test_members_of_several_servers_come_and_leave_together(cloud: Cloud) -> None:
    stack = pods(cloud)
    assert asked(cloud, stack, scaled(stack, 2), 4).size == 4
    assert len(cloud.shown(stack)["keys"]) == 8
    granted = asked(cloud, stack, scaled(stack, 4), 1)
    assert granted.size == 1
    assert len(cloud.shown(stack)["keys"]) == 8, "Heat chooses who leaves"
    api = NativeApi(cloud.settings, stack.context)
    assert finish(api, scaled(stack, 1), granted) is None
    assert sorted(cloud.shown(stack)["keys"]) == ["workers/app[0]", "workers/db[0]"]


def test_a_smaller_group_loses_members(cloud: Cloud) -> None:
    stack, group = workers(cloud, 4)
    assert asked(cloud, stack, group, 3).size == 3
    assert len(cloud.shown(stack)["keys"]) == 3


@pytest.mark.parametrize("mode", ["off", "advise"])
def test_groups_ask_only_where_stacks_must_fit(cloud: Cloud, mode: str) -> None:
    stack, group = workers(cloud)
    assert asked(cloud, stack, group, 12, stacks=mode) == Granted(12)


def test_groups_of_other_stacks_scale_as_ever(cloud: Cloud) -> None:
    stack, group = workers(cloud)
    assert asked(cloud, stack, replace(group, path="others"), 12) == Granted(12)
    unknown = replace(group, root=Stack("other", {}).id)
    assert asked(cloud, stack, unknown, 12) == Granted(12)


@pytest.mark.parametrize("mode", ["refuse", "ordinary"])
def test_a_group_without_an_answer(cloud: Cloud, mode: str) -> None:
    stack, group = workers(cloud)
    away = {"endpoint": "http://127.0.0.1:9/v1", "failure_mode": mode}
    if mode == "ordinary":
        assert asked(cloud, stack, group, 3, **away).size == 3
    else:
        with pytest.raises(ScalingRefused, match="does not answer"):
            asked(cloud, stack, group, 3, **away)


def test_the_roles_of_a_group_have_one_member_in_each_of_its_own() -> None:
    keys = {
        "pods/app[0]": "pods/0/app",
        "pods/app[1]": "pods/1/app",
        "pods/db[0]": "pods/0/db",
        "pods/db[1]": "pods/1/db",
        "pods/0/many[0]": "pods/0/many/0",
        "pods/0/many[1]": "pods/0/many/1",
        "podsize[0]": "podsize",
    }
    assert roles_below(keys, "pods") == ("pods/app", "pods/db")
    assert roles_below(keys, "podsize") == ()
    assert roles_below({}, "pods") == ()
