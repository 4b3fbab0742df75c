"""Settings of the HTTP side, as values; `moorage.settings` fills it."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from moorage.http.cors import CorsConfig

if TYPE_CHECKING:
    from collections.abc import Mapping

    from moorage.domain.period import Duration
    from moorage.http.kernel import RequestLimits
    from moorage.http.transport.limits import ConnectionLimits


@dataclass(frozen=True, slots=True)
class Tls:
    """Files of a certificate chain and its private key, PEM."""

    cert: str
    key: str


@dataclass(frozen=True, slots=True)
class PlannersConfig:
    """The planner processes."""

    processes: int
    """0: HTTP workers plan themselves."""
    threads: int
    """Requests that one works on at a time: as many as all HTTP workers admit."""


@dataclass(frozen=True, slots=True)
class LogConfig:
    """What is logged, and in which form (see `moorage.logs`)."""

    level: str
    form: str
    file: str = ""
    """Empty: none."""
    stderr: bool = True


@dataclass(frozen=True, slots=True)
class CallersConfig:
    """Settings of the authentication strategies."""

    token_file: str | None = None
    keystone: Mapping[str, str] = field(default_factory=dict)
    """Options of keystonemiddleware's auth_token, as texts."""


@dataclass(frozen=True, slots=True)
class IdentityAddress:
    """Where Keystone is, and how it is trusted."""

    url: str
    verify: str | bool = True
    """A file of certificates; False: whoever answers is believed."""
    certificate: tuple[str, str] | None = None
    """Our own certificate and its key."""


@dataclass(frozen=True, slots=True)
class SessionsConfig:
    """Sessions of browsers, and who may show the page in a frame."""

    lifetime: Duration
    key_file: str | None = None
    """None: the key is in the database."""
    embed_origins: tuple[str, ...] = ()


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
    bounds: RequestLimits
    limits: ConnectionLimits
    log: LogConfig
    pid_file: str | None
    silence: float
    """Seconds a child may show no sign of life."""
    metrics_from: tuple[str, ...]
    """Addresses and networks that may read `/metrics` without a token."""
    sessions: SessionsConfig
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
