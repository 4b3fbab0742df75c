"""`/v1/events` and `/v1/subscriptions`."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from moorage.api.native import reading
from moorage.api.native.call import Call, Reply
from moorage.api.native.formats import view
from moorage.api.native.paging import Listing, listed
from moorage.domain.errors import InvalidDescription
from moorage.domain.events import BEGINNING, EventCursor, EventFilter, check_pattern
from moorage.domain.period import SECOND, format_instant
from moorage.domain.subscriptions import LeaseEdge, SubscriptionFilter, Threshold
from moorage.usecases.events.read import (
    LONGEST_WAIT,
    EventQuery,
    disclosed_actor,
    disclosed_body,
    read_events,
)
from moorage.usecases.events.subscriptions import (
    SubscriptionRequest,
    dead_letters,
    list_subscriptions,
    own_subscription,
    resend,
    subscribe,
    unsubscribe,
)
from moorage.wire import events as wire

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from msgspec import Struct

    from moorage.domain.events import Event
    from moorage.domain.period import Duration
    from moorage.domain.subscriptions import DeadLetter, Subscription
    from moorage.wire.events import ResendBody, SubscriptionBody

MOST_SUBJECTS: Final = 100
NOW = "now"
"""The cursor for events from now on."""


def listing(call: Call) -> Reply:
    """GET: the page after a cursor; with `wait` it waits for events."""
    query = call.query
    patterns, subjects = (
        tuple(filter(None, query.get(name, "").split(","))) for name in ("type", "subject")
    )
    if len(subjects) > MOST_SUBJECTS:
        raise InvalidDescription(f"at most {MOST_SUBJECTS} subjects at once", path="subject")
    event_filter = EventFilter(tuple(check_pattern(one, "type") for one in patterns), subjects)
    ask = EventQuery(
        after=_after(query.get("after")),
        event_filter=event_filter,
        limit=call.page().limit if "limit" in query else 100,
        wait=_wait(query.get("wait")),
        project_id=query.get("project_id"),
        all_projects=call.flag("all_projects"),
    )
    found = call.perform(read_events, ask)
    views = [event_view(call, one) for one in found.events]
    lost = None if found.lost is None else format_instant(found.lost.at)
    return Reply(wire.Events(views, str(found.cursor), found.more, lost))


def event_view(call: Call, one: Event) -> wire.Event:
    """An event as the caller may see it."""
    actor = call.perform(disclosed_actor, one)
    return view(
        wire.Event,
        one,
        actor,
        body=call.perform(disclosed_body, one),
        project_id=one.project_id,
        user=actor.user_id,
        user_project_id=actor.project_id,
        cursor=str(EventCursor(one.position, one.at)),
    )


def _after(text: str | None) -> EventCursor | None:
    if text is None:
        return BEGINNING
    return None if text == NOW else EventCursor.parse(text)


def _wait(text: str | None) -> Duration:
    """Read `20`, `20s` or `PT20S`."""
    if text is None or text in {"0", "0s", "PT0S"}:
        return 0
    found = reading.duration(f"{text}s" if text.isascii() and text.isdigit() else text, "wait")
    if found is None or found > LONGEST_WAIT:
        raise InvalidDescription(f"at most {LONGEST_WAIT // SECOND} seconds", path="wait")
    return found


def create_subscription(call: Call) -> Reply:
    """POST: create a subscription; only this answer has the secret."""
    made = call.perform(subscribe, _subscription_request(call.body.subscription))
    view = _subscription(call, made, secret=True)
    return call.made(
        wire.OneSubscription(view, dry_run=call.dry_run),
        location=f"subscriptions/{made.id}",
    )


def subscription_page(call: Call) -> Reply:
    """GET: a page of subscriptions, oldest first."""
    read = partial(
        list_subscriptions, call.env, call.caller, all_projects=call.flag("all_projects")
    )

    def shown(found: Sequence[Subscription]) -> Iterator[tuple[str, Struct]]:
        dead = call.env.store.event_log.dead([one.id for one in found])
        for one in found:
            yield one.id, _subscription(call, one, dead=dead.get(one.id, 0))

    return Listing(call, "subscriptions", read, shown).reply("subscriptions")


def show_subscription(call: Call) -> Reply:
    """GET: one subscription."""
    found = call.perform(own_subscription, call.path["id"])
    dead = call.env.store.event_log.dead([found.id]).get(found.id, 0)
    return Reply(wire.OneSubscription(_subscription(call, found, dead=dead)))


def delete_subscription(call: Call) -> Reply:
    """DELETE: delete a subscription with its dead letters."""
    call.perform(unsubscribe, call.path["id"])
    return Reply()


def letters(call: Call) -> Reply:
    """GET: a page of dead letters, oldest first."""
    id_ = call.path["id"]
    read = partial(dead_letters, call.env, call.caller, id_)
    path = f"subscriptions/{id_}/dead-letters"
    return listed(call, "dead_letters", read, partial(_letter, call), path=path)


def send_again(call: Call) -> Reply:
    """POST: queue dead letters to be sent again."""
    body: ResendBody = call.body.resend
    number = call.perform(resend, call.path["id"], body.dead_letters, call.page())
    return Reply(wire.Resent(number, dry_run=call.dry_run))


def _subscription_request(body: SubscriptionBody) -> SubscriptionRequest:
    return SubscriptionRequest(
        wants=SubscriptionFilter(tuple(body.events), body.lease_id, body.ensemble_id, body.role),
        url=body.url,
        name=body.name,
        secret=body.secret,
        threshold=Threshold(
            before=reading.duration(body.before, "subscription.before"),
            edge=LeaseEdge(body.edge),
            below=body.below,
            above_share=body.above_share,
            flavor=body.flavor,
            resource_class=body.resource_class,
            zone=body.zone,
        ),
    )


def _subscription(
    call: Call, one: Subscription, *, dead: int = 0, secret: bool = False
) -> wire.Subscription:
    asked, wants, failing = one.threshold, one.wants, one.failing_since is not None
    return view(
        wire.Subscription,
        one,
        asked,
        wants,
        events=wants.types,
        status="failing" if failing else "active",
        lease_id=wants.lease,
        ensemble_id=wants.ensemble,
        dead_letters=dead,
        failing_since=one.failing_since or None,
        next_attempt=one.not_before if failing else None,
        outcome=one.outcome or None,
        links=[
            call.link("self", "subscriptions", one.id),
            call.link("dead_letters", "subscriptions", one.id, "dead-letters"),
        ],
        secret=one.secret if secret else None,
    )


def _letter(call: Call, one: DeadLetter) -> wire.DeadLetter:
    return view(wire.DeadLetter, one, event=event_view(call, one.event))
