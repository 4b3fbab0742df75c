"""Who was told what of a lease: the operator's webhook, and each subscription."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from tests.usecases.feed.conftest import Post
from tests.usecases.leases.conftest import World
from tests.usecases.leases.test_outrank import allowed
from tests.usecases.leases.test_outside import Heard, work

from moorage.domain.changes import Changeset, PutInventories
from moorage.domain.leases import LeaseState
from moorage.domain.period import DAY
from moorage.domain.providers import Inventory
from moorage.testing.service import OPERATOR, OTHER, TENANT
from moorage.usecases.effect_dispatch import OutwardActions, OutwardFailure
from moorage.usecases.events.deliver import OutgoingEvent
from moorage.usecases.leases.lease_sweeper import LeaseSweeper

Make = Callable[..., World]

__all__ = ["allowed"]


@dataclass
class Target:
    """Answers, or not."""

    answers: bool = True

    def __call__(self, sending: OutgoingEvent) -> str:
        del sending
        if not self.answers:
            raise OutwardFailure("503")
        return "204"


def lease(here: World, caller: Any = TENANT, **more: Any) -> str:
    """From the 24th, nine o'clock, on."""
    body = {
        "name": "shop",
        "amount": {"count": 1, "resources": {"VCPU": 10}},
        "start": "2026-11-24T09:00:00Z",
        "end": "2026-11-26T09:00:00Z",
        **more,
    }
    answer = here.service.call("POST", "/leases", {"lease": body}, caller=caller)
    assert answer.status_code == 201, answer.text
    return str(answer.json["lease"]["id"])


def told(here: World, lease_id: str, caller: Any = TENANT) -> list[dict[str, Any]]:
    """Of each notice of a lease, whom it has reached; by name."""
    path = f"/leases/{lease_id}/events"
    events = here.service.call("GET", path, caller=caller).json["events"]
    assert all(("told" in one) == (one["kind"] == "notify") for one in events)
    found = [one["told"] for one in events if one["kind"] == "notify"]
    return [
        {one["name"]: one["status"] for one in notice["subscriptions"]}
        | {"webhook": notice["webhook"]}
        for notice in found
    ]


def until_done(here: World, outside: OutwardActions) -> None:
    while work(here, outside):
        pass


def test_each_notice_says_whom_it_has_reached(world: Make) -> None:
    here = world(16)
    target, deaf = Target(), Target(answers=False)
    post = Post(here.service)
    made = lease(here, on_start=["notify"], before_end=["notify:PT24H", "notify:PT1H"])
    heard = post.with_send(target)
    post.subscribed("http://127.0.0.1:9/a", "lease.notice", name="mine")
    post.subscribed("http://127.0.0.1:9/b", "lease.active", name="elsewhere")
    assert told(here, made) == []
    here.go_to(72)
    until_done(here, OutwardActions())
    assert told(here, made) == [{"webhook": "none", "mine": "waiting"}]
    heard.once()
    post.subscribed("http://127.0.0.1:9/c", "lease.*", name="late")
    here.go_to(96)
    until_done(here, OutwardActions(tell=Heard()))
    post.with_send(deaf).once()
    here.go_to(119)
    until_done(here, OutwardActions(tell=Heard(failing=True)))
    assert told(here, made) == [
        {"webhook": "none", "mine": "heard"},
        {"webhook": "told", "mine": "waiting", "late": "waiting"},
        {"webhook": "waiting", "mine": "waiting", "late": "waiting"},
    ]
    here.go_to(122)
    heard.once()
    assert [one["mine"] for one in told(here, made)] == ["heard"] * 3
    assert here.service.call("GET", f"/leases/{made}/events", caller=OTHER).status_code == 404


def test_what_is_given_up_has_reached_nobody_until_it_is_sent_again(world: Make) -> None:
    here = world(16)
    made = lease(here, on_start=["notify"])
    target = Target(answers=False)
    post = Post(here.service).with_send(target)
    one = post.subscribed("http://127.0.0.1:9/a", "lease.notice", name="mine")
    here.go_to(72)
    until_done(here, OutwardActions())
    post.once()
    here.service.clock.set(here.now + 2 * DAY)
    post.once()
    assert told(here, made) == [{"webhook": "none", "mine": "given_up"}]
    target.answers = True
    here.service.call("POST", f"/subscriptions/{one['id']}/resend", {"resend": {}})
    assert told(here, made) == [{"webhook": "none", "mine": "waiting"}]
    post.once()
    assert told(here, made) == [{"webhook": "none", "mine": "heard"}]


def test_a_degraded_lease_counts_those_who_have_heard_it(world: Make) -> None:
    here = world(16)
    made = lease(here)
    target = Target(answers=False)
    post = Post(here.service).with_send(target)
    post.subscribed("http://127.0.0.1:9/a", "lease.degraded", name="mine")
    lookout = LeaseSweeper(here.service.env)
    change = PutInventories(here.hosts[0], (Inventory("VCPU", 4),), None)
    here.service.store.commit(Changeset((change,)))
    lookout.run_round()
    until_done(here, OutwardActions())

    def notified() -> int:
        shown = here.service.call("GET", f"/leases/{made}").json["lease"]
        assert shown["degraded"]
        found: int = shown["notified"]
        return found

    post.once()
    assert (told(here, made), notified()) == ([{"webhook": "none", "mine": "waiting"}], 0)
    here.service.clock.set(here.now + 2 * DAY)
    post.once()
    assert (told(here, made), notified()) == ([{"webhook": "none", "mine": "given_up"}], 0)
    target.answers = True
    subscription = here.service.call("GET", "/subscriptions").json["subscriptions"][0]
    here.service.call("POST", f"/subscriptions/{subscription['id']}/resend", {"resend": {}})
    post.once()
    assert (told(here, made), notified()) == ([{"webhook": "none", "mine": "heard"}], 1)


def test_a_preempted_lease_says_who_was_told(allowed: Make) -> None:
    here = allowed(16)
    low = lease(here)
    post = Post(here.service).with_send(Target())
    post.subscribed("http://127.0.0.1:9/a", "lease.preempted", name="mine")
    lease(here, OPERATOR, priority=7)
    assert here.service.store.lease(low).state is LeaseState.CLOSED
    post.once()
    until_done(here, OutwardActions())
    assert told(here, low) == [{"webhook": "none", "mine": "heard"}]


@pytest.mark.parametrize("webhook", [None, Heard()])
def test_without_subscriptions_nobody_or_the_webhook_alone(
    world: Make, webhook: Heard | None
) -> None:
    here = world(16)
    made = lease(here, on_start=["notify"])
    here.go_to(72)
    until_done(here, OutwardActions(tell=webhook))
    assert told(here, made) == [{"webhook": "none" if webhook is None else "told"}]
