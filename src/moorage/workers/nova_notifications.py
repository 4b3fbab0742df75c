"""Records what Nova's notifications say of compute services, as soon as they come."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from threading import Event
from typing import TYPE_CHECKING, Final

import msgspec

from moorage.domain.errors import Busy, MoorageError
from moorage.domain.nova_hosts import NovaHost
from moorage.usecases.ledger.host_states import sync_services
from moorage.usecases.ledger.hypervisor_rows import hypervisor_rows
from moorage.workers.nova_sync import log_services

if TYPE_CHECKING:
    from moorage.usecases.environment import UseCaseEnvironment
    from moorage.usecases.ports import Caller
    from moorage.workers.loop import FailureLog
    from moorage.workers.nova_sync import NovaSync

_log = logging.getLogger(__name__)

NAME: Final = "nova notifications"
CREATED: Final = "service.create"
UPDATED: Final = "service.update"
DELETED: Final = "service.delete"
EVENTS: Final = frozenset({CREATED, UPDATED, DELETED})
_BINARY: Final = "nova-compute"
_PAUSE_SECONDS: Final = 1.0


class _Service(msgspec.Struct):
    """The part of Nova's `ServiceStatusPayload` that is read."""

    host: str
    binary: str
    disabled: bool
    forced_down: bool


class _Payload(msgspec.Struct):
    """A versioned object of Nova's, as it is on the bus."""

    data: _Service = msgspec.field(name="nova_object.data")


@dataclass(frozen=True, slots=True)
class ServiceNotifications:
    """What is done with each notification; those about anything but compute services are left."""

    env: UseCaseEnvironment
    caller: Caller
    failures: FailureLog
    sync: NovaSync | None = None
    """The rounds that read Nova's lists. One is due soon where a notification does not suffice."""
    stop: Event = field(default_factory=Event)

    def __call__(self, event: str, payload: object) -> None:
        """Record it; while the database is away, try again."""
        if event not in EVENTS:
            return
        try:
            said = msgspec.convert(payload, _Payload).data
        except msgspec.ValidationError as error:
            _log.warning("a notification %s of Nova's cannot be read: %s", event, error)
            return
        if said.binary != _BINARY:
            return
        while not self.stop.is_set():
            try:
                self._record(_host(event, said))
            except Busy as error:
                self.failures.failed(NAME, error)
                self.stop.wait(_PAUSE_SECONDS)
            except MoorageError as error:
                self.failures.failed(NAME, error, f"{event} of {said.host} was not recorded")
                return
            else:
                self.failures.recovered(NAME)
                return

    def _record(self, host: NovaHost) -> None:
        known = hypervisor_rows(self.env.store.snapshot(), (host,))
        if known:
            log_services(sync_services(self.env, self.caller, (host,)))
        if self.sync is not None and (self.sync.running or not known):
            # A round under way may write what it read before; and Nova's lists know which
            # hypervisors, of other names, belong to a service.
            self.sync.hasten()
        elif not known:
            _log.info("a notification of Nova's names %s, which is no host here", host.name)


def _host(event: str, said: _Service) -> NovaHost:
    """What a notification says of its host."""
    if event == DELETED:
        return NovaHost(said.host, enabled=False, up=False)
    up = True if event == CREATED else None
    return NovaHost(said.host, enabled=not said.disabled, up=up, forced_down=said.forced_down)
