"""Stacks of a real Heat ask for all their places first, and their servers get them."""

import json
from collections.abc import Iterator

import pytest
from tests.minicloud.stacks import APART, Stacks, group, places, server, template
from tests.minicloud.tenant import Operator, Tenant, eventually

POD = {
    "heat_template_version": "2021-04-16",
    "resources": {"app": server("m1.medium"), "cache": server("m1.tiny")},
}
TIERS = template(
    web=group(3, server("m1.small", name="web-%index%"), APART),
    pods=group(2, {"type": "pod.yaml"}),
    db=server("m1.large"),
)
TOO_MANY = template(web=group(4, server(), APART))


@pytest.fixture
def stacks(demo: Tenant) -> Iterator[Stacks]:
    with Stacks(demo) as made:
        yield made


def test_servers_of_three_tiers_are_where_they_were_decided(
    operator: Operator, demo: Tenant, stacks: Stacks
) -> None:
    """Under convergence, by two workers; nested templates and groups included."""
    stack = stacks.create(TIERS, files={"pod.yaml": json.dumps(POD)})
    eventually(lambda: stacks.decided(stack) is not None, "it is decided")
    decided = places(operator, stack)
    assert len(decided) == 8
    assert len({decided[f"web[{n}]"] for n in range(3)}) == 3, "apart"
    stacks.reaches(stack, "CREATE_COMPLETE")
    members, servers = stacks.members(stack), stacks.servers(stack)
    assert {path: one["server_id"] for path, one in members.items()} == servers
    found = {one["name"]: operator.host(one["server_id"]) for one in members.values()}
    assert found == decided
    assert stacks.decided(stack)["decision"]["status"] == "closed", "it is confirmed"


def test_what_does_not_fit_fails_before_any_resource(demo: Tenant, stacks: Stacks) -> None:
    stack = stacks.create(TOO_MANY)
    reason = stacks.reaches(stack, "CREATE_FAILED")
    assert reason.startswith("Moorage: "), reason
    assert "web" in reason
    assert reason in stacks.events(stack)
    assert stacks.servers(stack) == {}
    assert list(demo.nova.servers(details=False)) == []
    assert stacks.decided(stack) is None


def test_a_stack_with_a_long_timeout_is_held_as_long_as_is_allowed(stacks: Stacks) -> None:
    stack = stacks.create(template(web=server()), timeout_mins=600)
    stacks.reaches(stack, "CREATE_COMPLETE")
    assert set(stacks.members(stack)) == {"web"} == set(stacks.servers(stack))


def test_an_update_is_one_changed_decision(operator: Operator, stacks: Stacks) -> None:
    stack = stacks.create(template(web=group(1, server(), APART)))
    stacks.reaches(stack, "CREATE_COMPLETE")
    first = stacks.servers(stack)
    stacks.update(stack, template(web=group(3, server(), APART), db=server("m1.large")))
    stacks.reaches(stack, "UPDATE_COMPLETE")
    grown = stacks.servers(stack)
    assert first.items() <= grown.items(), "what was there stays"
    assert {path: one["server_id"] for path, one in stacks.members(stack).items()} == grown
    hosts = {path: operator.host(one) for path, one in grown.items()}
    assert len({hosts[f"web/{n}"] for n in range(3)}) == 3
    stacks.update(stack, TOO_MANY)
    reason = stacks.reaches(stack, "UPDATE_FAILED")
    assert reason.startswith("Moorage: "), reason
    assert stacks.servers(stack) == grown, "nothing is deleted either"
    stacks.update(stack, template(web=group(2, server(), APART)))
    stacks.reaches(stack, "UPDATE_COMPLETE")
    assert set(stacks.members(stack)) == {"web/0", "web/1"} == set(stacks.servers(stack))


def test_a_rollback_gives_the_old_decision_back(demo: Tenant, stacks: Stacks) -> None:
    """The new server fails when it is built, after the decision."""
    stack = stacks.create(template(web=group(1, server())))
    stacks.reaches(stack, "CREATE_COMPLETE")
    failing = server("m1.large", metadata={"minicloud:fail": "*"})
    stacks.update(stack, template(web=group(2, server()), bad=failing), disable_rollback=False)
    stacks.reaches(stack, "ROLLBACK_COMPLETE")
    assert set(stacks.members(stack)) == {"web/0"} == set(stacks.servers(stack))


def test_the_rollback_of_a_create_leaves_nothing(demo: Tenant, stacks: Stacks) -> None:
    failing = server("m1.large", metadata={"minicloud:fail": "*"})
    stack = stacks.create(template(web=server(), bad=failing), disable_rollback=False)
    stacks.reaches(stack, "ROLLBACK_COMPLETE")
    assert stacks.decided(stack) is None
    assert list(demo.nova.servers(details=False)) == []


def test_a_deleted_stack_is_released(operator: Operator, demo: Tenant, stacks: Stacks) -> None:
    stack = stacks.create(template(web=group(2, server())))
    stacks.reaches(stack, "CREATE_COMPLETE")
    stacks.delete(stack)
    stacks.reaches(stack, "gone")
    assert stacks.decided(stack) is None
    eventually(lambda: not any(operator.usages().values()), "all room is free")


def test_an_abandoned_stacks_servers_are_adopted_by_another(
    operator: Operator, demo: Tenant, stacks: Stacks
) -> None:
    described = template(web=group(2, server(), APART), db=server("m1.large"))
    stack = stacks.create(described)
    stacks.reaches(stack, "CREATE_COMPLETE")
    servers = stacks.servers(stack)
    data = stacks.abandon(stack)
    stacks.reaches(stack, "gone")
    assert stacks.decided(stack) is None
    other = stacks.create(described, adopt_stack_data=json.dumps(data))
    stacks.reaches(other, "ADOPT_COMPLETE")
    assert stacks.servers(other) == servers
    assert {path: one["server_id"] for path, one in stacks.members(other).items()} == servers


def test_names_that_a_group_has_given_up_are_not_taken_again(
    operator: Operator, stacks: Stacks
) -> None:
    """A server is removed by its id; later templates do not name it any more."""
    web = group(3, server(), APART)
    stack = stacks.create(template(web=web))
    stacks.reaches(stack, "CREATE_COMPLETE")
    first = stacks.servers(stack)
    removal = [{"resource_list": [first["web/1"]]}]
    smaller = group(2, server(), APART)
    smaller["properties"]["removal_policies"] = removal
    stacks.update(stack, template(web=smaller))
    stacks.reaches(stack, "UPDATE_COMPLETE")
    kept = {path: one for path, one in first.items() if path != "web/1"}
    assert stacks.servers(stack) == kept
    assert {path: one["server_id"] for path, one in stacks.members(stack).items()} == kept
    stacks.update(stack, template(web=group(3, server(), APART)))
    stacks.reaches(stack, "UPDATE_COMPLETE")
    grown = stacks.servers(stack)
    assert set(grown) == {"web/0", "web/2", "web/3"}
    assert {path: one["server_id"] for path, one in stacks.members(stack).items()} == grown
    assert len({operator.host(one) for one in grown.values()}) == 3, "apart"


def test_a_stack_that_is_updated_twice_at_once(stacks: Stacks) -> None:
    """The later update wins, as ever in Heat; its members are exactly its servers."""
    stack = stacks.create(template(web=group(1, server())))
    stacks.reaches(stack, "CREATE_COMPLETE")
    stacks.update(stack, template(web=group(4, server())))
    stacks.update(stack, template(web=group(2, server()), db=server("m1.large")))
    stacks.reaches(stack, "UPDATE_COMPLETE")
    expected = {"web/0", "web/1", "db"}
    assert set(stacks.members(stack)) == expected
    eventually(lambda: set(stacks.servers(stack)) == expected, "what is too much is gone")
