"""Nova's notifications over a real RabbitMQ, which may be away, at the start too."""

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from threading import Thread

import pytest
from tests.minicloud.backends import broker_program, start_broker
from tests.minicloud.layout import Layout
from tests.minicloud.programs import Program
from tests.servers.nova_bus import NovaSender, library, transport
from tests.servers.ports import free_port
from tests.servers.replica import Replica

from moorage.outward.nova_notifications import NovaNotifications
from moorage.usecases.effect_dispatch import OutwardFailure

NAMES = ("broker", "broker-names")
LOGGER = "moorage.outward.nova_notifications"


@pytest.fixture
def layout(tmp_path: Path) -> Iterator[Layout]:
    """A broker's folder and ports; it is not started yet."""
    made = Layout(tmp_path, {name: free_port() for name in (*NAMES, "broker-nodes")})
    yield made
    for name in NAMES:
        Program(made, name).stop()


def eventually(holds: Callable[[], bool], seconds: float = 120) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.05)


class Heard:
    """What a listener hands on."""

    def __init__(self) -> None:
        self.events: list[str] = []

    def __call__(self, event: str, _payload: object) -> None:
        self.events.append(event)

    def after(self, nova: NovaSender, event: str) -> bool:
        """Whether it has heard the event, which Nova sends until then."""
        nova.service("n1", event)
        return event in self.events


@pytest.mark.process
def test_a_service_is_ready_while_the_bus_is_away(tmp_path: Path) -> None:
    url = f"rabbit://nova:secret@127.0.0.1:{free_port()}/"
    replica = Replica(tmp_path, f"sqlite:///{tmp_path}/m.db", "--nova-notifications", url)
    replica.start()
    try:
        replica.up()
        eventually(lambda: "Nova's notifications do not arrive" in replica.whole_log())
        time.sleep(4)  # the bus is tried again after a second, and after three more
        assert replica.ask("GET", "/readyz")[0] == 200
        log = replica.whole_log()
        assert log.count("Connection refused") == 1, "an outage is one line"
        assert "secret" not in log
        assert "Eventlet" not in log
    finally:
        replica.down()


@pytest.mark.nightly
@pytest.mark.timeout(600)
@pytest.mark.skipif(broker_program() is None, reason="RabbitMQ is not installed: .ci/rabbitmq")
def test_a_broker_that_comes_late_and_goes_away(
    layout: Layout, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, LOGGER)
    heard, others = Heard(), Heard()
    bus = NovaNotifications(layout.broker, (), heard)
    thread = Thread(target=bus.run_round, daemon=True)
    thread.start()
    eventually(lambda: "do not arrive" in caplog.text)
    broker = start_broker(layout)
    thread.join(120)
    assert "Nova's notifications are read" in caplog.text

    class Others:
        """A listener as Nova's own, without a pool."""

        def info(self, _ctxt: object, _by: str, event: str, _payload: object, _: object) -> None:
            others(event, None)

    messaging, theirs = library(), transport(layout.broker)
    target = messaging.Target(topic="versioned_notifications")
    other = messaging.get_notification_listener(theirs, [target], [Others()])
    other.start()
    with closing(NovaSender(layout.broker)) as nova:
        for number in range(50):
            nova.service("n1", f"service.{number}")
        eventually(lambda: len(heard.events) == len(others.events) == 50)
        assert heard.events == [f"service.{number}" for number in range(50)], "in order"
        assert sorted(others.events) == sorted(heard.events), "each gets all"
        other.stop()
        other.wait()
    for one in (broker, Program(layout, "broker-names")):  # both are started again
        one.stop()
    eventually(lambda: caplog.text.count("do not arrive") == 2)
    start_broker(layout)
    with closing(NovaSender(layout.broker)) as nova:
        eventually(lambda: heard.after(nova, "service.later"))
    assert caplog.text.count("do not arrive") == 2
    assert caplog.text.count("arrive again") == 1
    bus.close()


@pytest.mark.nightly
@pytest.mark.timeout(600)
@pytest.mark.skipif(broker_program() is None, reason="RabbitMQ is not installed: .ci/rabbitmq")
def test_options_of_the_connection_and_a_broker_that_refuses(
    layout: Layout, tmp_path: Path
) -> None:
    """Where Nova's exchange is durable, whoever listens must say so."""
    durable = tmp_path / "moorage.conf"
    durable.write_text("[oslo_messaging_rabbit]\namqp_durable_queues = true\n")
    start_broker(layout)
    heard = Heard()
    with closing(NovaSender(layout.broker, [str(durable)])) as nova:
        nova.service("n1")
        unaware = NovaNotifications(layout.broker, (), heard)
        with pytest.raises(OutwardFailure, match="durable"):
            unaware.run_round()
        bus = NovaNotifications(layout.broker, (str(durable),), heard)
        bus.run_round()
        eventually(lambda: heard.after(nova, "service.later"))
        bus.close()
        heard.events.clear()
        nova.service("n1", "service.meanwhile")
        again = NovaNotifications(layout.broker, (str(durable),), heard)
        again.run_round()
        eventually(lambda: "service.meanwhile" in heard.events)
        again.close()
    wrong = NovaNotifications(layout.broker.replace("guest:guest", "guest:pa55word"), (), heard)
    with pytest.raises(OutwardFailure) as caught:
        wrong.run_round()
    assert "pa55word" not in str(caught.value)
