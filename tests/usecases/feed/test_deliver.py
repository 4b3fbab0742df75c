"""Deliveries over real sockets, with a clock that is set: in order, again, given up, sent again."""

import base64
import hashlib
import hmac
import ipaddress
import json
import sys
from dataclasses import replace
from typing import Any

import pytest
from tests.outward.conftest import Answer, Receiver, Request, receiver, receiving
from tests.usecases.feed.conftest import Post, heard

from moorage.domain.changes import Changeset, PutLease, TrimEvents
from moorage.domain.period import DAY, HOUR, MINUTE, SECOND
from moorage.outward.subscriber import SubscriberClient
from moorage.testing.service import OTHER
from moorage.usecases.effect_dispatch import OutwardFailure
from moorage.usecases.events.deliver import NOTHING, DeliveryRound, OutgoingEvent, deliver
from moorage.usecases.paging import Page

__all__ = ["receiver"]


def test_an_event_is_delivered_signed_with_its_own_id(post: Post, receiver: Receiver) -> None:
    made = post.subscribed(f"{receiver.url}/hook?x=1")
    post.happen("before-filter", type_="claim.active")
    post.happen("a", "b")
    assert [turn.delivered for turn in post.once()] == [2]
    assert post.once() == []
    first, second = receiver.requests
    assert heard(receiver.requests) == ["a", "b"]
    assert (first.method, first.path) == ("POST", "/hook?x=1")
    told = json.loads(first.body)
    assert (told["type"], told["data"], told["subscription"]) == (
        "lease.active",
        {"n": "a"},
        made["id"],
    )
    assert told["id"] == first.headers["webhook-id"] != second.headers["webhook-id"]
    # As a receiver computes it.
    key = base64.b64decode(made["secret"].removeprefix("whsec_"))
    stamp = first.headers["webhook-timestamp"]
    signed = f"{told['id']}.{stamp}.".encode() + first.body
    expected = base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
    assert first.headers["webhook-signature"] == f"v1,{expected}"
    assert int(stamp) == post.service.clock.instant // SECOND


def test_what_came_before_the_subscription_or_is_not_meant_is_passed(
    post: Post, receiver: Receiver
) -> None:
    post.happen("early")
    made = post.subscribed(receiver.url, "lease.closed")
    post.happen("other")
    (turn,) = post.once()
    assert turn.passed is not None
    assert turn.passed[0] == made["id"]
    assert receiver.requests == []


def test_errors_are_tried_again_ever_later_and_those_behind_wait(post: Post) -> None:
    status = [500]
    with receiving(lambda _: Answer(status[0])) as target:
        made = post.subscribed(target.url)
        post.happen("a", "b")
        waits = []
        for _ in range(8):
            assert [turn.failed for turn in post.once()] == [True]
            one = post.stored(made["id"])
            waits.append(one.not_before - post.service.clock.instant)
            assert post.once() == []  # nothing is due before
            post.service.clock.set(one.not_before)
        assert heard(target.requests) == ["a"] * 8
        assert len({request.headers["webhook-id"] for request in target.requests}) == 1
        for wait, most in zip(waits, (5 * 2**n * SECOND for n in range(8)), strict=True):
            assert most // 2 <= wait <= most
        assert "answered 500" in post.stored(made["id"]).outcome
        status[0] = 200
        assert [turn.delivered for turn in post.once()] == [2]
        assert heard(target.requests)[8:] == ["a", "b"]
    one = post.stored(made["id"])
    assert (one.failing_since, one.attempts, one.delivered) == (None, 0, 2)


def test_a_day_of_failures_gives_up_what_is_as_old_and_sends_it_again_when_asked(
    post: Post,
) -> None:
    status = [503]
    with receiving(lambda _: Answer(status[0])) as target:
        made = post.subscribed(target.url)
        post.happen("a", "b")
        attempts, one = 0, post.stored(made["id"])
        while not one.given_up:
            post.once()
            attempts += 1
            one = post.stored(made["id"])
            if attempts == 20:
                post.happen("young")
            post.service.clock.set(max(one.not_before, post.service.clock.instant))
        began = one.created_at
        assert began + DAY <= one.updated_at < began + DAY + 2 * HOUR
        assert attempts == len(target.requests) < 60  # one attempt a wait, however much happens
        assert one.given_up == 2
        letters = post.service.call("GET", f"/subscriptions/{made['id']}/dead-letters").json
        assert [one["event"]["subject"] for one in letters["dead_letters"]] == ["a", "b"]
        assert "503" in letters["dead_letters"][0]["problem"]
        # The young one has a day of its own; what is sent again meanwhile is tried at once.
        path = f"/subscriptions/{made['id']}/resend"
        chosen = letters["dead_letters"][1]
        asked = {"resend": {"dead_letters": [chosen["id"]]}}
        assert post.service.call("POST", path, asked).json["queued"] == 1
        del target.requests[:]
        post.once()
        assert heard(target.requests) == ["b", "young"]
        assert len(post.service.store.event_log.dead_letters(made["id"], Page())) == 2
        assert counts(post, made["id"]) == (2, 2)
        status[0] = 204
        assert post.service.call("POST", path, {"resend": {}}).json["queued"] == 2
        del target.requests[:]
        assert [turn.delivered for turn in post.once()] == [3]
        assert sorted(heard(target.requests)) == ["a", "b", "young"]
        again = {request.headers["webhook-id"] for request in target.requests}
        assert chosen["event"]["id"] in again
    assert post.service.store.event_log.dead([made["id"]]) == {}
    assert counts(post, made["id"]) == (2, 0)
    assert post.service.call("POST", path, {"resend": {}}).json["queued"] == 0


def test_a_target_that_hears_what_is_sent_again_fails_no_more(post: Post) -> None:
    status = [503]
    with receiving(lambda _: Answer(status[0])) as target:
        made = post.subscribed(target.url)
        post.happen("a")
        while not post.stored(made["id"]).given_up:
            post.once()
            post.service.clock.set(
                max(post.stored(made["id"]).not_before, post.service.clock.instant)
            )
        path = f"/subscriptions/{made['id']}"
        assert post.service.call("GET", path).json["subscription"]["status"] == "failing"
        post.service.call("POST", f"{path}/resend", {"resend": {}})
        post.once()
        assert post.service.call("GET", path).json["subscription"]["status"] == "failing"
        status[0] = 200
        post.service.call("POST", f"{path}/resend", {"resend": {}})
        post.once()
        one = post.service.call("GET", path).json["subscription"]
    assert (one["status"], one["failing_since"], one["next_attempt"]) == ("active", None, None)


def counts(post: Post, id_: str) -> tuple[int, int]:
    """How many events were given up all in all, and how many are dead letters now."""
    one = post.service.call("GET", f"/subscriptions/{id_}").json["subscription"]
    (listed,) = post.service.call("GET", "/subscriptions").json["subscriptions"]
    assert listed == one
    return one["given_up"], one["dead_letters"]


def test_who_dies_between_delivery_and_record_delivers_again_under_the_same_id(
    post: Post, receiver: Receiver
) -> None:
    made = post.subscribed(receiver.url)
    post.happen("a")

    def dies(sending: OutgoingEvent) -> str:
        post.delivery.send(sending)
        raise SystemExit

    with pytest.raises(SystemExit):
        post.with_send(dies).once()
    assert post.once() == []  # it may still be at it
    post.service.clock.set(post.stored(made["id"]).not_before)
    assert [turn.delivered for turn in post.once()] == [1]
    first, second = (request.headers["webhook-id"] for request in receiver.requests)
    assert first == second


def test_of_two_replicas_one_delivers(post: Post, receiver: Receiver) -> None:
    post.subscribed(receiver.url)
    post.happen("a")
    (due,) = post.service.store.event_log.due(10)

    def slow(sending: OutgoingEvent) -> str:
        assert post.once() == []  # the other one finds it taken
        return post.delivery.send(sending)

    assert [turn.delivered for turn in post.with_send(slow).once()] == [1]
    assert deliver(post.service.env, post.delivery, due) is NOTHING  # as it was read before
    assert heard(receiver.requests) == ["a"]


def test_what_was_forgotten_before_it_was_delivered_is_told(post: Post, receiver: Receiver) -> None:
    made = post.subscribed(receiver.url)
    post.happen("a", "b")
    post.service.store.commit(Changeset((TrimEvents(before=0, keep=1, most=100),)))
    assert [turn.delivered for turn in post.once()] == [2]
    lost, kept = (json.loads(request.body) for request in receiver.requests)
    assert (lost["type"], lost["subject"], kept["subject"]) == ("events.lost", made["id"], "b")
    assert post.once() == []


def test_a_target_of_the_own_networks_is_not_reached_where_a_setting_says_so(
    receiver: Receiver,
) -> None:
    guarded = SubscriberClient(5.0, public_only=True)
    for name in ("localhost", "127.0.0.1", "[::1]", "[::ffff:127.0.0.1]"):
        url = f"http://{name}:{receiver.url.rpartition(':')[2]}/"
        with pytest.raises(OutwardFailure, match="not public"):
            guarded(OutgoingEvent("e", url, "whsec_AAAA", 0, b"{}"))
    assert receiver.requests == []


def test_a_name_is_looked_up_once_and_the_address_found_is_the_one_connected_to(
    receiver: Receiver,
) -> None:
    looked_up: list[object] = []
    connected: list[str] = []
    listening = True

    def note(event: str, args: tuple[Any, ...]) -> None:
        if listening and event == "socket.getaddrinfo":
            looked_up.append(args[0])
        elif listening and event == "socket.connect":
            connected.append(args[1][0])

    sys.addaudithook(note)
    try:
        port = receiver.url.rpartition(":")[2]
        sending = OutgoingEvent("e", f"http://localhost:{port}/hook", "whsec_AAAA", 0, b"{}")
        SubscriberClient(5.0, public_only=False)(sending)
    finally:
        listening = False
    assert [one for one in looked_up if one in {"localhost", b"localhost"}] == ["localhost"]
    assert connected
    assert all(ipaddress.ip_address(one).is_loopback for one in connected)
    assert [one.headers["host"] for one in receiver.requests] == [f"localhost:{port}"]


def test_nobody_is_led_elsewhere_and_silence_is_bounded(post: Post, receiver: Receiver) -> None:
    def elsewhere(_: Request) -> Answer:
        return Answer(302, headers={"Location": receiver.url})

    with receiving(elsewhere) as target:
        made = post.subscribed(target.url)
        post.happen("a")
        assert post.once() == [DeliveryRound(failed=True)]
    assert receiver.requests == []
    post.service.clock.pass_by(MINUTE)
    assert post.once() == [DeliveryRound(failed=True)]  # nobody listens any more
    assert post.stored(made["id"]).attempts == 2


def test_another_project_hears_nothing_and_sees_nothing(post: Post, receiver: Receiver) -> None:
    made = post.subscribed(receiver.url)
    call = post.service.call
    for method, path in (
        ("GET", ""),
        ("GET", "/dead-letters"),
        ("DELETE", ""),
    ):
        answer = call(method, f"/subscriptions/{made['id']}{path}", caller=OTHER)
        assert answer.status_code == 404, answer.text
    assert call("GET", "/subscriptions", caller=OTHER).json["subscriptions"] == []
    shown = call("GET", f"/subscriptions/{made['id']}").json["subscription"]
    assert "secret" not in shown
    assert "whsec_" not in repr(post.stored(made["id"]))
    assert call("DELETE", f"/subscriptions/{made['id']}").status_code == 204
    post.happen("a")
    assert post.once() == []


def test_a_lease_that_is_hurt_says_how_many_were_told(post: Post, receiver: Receiver) -> None:
    body = {
        "name": "shop",
        "start": "2026-11-23T09:00:00Z",
        "end": "2026-11-24T09:00:00Z",
        "amount": {"count": 1, "flavor": "m1.xlarge"},
    }
    made = post.service.call("POST", "/leases", {"lease": body}).json["lease"]
    post.subscribed(receiver.url, "lease.degraded", lease_id=made["id"])
    post.subscribed(receiver.url, "lease.closed")
    stored = post.service.store.lease(made["id"])
    hurt = replace(stored, degraded=True)
    post.service.store.commit(Changeset((PutLease(hurt, stored.generation),)))

    def told() -> object:
        return post.service.call("GET", f"/leases/{made['id']}").json["lease"].get("notified")

    assert told() == 0
    post.once()
    assert told() == 1
    post.subscribed(receiver.url)  # who comes later was not told
    post.once()
    assert told() == 1
