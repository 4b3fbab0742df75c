"""Recipients of a lease's notices: the operator's webhook and the project's subscriptions.

A notice is stored as one effect, which is delivered to the webhook, and as events, which are
delivered to subscriptions. The effect's id follows from the event.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from moorage.domain.effects import EffectKind, EffectState
from moorage.domain.events import BEGINNING, Event, EventFilter
from moorage.domain.subscriptions import DeliveryState
from moorage.usecases.effects import notifications

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from moorage.domain.effects import Effect
    from moorage.domain.leases import Lease
    from moorage.domain.subscriptions import Subscription
    from moorage.usecases.event_ports import EventDelivery
    from moorage.usecases.ports import Store

_HEALTH: Final = ("lease.degraded", "lease.missing", "lease.whole")
_TYPES: Final = ("lease.notice", "lease.preempted", "lease.changed", *_HEALTH)
_PAGE: Final = 1_000
_PAGES: Final = 10
"""How many pages of a lease's events are read at most."""


class WebhookState(StrEnum):
    """The delivery state of a notice to the operator's webhook."""

    TOLD = "told"
    WAITING = "waiting"
    """Not delivered yet, or delivery failed and is tried again."""
    GIVEN_UP = "given_up"
    NONE = "none"
    """No webhook is set."""


@dataclass(frozen=True, slots=True)
class Audience:
    """The recipients of one notice."""

    webhook: WebhookState
    subscriptions: Sequence[tuple[Subscription, DeliveryState]] | None
    """Matching subscriptions by creation time; None if the notice's events are no longer kept."""


def audiences(store: Store, lease: Lease, effects: Iterable[Effect]) -> Mapping[str, Audience]:
    """The recipients of each of a lease's notices, by the id of the notice's effect."""
    notices = [one for one in effects if one.kind is EffectKind.NOTIFY]
    if not notices:
        return {}
    events = _events(store, lease, _TYPES)
    by_effect: dict[str, set[str]] = {}
    for event in events:
        by_effect.setdefault(_effect_of(event), set()).add(event.id)
    deliveries = store.event_log.deliveries(lease.project_id, events)
    return {
        one.id: Audience(
            _webhook(one),
            _best(delivery for delivery in deliveries if delivery.event in by_effect[one.id])
            if one.id in by_effect
            else None,
        )
        for one in notices
    }


def count_notified(store: Store, lease: Lease) -> int:
    """The number of subscriptions that received the lease's current health events."""
    events = _events(store, lease, _HEALTH)
    whole = [number for number, one in enumerate(events) if one.type == "lease.whole"]
    since = events[whole[-1] + 1 :] if whole else events
    found = store.event_log.deliveries(lease.project_id, since)
    return len({one.subscription.id for one in found if one.reached is DeliveryState.HEARD})


def _events(store: Store, lease: Lease, types: tuple[str, ...]) -> Sequence[Event]:
    wanted, found, cursor = EventFilter(types, (lease.id,)), list[Event](), BEGINNING
    for _ in range(_PAGES):
        page = store.event_log.page(lease.project_id, cursor, wanted, _PAGE)
        found += page.events
        if not page.more:
            break
        cursor = page.cursor
    return found


def _effect_of(event: Event) -> str:
    """The id of the effect that notifies the webhook of the same event."""
    if event.type == "lease.notice":
        return str(event.body.get("notice"))
    if event.type == "lease.preempted":
        return notifications.preemption_id(event.subject)
    return notifications.health_id(event.subject, event.generation - 1)


def _webhook(effect: Effect) -> WebhookState:
    if effect.state is EffectState.FAILED:
        return WebhookState.GIVEN_UP
    if effect.state is EffectState.PENDING:
        return WebhookState.WAITING
    return WebhookState.TOLD if effect.attempts else WebhookState.NONE


_ORDER: Final = (DeliveryState.HEARD, DeliveryState.WAITING, DeliveryState.GIVEN_UP)


def _best(deliveries: Iterable[EventDelivery]) -> Sequence[tuple[Subscription, DeliveryState]]:
    """The best delivery state of each subscription."""
    found: dict[str, tuple[Subscription, DeliveryState]] = {}
    for one in sorted(deliveries, key=lambda one: _ORDER.index(one.reached)):
        found.setdefault(one.subscription.id, (one.subscription, one.reached))
    return sorted(found.values(), key=lambda pair: (pair[0].created_at, pair[0].id))
