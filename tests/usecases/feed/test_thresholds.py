"""Thresholds: told when they are crossed, once, and again after they were back."""

import json
from dataclasses import replace
from typing import Any

from tests.outward.conftest import Receiver, receiver

from moorage.domain.bookings import Booking, BookingState
from moorage.domain.changes import Changeset, DropBookings, PutBookings
from moorage.domain.consumers import Consumer
from moorage.domain.disclosure import Disclosure
from moorage.domain.events import BEGINNING, EventFilter
from moorage.domain.period import DAY, FOREVER, HOUR, Period, format_instant
from moorage.testing.service import OPERATOR, READER, TENANT, Service
from moorage.usecases.events.thresholds import ThresholdWatcher

__all__ = ["receiver"]

import pytest
from tests.usecases.feed.conftest import Post

from moorage.usecases.ports import Caller


def looked(service: Service, thresholds: ThresholdWatcher | None = None) -> ThresholdWatcher:
    """Look now, whatever the interval."""
    found = thresholds or ThresholdWatcher(service.env)
    found._next = 0.0
    found.run_round()
    return found


def told(service: Service, type_: str) -> list[dict[str, Any]]:
    page = service.store.event_log.page(None, BEGINNING, EventFilter((type_,)), 100)
    return [dict(one.body) for one in page.events]


def fill(service: Service) -> frozenset[str]:
    """Neighbours arrive, and take what is left of every host."""
    snapshot = service.store.snapshot()
    columns = snapshot.classes["VCPU"]
    left = columns.capacity - columns.peak
    consumers = set()
    for row, free in zip(columns.rows.tolist(), left.tolist(), strict=True):
        if not free:
            continue
        consumer = service.env.ids.uuid()
        booking = Booking(
            consumer,
            snapshot.uuids[row],
            {"VCPU": free},
            Period(snapshot.taken_at, FOREVER),
            BookingState.HELD,
            lapses_at=FOREVER,
        )
        put = PutBookings(Consumer(consumer, "neighbours"), (booking,))
        service.store.commit(Changeset((put,)))
        consumers.add(consumer)
    return frozenset(consumers)


def crew(service: Service, count: int) -> str:
    body = {
        "name": "crew",
        "members": [{"name": "crew", "count": count, "flavor": "m1.xlarge"}],
        "policies": [
            {"name": "one", "type": "anti-affinity", "members": ["crew"], "level": "host"}
        ],
        "decide": {"hold": "PT1H"},
    }
    answer = service.call("POST", "/ensembles", {"ensemble": body})
    assert answer.status_code == 201, answer.text
    return str(answer.json["ensemble"]["id"])


def test_room_for_a_role_is_told_when_it_goes_below_and_when_it_is_back(
    post: Post, receiver: Receiver
) -> None:
    service = post.service
    post.subscribed(receiver.url, "ensemble.max_additional", role="crew", below=3, name="few")
    ensemble = crew(service, 2)
    thresholds = looked(service)
    before = told(service, "ensemble.max_additional")
    assert before == []
    neighbours = fill(service)
    looked(service, thresholds)
    (one,) = told(service, "ensemble.max_additional")
    assert (one["role"], one["now"], one["below"], one["crossed"]) == ("crew", 0, 3, "below")
    assert one["before"] >= 3
    looked(service, thresholds)
    looked(service)  # another worker
    assert len(told(service, "ensemble.max_additional")) == 1
    post.once()
    assert [json.loads(request.body)["subject"] for request in receiver.requests] == [ensemble]
    service.store.commit(Changeset((DropBookings(neighbours),)))
    looked(service, thresholds)
    assert told(service, "ensemble.max_additional")[-1]["crossed"] == "back"


def free(service: Service, consumers: frozenset[str], hosts: int) -> frozenset[str]:
    """Some neighbours leave that have a host for themselves; who stays."""

    def taken(consumer: str) -> tuple[int, str]:
        ((_, booking),) = service.store.bookings(consumer=consumer)
        return -booking.amounts["VCPU"], consumer

    gone = frozenset(sorted(consumers, key=taken)[:hosts])
    service.store.commit(Changeset((DropBookings(gone),)))
    return consumers - gone


def read(service: Service, caller: Caller, type_: str) -> list[dict[str, Any]]:
    page = service.call("GET", "/events", caller=caller, query={"type": type_})
    assert page.status_code == 200, page.text
    return [one["body"] for one in page.json["events"]]


def test_a_tenant_finds_no_exact_count_by_a_threshold(post: Post) -> None:
    """Two and three are told as one: below two and three, until there are four."""
    service, kind = post.service, "ensemble.max_additional"
    rough = replace(service.env.limits, disclosure=Disclosure(counts=(0, 1, 4, 10)))
    service.env = replace(service.env, limits=rough)
    asked = {"url": "http://127.0.0.1:9/", "events": [kind], "role": "crew"}
    refused = service.call("POST", "/subscriptions", {"subscription": asked | {"below": 11}})
    assert refused.status_code == 400, refused.text
    assert refused.json["errors"][0]["path"] == "subscription.below"
    for number in (2, 3):
        post.subscribed("http://127.0.0.1:9/", kind, role="crew", below=number)
    admin, exactly = (
        replace(OPERATOR, project_id="project-a"),
        {"subscription": asked | {"below": 3}},
    )
    made = service.call("POST", "/subscriptions", exactly, caller=admin)
    assert made.status_code == 201, made.text
    crew(service, 2)
    thresholds = looked(service)
    neighbours = fill(service)
    looked(service, thresholds)
    mine: list[dict[str, Any]] = []
    # Hosts that are free again, and how many events say so: to the operator, and to the tenant.
    for hosts, told_of in ((2, (0, 0)), (1, (1, 0)), (1, (1, 2))):
        neighbours = free(service, neighbours, hosts)
        looked(service, thresholds)
        back = [one for one in told(service, kind) if one["crossed"] == "back"]
        mine = [one for one in back if one["subscription"] == made.json["subscription"]["id"]]
        assert (len(mine), len(back) - len(mine)) == told_of
    assert [one["now"] for one in mine] == [3]
    assert {one["now"] for one in read(service, TENANT, kind)} == {0, 1, 4}
    assert {one["now"] for one in read(service, admin, kind)} == {0, 3, 4}


def test_nothing_is_computed_while_nothing_moves(
    post: Post, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = post.service
    post.subscribed("http://127.0.0.1:9/", "ensemble.max_additional", role="crew", below=3)
    crew(service, 2)
    thresholds = looked(service)

    def solve(*_: object, **__: object) -> object:
        raise AssertionError

    monkeypatch.setattr(type(service.env.solver), "solve", solve)
    post.happen("a")  # the ledger moves, the fleet does not
    looked(service, thresholds)
    assert thresholds.run_round() is False  # before its time it does not even ask the ledger


def test_time_left_is_told_once_for_each_end(post: Post) -> None:
    service = post.service
    post.subscribed("http://127.0.0.1:9/", "lease.time_left", before="PT24H")
    now = service.clock.instant
    body = {
        "name": "shop",
        "start": format_instant(now),
        "end": format_instant(now + 2 * DAY),
        "amount": {"count": 2, "flavor": "m1.xlarge"},
    }
    answer = service.call("POST", "/leases", {"lease": body})
    assert answer.status_code == 201, answer.text
    lease = answer.json["lease"]
    looked(service)
    assert told(service, "lease.time_left") == []
    service.clock.pass_by(DAY + HOUR)
    looked(service)
    looked(service)
    (one,) = told(service, "lease.time_left")
    assert (one["name"], one["edge"], one["left"]) == ("shop", "end", "PT23H")
    later = {"lease": {"end": format_instant(now + 3 * DAY)}}
    changed = service.call("PATCH", f"/leases/{lease['id']}", later, headers={"If-Match": "*"})
    assert changed.status_code == 200, changed.text
    looked(service)
    assert len(told(service, "lease.time_left")) == 1
    service.clock.pass_by(DAY)
    looked(service)
    assert len(told(service, "lease.time_left")) == 2


def test_capacity_is_told_to_operators_by_number_and_by_share(post: Post) -> None:
    service = post.service
    for more in (
        {"flavor": "m1.xlarge", "below": 3},
        {"resource_class": "VCPU", "above_share": 0.9},
    ):
        asked = {"url": "http://127.0.0.1:9/", "events": ["capacity.threshold"], **more}
        answer = service.call("POST", "/subscriptions", {"subscription": asked}, caller=OPERATOR)
        assert answer.status_code == 201, answer.text
    asked = {"url": "http://127.0.0.1:9/", "events": ["capacity.threshold"], "zone": "nowhere"}
    asked |= {"resource_class": "VCPU", "below": 1}
    answer = service.call("POST", "/subscriptions", {"subscription": asked}, caller=OPERATOR)
    assert answer.status_code == 400, answer.text
    assert answer.json["errors"][0]["path"] == "subscription.zone"
    thresholds = looked(service)
    assert told(service, "capacity.threshold") == []
    fill(service)
    looked(service, thresholds)
    number, share = told(service, "capacity.threshold")
    assert (number["flavor"], number["now"], number["crossed"]) == ("m1.xlarge", 0, "below")
    assert (share["resource_class"], share["now"], share["crossed"]) == ("VCPU", 1.0, "above")
    assert number["before"] > 3


def test_events_of_the_cloud_are_read_by_operators_only(post: Post) -> None:
    """A tenant may be a member of the project in which an operator has planned and subscribed."""
    service = post.service
    admin = replace(OPERATOR, project_id="project-a")
    asked = {"flavor": "m1.xlarge", "below": 3, "url": "http://127.0.0.1:9/"}
    asked |= {"events": ["capacity.threshold"]}
    made = service.call("POST", "/subscriptions", {"subscription": asked}, caller=admin)
    assert made.status_code == 201, made.text
    thresholds = looked(service)
    fill(service)
    looked(service, thresholds)
    host = service.store.snapshot().names[0]
    window = {"kind": "maintenance", "hosts": [host], "start": "2026-12-07T08:00:00Z"}
    window |= {"end": "2026-12-07T10:00:00Z", "reason": "a firmware update"}
    planned = service.call("POST", "/capacity/planned", {"window": window}, caller=admin)
    assert planned.status_code == 201, planned.text
    assert len(read(service, admin, "capacity.*")) == 2
    assert read(service, TENANT, "capacity.*") == read(service, READER, "capacity.*") == []
    everything = post.subscribed("http://127.0.0.1:9/", "*")
    post.happen("a")
    removed = service.call(
        "DELETE",
        f"/capacity/planned/{planned.json['window']['id']}",
        caller=admin,
        headers={"If-Match": "*"},
    )
    assert removed.status_code == 204, removed.text
    pending = service.store.event_log.pending(post.stored(everything["id"]), 10)
    assert [one.type for one in pending.events] == ["lease.active"]
