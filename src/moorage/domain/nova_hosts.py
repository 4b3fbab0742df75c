"""Nova's hypervisors, with what their compute services and aggregates say of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class NovaHost:
    """One hypervisor of Nova's."""

    name: str
    """The hypervisor's, which is its resource provider's."""
    zone: str | None = None
    """The availability zone of its compute service."""
    metadata: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """Key -> its values in the aggregates that the host is in."""
    enabled: bool = True
    """Whether its compute service is there and takes new servers."""
    up: bool | None = True
    """Whether its compute service reports; None: nothing is said of it."""
    forced_down: bool = False
    """Whether Nova was told that the host is down."""
    uuid: str | None = None
    """The hypervisor's, which is its root resource provider's; None: Nova does not say it."""
