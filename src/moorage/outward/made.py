"""From the settings to whoever does what outside."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from moorage.domain.period import SECOND
from moorage.outward.check import ProgramCheck, WebCheck
from moorage.outward.program import Program
from moorage.outward.subscriber import Subscriber
from moorage.outward.webhook import Webhook
from moorage.usecases.effects import Outside
from moorage.usecases.feed.deliver import Delivery
from moorage.usecases.leases.checked import Check

if TYPE_CHECKING:
    from moorage.outward.config import OutwardConfig
    from moorage.usecases.effects import Act

_SPARE: Final = 20
"""Seconds that an attempt may be late before somebody else takes its effect on."""


def outside(config: OutwardConfig) -> Outside:
    """Who is told, who ends servers, who runs hooks.

    Raises:
        InvalidDescription: the section [nova] does not make a login.
    """
    hook = None if config.hook is None else Program(config.hook, config.timeout)
    tell = None
    if config.webhook is not None:
        tell = Webhook(config.webhook, config.webhook_secret, config.timeout)
    return Outside(
        tell=tell,
        end=_end(config, hook),
        hook=hook,
        check=None if (asks := _asks(config)) is None else asks.told,
        attempts=config.attempts,
        timeout=int((max(config.timeout, config.check_timeout) + _SPARE) * SECOND),
    )


def check(config: OutwardConfig) -> Check | None:
    """The operator's own check of leases."""
    asks = _asks(config)
    return None if asks is None else Check(asks, else_allow=config.check_else_allow)


def _asks(config: OutwardConfig) -> WebCheck | ProgramCheck | None:
    if config.check is None:
        return None
    if config.check.startswith(("http://", "https://")):
        return WebCheck(config.check, config.webhook_secret, config.check_timeout)
    return ProgramCheck(config.check, config.check_timeout)


def delivery(config: OutwardConfig) -> Delivery:
    """How events are delivered to subscribers."""
    return Delivery(
        send=Subscriber(config.timeout, public_only=config.public_targets),
        timeout=int((config.timeout + _SPARE) * SECOND),
        patience=config.patience,
        longest_wait=config.longest_wait,
    )


def _end(config: OutwardConfig, hook: Program | None) -> Act | None:
    if config.end_servers == "hook":
        return hook
    if config.end_servers == "nova":
        from moorage.outward.nova import Nova  # noqa: PLC0415 - an extra, only where it is used

        return Nova(config.nova, config.timeout)
    return None
