"""Where deliveries may go: which addresses are public, and what a URL names without asking."""

from __future__ import annotations

import ipaddress
import re
from typing import Final

from moorage.domain.errors import Forbidden, InvalidDescription

MAX_URL: Final = 2000
_URL: Final = re.compile(
    r"https?://(?P<host>\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)"
    r"(?::(?P<port>\d{1,5}))?(?:[/?][!-~]*)?",
    re.ASCII,
)
_LOCAL: Final = ("localhost", ".localhost", ".local", ".internal")
_MAX_PORT: Final = 65_535


def is_public(address: str) -> bool:
    """Whether an IP address is anybody's on the Internet, and not of the service's own networks."""
    found = ipaddress.ip_address(address.partition("%")[0])
    mapped = getattr(found, "ipv4_mapped", None)
    found = found if mapped is None else mapped
    return found.is_global and not found.is_multicast


def check_target(url: str, *, public_only: bool) -> None:
    """Let a URL pass that deliveries may go to, as far as it says so itself.

    A name may lead anywhere: what it means is looked at again at each delivery.

    Raises:
        InvalidDescription: it is no http or https URL, or names a user.
        Forbidden: it names an address of the service's own networks.
    """
    match = _URL.fullmatch(url) if len(url) <= MAX_URL else None
    port = int(match["port"] or 1) if match else 0
    if match is None or not 0 < port <= _MAX_PORT:
        raise InvalidDescription(
            "must be a URL such as https://hooks.example.org/moorage, without a user or a password",
            path="subscription.url",
        )
    if not public_only:
        return
    host = match["host"].strip("[]").lower()
    if _is_own(host):
        raise Forbidden(
            f"{host} is not a public address: subscription_targets allows only those here"
        )


def _is_own(host: str) -> bool:
    if host == _LOCAL[0] or host.endswith(_LOCAL[1:]):
        return True
    try:
        return not is_public(host)
    except ValueError:
        return False  # a name
