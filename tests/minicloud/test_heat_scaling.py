"""Autoscaling groups of a real Heat grow no further than fits, and shrink whom Moorage chooses."""

import json
from collections.abc import Iterator
from functools import partial

import pytest
from tests.minicloud.stacks import APART, Stacks, server, template
from tests.minicloud.tenant import Json, Operator, Tenant, eventually


@pytest.fixture
def stacks(demo: Tenant) -> Iterator[Stacks]:
    with Stacks(demo) as made:
        yield made


def scaled(step: int, **annotation: Json) -> Json:
    """A group on hosts of its members' own, with a policy that grows it and one that shrinks it."""
    workers = {
        "type": "OS::Heat::AutoScalingGroup",
        "metadata": {"moorage": {"policies": [APART], **annotation}},
        "properties": {"min_size": 1, "max_size": 9, "resource": server()},
    }
    return template(workers=workers, up=policy(step), down=policy(-1))


def policy(adjustment: int) -> Json:
    """It changes the size of the group `workers`."""
    return {
        "type": "OS::Heat::ScalingPolicy",
        "properties": {
            "adjustment_type": "change_in_capacity",
            "auto_scaling_group_id": {"get_resource": "workers"},
            "cooldown": 0,
            "scaling_adjustment": adjustment,
        },
    }


def apart(operator: Operator, stacks: Stacks, stack: str) -> int:
    """How many servers there are; each has a host of its own, and is a member."""
    servers = stacks.servers(stack)
    assert len({operator.host(one) for one in servers.values()}) == len(servers)
    members = {one["server_id"] for one in stacks.members(stack).values()}
    assert members == set(servers.values())
    return len(servers)


def is_idle(stacks: Stacks, stack: str, size: int, signals: int = 0) -> bool:
    """Whether it has so many servers and members, and so many signals are done."""
    if stacks.signals(stack) < signals:
        return False
    members = {one["server_id"] for one in stacks.members(stack).values()}
    return len(stacks.servers(stack)) == size and members == set(stacks.servers(stack).values())


def test_a_group_grows_to_the_wall_and_shrinks(operator: Operator, stacks: Stacks) -> None:
    stack = stacks.create(scaled(1))
    stacks.reaches(stack, "CREATE_COMPLETE")
    for size in (2, 3):
        stacks.signal(stack, "up")
        eventually(partial(is_idle, stacks, stack, size, size - 1), f"{size} workers")
        assert apart(operator, stacks, stack) == size
    stacks.signal(stack, "up")
    eventually(
        lambda: any(one.startswith("Moorage: ") for one in stacks.events(stack)), "it is refused"
    )
    assert apart(operator, stacks, stack) == 3
    assert stacks.state(stack) == "CREATE_COMPLETE"
    stacks.signal(stack, "down")
    eventually(lambda: is_idle(stacks, stack, 2), "one has left")
    assert apart(operator, stacks, stack) == 2


@pytest.mark.parametrize(("scaling", "size"), [("all", 1), ("largest", 3)])
def test_a_step_that_does_not_fit(
    operator: Operator, stacks: Stacks, scaling: str, size: int
) -> None:
    stack = stacks.create(scaled(5, scaling=scaling))
    stacks.reaches(stack, "CREATE_COMPLETE")
    stacks.signal(stack, "up")
    told = "Moorage: " if scaling == "all" else "Moorage holds places for 2 of 5 more"
    eventually(lambda: any(one.startswith(told) for one in stacks.events(stack)), told)
    eventually(lambda: is_idle(stacks, stack, size), f"{size} workers")
    assert apart(operator, stacks, stack) == size


def test_a_group_of_several_servers_each_grows_and_shrinks(stacks: Stacks) -> None:
    """Heat chooses the member that leaves; its servers leave the ensemble too."""
    pod = template(app=server("m1.tiny"), cache=server("m1.tiny"))
    workers = {
        "type": "OS::Heat::AutoScalingGroup",
        "properties": {"min_size": 1, "max_size": 9, "resource": {"type": "pod.yaml"}},
    }
    described = template(workers=workers, up=policy(2), down=policy(-1))
    stack = stacks.create(described, files={"pod.yaml": json.dumps(pod)})
    stacks.reaches(stack, "CREATE_COMPLETE")
    stacks.signal(stack, "up")
    eventually(lambda: is_idle(stacks, stack, 6, 1), "three members of two servers each")
    stacks.signal(stack, "down")
    eventually(lambda: is_idle(stacks, stack, 4, 2), "one has left")


def test_a_group_of_the_form_of_aws_asks_too(
    operator: Operator, demo: Tenant, stacks: Stacks
) -> None:
    """Its instances need a network."""
    shared = demo.connection.network.find_network("shared", ignore_missing=False)
    config = {
        "type": "AWS::AutoScaling::LaunchConfiguration",
        "properties": {"ImageId": "tiny", "InstanceType": "m1.small"},
    }
    workers = {
        "type": "AWS::AutoScaling::AutoScalingGroup",
        "metadata": {"moorage": {"policies": [APART]}},
        "properties": {
            "AvailabilityZones": ["nova"],
            "LaunchConfigurationName": {"get_resource": "config"},
            "MinSize": "2",
            "MaxSize": "9",
            "VPCZoneIdentifier": shared.subnet_ids,
        },
    }
    described = template(config=config, workers=workers, up=policy(1), down=policy(-1))
    stack = stacks.create(described)
    stacks.reaches(stack, "CREATE_COMPLETE")
    assert apart(operator, stacks, stack) == 2
    stacks.signal(stack, "up")
    eventually(partial(is_idle, stacks, stack, 3, 1), "3 workers")
    assert apart(operator, stacks, stack) == 3
    stacks.signal(stack, "up")
    eventually(
        lambda: any(one.startswith("Moorage: ") for one in stacks.events(stack)), "it is refused"
    )
    stacks.signal(stack, "down")
    eventually(lambda: is_idle(stacks, stack, 2), "one has left")
    assert apart(operator, stacks, stack) == 2
    stacks.delete(stack)
    stacks.reaches(stack, "gone")
    assert stacks.decided(stack) is None
    eventually(lambda: not any(operator.usages().values()), "all room is free")
