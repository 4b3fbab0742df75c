"""Subscriptions: which events a project wants delivered, where to, and their progress.

A subscription reads its project's events in their order, from its own place in them. One that
cannot be delivered is tried again, and those after it wait; what is given up is a dead letter.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import Final

from moorage.domain.effects import fact_id
from moorage.domain.events import NAMED_ONLY, OPERATORS_ONLY, THRESHOLDS, Event, matches
from moorage.domain.period import Duration, Instant


class DeliveryState(StrEnum):
    """The delivery state of an event for a subscription that it matches."""

    HEARD = "heard"
    """Its target has answered."""
    WAITING = "waiting"
    """It is still to be delivered, or to be sent again."""
    GIVEN_UP = "given_up"


class LeaseEdge(StrEnum):
    """The edges of a lease that `lease.time_left` may refer to."""

    START = "start"
    END = "end"


@dataclass(frozen=True, slots=True)
class SubscriptionFilter:
    """The filter of a subscription; empty fields do not narrow it."""

    types: tuple[str, ...]
    """Patterns, as `lease.*`; any one is enough."""
    lease: str | None = None
    """Only of this lease: it is the subject, or the body's `lease`."""
    ensemble: str | None = None
    """Only of this ensemble: it is the subject, or the body's `ensemble`."""
    role: str | None = None
    """Only of this role: the body's `role`, or that of its `member`."""

    def has(self, type_: str) -> bool:
        """Whether any of its patterns matches a type."""
        return any(matches(one, type_) for one in self.types)


@dataclass(frozen=True, slots=True)
class Threshold:
    """The thresholds of a subscription's own events; each field is for one type of them."""

    before: Duration | None = None
    """`lease.time_left`: so long before the edge."""
    edge: LeaseEdge = LeaseEdge.END
    below: int | None = None
    """`ensemble.max_additional`, `capacity.threshold`: fewer than so many fit."""
    above_share: float | None = None
    """`capacity.threshold`: a larger share of the class than this is used, from 0 to 1."""
    flavor: str | None = None
    resource_class: str | None = None
    zone: str | None = None


NO_THRESHOLD: Final = Threshold()


@dataclass(frozen=True, slots=True)
class Subscription:
    """Events that one project wants delivered to a URL."""

    id: str
    project_id: str
    user_id: str
    name: str
    wants: SubscriptionFilter
    url: str
    secret: str = field(repr=False)
    """The key that signs deliveries; shown once, when the subscription is created."""
    threshold: Threshold = NO_THRESHOLD
    operator: bool = False
    """Whether its creator may see the whole cloud."""
    began: int = 0
    """The position of the newest event when it was made: later ones are its own."""
    reached: int = 0
    """Up to where events are delivered, given up, or not meant."""
    not_before: Instant = 0
    """When the next delivery may be tried: later after a failure, or while one is under way."""
    attempts: int = 0
    """Of the event that is due."""
    failing_since: Instant | None = None
    """When the target first failed, if no delivery has succeeded since."""
    outcome: str = ""
    """The result of the last attempt."""
    delivered: int = 0
    """How many events were delivered."""
    given_up: int = 0
    """How many were given up, and are delivered only if they are sent again."""
    standing: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))
    """The last observed values of its thresholds."""
    generation: int = 0
    created_at: Instant = 0
    updated_at: Instant = 0

    def means(self, event: Event) -> bool:
        """Whether an event of its project matches."""
        wants, body = self.wants, event.body
        if not wants.has(event.type) or (event.type in OPERATORS_ONLY and not self.operator):
            return False
        if event.type in NAMED_ONLY and event.type not in wants.types:
            return False
        if event.type in THRESHOLDS:
            return body.get("subscription") == self.id
        if wants.lease is not None and wants.lease not in {event.subject, body.get("lease")}:
            return False
        if wants.ensemble is not None and wants.ensemble not in {
            event.subject,
            body.get("ensemble"),
        }:
            return False
        roles = {body.get("role"), _role(body.get("member")), *_many(body.get("roles"))}
        return wants.role is None or wants.role in roles


def _role(member: object) -> str | None:
    return None if member is None else str(member).partition("[")[0]


def _many(roles: object) -> list[object]:
    return roles if isinstance(roles, list) else []


def letter_id(subscription_id: str, event_id: str) -> str:
    """The id of the dead letter of an event that was given up for a subscription."""
    return fact_id("dead letter", subscription_id, event_id)


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """An event that was given up for a subscription. `queued`: it is to be sent again."""

    id: str
    subscription_id: str
    event: Event
    problem: str
    attempts: int
    given_up_at: Instant
    queued: bool = False
