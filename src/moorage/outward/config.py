"""Settings of outgoing calls, as values."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING

from moorage.domain.period import DAY, HOUR

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from moorage.domain.period import Duration


@dataclass(frozen=True, slots=True)
class OutwardConfig:
    """The settings of outgoing calls."""

    end_servers: str = "none"
    """`none`, `hook`, `nova` or `simulated`."""
    move_servers: str = "none"
    """`none`, `nova` or `simulated`."""
    ticket_flavors: bool = False
    """Whether ticket flavors are created and deleted in Nova."""
    hook: str | None = None
    """The path of the operator's program."""
    webhook: str | None = None
    webhook_secret: str = ""
    timeout: float = 10.0
    """Seconds that any one attempt may take."""
    attempts: int = 12
    check: str | None = None
    """The operator's check of leases: a URL, or the path of a program."""
    check_timeout: float = 5.0
    check_else_allow: bool = False
    """What holds where there is no answer."""
    nova: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    """The section [nova]: credentials for Keystone, as its other users write them."""
    nova_sync: Duration | None = None
    """How often flavors and topology are brought in step with Nova; None: never."""
    nova_notifications: str = ""
    """The URL of the message bus with Nova's notifications; empty: they are not read."""
    files: Sequence[str] = ()
    """Configuration files, in which the bus has sections of its own."""
    topology_rules: str | None = None
    """The file of rules that place hosts."""
    deliveries: int = 16
    """Deliveries to subscribers under way at once."""
    deliveries_per_project: int = 4
    """How many of them to one project's targets."""
    delivery_timeout: float = 5.0
    """Seconds that one delivery to a subscriber may take."""
    patience: Duration = DAY
    """How long an event is tried."""
    longest_wait: Duration = HOUR
    public_targets: bool = True
    """Whether events are delivered to public addresses only."""
