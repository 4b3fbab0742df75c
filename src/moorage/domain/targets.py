"""Targets of deliveries: which addresses are public, and checks of a URL before it is resolved."""

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


_PUBLIC_V6: Final = ipaddress.ip_network("2000::/3")
"""What is assigned for global unicast. All else is local, multicast, or leads to an IPv4 address
that it embeds (NAT64, IPv4-compatible)."""
_NOT_PUBLIC: Final = tuple(
    ipaddress.ip_network(one)
    for one in (
        "0.0.0.0/8",  # this network
        "10.0.0.0/8",  # private
        "100.64.0.0/10",  # shared, of carriers
        "127.0.0.0/8",  # loopback
        "169.254.0.0/16",  # link-local, clouds' metadata
        "172.16.0.0/12",  # private
        "192.0.0.0/24",  # protocol assignments
        "192.0.2.0/24",  # documentation
        "192.88.99.0/24",  # 6to4 relays
        "192.168.0.0/16",  # private
        "198.18.0.0/15",  # benchmarks
        "198.51.100.0/24",  # documentation
        "203.0.113.0/24",  # documentation
        "224.0.0.0/4",  # multicast
        "240.0.0.0/4",  # reserved, broadcast
        "2001::/23",  # protocol assignments, Teredo, benchmarks
        "2001:db8::/32",  # documentation
        "2002::/16",  # 6to4: embeds an IPv4 address
        "3fff::/20",  # documentation
    )
)
"""Written here and not asked of `ipaddress.is_global`, whose answers differ between releases of
Python."""


def is_public(address: str) -> bool:
    """Whether an IP address is public on the Internet, and not of the service's own networks.

    One that embeds an IPv4 address is not, except an IPv4-mapped one, which is that address.
    """
    found = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(found, ipaddress.IPv6Address):
        if found.ipv4_mapped is not None:
            found = found.ipv4_mapped
        elif found not in _PUBLIC_V6:
            return False
    return not any(found in network for network in _NOT_PUBLIC if network.version == found.version)


def check_target(url: str, *, public_only: bool) -> None:
    """Refuse a URL that deliveries may not go to, as far as its text shows that.

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
