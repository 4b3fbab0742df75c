"""Plans: ordered moves of servers, and how far they have been carried out.

A plan is made from the ledger at one instant and changes nothing by itself. Its moves begin when an
operator applies it. A move may begin once the moves that it waits for are done; those that do not
wait for each other may run at the same time, in any order.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from types import MappingProxyType

from moorage.domain.actors import UNKNOWN, Actor
from moorage.domain.member_names import MemberName
from moorage.domain.period import Duration, Instant
from moorage.domain.resources import Amounts


class PlanKind(StrEnum):
    """What a plan is for."""

    REPAIR = "repair"
    """The broken policies of an ensemble hold again."""
    DRAIN = "drain"
    """Hosts that run become empty."""
    EVACUATE = "evacuate"
    """The servers of hosts that do not run are built again elsewhere."""
    ADMIT = "admit"
    """Room is made for an ensemble that does not fit."""
    REBALANCE = "rebalance"
    """The fleet has more room for what is usually requested."""


class PlanState(StrEnum):
    """How far a plan is."""

    READY = "ready"
    """Made, and not applied yet."""
    RUNNING = "running"
    PAUSED = "paused"
    """No further move begins, until it is applied again."""
    DONE = "done"
    """No move is left."""
    CANCELED = "canceled"
    """No further move begins; what was moved stays where it is."""

    @property
    def over(self) -> bool:
        """Whether nothing of the plan happens any more."""
        return self in {PlanState.DONE, PlanState.CANCELED}


class MoveKind(StrEnum):
    """How Nova moves a server."""

    LIVE = "live"
    """Live migration: the server runs on."""
    COLD = "cold"
    """Cold migration: the server is stopped meanwhile, and the move is confirmed."""
    EVACUATE = "evacuate"
    """The server is built again on another host, since its own does not run."""


class MoveState(StrEnum):
    """How far a move is."""

    WAITING = "waiting"
    """Not begun."""
    MOVING = "moving"
    """Nova has been asked to move the server."""
    DONE = "done"
    FAILED = "failed"
    """Nova has refused or given up the move; the server is where it was."""
    SKIPPED = "skipped"
    """Needless: the server is deleted, or is not on the host any more from which it was to go."""

    @property
    def over(self) -> bool:
        """Whether nothing of the move happens any more."""
        return self in {MoveState.DONE, MoveState.FAILED, MoveState.SKIPPED}


@dataclass(frozen=True, slots=True)
class Move:
    """One move of a server to another host."""

    id: str
    """UUID; the consumer of the bookings that hold its place on the target."""
    server: str
    """UUID of the server: the consumer of its allocations."""
    project_id: str
    source: str
    """UUID of the host (root provider) that it leaves."""
    source_name: str
    target: str
    """UUID of the host to which it goes."""
    target_name: str
    allocations: Mapping[str, Amounts]
    """UUID of each provider of the target's tree -> what the server takes there."""
    kind: MoveKind = MoveKind.LIVE
    ensemble_id: str | None = None
    """The ensemble of which it is a member; None: of none."""
    ensemble: str = ""
    """The ensemble's name when the plan was made."""
    member: MemberName | None = None
    memory_mb: int = 0
    """Memory that is copied, in MiB: what the server has allocated of MEMORY_MB."""
    after: tuple[int, ...] = ()
    """Positions in the plan of the moves that are done before it begins."""
    state: MoveState = MoveState.WAITING
    error: str = ""
    """Why it failed or was skipped."""
    began_at: Instant | None = None
    ended_at: Instant | None = None
    attempts: int = 0
    """How often Nova was asked to move the server."""
    asked: bool = False
    """Whether Nova has accepted the request of the last attempt."""


@dataclass(frozen=True, slots=True)
class Unmoved:
    """A server that the plan would have to move and cannot."""

    server: str
    project_id: str
    host: str
    """UUID of its host."""
    host_name: str
    reason: str
    """Why there is no move of it, in a sentence for operators."""
    code: str
    """Stable id of the reason: `no-room`, `policy`, `undecided`, `pinned`, `no-order`."""
    ensemble_id: str | None = None
    member: MemberName | None = None


@dataclass(frozen=True, slots=True)
class PlanLimits:
    """Bounds on what runs at the same time, and on failures."""

    parallel: int = 2
    """Moves at a time."""
    per_host: int = 1
    """Moves at a time that leave or enter one host."""
    failures: int = 2
    """The plan pauses at so many failed moves."""


@dataclass(frozen=True, slots=True)
class Plan:
    """A plan and its progress."""

    id: str
    kind: PlanKind
    subject: str
    """What it is for, as operators read it: names of hosts or of the ensemble."""
    created_at: Instant
    moves: tuple[Move, ...]
    """In an order in which each may be carried out after those before it."""
    lower_bound: int = 0
    """No plan for the same has fewer moves."""
    optimal: bool = False
    """Whether it is proved that no plan for the same costs less."""
    unmoved: tuple[Unmoved, ...] = ()
    """Servers that would have to move and cannot: then the plan attains a part only."""
    hosts: tuple[str, ...] = ()
    """UUIDs of the hosts that become empty."""
    ensemble_id: str | None = None
    """The ensemble that is repaired, or for which room is made."""
    by: Instant | None = None
    """When it is to be done; None: no matter."""
    limits: PlanLimits = PlanLimits()
    state: PlanState = PlanState.READY
    note: str = ""
    """Why it is paused, or what has changed since it was made."""
    changed_at: Instant = 0
    """When its state, or that of a move, changed last."""
    actor: Actor = UNKNOWN
    """Who made it."""
    revision: int = 0
    """The ledger's revision from which it was made."""
    generation: int = 0
    attributes: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    """Figures that belong to its kind, such as what rebalancing gains."""
    digest: str = ""
    """The fingerprint of the request that made it, where its client named it."""

    @property
    def complete(self) -> bool:
        """Whether its moves attain all that it is for."""
        return not self.unmoved

    @property
    def memory_mb(self) -> int:
        """Memory that all moves copy, in MiB."""
        return sum(one.memory_mb for one in self.moves)

    @property
    def holding(self) -> tuple[Move, ...]:
        """The moves whose targets are held: those that may still happen."""
        if self.state in {PlanState.RUNNING, PlanState.PAUSED}:
            return tuple(one for one in self.moves if not one.state.over)
        if self.state is PlanState.CANCELED:
            return tuple(one for one in self.moves if one.state is MoveState.MOVING)
        return ()

    @property
    def under_way(self) -> bool:
        """Whether Nova moves a server of it now, also after it was paused or canceled."""
        return any(one.state is MoveState.MOVING for one in self.moves)

    def startable(self) -> tuple[int, ...]:
        """Positions of the moves that may begin now, by the order and the limits alone."""
        running = [one for one in self.moves if one.state is MoveState.MOVING]
        room = self.limits.parallel - len(running)
        busy: dict[str, int] = {}
        for one in running:
            for host in (one.source, one.target):
                busy[host] = busy.get(host, 0) + 1
        found: list[int] = []
        for number, one in enumerate(self.moves):
            if len(found) >= room:
                break
            if one.state is not MoveState.WAITING or not self._ready(one):
                continue
            ends = (one.source, one.target)
            if any(busy.get(host, 0) >= self.limits.per_host for host in ends):
                continue
            found.append(number)
            for host in ends:
                busy[host] = busy.get(host, 0) + 1
        return tuple(found)

    def _ready(self, move: Move) -> bool:
        left = {MoveState.DONE, MoveState.SKIPPED}
        return all(self.moves[one].state in left for one in move.after)

    def with_move(self, number: int, move: Move, at: Instant) -> Plan:
        """The plan with another state of one move."""
        moves = (*self.moves[:number], move, *self.moves[number + 1 :])
        return replace(self, moves=moves, changed_at=at)


@dataclass(frozen=True, slots=True)
class AutomaticPlans:
    """Which plans are applied without anybody's request."""

    kinds: frozenset[PlanKind] = frozenset()
    """`repair`: those for policies that ask for a plan. `evacuate`: such plans are made, and
    applied, for hosts that have failed."""
    hourly: int = 4
    """Plans that are so applied in an hour, of all kinds together."""
    settle: Duration = 0
    """How long a host has been down before its servers are evacuated."""
