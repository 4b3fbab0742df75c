"""Types of services in a catalog."""

from __future__ import annotations

from typing import Final

NATIVE: Final = "ensemble"
PLACEMENT: Final = "placement"
"""The two APIs of Moorage."""
RESERVATION: Final = "reservation"
"""Blazar's, for the import of its leases."""
COMPUTE: Final = "compute"
IMAGE: Final = "image"
NETWORK: Final = "network"
"""Nova's, Glance's and Neutron's, for creating servers."""
