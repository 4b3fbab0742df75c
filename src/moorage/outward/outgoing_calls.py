"""Builds the outgoing calls from the settings."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from moorage.domain.period import SECOND
from moorage.outward.lease_check import ProgramCheck, WebCheck
from moorage.outward.program import HookProgram
from moorage.outward.subscriber import SubscriberClient
from moorage.outward.webhook import WebhookClient
from moorage.usecases.effect_dispatch import EFFECT_RETRY, OutwardActions
from moorage.usecases.events.deliver import DELIVERY_RETRY, Delivery
from moorage.usecases.shared.lease_check import LeaseCheck

if TYPE_CHECKING:
    from moorage.outward.config import OutwardConfig
    from moorage.usecases.effect_dispatch import Act

_SPARE: Final = 20
"""Seconds that an attempt may be late before another worker takes its effect on."""


def outgoing_calls(config: OutwardConfig) -> OutwardActions:
    """The configured webhook, server deleter, hook, check and client for flavors.

    Raises:
        InvalidDescription: the section [nova] does not make a login.
    """
    hook = None if config.hook is None else HookProgram(config.hook, config.timeout)
    tell = None
    if config.webhook is not None:
        tell = WebhookClient(config.webhook, config.webhook_secret, config.timeout)
    return OutwardActions(
        tell=tell,
        end=_end(config, hook),
        hook=hook,
        check=None if (asks := _check_client(config)) is None else asks.report_end,
        flavors=_flavors(config),
        retry=replace(EFFECT_RETRY, attempts=config.attempts),
        timeout=int((max(config.timeout, config.check_timeout) + _SPARE) * SECOND),
    )


def lease_check(config: OutwardConfig) -> LeaseCheck | None:
    """The operator's own check of leases."""
    asks = _check_client(config)
    return None if asks is None else LeaseCheck(asks, else_allow=config.check_else_allow)


def _check_client(config: OutwardConfig) -> WebCheck | ProgramCheck | None:
    if config.check is None:
        return None
    if config.check.startswith(("http://", "https://")):
        return WebCheck(config.check, config.webhook_secret, config.check_timeout)
    return ProgramCheck(config.check, config.check_timeout)


def event_delivery(config: OutwardConfig) -> Delivery:
    """The delivery of events to subscribers."""
    return Delivery(
        send=SubscriberClient(config.delivery_timeout, public_only=config.public_targets),
        timeout=int((config.delivery_timeout + _SPARE) * SECOND),
        turn=int(config.delivery_timeout * SECOND),
        patience=config.patience,
        retry=replace(DELIVERY_RETRY, longest_pause=config.longest_wait),
    )


def _end(config: OutwardConfig, hook: HookProgram | None) -> Act | None:
    if config.end_servers == "hook":
        return hook
    if config.end_servers == "nova":
        from moorage.outward.nova import NovaClient  # noqa: PLC0415 - an extra, only where it is used

        return NovaClient(config.nova, config.timeout)
    return None


def _flavors(config: OutwardConfig) -> Act | None:
    if not config.ticket_flavors:
        return None
    from moorage.outward.nova_flavors import NovaFlavors  # noqa: PLC0415 - an extra, as above

    return NovaFlavors(config.nova, config.timeout)
