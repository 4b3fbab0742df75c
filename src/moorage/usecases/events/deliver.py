"""Deliver events to one subscription: in order, at least once, and given up after a time.

As for every outward effect, a worker first commits the attempt, so that no other worker makes it;
then sends the event within a bounded time; then commits the outcome. If the worker dies in between,
another one repeats the attempt after the timeout, with the event's id. A failed event is retried
with growing pauses, and later events wait for it. Once deliveries have failed for `patience`, all
events older than that are given up as dead letters. So a dead target costs one attempt per pause,
no matter how many events there are.
"""

from __future__ import annotations

import json
import logging
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final, TypeAlias

from moorage.domain.changes import Changeset, DropDeadLetters, PutDeadLetters, PutSubscription
from moorage.domain.disclosure import actor_seen_by
from moorage.domain.effects import fact_id
from moorage.domain.errors import ConcurrentUpdate, NotFound
from moorage.domain.events import Event
from moorage.domain.period import DAY, HOUR, SECOND, format_instant
from moorage.domain.retry_policy import RetryPolicy
from moorage.domain.subscriptions import DeadLetter, letter_id
from moorage.usecases.effect_dispatch import OutwardFailure
from moorage.usecases.paging import Page

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from moorage.domain.changes import Change
    from moorage.domain.events import EventCursor
    from moorage.domain.period import Duration, Instant
    from moorage.domain.subscriptions import Subscription
    from moorage.usecases.environment import UseCaseEnvironment

DELIVERY_RETRY: Final = RetryPolicy(5 * SECOND, HOUR, jitter=0.5)
BURST: Final = 50
"""Events that one round delivers at most, and the page size of giving up."""
_TURNS: Final = 20
"""Pages of events that one round gives up at most."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class OutgoingEvent:
    """One event to be sent to one subscription's URL."""

    id: str
    """The event's id, the same in every attempt."""
    url: str
    secret: str = field(repr=False)
    at: Instant
    """When it is sent; part of the signed content."""
    body: bytes = field(repr=False)


Send: TypeAlias = "Callable[[OutgoingEvent], str]"
"""Sends within a bounded time; returns the target's answer or raises OutwardFailure."""


@dataclass(frozen=True, slots=True)
class Delivery:
    """The sender of events, and its retry policy."""

    send: Send
    timeout: Duration = 30 * SECOND
    """Longer than any attempt takes: after it the worker of an unfinished one counts as dead."""
    retry: RetryPolicy = DELIVERY_RETRY
    turn: Duration = 5 * SECOND
    """After so long a round begins no further delivery: others are waiting for its place."""
    patience: Duration = DAY
    """How long deliveries fail before events of that age are given up."""


@dataclass(frozen=True, slots=True)
class DeliveryRound:
    """The result of one delivery round."""

    delivered: int = 0
    given_up: int = 0
    failed: bool = False
    passed: tuple[str, int, int] | None = None
    """Set if there was nothing to deliver; see `PassEvents`."""


NOTHING: Final = DeliveryRound()


def deliver(
    env: UseCaseEnvironment, delivery: Delivery, subscription: Subscription
) -> DeliveryRound:
    """Deliver the events that are due to a subscription.

    Raises:
        MoorageError: the ledger is out of reach; a started attempt is repeated later.
    """
    try:
        return _Turn(env, delivery, subscription).take()
    except (ConcurrentUpdate, NotFound):
        return NOTHING  # another worker delivers, or the subscription was deleted


class _Turn:
    """One delivery round of one subscription."""

    def __init__(
        self, env: UseCaseEnvironment, delivery: Delivery, subscription: Subscription
    ) -> None:
        self._env = env
        self._delivery = delivery
        self._subscription = subscription
        self._delivered = 0
        self._until = env.stopwatch() + delivery.turn / SECOND

    def take(self) -> DeliveryRound:
        log, one = self._env.store.event_log, self._subscription
        letters = log.dead_letters(one.id, Page(BURST), queued=True)
        pending = log.pending(one, BURST)
        events = pending.events
        if pending.lost is not None:
            events = (_lost(one, pending.lost), *events)
        if not letters and not events:
            return DeliveryRound(passed=(one.id, one.reached, pending.reached))
        for letter in letters:
            self._again(letter)
            if self._late():
                return DeliveryRound(self._delivered)
        reached = pending.reached
        for number, event in enumerate(events, 1):
            self._taken()
            outcome, good = self._sent(event)
            if not good:
                return self._failed(events[number - 1 :], outcome)
            self._heard(event, outcome)
            if self._late() and number < len(events):
                reached = event.position
                break
        done = replace(self._subscription, reached=max(self._subscription.reached, reached))
        self._write(replace(done, not_before=self._now()))
        return DeliveryRound(self._delivered)

    def _late(self) -> bool:
        return self._env.stopwatch() >= self._until

    # --- one attempt ------------------------------------------------------------------------

    def _taken(self) -> None:
        one, until = self._subscription, self._now() + self._delivery.timeout
        self._write(replace(one, attempts=one.attempts + 1, not_before=until))

    def _sent(self, event: Event) -> tuple[str, bool]:
        one = self._subscription
        sending = OutgoingEvent(event.id, one.url, one.secret, self._now(), body_of(one, event))
        try:
            return self._delivery.send(sending), True
        except OutwardFailure as error:
            return error.message, False
        except Exception as error:  # noqa: BLE001 - an adapter that breaks has not sent it either
            _log.exception("could not deliver %s to subscription %s", event.id, one.id)
            return f"{type(error).__name__}: {error}", False

    def _heard(self, event: Event, outcome: str) -> None:
        """Record a delivered event; written with the next change."""
        self._delivered += 1
        self._subscription = replace(
            self._subscription,
            reached=max(self._subscription.reached, event.position),
            attempts=0,
            failing_since=None,
            outcome=outcome,
            delivered=self._subscription.delivered + 1,
        )

    def _failed(self, events: Sequence[Event], problem: str) -> DeliveryRound:
        now, one = self._now(), self._subscription
        since = now if one.failing_since is None else one.failing_since
        one = replace(one, failing_since=since, outcome=problem)
        _log.warning("subscription %s, attempt %d: %s", one.id, one.attempts, problem)
        pause = self._delivery.retry.pause_of(one.id, one.attempts)
        self._subscription = replace(one, not_before=now + pause)
        given_up = 0
        if now - since >= self._delivery.patience:
            given_up = self._give_up(events, problem, now - self._delivery.patience)
        if not given_up:
            self._write(self._subscription)
        return DeliveryRound(self._delivered, given_up, failed=True)

    def _give_up(self, events: Sequence[Event], problem: str, before: Instant) -> int:
        """Turn events older than `before` into dead letters, page by page."""
        number = 0
        for _ in range(_TURNS):
            old = [event for event in events if event.at <= before]
            if not old:
                break
            number += len(old)
            letters = tuple(self._dead(event, problem) for event in old)
            one = self._subscription
            keep = PutDeadLetters(one.id, letters, self._env.limits.dead_letters)
            self._write(
                replace(
                    one,
                    reached=max(one.reached, old[-1].position),
                    given_up=one.given_up + len(old),
                ),
                keep,
            )
            if len(old) < len(events):
                break
            events = self._env.store.event_log.pending(self._subscription, BURST).events
        if number:
            _log.error(
                "subscription %s: %d events are given up: %s",
                self._subscription.id,
                number,
                problem,
            )
        return number

    # --- dead letters -----------------------------------------------------------------------

    def _dead(self, event: Event, problem: str) -> DeadLetter:
        one = self._subscription
        id_ = letter_id(one.id, event.id)
        return DeadLetter(id_, one.id, event, problem, one.attempts, self._now())

    def _again(self, letter: DeadLetter) -> None:
        """Send a dead letter once; delete it if it was delivered, else keep it."""
        one = self._subscription
        self._write(replace(one, not_before=self._now() + self._delivery.timeout))
        outcome, good = self._sent(letter.event)
        after: Change = DropDeadLetters(one.id, (letter.id,))
        if good:
            self._subscription = replace(self._subscription, attempts=0, failing_since=None)
        else:
            kept = replace(letter, queued=False, problem=outcome, attempts=letter.attempts + 1)
            after = PutDeadLetters(one.id, (kept,), self._env.limits.dead_letters)
        self._delivered += good
        soon = replace(self._subscription, not_before=one.not_before, outcome=outcome)
        self._write(replace(soon, delivered=soon.delivered + good), after)

    # --- the ledger -------------------------------------------------------------------------

    def _now(self) -> Instant:
        return self._env.store.now()

    def _write(self, subscription: Subscription, *also: Change) -> None:
        put = PutSubscription(
            replace(subscription, updated_at=self._now()), self._subscription.generation
        )
        self._env.store.commit(Changeset((put, *also)))
        self._subscription = replace(put.subscription, generation=put.subscription.generation + 1)


def body_of(subscription: Subscription, event: Event) -> bytes:
    """The JSON body: `type`, `timestamp` and `data` as in the Standard Webhooks convention."""
    actor = event.actor
    if not subscription.operator:
        actor = actor_seen_by(actor, event.project_id)
    return json.dumps(
        {
            "id": event.id,
            "type": event.type,
            "timestamp": format_instant(event.at),
            "project_id": event.project_id,
            "subject": event.subject,
            "generation": event.generation,
            "subscription": subscription.id,
            "user": actor.user_id,
            "user_project_id": actor.project_id,
            "request_id": actor.request_id,
            "global_request_id": actor.global_request_id,
            "by": actor.by,
            "data": dict(event.body),
        },
        separators=(",", ":"),
    ).encode()


def _lost(subscription: Subscription, upto: EventCursor) -> Event:
    """The event that reports deleted, undelivered events."""
    return Event(
        fact_id("events lost", subscription.id, upto.position),
        "events.lost",
        subscription.project_id,
        subscription.id,
        upto.at,
        subscription.generation,
        upto.position,
        {"before": format_instant(upto.at), "subscription": subscription.id},
    )
