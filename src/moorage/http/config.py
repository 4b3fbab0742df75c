"""What the HTTP side needs to be told; `moorage.settings` fills it."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from moorage.http.kernel import Bounds


@dataclass(frozen=True, slots=True)
class ServerConfig:
    """Where and how to serve."""

    host: str
    port: int
    """0: any free one; the ready line says which."""
    workers: int
    auth: str
    mounts: Mapping[str, str]
    """Name of a dialect -> its path, empty for the root."""
    bounds: Bounds
    log_level: str
    pid_file: str | None


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach the address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
