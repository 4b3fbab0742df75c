"""Stacks of a real Heat while Moorage is away or heat-engine dies, and by its options."""

from collections.abc import Iterator

import pytest
from tests.minicloud.stacks import APART, Stacks, group, heat_with, server, template
from tests.minicloud.tenant import Json, Operator, Tenant, eventually

PLAIN = template(web=group(2, server()))
TOO_MANY = template(web=group(4, server(), APART))
AWAY = "Moorage, which decides where its servers go, does not answer; try again"


@pytest.fixture
def stacks(demo: Tenant) -> Iterator[Stacks]:
    with Stacks(demo) as made:
        yield made


def test_moorage_away_before_the_decision(operator: Operator, demo: Tenant, stacks: Stacks) -> None:
    operator.cloud.program("moorage").kill()
    try:
        stack = stacks.create(PLAIN)
        assert stacks.reaches(stack, "CREATE_FAILED") == AWAY
    finally:
        operator.cloud.start("moorage")
    assert list(demo.nova.servers(details=False)) == []
    stacks.update(stack, PLAIN)
    stacks.reaches(stack, "UPDATE_COMPLETE")
    assert set(stacks.members(stack)) == {"web/0", "web/1"}


def test_an_operator_may_let_stacks_go_on_without_an_answer(
    operator: Operator, stacks: Stacks
) -> None:
    """The plug-in alone cannot reach Moorage, which Nova needs as its Placement."""
    away = {"failure_mode": "ordinary", "endpoint": "http://127.0.0.1:9/v1"}
    with heat_with(operator.cloud, **away):
        stack = stacks.create(PLAIN)
        stacks.reaches(stack, "CREATE_COMPLETE")
        told = "Moorage does not answer: Nova finds hosts one server at a time"
        assert told in stacks.events(stack)
        assert stacks.decided(stack) is None
        assert set(stacks.servers(stack)) == {"web/0", "web/1"}


def test_the_engine_without_convergence_asks_too(operator: Operator, stacks: Stacks) -> None:
    """Heat calls lifecycle plug-ins itself there."""
    with heat_with(operator.cloud, convergence="false"):
        refused = stacks.create(TOO_MANY)
        assert stacks.reaches(refused, "CREATE_FAILED").startswith("Moorage: ")
        assert stacks.servers(refused) == {}
        stack = stacks.create(PLAIN)
        stacks.reaches(stack, "CREATE_COMPLETE")
        servers = stacks.servers(stack)
        assert {path: one["server_id"] for path, one in stacks.members(stack).items()} == servers
        assert stacks.decided(stack)["decision"]["status"] == "closed", "it is confirmed"
        stacks.update(stack, TOO_MANY)
        assert stacks.reaches(stack, "UPDATE_FAILED").startswith("Moorage: ")
        stacks.update(stack, template(web=group(3, server())))
        stacks.reaches(stack, "UPDATE_COMPLETE")
        assert set(stacks.members(stack)) == {f"web/{n}" for n in range(3)}
        stacks.delete(stack)
        stacks.reaches(stack, "gone")
        assert stacks.decided(stack) is None


def test_moorage_away_after_the_decision(operator: Operator, stacks: Stacks) -> None:
    """The last server fails, as it gets no place; an update makes it.

    The group is complete before: Heat itself cancels what an update finds still at work.
    """
    stack = stacks.create(template(web=group(2, server()), wait=_wait(20), last=_last()))
    eventually(lambda: stacks.resource_state(stack, "web") == "CREATE_COMPLETE", "web is complete")
    operator.cloud.program("moorage").kill()
    try:
        stacks.reaches(stack, "CREATE_FAILED")
    finally:
        operator.cloud.start("moorage")
    stacks.update(stack, template(web=group(2, server()), last=server()))
    stacks.reaches(stack, "UPDATE_COMPLETE")
    assert set(stacks.members(stack)) == {"web/0", "web/1", "last"} == set(stacks.servers(stack))


def _wait(seconds: int) -> Json:
    """A resource that takes so long."""
    return {"type": "OS::Heat::TestResource", "properties": {"wait_secs": seconds}}


def _last() -> Json:
    """A server that comes after it."""
    return {**server(), "depends_on": "wait"}


def test_the_engine_is_killed_in_the_middle(operator: Operator, stacks: Stacks) -> None:
    """What it held is taken by an update; nothing is doubled."""
    described = template(web=group(2, server()), wait=_wait(20), last=_last())
    stack = stacks.create(described)
    eventually(lambda: len(stacks.servers(stack)) == 2, "the first are there")
    operator.cloud.program("heat-engine").kill()
    operator.cloud.start("heat-engine")
    final = template(web=group(2, server()), last=server())
    stacks.update(stack, final)
    stacks.reaches(stack, "UPDATE_COMPLETE")
    servers = stacks.servers(stack)
    assert {path: one["server_id"] for path, one in stacks.members(stack).items()} == servers
    assert set(servers) == {"web/0", "web/1", "last"}


@pytest.mark.parametrize(
    ("options", "described", "state", "told"),
    [
        ({"stacks": "off"}, PLAIN, "CREATE_COMPLETE", None),
        ({"stacks": "annotated"}, PLAIN, "CREATE_COMPLETE", None),
        ({"stacks": "annotated"}, TOO_MANY, "CREATE_FAILED", "Moorage: "),
        ({"stacks": "advise"}, PLAIN, "CREATE_COMPLETE", "Moorage would place all"),
        ({"stacks": "advise"}, TOO_MANY, "CREATE_COMPLETE", "Moorage would refuse this: "),
    ],
)
def test_what_the_operator_set(
    operator: Operator,
    stacks: Stacks,
    options: dict[str, str],
    described: Json,
    state: str,
    told: str | None,
) -> None:
    with heat_with(operator.cloud, **options):
        stack = stacks.create(described)
        stacks.reaches(stack, state)
        events = [one for one in stacks.events(stack) if one.startswith("Moorage")]
        assert bool(events) is (told is not None), events
        assert all(one.startswith(str(told)) for one in events), events
        assert stacks.decided(stack) is None
