"""What the HTTP side needs to be told; `moorage.settings` fills it."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from moorage.http.cors import CorsConfig

if TYPE_CHECKING:
    from collections.abc import Mapping

    from moorage.http.kernel import Bounds


@dataclass(frozen=True, slots=True)
class Tls:
    """Files of a certificate chain and its private key, PEM."""

    cert: str
    key: str


@dataclass(frozen=True, slots=True)
class CallersConfig:
    """What the strategies of authentication need beyond the request."""

    token_file: str | None = None
    keystone: Mapping[str, str] = field(default_factory=dict)
    """Options of keystonemiddleware's auth_token, as texts."""


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
    tls: Tls | None = None
    trusted_proxies: tuple[str, ...] = ()
    """Addresses and networks whose X-Forwarded headers are believed."""
    cors: CorsConfig = field(default_factory=CorsConfig)


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach the address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
