"""The settings of who is told, who ends servers and who runs hooks, checked against each other."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from moorage.domain.period import SECOND
from moorage.http.config import is_loopback
from moorage.outward.config import OutwardConfig
from moorage.settings.effective_values import NOVA, BadSetting

if TYPE_CHECKING:
    from collections.abc import Mapping

    from moorage.settings.effective_values import Effective


def outward(effective: Effective) -> OutwardConfig:
    """Who is told, who ends servers, who runs hooks; what is named must be there.

    Raises:
        BadSetting: it is not.
    """
    value, source = effective.values, effective.sources
    who = value["end_servers"]
    if who == "hook" and not value["hook"]:
        raise BadSetting("end_servers", source["end_servers"], "hook needs a hook")
    for name in ("end_servers", "ticket_flavors"):
        if value[name] == "nova" and not effective.nova:
            raise BadSetting(name, source[name], f"nova needs a section [{NOVA}] in the file")
    if who == "simulated" and not value["clock_file"]:
        raise BadSetting(
            "end_servers", source["end_servers"], "simulated is for simulations, with a clock_file"
        )
    hook = value["hook"]
    if hook and not (Path(hook).is_file() and os.access(hook, os.X_OK)):
        raise BadSetting("hook", source["hook"], f"{hook} is no program that can be run")
    check = _check(value["lease_check"], source["lease_check"])
    return OutwardConfig(
        check=check,
        check_timeout=value["lease_check_timeout"] / SECOND,
        check_else_allow=value["lease_check_unanswered"] == "allow",
        end_servers=who,
        ticket_flavors=value["ticket_flavors"] == "nova",
        hook=str(Path(hook).absolute()) if hook else None,
        webhook=value["webhook"] or None,
        webhook_secret=_secret(value["webhook_secret_file"], source["webhook_secret_file"]),
        timeout=value["outward_timeout"] / SECOND,
        attempts=value["outward_attempts"],
        nova=dict(effective.nova),
        deliveries=value["deliveries"],
        patience=value["delivery_patience"],
        longest_wait=value["delivery_longest_wait"],
        public_targets=public_targets(value),
    )


def _check(text: str, source: str) -> str | None:
    """A URL as it is, or the path of a program that is there."""
    if not text or text.startswith(("http://", "https://")):
        return text or None
    if not (Path(text).is_file() and os.access(text, os.X_OK)):
        raise BadSetting("lease_check", source, f"{text} is no program that can be run")
    return str(Path(text).absolute())


def public_targets(value: Mapping[str, Any]) -> bool:
    """Whether events are delivered to public addresses only."""
    which = value["subscription_targets"]
    if which != "auto":
        return bool(which == "public")
    return not (value["auth"] == "noauth2" and is_loopback(value["host"]))


def _secret(file: str, source: str) -> str:
    if not file:
        return ""
    try:
        secret = Path(file).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeError) as error:
        raise BadSetting("webhook_secret_file", source, str(error)) from error
    if not secret:
        raise BadSetting("webhook_secret_file", source, f"{file} is empty")
    return secret
