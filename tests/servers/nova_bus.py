"""Nova's side of a message bus: versioned notifications as its services send them."""

import warnings
from collections.abc import Sequence
from typing import Any, Final

from oslo_config import cfg

IN_MEMORY: Final = "fake://"
"""The URL of a bus within this process, which oslo.messaging has for tests."""


def library() -> Any:
    """oslo.messaging; eventlet, which it imports, warns of its own end."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import oslo_messaging
    return oslo_messaging


def transport(url: str, files: Sequence[str] = ()) -> Any:
    """A connection to a bus, with Nova's exchange."""
    messaging, conf = library(), cfg.ConfigOpts()
    conf([], default_config_files=list(files), default_config_dirs=[])
    messaging.get_notification_transport(conf, url=url)  # registers the options
    conf.set_override("control_exchange", "nova")
    return messaging.get_notification_transport(conf, url=url)


class NovaSender:
    """What nova-api and the conductor say of services."""

    def __init__(self, url: str, files: Sequence[str] = ()) -> None:
        self.transport = transport(url, files)
        self._notifier = library().Notifier(
            self.transport,
            publisher_id="nova-api:controller",
            driver="messagingv2",
            topics=["versioned_notifications"],
        )

    def send(self, event: Any, payload: Any) -> None:
        self._notifier.info({}, event, payload)

    def service(self, host: str, event: str = "service.update", **data: Any) -> None:
        self.send(event, service_payload(host, **data))

    def close(self) -> None:
        self.transport.cleanup()


def service_payload(name: str, **data: Any) -> dict[str, Any]:
    """Nova's `ServiceStatusPayload`."""
    return {
        "nova_object.namespace": "nova",
        "nova_object.name": "ServiceStatusPayload",
        "nova_object.version": "1.1",
        "nova_object.data": {
            "host": name,
            "binary": "nova-compute",
            "topic": "compute",
            "report_count": 12,
            "disabled": False,
            "disabled_reason": None,
            "availability_zone": None,
            "last_seen_up": "2026-11-21T08:59:55Z",
            "forced_down": False,
            "version": 69,
            "uuid": "fa69c544-906b-4a6a-a9c6-c1f7a8078c73",
            **data,
        },
    }
