"""Actors: who caused a change, as events and the change log keep it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Actor:
    """A user with its request, or a background work of the service, which has no user."""

    user_id: str | None = None
    project_id: str | None = None
    """The project in which the user acted."""
    request_id: str | None = None
    global_request_id: str | None = None
    """The id of the client's own request, if it sent one."""
    operator: bool = False
    """Whether the user acted as an operator or as another service."""
    by: str | None = None
    """The background work or the operator's command, such as `expiry`; None: a request."""


UNKNOWN: Final = Actor()
"""Nobody said who it was, as in what versions before actors wrote."""

EXPIRY: Final = Actor(by="expiry")
EFFECTS: Final = Actor(by="effects")
LEASES: Final = Actor(by="leases")
SERVER_PROVIDERS: Final = Actor(by="server providers")
WAITLIST: Final = Actor(by="waitlist")
THRESHOLDS: Final = Actor(by="thresholds")
RETENTION: Final = Actor(by="retention")
DELIVERIES: Final = Actor(by="deliveries")
COMPLIANCE: Final = Actor(by="compliance")
PLANS: Final = Actor(by="plans")
NOVA_SYNC: Final = Actor(by="nova sync")
NOVA_NOTIFICATIONS: Final = Actor(by="nova notifications")
