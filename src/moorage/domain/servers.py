"""Nova's servers and hypervisors, for comparison with the ledger."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from moorage.domain.resources import ResourceClass

NO_PLACE: Final = frozenset({"SHELVED_OFFLOADED", "DELETED", "SOFT_DELETED"})
"""Statuses in which a server takes nothing from any host."""
MOVING: Final = frozenset({"RESIZE", "VERIFY_RESIZE", "REVERT_RESIZE", "MIGRATING"})
"""Statuses in which a server has two hosts; one of them is the migration's, under its own UUID."""
SERVER_TYPES: Final = frozenset({"INSTANCE", "unknown"})
"""Consumer types of servers. Clients that know no types write `unknown`, for migrations too."""


@dataclass(frozen=True, slots=True)
class Server:
    """One server as Nova lists it. `host` is the hypervisor's name, None where there is none."""

    uuid: str
    name: str = ""
    status: str = ""
    host: str | None = None
    busy: bool = False
    """Whether a task is under way."""
    project_id: str | None = None
    flavor: str | None = None
    """The flavor's name, where the listing has it."""
    classes: frozenset[ResourceClass] | None = None
    """Virtual classes that its flavor requests; None: the listing does not show them."""

    @property
    def placed(self) -> bool:
        """Whether it must have allocations."""
        return self.host is not None and self.status not in NO_PLACE

    @property
    def moving(self) -> bool:
        """Whether it may have allocations on two hosts at present."""
        return self.status in MOVING or self.busy
