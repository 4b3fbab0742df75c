"""PUT and DELETE of a lease: what may change when, and what refuses to."""

from typing import Any

import pytest
from tests.api.leases.conftest import Door, instances, whole
from tests.api.leases.test_wire import NOBODY, late

from moorage.domain.effects import Lane
from moorage.domain.leases import LeaseState
from moorage.domain.period import parse_instant
from moorage.testing.service import OPERATOR
from moorage.usecases.effect_dispatch import EffectResult, OutwardActions, carry_out


@pytest.fixture
def lease(one: Door) -> dict[str, Any]:
    """Two of 20 VCPU from ten to twelve, on the 7th of December."""
    made = one.lease("10:00", "12:00", instances(2, 20))
    assert made.status_code == 201, made.text
    found: dict[str, Any] = made.json["lease"]
    return found


def put(door: Door, lease: dict[str, Any], body: object) -> Any:
    return door.call("PUT", f"/leases/{lease['id']}", body)


def part(lease: dict[str, Any], **changes: Any) -> dict[str, Any]:
    return {"reservations": [{"id": lease["reservations"][0]["id"], **changes}]}


def now_is(door: Door, text: str) -> None:
    door.service.clock.set(parse_instant(f"2026-12-07T{text}:00Z"))


def begin(door: Door, lease: dict[str, Any]) -> None:
    """The lease is active, as the worker makes it at its start."""
    now_is(door, "10:00")
    work(door)
    assert door.service.store.lease(lease["id"]).state is LeaseState.ACTIVE


def work(door: Door) -> None:
    """What is due is done."""
    parts = door.service.env
    for lane in Lane:
        while due := parts.store.due_effects(1, lane):
            assert carry_out(parts, OutwardActions(), due[0]) is EffectResult.DONE


def test_a_change_answers_as_updating_and_nothing_to_change_as_it_is(
    one: Door, lease: dict[str, Any]
) -> None:
    assert put(one, lease, {}).json == {"lease": lease}
    renamed = put(one, lease, {"name": "n"}).json["lease"]
    assert (renamed["name"], renamed["status"]) == ("n", "UPDATING")
    assert one.call("GET", f"/leases/{lease['id']}").json["lease"]["status"] == "PENDING"


def test_dates_move_before_the_start(one: Door, lease: dict[str, Any]) -> None:
    dates = {"start_date": "2026-12-07 11:00", "end_date": "2026-12-07 14:00"}
    moved = put(one, lease, dates).json["lease"]
    assert moved["start_date"] == "2026-12-07T11:00:00.000000"
    assert moved["end_date"] == "2026-12-07T14:00:00.000000"
    assert [event["time"][11:16] for event in moved["events"]] == ["11:00", "14:00", "13:00"]
    assert put(one, lease, {"start_date": "now"}).status_code == 200


@pytest.mark.parametrize(
    ("body", "status", "says"),
    [
        ({"start_date": "2020-01-01 00:00"}, 400, "later than current"),
        ({"start_date": "2026-12-07 12:00"}, 400, "End date"),
        ({"end_date": "2026-12-07 10:00"}, 400, "End date"),
        ({"end_date": "2026-12-07"}, 400, "format"),
        ({"end_date": None}, 400, "format"),
        ({"end_date": "2126-12-07 10:00"}, 403, "longest_lease"),
        ({"name": 7}, 400, "name"),
        ({"name": "x" * 256}, 400, "name"),
        ({"before_end_date": "2026-12-07 10:00"}, 403, "before_end_date"),
        ({"before_end_date": "2026-12-07 12:00"}, 403, "before_end_date"),
        ({"before_end_date": "soon"}, 400, "format"),
        ({"reservations": {}}, 400, "list"),
        ({"reservations": [7]}, 400, "id"),
        ({"reservations": [{"amount": 3}]}, 400, "id"),
        ({"reservations": [{"id": NOBODY, "amount": 3}]}, 400, NOBODY),
        ({"reservations": [{"id": [], "amount": 3}]}, 400, "no reservation"),
        ({"reservations": [{"id": {}, "amount": 3}]}, 400, "no reservation"),
        ([], 400, "object"),
    ],
    ids=range(18),
)
def test_what_cannot_change_so_changes_nothing(
    one: Door, lease: dict[str, Any], body: object, status: int, says: str
) -> None:
    assert says in late(put(one, lease, body), status)
    assert one.call("GET", f"/leases/{lease['id']}").json["lease"] == lease


@pytest.mark.parametrize(
    ("changes", "status", "says"),
    [
        ({"amount": 0}, 400, "amount"),
        ({"amount": 10**30}, 400, "amount must be less"),
        ({"amount": "many"}, 400, "amount"),
        ({"vcpus": 33}, 500, "Not enough hosts available"),
        ({"affinity": False}, 500, "Not enough hosts available"),
        ({"resource_properties": '["==", "$gpu", "a100"]'}, 500, "Not enough hosts available"),
        ({"resource_properties": "["}, 400, "Malformed requirements"),
        ({"affinity": "some"}, 400, "affinity"),
        ({"vcpus": "many"}, 400, "vcpus"),
        ({"resource_type": "physical:host"}, 409, "resource_type"),
    ],
    ids=range(10),
)
def test_what_a_reservation_cannot_become_changes_nothing(
    one: Door, lease: dict[str, Any], changes: dict[str, Any], status: int, says: str
) -> None:
    assert says in late(put(one, lease, part(lease, **changes)), status)
    assert one.call("GET", f"/leases/{lease['id']}").json["lease"] == lease


@pytest.mark.parametrize(
    "body",
    [
        {"name": "n", "before_end_date": "2026-12-07 23:00"},
        {"end_date": "2026-12-07 13:00", "before_end_date": "2026-12-07 13:01"},
        {"name": "n", "end_date": "2026-12-07 13:00", "before_end_date": "never"},
    ],
    ids=range(3),
)
def test_a_change_of_which_a_part_is_refused_changes_nothing(
    one: Door, lease: dict[str, Any], body: dict[str, Any]
) -> None:
    assert put(one, lease, body).status_code in {400, 403}
    assert one.call("GET", f"/leases/{lease['id']}").json["lease"] == lease


def test_an_amount_grows_and_shrinks_and_is_told(one: Door, lease: dict[str, Any]) -> None:
    for amount in (3, 1):
        changed = put(one, lease, part(lease, amount=amount)).json["lease"]
        assert changed["reservations"][0]["amount"] == amount
    late_ = put(one, lease, part(lease, amount=4))
    assert "Not enough hosts available" in late(late_, 500)
    kept = one.call("GET", f"/leases/{lease['id']}").json["lease"]
    assert kept["reservations"][0]["amount"] == 1
    assert put(one, lease, part(lease, amount=1, vcpus=20)).status_code == 200, "as it is"


def test_the_reminder_is_as_said_and_follows_the_end(one: Door, lease: dict[str, Any]) -> None:
    def reminder(body: dict[str, Any]) -> str:
        events = put(one, lease, body).json["lease"]["events"]
        (told,) = (e["time"] for e in events if e["event_type"] == "before_end_lease")
        return str(told)[11:16]

    assert reminder({"before_end_date": "2026-12-07 11:55"}) == "11:55"
    assert reminder({"end_date": "2026-12-07 13:00"}) == "12:55"
    assert reminder({"end_date": "2026-12-07 11:30"}) == "11:25"
    assert reminder({"end_date": "2026-12-07 10:03"}) == "10:00"
    both = {"end_date": "2026-12-07 13:00", "before_end_date": "2026-12-07 12:30"}
    assert reminder(both) == "12:30"


def test_an_active_lease_keeps_its_start_and_may_end_otherwise(
    one: Door, lease: dict[str, Any]
) -> None:
    begin(one, lease)
    assert "start date" in late(put(one, lease, {"start_date": "2026-12-07 11:00"}), 400)
    same = {"start_date": "2026-12-07 10:00", "end_date": "2026-12-07 13:00"}
    changed = put(one, lease, same).json["lease"]
    assert changed["end_date"] == "2026-12-07T13:00:00.000000"
    assert one.call("GET", f"/leases/{lease['id']}").json["lease"]["status"] == "ACTIVE"


def test_an_active_lease_that_is_deleted_ends_and_is_known_no_more(
    one: Door, lease: dict[str, Any]
) -> None:
    begin(one, lease)
    now_is(one, "10:30")
    assert one.call("DELETE", f"/leases/{lease['id']}").status_code == 204
    work(one)
    assert one.service.store.lease(lease["id"]).state is LeaseState.CLOSED
    for method, body in (("GET", None), ("PUT", {"name": "x"}), ("DELETE", None)):
        assert lease["id"] in late(one.call(method, f"/leases/{lease['id']}", body), 404)
    assert one.call("GET", "/leases").json == {"leases": []}
    assert one.lease("10:31", "12:00", instances(3, 20)).status_code == 201, "its room is free"


def test_an_ended_lease_is_only_renamed_and_deleted(one: Door, lease: dict[str, Any]) -> None:
    begin(one, lease)
    now_is(one, "12:00")
    work(one)
    shown = one.call("GET", f"/leases/{lease['id']}").json["lease"]
    assert (shown["status"], shown["reservations"][0]["status"]) == ("TERMINATED", "deleted")
    assert {event["status"] for event in shown["events"]} == {"DONE"}
    for body in ({"end_date": "2026-12-07 13:00"}, part(lease, amount=1), {"end_date": "now"}):
        assert "only be renamed" in late(put(one, lease, body), 400)
    assert put(one, lease, {"name": "was"}).json["lease"]["name"] == "was"
    assert one.call("DELETE", f"/leases/{lease['id']}").status_code == 204
    assert one.call("GET", "/leases").json == {"leases": []}


def test_hosts_of_a_lease_are_changed_by_max(one: Door) -> None:
    one.offer("n1")
    lease = one.lease("10:00", "12:00", whole(1, 3)).json["lease"]
    changed = put(one, lease, part(lease, max=1)).json["lease"]["reservations"][0]
    assert (changed["min"], changed["max"]) == (1, 1)
    assert put(one, lease, part(lease, min=3)).status_code == 400
    assert late(one.call("DELETE", "/os-hosts/1", caller=OPERATOR), 409)
