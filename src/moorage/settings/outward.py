"""The settings of who is told, who ends servers and who runs hooks, checked against each other."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from moorage.domain.period import SECOND
from moorage.outward.config import OutwardConfig
from moorage.settings.effective import NOVA, BadSetting

if TYPE_CHECKING:
    from moorage.settings.effective import Effective


def outward(effective: Effective) -> OutwardConfig:
    """Who is told, who ends servers, who runs hooks; what is named must be there.

    Raises:
        BadSetting: it is not.
    """
    value, source = effective.values, effective.sources
    who = value["end_servers"]
    if who == "hook" and not value["hook"]:
        raise BadSetting("end_servers", source["end_servers"], "hook needs a hook")
    if who == "nova" and not effective.nova:
        raise BadSetting(
            "end_servers", source["end_servers"], f"nova needs a section [{NOVA}] in the file"
        )
    hook = value["hook"]
    if hook and not (Path(hook).is_file() and os.access(hook, os.X_OK)):
        raise BadSetting("hook", source["hook"], f"{hook} is no program that can be run")
    return OutwardConfig(
        end_servers=who,
        hook=str(Path(hook).absolute()) if hook else None,
        webhook=value["webhook"] or None,
        webhook_secret=_secret(value["webhook_secret_file"], source["webhook_secret_file"]),
        timeout=value["outward_timeout"] / SECOND,
        attempts=value["outward_attempts"],
        nova=dict(effective.nova),
    )


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
