"""The table of settings: names, types, defaults, and what they mean.

Apart from `settings`, so that the command line's help and the reference page need nothing else.
Only rows and their types live here; nothing is read and nothing is checked against another row.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

from moorage.options.access import ACCESS
from moorage.options.events import EVENTS
from moorage.options.leases import LEASES
from moorage.options.nova import NOVA
from moorage.options.operation import OPERATION
from moorage.options.quotas import QUOTAS
from moorage.options.service import SERVICE
from moorage.options.shadow import SHADOW

if TYPE_CHECKING:
    from collections.abc import Mapping

MOUNTS: Final[Mapping[str, str]] = {
    "placement": "/placement",
    "native": "/v1",
    "reservation": "/reservation",
    "compute": "/compute",
    "web": "/ui",
}
"""Every dialect and its path, unless `mount` says otherwise."""

SETTINGS: Final = (*SERVICE, *LEASES, *EVENTS, *QUOTAS, *NOVA, *OPERATION, *ACCESS, *SHADOW)
"""All of them, in the order they are shown."""


def default_database() -> Path:
    """The SQLite file in the user's data directory: one ledger, whatever the current directory."""
    data = os.environ.get("XDG_DATA_HOME")
    base = Path(data) if data else Path.home() / ".local" / "share"
    return base / "moorage" / "moorage.db"
