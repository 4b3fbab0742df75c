"""A decision of whose places none is left is not told as held."""

from collections.abc import Iterator
from typing import Any

import pytest
from tests.api.projects.two_projects import (
    ADMIN,
    ANY,
    CUSTOM,
    Doors,
    Person,
    opened,
    role,
)

ANN = Person("ann")


@pytest.fixture
def doors() -> Iterator[Doors]:
    yield from opened()


def _held(doors: Doors, members: list[Any]) -> Any:
    body = {"ensemble": {"name": "e", "members": members, "decide": {"hold": "PT4H"}}}
    return doors.made(ANN, "/v1/ensembles", body)


def _told(doors: Doors, made: Any) -> list[tuple[str, int, list[str]]]:
    """Status, places and places gone of a decision, as it is shown and as it is listed."""
    shown = doors.ask(ANN, "GET", f"/v1/decisions/{made['decision']['id']}").json["decision"]
    (listed,) = doors.ask(ANN, "GET", "/v1/decisions").json["decisions"]
    return [(one["status"], len(one["assignments"]), one["withdrawn"]) for one in (shown, listed)]


def test_a_hold_whose_members_have_all_left_is_released(doors: Doors) -> None:
    made = _held(doors, [role("web", 2, 1)])
    for left, status in ((1, "held"), (0, "released")):
        path = f"/v1/ensembles/{made['ensemble']['id']}/members/web[{left}]"
        assert doors.ask(ANN, "DELETE", path, **ANY).status == 200
        assert _told(doors, made) == [(status, left, [])] * 2


def test_a_hold_on_a_device_that_has_vanished_is_released(doors: Doors) -> None:
    device = {"name": "gpu", "count": 1, "resources": {"VCPU": 1, CUSTOM[1]: 1}}
    made = _held(doors, [device])
    assert _told(doors, made) == [("held", 1, [])] * 2
    for provider in doors.service.store.snapshot().uuids:
        path = f"/placement/resource_providers/{provider}/inventories/{CUSTOM[1]}"
        assert doors.ask(ADMIN, "DELETE", path).status in {204, 404}
    assert _told(doors, made) == [("released", 0, ["gpu[0]"])] * 2


def test_members_may_join_where_none_is_held(doors: Doors) -> None:
    made = _held(doors, [role("web", 1, 1)])
    path = f"/v1/ensembles/{made['ensemble']['id']}/members"
    assert doors.ask(ANN, "DELETE", f"{path}/web[0]", **ANY).status == 200
    member = {"member": {"role": role("db", 1, 1), "decide": {}}}
    added = doors.ask(ANN, "POST", path, member, **ANY)
    assert added.status == 201, added.told
    assert added.json["decision"]["status"] == "held"
    assert added.json["decision"]["expires_at"] == made["decision"]["expires_at"]
