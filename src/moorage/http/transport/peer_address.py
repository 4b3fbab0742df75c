"""IP addresses of peers, from their sockets."""

from __future__ import annotations

import ipaddress


def own_address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    """The IP address of a peer from the text its socket gives.

    A socket for both families shows an IPv4 client as ::ffff:10.0.0.1.

    Raises:
        ValueError: the text is no address.
    """
    found = ipaddress.ip_address(text)
    mapped = found.ipv4_mapped if isinstance(found, ipaddress.IPv6Address) else None
    return mapped or found
