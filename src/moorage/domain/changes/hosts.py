"""Changes of what is recorded of hosts: absences, closings and what was told of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from moorage.domain.capacity_windows import CapacityWindow
    from moorage.domain.host_states import OperatorClosing, ServiceReport, ToldHost


@dataclass(frozen=True, slots=True)
class PutCapacityWindow:
    """Plan that hosts are away over a period: bookings there stay, new ones are refused.

    As when an inventory shrinks, an overage that comes of it is not refused. DuplicateName;
    NotFound: one of them is no root provider.
    """

    window: CapacityWindow


@dataclass(frozen=True, slots=True)
class DropCapacityWindow:
    """Delete a planned window: its hosts are available again. NotFound."""

    id: str


@dataclass(frozen=True, slots=True)
class CloseHost:
    """Write that an operator has closed a host; `closing` None: it is open again as far as that.

    Bookings there stay. NotFound: it is no root provider.
    """

    provider: str
    closing: OperatorClosing | None


@dataclass(frozen=True, slots=True)
class PutHostService:
    """Write what Nova says of a host's compute service; None: it is enabled and up.

    NotFound: it is no root provider.
    """

    provider: str
    service: ServiceReport | None


@dataclass(frozen=True, slots=True)
class TellHost:
    """Tell that a host's state is `now` and no longer `was`, which was told last.

    ConcurrentUpdate: another state was. NotFound: there is no such provider.
    """

    provider: str
    name: str
    was: ToldHost
    now: ToldHost
    closed: tuple[str, ...]
    """What closes it."""
    reason: str = ""
    """What an operator gave as the reason."""
    project_id: str = ""
    """The project of who has changed it."""
