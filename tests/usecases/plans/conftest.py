"""Plans over four hosts, carried out by the simulator's mover."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from moorage.domain.changes import Changeset, PutPlan, ReplaceAllocations
from moorage.domain.consumers import ANY_GENERATION, Consumer
from moorage.domain.plans import Move, MoveKind, Plan, PlanKind, PlanLimits, PlanState
from moorage.testing.service import OPERATOR, Service
from moorage.usecases.environment import UseCaseEnvironment
from moorage.usecases.ledger.allocations import allocate
from moorage.usecases.ledger.plan_targets import host_of
from moorage.usecases.plans.lifecycle import apply_plan
from moorage.usecases.plans.simulated_moves import SimulatedMoves
from moorage.usecases.plans.steps import advance_plan
from moorage.usecases.shared.allocation_write import WriteSettings

FLEET = """
fleet: moves
hosts:
  - name: h{n}
    count: 4
    inventories: {VCPU: 8, MEMORY_MB: 8192, DISK_GB: 100}
"""
SIZE = {"VCPU": 2, "MEMORY_MB": 2048}
SERVERS = tuple(f"5e5e5e5e-0000-4000-8000-00000000000{number}" for number in range(1, 9))
MOVES = tuple(f"30303030-0000-4000-8000-00000000000{number}" for number in range(1, 9))


@dataclass
class Fleet:
    """A service over four hosts, whose servers plans move."""

    service: Service
    env: UseCaseEnvironment = field(init=False)
    mover: SimulatedMoves = field(init=False)

    def __post_init__(self) -> None:
        self.env = replace(self.service.env, moves_servers=True)
        self.mover = SimulatedMoves(self.service.store, self.service.ids, WriteSettings())

    def uuid(self, host: str) -> str:
        snapshot = self.env.store.snapshot()
        return snapshot.uuids[snapshot.names.index(host)]

    def server(self, number: int, host: str, size: dict[str, int] | None = None) -> str:
        """A server of a tenant on a host."""
        uuid = SERVERS[number]
        write = ReplaceAllocations(
            Consumer(uuid, "project-a", "ann", "INSTANCE"),
            {self.uuid(host): size or SIZE},
            ANY_GENERATION,
        )
        allocate(self.env.store, (write,), ids=self.env.ids)
        return uuid

    def where(self, number: int) -> str | None:
        snapshot = self.env.store.snapshot()
        host = host_of(snapshot, SERVERS[number])
        return None if host is None else snapshot.names[snapshot.row_of[host]]

    def move(self, number: int, source: str, target: str, **more: Any) -> Move:
        made = Move(
            id=MOVES[number],
            server=SERVERS[number],
            project_id="project-a",
            source=self.uuid(source),
            source_name=source,
            target=self.uuid(target),
            target_name=target,
            allocations={self.uuid(target): SIZE},
            kind=MoveKind.LIVE,
            memory_mb=2048,
        )
        return replace(made, **more)

    def plan(self, *moves: Move, **more: Any) -> Plan:
        """A stored plan of these moves."""
        made = Plan(
            id=self.env.ids.uuid(),
            kind=PlanKind.DRAIN,
            subject="h1",
            created_at=self.env.store.now(),
            moves=moves,
            actor=OPERATOR.actor,
            hosts=(self.uuid("h1"),),
            limits=PlanLimits(parallel=2, per_host=2),
        )
        made = replace(made, **more)
        self.env.store.commit(Changeset((PutPlan(made, None),)))
        return made

    def apply(self, plan: Plan) -> Plan:
        return apply_plan(self.env, OPERATOR, plan.id)

    def advance(self, plan: Plan) -> Plan:
        return advance_plan(self.env, self.mover, plan.id)

    def finish(self, plan: Plan, rounds: int = 20) -> Plan:
        """Rounds with ten seconds between, until nothing more happens."""
        for _ in range(rounds):
            plan = self.advance(plan)
            if plan.state is not PlanState.RUNNING and not plan.under_way:
                return plan
            self.service.clock.pass_by(10_000_000)
        return plan

    def held(self) -> dict[str, set[str]]:
        """Consumer -> names of hosts, of everything held."""
        snapshot = self.env.store.snapshot()
        found: dict[str, set[str]] = {}
        for row in snapshot.hosts.tolist():
            for one in snapshot.bookings_of(row):
                if one.state == "held":
                    found.setdefault(one.consumer, set()).add(snapshot.names[row])
        return found


@pytest.fixture
def fleet() -> Iterator[Fleet]:
    service = Service(FLEET)
    yield Fleet(service)
    service.close()
