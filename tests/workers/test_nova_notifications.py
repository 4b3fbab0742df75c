"""What Nova's notifications say of compute services is recorded as it comes.

The bus is oslo.messaging's own for one process; `test_nova_notifications_rabbit` has a real one.
"""

import logging
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest
from tests.servers.nova_bus import IN_MEMORY, NovaSender, service_payload
from tests.servers.nova_records import serving

from moorage.client.nova_source import read_flavors, read_hosts
from moorage.domain.host_states import ServiceReport
from moorage.domain.nova_hosts import NovaHost
from moorage.domain.period import SECOND
from moorage.outward.nova_notifications import NovaNotifications
from moorage.outward.nova_reader import NovaReader
from moorage.testing.service import OPERATOR, TENANT, Service
from moorage.usecases.ledger.host_states import sync_services
from moorage.workers.loop import FailureLog
from moorage.workers.nova_notifications import ServiceNotifications
from moorage.workers.nova_sync import NovaLists, NovaSync

FLEET = "fleet: f\nhosts:\n  - {name: 'n{n}', count: 2, inventories: {VCPU: 8}}\n"
IN_SERVICE: tuple[str, ...] = ()


@pytest.fixture
def service() -> Iterator[Service]:
    made = Service(FLEET)
    yield made
    made.close()


def reports(service: Service) -> dict[str, ServiceReport | None]:
    snapshot = service.store.snapshot()
    hosts = {snapshot.names[row]: snapshot.state(row).host for row in snapshot.hosts.tolist()}
    return {name: None if one is None else one.service for name, one in hosts.items()}


def why(service: Service, host: str = "n1") -> tuple[str, ...]:
    found = reports(service)[host]
    return () if found is None else tuple(one.value for one in found.reasons)


def eventually(holds: Callable[[], bool], seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def recorder(service: Service, **more: Any) -> ServiceNotifications:
    return ServiceNotifications(service.env, OPERATOR, FailureLog(), **more)


def notify(to: ServiceNotifications, event: str = "service.update", **data: Any) -> None:
    to(event, service_payload(data.pop("host", "n1"), **data))


@contextmanager
def listening(record: Callable[[str, object], None]) -> Iterator[NovaSender]:
    """Nova's side of a bus that is listened to."""
    bus = NovaNotifications(IN_MEMORY, (), record)
    bus.run_round()
    bus.run_round()
    with closing(NovaSender(IN_MEMORY)) as nova:
        yield nova
    bus.close()


def test_what_comes_over_the_bus_is_recorded_in_order(service: Service) -> None:
    with listening(recorder(service)) as nova:
        nova.service("n1", disabled=True, disabled_reason="new memory")
        eventually(lambda: why(service) == ("disabled",))
        nova.service("n2", forced_down=True)
        eventually(lambda: why(service, "n2") == ("forced down",))
        for _ in range(20):
            nova.service("n1", disabled=False)
            nova.service("n1", disabled=True)
        nova.service("n1", disabled=False)
        nova.service("n2", forced_down=False)
        eventually(lambda: why(service, "n2") == IN_SERVICE)
        assert why(service) == IN_SERVICE, "what came before was recorded before"


def test_whatever_else_comes_is_left_and_does_not_end_the_listening(
    service: Service, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    odd: Sequence[Any] = (
        None,
        7,
        "disabled",
        [],
        {},
        {"nova_object.data": None},
        {"nova_object.data": {"host": "n1", "binary": "nova-compute"}},
        service_payload("n1", disabled="yes"),
        service_payload("n1", host=None),
        service_payload("n1", binary=None),
    )
    before = service.store.snapshot().revision
    with listening(recorder(service)) as nova:
        for payload in odd:
            nova.send("service.update", payload)
        nova.send("instance.update", {"nova_object.data": {"host": "n1"}})
        nova.send(None, service_payload("n1", disabled=True))
        nova.send(["service.update"], service_payload("n1", disabled=True))
        nova.service("n1", binary="nova-conductor", disabled=True)
        nova.service("elsewhere", disabled=True)
        nova.service("n1")
        nova.service("n2", disabled=True)
        eventually(lambda: why(service, "n2") == ("disabled",))
    assert service.store.snapshot().revision == before + 1, "one has said something new"
    assert reports(service)["n1"] is None
    told = [one for one in caplog.records if one.name == "moorage.workers.nova_notifications"]
    unread = [one for one in told if "cannot be read" in one.getMessage()]
    assert len(unread) == len(odd)
    assert [one.getMessage() for one in told if one not in unread] == [
        "a notification of Nova's names elsewhere, which is no host here"
    ]


def test_a_notification_says_nothing_of_reports(service: Service) -> None:
    """A service that the sync found down stays so, unless that was for being forced down."""
    record = recorder(service)
    sync = partial(sync_services, service.env, OPERATOR)
    sync((NovaHost("n1", up=False),))
    notify(record, disabled=True)
    assert why(service) == ("disabled", "service down")
    notify(record, disabled=False)
    assert why(service) == ("service down",)
    notify(record, forced_down=True)
    sync((NovaHost("n1", up=False, forced_down=True),))
    assert why(service) == ("forced down",)
    notify(record, forced_down=False)
    assert why(service) == IN_SERVICE


def test_a_service_that_is_deleted_and_comes_back(service: Service) -> None:
    record = recorder(service)
    notify(record, "service.delete")
    assert why(service) == ("disabled", "service down"), "as a hypervisor without a service"
    notify(record, "service.create", last_seen_up=None)
    assert why(service) == IN_SERVICE
    notify(record, "service.create", disabled=True, last_seen_up=None)
    assert why(service) == ("disabled",)


def test_what_is_known_is_not_written_again(service: Service) -> None:
    record = recorder(service)
    notify(record, disabled=True)
    before = service.store.snapshot().revision
    notify(record, disabled=True, disabled_reason="another")
    assert service.store.snapshot().revision == before


def test_who_is_no_operator_records_nothing(
    service: Service, caplog: pytest.LogCaptureFixture
) -> None:
    notify(ServiceNotifications(service.env, TENANT, FailureLog()), disabled=True)
    assert why(service) == IN_SERVICE
    assert "service.update of n1 was not recorded" in caplog.text


def test_while_the_database_is_away_it_is_tried_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "ledger.db"
    service = Service(FLEET, database=f"sqlite:///{path}")
    record = recorder(service)
    with closing(sqlite3.connect(path, isolation_level=None)) as stranger:
        stranger.execute("BEGIN IMMEDIATE")
        thread = Thread(target=notify, args=(record,), kwargs={"disabled": True})
        thread.start()
        eventually(lambda: "background work waits (nova notifications)" in caplog.text)
        assert thread.is_alive()
        stranger.execute("ROLLBACK")
        thread.join(60)
    assert why(service) == ("disabled",)
    assert caplog.text.count("background work waits") == 1
    assert "background work goes on" in caplog.text
    service.close()
    stopped = recorder(service, stop=Event())
    stopped.stop.set()
    notify(stopped, disabled=False)


@contextmanager
def syncing(service: Service, lists: Callable[[NovaLists], NovaLists]) -> Iterator[Any]:
    """Nova, the rounds that read its lists, and the clock that they go by."""
    now = [0.0]
    env = replace(service.env, stopwatch=lambda: now[0])
    with serving() as nova:
        section = {"auth_type": "admin_token", "endpoint": nova.url, "token": "admin"}
        get = NovaReader(section, timeout=10)
        read = NovaLists(partial(read_flavors, get), partial(read_hosts, get), None)
        yield nova, NovaSync(env, OPERATOR, lists(read), 300 * SECOND), now


def test_a_service_of_another_name_makes_the_lists_be_read(service: Service) -> None:
    """The hypervisor's name is the host's; its service has the name of the machine."""
    with syncing(service, lambda lists: lists) as (nova, sync, now):
        record = recorder(service, sync=sync)
        nova.hypervisor("n1", host="machine")
        listed = {"host": "machine", "zone": "az", "status": "enabled", "state": "up"}
        nova.lists["services"].append(listed)
        sync.run_round()
        listed["status"] = "disabled"
        now[0] = 3.0
        notify(record, host="machine", disabled=True)
        sync.run_round()
        assert why(service) == IN_SERVICE, "rounds follow each other after ten seconds"
        now[0] = 10.0
        sync.run_round()
        assert why(service) == ("disabled",)
        asked = nova.asked.total()
        now[0] = 100.0
        sync.run_round()
        assert nova.asked.total() == asked


def test_a_round_that_began_before_a_notification_does_not_outlive_it(service: Service) -> None:
    """It writes what it read, which is old by then; so the next round follows soon."""
    said: list[bool] = []

    def then_notified(lists: NovaLists) -> NovaLists:
        def hosts() -> Sequence[NovaHost]:
            found = lists.hosts()
            if not said:
                said.append(True)
                service_of_n1["status"] = "disabled"
                notify(record, disabled=True)
                assert why(service) == ("disabled",)
            return found

        return replace(lists, hosts=hosts)

    with syncing(service, then_notified) as (nova, sync, now):
        record = recorder(service, sync=sync)
        nova.hypervisor("n1")
        service_of_n1 = {"host": "n1", "zone": "az", "status": "enabled", "state": "up"}
        nova.lists["services"].append(service_of_n1)
        sync.run_round()
        assert why(service) == IN_SERVICE
        now[0] = 10.0
        sync.run_round()
        assert why(service) == ("disabled",)
