"""A service with a clock one sets, and receivers on loopback."""

import json
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from moorage.domain.changes import Changeset, PutEvent
from moorage.domain.events import DerivedEvent
from moorage.domain.subscriptions import Subscription
from moorage.outward.subscriber import SubscriberClient
from moorage.testing.service import Service
from moorage.usecases.events.deliver import Delivery, DeliveryRound, deliver


@dataclass
class Post:
    """Deliveries of one replica, taken when the test says so."""

    service: Service
    delivery: Delivery = field(
        default_factory=lambda: Delivery(SubscriberClient(5.0, public_only=False))
    )

    def once(self) -> list[DeliveryRound]:
        """One turn for each that is due."""
        store = self.service.store
        return [deliver(self.service.env, self.delivery, one) for one in store.event_log.due(100)]

    def subscribed(self, url: str, *events: str, **more: Any) -> dict[str, Any]:
        """A subscription made by the tenant."""
        body = {"subscription": {"url": url, "events": list(events or ("lease.*",)), **more}}
        answer = self.service.call("POST", "/subscriptions", body)
        assert answer.status_code == 201, answer.text
        found: dict[str, Any] = answer.json["subscription"]
        return found

    def stored(self, id_: str) -> Subscription:
        """As the ledger has it."""
        return self.service.store.event_log.subscription(id_)

    def happen(self, *subjects: str, type_: str = "lease.active") -> None:
        """Events of the tenant's project, each in a commit of its own."""
        for one in subjects:
            told = PutEvent(DerivedEvent(type_, "project-a", one, 0, {"n": one}))
            self.service.store.commit(Changeset((told,)))

    def with_send(self, send: Any) -> "Post":
        """The same with another way to send."""
        return Post(self.service, replace(self.delivery, send=send))


@pytest.fixture
def post(service: Service) -> Post:
    return Post(service)


def heard(requests: Any) -> list[str]:
    """The subjects a receiver was told of, in order."""
    return [json.loads(one.body)["subject"] for one in requests]
