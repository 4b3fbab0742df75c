"""From the settings to whoever does what outside."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from moorage.domain.period import SECOND
from moorage.outward.program import Program
from moorage.outward.webhook import Webhook
from moorage.usecases.effects import Outside

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
        attempts=config.attempts,
        timeout=int((config.timeout + _SPARE) * SECOND),
    )


def _end(config: OutwardConfig, hook: Program | None) -> Act | None:
    if config.end_servers == "hook":
        return hook
    if config.end_servers == "nova":
        from moorage.outward.nova import Nova  # noqa: PLC0415 - an extra, only where it is used

        return Nova(config.nova, config.timeout)
    return None
