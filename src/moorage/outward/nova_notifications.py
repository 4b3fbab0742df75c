"""Listens to Nova's versioned notifications on the message bus of its cloud.

What arrives is handed on in order, one at a time. The queue is of a pool of its own: whatever else
listens to Nova's notifications still gets all of them.
"""

from __future__ import annotations

import logging
import warnings
from typing import TYPE_CHECKING, Any, Final

from moorage.domain.errors import InvalidDescription
from moorage.logs import Lasting
from moorage.usecases.effect_dispatch import OutwardFailure

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_log = logging.getLogger(__name__)

POOL: Final = "moorage"
"""The name of the queue, which all replicas of the service share."""
TOPIC: Final = "versioned_notifications"
EXCHANGE: Final = "nova"
_PREFETCH: Final = "100"
"""Messages that are fetched ahead: by default oslo.messaging fetches all there are."""
_DRIVER: Final = "oslo.messaging._drivers.impl_rabbit"
"""The logger that tells of each attempt to reach the bus."""


class NovaNotifications:
    """A listener on one bus. The bus may be away, at the start too; it is tried for ever."""

    def __init__(
        self, url: str, files: Sequence[str], record: Callable[[str, object], None]
    ) -> None:
        """Read the URL, and the sections of oslo.messaging in the configuration files.

        `record` is called with the event type and the payload of each notification.

        Raises:
            InvalidDescription: the package or its driver is missing, or an option cannot be read.
        """
        self._url, self._files = url, files
        self._endpoint = _Endpoint(record)
        self._listener: Any = None
        self._messaging = _library()
        self._outages = _Outages()
        self._transport = self._open()

    def run_round(self) -> bool:
        """Start to listen, unless it does already; wait as long as the bus is away.

        Raises:
            OutwardFailure: the bus refuses.
        """
        if self._listener is not None:
            return False
        target = self._messaging.Target(topic=TOPIC, exchange=EXCHANGE)
        made = self._messaging.get_notification_listener(
            self._transport, [target], [self._endpoint], pool=POOL
        )
        try:
            made.start(override_pool_size=1)
        except Exception as error:  # noqa: BLE001 - of three libraries without a common base
            raise OutwardFailure(f"Nova's message bus: {error}") from None
        self._listener = made
        self._outages.ended()
        _log.info("Nova's notifications are read")
        return False

    def close(self) -> None:
        """Stop to listen; what was not handed on stays on the bus."""
        if self._listener is not None:
            self._listener.stop()
            self._listener.wait()
            self._listener = None
        self._transport.cleanup()

    def _open(self) -> Any:  # noqa: ANN401 - oslo.messaging's class
        from oslo_config import cfg  # noqa: PLC0415 - slow to import

        conf = cfg.ConfigOpts()
        try:
            conf([], default_config_files=list(self._files), default_config_dirs=[])
            url = self._messaging.TransportURL.parse(conf, self._url)
            url.query.setdefault("rabbit_qos_prefetch_count", _PREFETCH)
            self._outages.follow()
            return self._messaging.get_notification_transport(conf, url=url)
        except (cfg.Error, ValueError, self._messaging.MessagingException) as error:
            # Without the cause: its text may have the URL, with the password.
            raise InvalidDescription(
                f"nova_notifications cannot be used: {type(error).__name__}",
                path="nova_notifications",
            ) from None


class _Endpoint:
    """What oslo.messaging calls, by the priority of a notification; Nova's of services are INFO."""

    def __init__(self, record: Callable[[str, object], None]) -> None:
        self._record = record

    def info(
        self, _context: object, _publisher: object, event: object, payload: object, _about: object
    ) -> None:
        """Hand a notification on."""
        if isinstance(event, str):
            self._record(event, payload)


class _Outages(logging.Handler):
    """Turns the driver's lines about each attempt into one for an outage, and one for its end."""

    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self._lasting = Lasting()
        self._away = False

    def emit(self, record: logging.LogRecord) -> None:
        """Tell it if it is news."""
        if record.levelno >= logging.WARNING:
            self._away = True
            if self._lasting.is_news("away"):
                _log.warning("Nova's notifications do not arrive: %s", record.getMessage())
        elif self._away and "econnected" in record.getMessage():
            self.ended()
            _log.warning("Nova's notifications arrive again")

    def ended(self) -> None:
        """Forget the outage: another one is news."""
        self._away, self._lasting = False, Lasting()

    def follow(self) -> None:
        """Take the driver's lines, instead of the log."""
        driver = logging.getLogger(_DRIVER)
        driver.handlers[:] = [self]
        driver.setLevel(logging.INFO)
        driver.propagate = False


def _library() -> Any:  # noqa: ANN401 - a module without types
    """Import oslo.messaging.

    Raises:
        InvalidDescription: it is not installed.
    """
    try:
        # Eventlet, which it imports and does not use here, says that it is deprecated.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import oslo_messaging  # noqa: PLC0415 - an extra, slow to import
    except ImportError as error:
        raise InvalidDescription(
            f"nova_notifications needs the extra moorage[notifications]: {error}",
            path="nova_notifications",
        ) from error
    return oslo_messaging
