"""Settings of outgoing calls: to Nova, and to what an operator names."""

from __future__ import annotations

import os
from importlib.util import find_spec
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
    """Recipients of notices, the server deleter and hooks; named files must exist.

    Raises:
        BadSetting: a named file does not exist, or a setting needs another one.
    """
    value, source = effective.values, effective.sources
    who = value["end_servers"]
    if who == "hook" and not value["hook"]:
        raise BadSetting("end_servers", source["end_servers"], "hook needs a hook")
    for name in ("end_servers", "move_servers", "ticket_flavors"):
        if value[name] == "nova" and not effective.nova:
            raise BadSetting(name, source[name], f"nova needs a section [{NOVA}] in the file")
    if value["nova_sync"] is not None and not effective.nova:
        raise BadSetting("nova_sync", source["nova_sync"], f"it needs a section [{NOVA}]")
    if value["nova_notifications"] and find_spec("oslo_messaging") is None:
        problem = "it needs the extra moorage[notifications]"
        raise BadSetting("nova_notifications", source["nova_notifications"], problem)
    rules = value["topology_rules"]
    if rules and not Path(rules).is_file():
        raise BadSetting("topology_rules", source["topology_rules"], f"{rules} is no file")
    for name in ("end_servers", "move_servers"):
        if value[name] == "simulated" and not value["clock_file"]:
            problem = "simulated is for simulations, with a clock_file"
            raise BadSetting(name, source[name], problem)
    hook = value["hook"]
    if hook and not (Path(hook).is_file() and os.access(hook, os.X_OK)):
        raise BadSetting("hook", source["hook"], f"{hook} is no program that can be run")
    check = _check(value["lease_check"], source["lease_check"])
    return OutwardConfig(
        check=check,
        check_timeout=value["lease_check_timeout"] / SECOND,
        check_else_allow=value["lease_check_unanswered"] == "allow",
        end_servers=who,
        move_servers=value["move_servers"],
        ticket_flavors=value["ticket_flavors"] == "nova",
        hook=str(Path(hook).absolute()) if hook else None,
        webhook=value["webhook"] or None,
        webhook_secret=_secret(value["webhook_secret_file"], source["webhook_secret_file"]),
        timeout=value["outward_timeout"] / SECOND,
        attempts=value["outward_attempts"],
        nova=dict(effective.nova),
        nova_sync=value["nova_sync"] or _followed(effective),
        nova_notifications=value["nova_notifications"],
        files=tuple(effective.files),
        topology_rules=str(Path(rules).absolute()) if rules else None,
        deliveries=value["deliveries"],
        deliveries_per_project=value["deliveries_per_project"],
        delivery_timeout=value["delivery_timeout"] / SECOND,
        patience=value["delivery_patience"],
        longest_wait=value["delivery_longest_wait"],
        public_targets=public_targets(value),
    )


def _followed(effective: Effective) -> int | None:
    """How often a shadow follows Nova, where it may."""
    shadow = effective.values["shadow"] and effective.nova
    return effective.values["shadow_refresh"] if shadow else None


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
