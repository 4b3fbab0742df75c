"""Where Blazar 18's book is wrong, asked of this one: part A.7 of the study of it."""

from typing import Any

import pytest
from tests.api.leases.conftest import FLAVOR, Door, granted, instances, whole

from moorage.testing.service import OPERATOR, OTHER, READER


def test_where_no_host_was_ever_offered_there_are_not_enough(one: Door) -> None:
    assert not granted(one.lease("10:00", "12:00", whole()))


def test_where_no_host_meets_a_requirement_there_are_not_enough(two: Door) -> None:
    first, *_ = two.service.store.snapshot().names
    two.offer(first, gpu="a100")
    wish = '["==", "$gpu", "h100"]'
    assert not granted(two.lease("10:00", "12:00", whole(resource_properties=wish)))
    few = instances(1, 1, resource_properties=wish)
    assert not granted(two.lease("10:00", "12:00", few))
    assert not granted(two.lease("10:00", "12:00", whole(), few))
    assert granted(two.lease("10:00", "12:00", whole(), instances(1, 1)))


def test_reservations_of_one_lease_count_together(one: Door) -> None:
    assert not granted(one.lease("10:00", "12:00", instances(1, 40), instances(1, 40)))
    assert one.call("GET", "/leases").json == {"leases": []}


def test_an_amount_of_a_flavor_spreads_over_hosts(two: Door) -> None:
    assert granted(two.lease("10:00", "12:00", {**FLAVOR, "amount": 40}))
    assert granted(two.lease("10:00", "12:00", {**FLAVOR, "amount": 10}))
    assert not granted(two.lease("10:00", "12:00", {**FLAVOR, "amount": 15}))


def test_a_flavor_and_instances_share_the_fleet(two: Door) -> None:
    assert granted(two.lease("10:00", "12:00", instances(1, 64)))
    assert granted(two.lease("10:00", "12:00", {**FLAVOR, "amount": 32}))


def test_what_has_not_started_moves(two: Door) -> None:
    two.offer("n1", gpu="a100")
    # Wherever it was planned, the first must leave the host that the second needs.
    assert granted(two.lease("10:00", "12:00", instances(1, 64)))
    wish = instances(1, 64, resource_properties='["==", "$gpu", "a100"]')
    assert granted(two.lease("10:00", "12:00", wish))


def test_ten_is_more_than_nine(one: Door) -> None:
    one.offer("n1", rank="10")
    assert granted(one.lease("10:00", "12:00", whole(resource_properties='[">", "$rank", "9"]')))


def test_whole_hosts_back_to_back(one: Door) -> None:
    one.offer("n1")
    assert granted(one.lease("10:00", "12:00", whole()))
    assert granted(one.lease("12:00", "14:00", whole()))
    assert not granted(one.lease("11:00", "13:00", whole()))


def test_a_whole_host_is_nobody_elses(two: Door) -> None:
    two.offer("n1", "n2")
    assert granted(two.lease("10:00", "12:00", whole(1, 2)))
    assert not granted(two.lease("11:00", "12:00", instances(1, 1)))
    assert granted(two.lease("12:00", "13:00", instances(2, 64)))


def test_a_whole_host_is_not_had_while_somebody_is_there(two: Door) -> None:
    two.offer("n1", "n2")
    assert granted(two.lease("10:00", "12:00", instances(2, 10, affinity="False")))
    assert not granted(two.lease("11:00", "13:00", whole()))
    assert granted(two.lease("12:00", "13:00", whole(2, 2)))


@pytest.mark.parametrize(
    ("change", "status", "says"),
    [
        ({"name": ""}, 400, "name"),
        ({"start_date": None}, 400, "start_date"),
        ({"start_date": "tomorrow"}, 400, "format"),
        ({"start_date": "2020-01-01 00:00"}, 400, "later than current"),
        ({"end_date": "2026-12-07 10:00"}, 400, "later than start"),
        ({"end_date": "2126-12-07 10:00"}, 403, "longest_lease"),
        ({"reservations": []}, 400, "reservations"),
        ({"reservations": [{}]}, 400, "resource_type"),
        ({"reservations": [{"resource_type": "virtual:moon"}]}, 400, "virtual:moon"),
        ({"reservations": [instances(0, 1)]}, 400, "amount"),
        ({"reservations": [instances(1, 1, affinity="maybe")]}, 400, "affinity"),
        ({"reservations": [instances(1, 1, resource_properties="[")]}, 400, "requirements"),
        ({"reservations": [whole(3, 2)]}, 400, "max"),
        ({"reservations": [instances(1, 1)] * 101}, 400, "at most"),
        ({"before_end_date": "2026-12-08 10:00"}, 403, "before_end_date"),
        (
            {
                "reservations": [
                    {"resource_type": "flavor:instance", "flavor_id": "no", "amount": 1}
                ]
            },
            400,
            "no",
        ),
    ],
    ids=range(16),
)
def test_what_cannot_be_a_lease_is_refused(
    one: Door, change: dict[str, Any], status: int, says: str
) -> None:
    dates = {"start_date": "2026-12-07 10:00", "end_date": "2026-12-07 12:00"}
    body = {"name": "l", **dates, "reservations": [instances(1, 1)], "events": [], **change}
    answer = one.call("POST", "/leases", body)
    assert answer.status_code == status, answer.text
    assert says in answer.json["error_message"]
    assert answer.json["error_code"] == answer.json["error_name"] == status
    assert one.call("GET", "/leases").json == {"leases": []}


def test_others_leases_do_not_exist(one: Door) -> None:
    lease = one.lease("10:00", "12:00", instances(1, 1)).json["lease"]

    for method, body in (("GET", None), ("PUT", {"name": "x"}), ("DELETE", None)):
        answer = one.call(method, f"/leases/{lease['id']}", body, caller=OTHER)
        assert answer.status_code == 404, answer.text
    assert one.call("GET", "/leases", caller=OTHER).json == {"leases": []}
    assert len(one.call("GET", "/leases", caller=OPERATOR).json["leases"]) == 1
    assert one.call("DELETE", f"/leases/{lease['id']}", caller=READER).status_code == 403
    assert one.call("GET", "/os-hosts").status_code == 403


def test_beyond_blazar_a_refusal_is_a_conflict_with_an_explanation(one: Door) -> None:
    ours = {"OpenStack-API-Version": "reservation 1.1"}
    dates = {"start_date": "2026-12-07 10:00", "end_date": "2026-12-07 12:00"}
    body = {"name": "l", **dates, "reservations": [instances(2, 64)]}
    answer = one.call("POST", "/leases", body, headers=ours)
    assert answer.status_code == 409, answer.text
    assert answer.json["error_message"].startswith("Not enough hosts available")
    explained = one.service.call("GET", f"/explanations/{answer.json['explanation_id']}")
    assert explained.status_code == 200, explained.text
    more = {"expiry": "PT1H", "lead": "PT30M", "cleaning": "PT10M", "priority": 7}
    asked = {**body, **more, "reservations": [instances(1, 64)]}
    refused = one.call("POST", "/leases", asked, headers=ours)
    assert refused.status_code == 403
    assert "lease-priority limit 0 requested 7" in refused.json["error_message"]
    raised = {"quota": {"lease_priority": 7}}
    one.service.call("PATCH", "/quotas/project-a", raised, caller=OPERATOR)
    made = one.call("POST", "/leases", asked, headers=ours)
    assert made.status_code == 201, made.text
    stored = one.service.store.lease(made.json["lease"]["id"])
    assert (stored.terms.priority, stored.terms.lead) == (7, 1_800_000_000)
    assert len(one.call("GET", "/leases", headers=ours).json["leases"]) == 1
    soon = {**body, "start_date": "2026-11-21 20:00", "reservations": [instances(1, 64)]}
    for lead, told in (
        ("PT12H", "the lead would begin in the past: it is 11h at most"),
        ("P300D", "the lead of a lease is 1d at most (longest_lead)"),
    ):
        answer = one.call("POST", "/leases", {**soon, "lead": lead}, headers=ours)
        assert answer.status_code == 400, answer.text
        assert told in answer.json["error_message"]
    moved = {"start_date": "2026-11-21 09:10", "end_date": "2026-11-21 12:00"}
    path = f"/leases/{stored.id}"
    answer = one.call("PUT", path, moved, headers=ours)
    assert (answer.status_code, "10m at most" in answer.text) == (400, True), answer.text
    assert one.service.store.lease(stored.id).terms == stored.terms
    begins = {**moved, "start_date": "now", "lead": "PT30M", "reservations": [instances(1, 64)]}
    answer = one.call("POST", "/leases", {"name": "at once", **begins}, headers=ours)
    assert answer.status_code == 201, answer.text
    assert one.service.store.lease(answer.json["lease"]["id"]).terms.lead == 0
