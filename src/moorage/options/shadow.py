"""Settings of a shadow, which follows another Placement service."""

from __future__ import annotations

from typing import Final

from moorage.domain.period import say_duration
from moorage.options.kinds import Setting, duration

SHADOW: Final = (
    Setting(
        "shadow",
        str,
        "",
        "URL",
        "Follow the Placement service at this URL: its API is served where `placement` is mounted,"
        " each request is forwarded and answered by that service, and what Moorage would have"
        " answered is compared in the background. Empty: no shadow.",
    ),
    Setting(
        "shadow_source",
        str,
        "",
        "URL",
        "The followed service's database, which is only read: its content is taken over at the"
        " start, every `shadow_refresh`, and after a write with another outcome here. Empty: import"
        " it with `moorage admin import placement --mirror`.",
        secret=True,
    ),
    Setting(
        "shadow_refresh",
        duration,
        "10m",
        "DURATION",
        "How often the followed service's content is taken over again.",
        show=say_duration,
    ),
    Setting(
        "shadow_report",
        str,
        "",
        "FILE",
        "Where the differences are kept, for `moorage admin shadow report`. Empty: shadow.json in"
        " $XDG_DATA_HOME/moorage (~/.local/share without that variable).",
    ),
)
