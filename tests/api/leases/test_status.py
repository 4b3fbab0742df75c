"""What the status of a lease says, beside whether servers can be created in it."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from tests.api.leases.conftest import TWO, Door, instances, whole

from moorage.api.leases import create_app
from moorage.domain.effects import Lane
from moorage.domain.period import HOUR, MINUTE
from moorage.usecases.effect_dispatch import Message, OutwardActions, OutwardFailure, carry_out


class Nova:
    """Creates flavors, unless it is out of order."""

    def __init__(self) -> None:
        self.broken = False
        self.flavors: list[str] = []

    def __call__(self, message: Message) -> str:
        if self.broken:
            raise OutwardFailure("Nova answered 503")
        details: Any = message.body["details"]
        if message.body["kind"] == "create flavors":
            self.flavors += [one["id"] for one in details["flavors"]]
        else:
            self.flavors = [one for one in self.flavors if one not in details["flavors"]]
        return "done"


class Cloud:
    """A service that creates flavors in Nova, and whoever asks it for leases."""

    def __init__(self) -> None:
        self.nova = Nova()
        door = Door(TWO)
        self.service = door.service
        limits = replace(self.service.env.limits, ticket_flavors=True)
        self.env = replace(self.service.env, limits=limits)
        self.door = door.over(create_app(self.env))
        door.offer("n1", gpu="a100")
        self.service.clock.set(self.service.clock.now() + 16 * 24 * HOUR + HOUR - MINUTE)

    def lease(self, *reservations: dict[str, Any]) -> str:
        """A lease that begins in a minute, by its id."""
        answer = self.door.lease("10:00", "12:00", *reservations)
        assert answer.status_code == 201, answer.text
        return str(answer.json["lease"]["id"])

    def work(self, *lanes: Lane) -> None:
        """Once, what is due."""
        for lane in lanes:
            for one in self.service.store.due_effects(10, lane):
                carry_out(self.env, OutwardActions(flavors=self.nova), one)

    def statuses(self, lease: str) -> tuple[str, list[str], str]:
        """Of the lease, of its reservations, and of the event of its start; listed alike."""
        shown = self.door.call("GET", f"/leases/{lease}").json["lease"]
        assert self.door.call("GET", "/leases").json["leases"] == [shown]
        start = next(one for one in shown["events"] if one["event_type"] == "start_lease")
        return shown["status"], [one["status"] for one in shown["reservations"]], start["status"]


@pytest.fixture
def cloud() -> Iterator[Cloud]:
    made = Cloud()
    yield made
    made.service.close()


def test_a_lease_is_active_once_nova_has_its_flavors(cloud: Cloud) -> None:
    lease = cloud.lease(instances(1, 1), whole(resource_properties='["==", "$gpu", "a100"]'))
    assert cloud.statuses(lease) == ("PENDING", ["pending", "pending"], "UNDONE")
    cloud.service.clock.pass_by(MINUTE)
    cloud.work(Lane.LIFE)
    assert cloud.nova.flavors == []
    assert cloud.statuses(lease) == ("STARTING", ["pending", "active"], "IN_PROGRESS")
    cloud.work(Lane.FLAVOR)
    assert len(cloud.nova.flavors) == 1
    assert cloud.statuses(lease) == ("ACTIVE", ["active", "active"], "DONE")
    cloud.service.clock.pass_by(2 * HOUR)
    cloud.work(Lane.LIFE)
    assert cloud.statuses(lease) == ("TERMINATED", ["deleted", "deleted"], "DONE")


def test_whole_hosts_need_no_flavor(cloud: Cloud) -> None:
    lease = cloud.lease(whole())
    cloud.service.clock.pass_by(MINUTE)
    cloud.work(Lane.LIFE)
    assert cloud.statuses(lease) == ("ACTIVE", ["active"], "DONE")


def test_a_failure_that_lasts_is_an_error_until_nova_is_back(cloud: Cloud) -> None:
    lease = cloud.lease(instances(1, 1))
    cloud.service.clock.pass_by(MINUTE)
    cloud.work(Lane.LIFE)
    cloud.nova.broken = True
    for _ in range(2):
        cloud.work(Lane.FLAVOR)
        assert cloud.statuses(lease)[0] == "STARTING"
        cloud.service.clock.pass_by(MINUTE)
    for _ in range(15):
        cloud.work(Lane.FLAVOR)
        assert cloud.statuses(lease) == ("ERROR", ["error"], "ERROR")
        cloud.service.clock.pass_by(5 * MINUTE)
    cloud.nova.broken = False
    cloud.service.clock.pass_by(15 * MINUTE)
    cloud.work(Lane.FLAVOR)
    assert len(cloud.nova.flavors) == 1
    assert cloud.statuses(lease) == ("ACTIVE", ["active"], "DONE")


def test_without_credentials_of_nova_it_is_the_ledgers_word_alone(cloud: Cloud) -> None:
    cloud.env = cloud.service.env
    cloud.door = cloud.door.over(create_app(cloud.env))
    lease = cloud.lease(instances(1, 1))
    cloud.service.clock.pass_by(MINUTE)
    cloud.work(Lane.LIFE)
    assert cloud.statuses(lease)[0] == "ACTIVE"
