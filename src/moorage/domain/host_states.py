"""The state of a host, and the closings that it follows from.

A host is *in service* while its state is open. Where several closings hold, the state is the most
severe of theirs.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from moorage.domain.errors import WrongState
from moorage.domain.period import Instant

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

DISABLED_TRAIT: Final = "COMPUTE_STATUS_DISABLED"
"""The trait by which Nova marks the provider of a host whose compute service is disabled."""


class HostState(StrEnum):
    """Whether members may be placed on a host, and whether those that are there run."""

    OPEN = "open"
    CLOSED = "closed"
    """Nothing new is placed there; what is there may still run."""
    DOWN = "down"
    """What is there does not run."""

    @property
    def severity(self) -> int:
        """0 for open; the state of a host is the one with the highest."""
        return _SEVERITY[self]


SEVERITIES: Final = (HostState.OPEN, HostState.CLOSED, HostState.DOWN)
"""States by their severity."""
_SEVERITY: Final[Mapping[HostState, int]] = {one: n for n, one in enumerate(SEVERITIES)}


class ClosingReason(StrEnum):
    """Reasons why a host is not open, or will not be."""

    DISABLED = "disabled"
    """Nova's compute service there is disabled; see `DISABLED_TRAIT`."""
    OPERATOR = "operator"
    """An operator has closed it."""
    SERVICE_DOWN = "service down"
    """Nova's compute service there does not report."""
    FORCED_DOWN = "forced down"
    """Nova was told that the host is down."""
    SPENT = "no capacity"
    """It has inventories, and nothing left of what servers take there after `reserved`."""
    AWAY = "away"
    """A capacity window has begun."""
    PLANNED = "planned"
    """A capacity window begins later; the host is open until then."""
    EMPTY = "no inventory"
    """No provider in its tree has an inventory."""

    @property
    def state(self) -> HostState:
        """The state of a host with this reason alone."""
        return _STATES[self]


_STATES: Final[Mapping[ClosingReason, HostState]] = MappingProxyType(
    {
        ClosingReason.DISABLED: HostState.CLOSED,
        ClosingReason.OPERATOR: HostState.CLOSED,
        ClosingReason.SERVICE_DOWN: HostState.DOWN,
        ClosingReason.FORCED_DOWN: HostState.DOWN,
        ClosingReason.SPENT: HostState.CLOSED,
        ClosingReason.AWAY: HostState.DOWN,
        ClosingReason.PLANNED: HostState.OPEN,
        ClosingReason.EMPTY: HostState.DOWN,
    }
)


@dataclass(frozen=True, slots=True)
class ToldHost:
    """What the last event said of a host."""

    state: HostState
    by_operator: bool = False
    """Whether an operator had closed it."""

    def __str__(self) -> str:
        return f"{self.state.value} operator" if self.by_operator else self.state.value

    @classmethod
    def parse(cls, text: str) -> ToldHost:
        """Read it as `str` writes it."""
        state, _, by = text.partition(" ")
        return cls(HostState(state), bool(by))


NOTHING_CLOSES: Final = ToldHost(HostState.OPEN)


class HostOutOfService(WrongState):
    """A place cannot be taken, as its host is not in service."""

    def __init__(self, whose: str, remedy: str = "") -> None:
        super().__init__(f"{whose} cannot be claimed: its host is out of service{remedy}")
        self.whose = whose


@dataclass(frozen=True, slots=True)
class OperatorClosing:
    """A host was closed by an operator."""

    reason: str
    user_id: str
    since: Instant


@dataclass(frozen=True, slots=True)
class ServiceReport:
    """What Nova last said of a host's compute service, if that is not enabled and up."""

    enabled: bool
    up: bool
    forced_down: bool
    since: Instant
    """When Moorage learned it."""

    @property
    def reasons(self) -> tuple[ClosingReason, ...]:
        """Why the host is closed by it; none: the service serves."""
        found = () if self.enabled else (ClosingReason.DISABLED,)
        if self.forced_down:
            return (*found, ClosingReason.FORCED_DOWN)
        return found if self.up else (*found, ClosingReason.SERVICE_DOWN)


@dataclass(frozen=True, slots=True)
class HostRecord:
    """What is stored of a host's state beside its inventories, traits and absences."""

    closing: OperatorClosing | None = None
    service: ServiceReport | None = None

    def closings(self) -> Iterator[Closing]:
        """Why the host is closed by it."""
        one = self.closing
        if one is not None:
            yield Closing(ClosingReason.OPERATOR, one.since, reason=one.reason, user_id=one.user_id)
        if self.service is not None:
            for why in self.service.reasons:
                yield Closing(why, self.service.since)


@dataclass(frozen=True, slots=True)
class Closing:
    """A reason why a host is closed, with its period where that is known."""

    why: ClosingReason
    start: Instant | None = None
    end: Instant | None = None
    """The end; None if it is not known."""
    capacity_window: str | None = None
    """The id of the capacity window."""
    kind: str | None = None
    """The window's kind: maintenance, decommission or delivery."""
    reason: str = ""
    """The reason that an operator gave."""
    user_id: str | None = None
    """The operator who closed the host."""


def state_of(closings: tuple[Closing, ...]) -> HostState:
    """The state of a host with these closings."""
    return max((one.why.state for one in closings), key=_SEVERITY.__getitem__, default=_OPEN)


_OPEN: Final = HostState.OPEN
