"""A cloud with servers on hosts, for tests of plans: servers are moved as Nova moves them."""

from collections import Counter
from collections.abc import Callable, Sequence
from random import Random
from typing import Any
from uuid import UUID

from moorage.domain.changes import Changeset, ReplaceAllocations
from moorage.domain.consumers import ANY_GENERATION, SERVER_TYPE, Consumer
from moorage.domain.ensembles import STANDING, OnViolation, Phase
from moorage.domain.plan_requests import PlanRequest
from moorage.domain.plans import Move, Plan, PlanKind
from moorage.engine.state.snapshot import Snapshot
from moorage.testing.service import OPERATOR, TENANT, Service
from moorage.usecases.compliance.judgement import judge
from moorage.usecases.decide.request import RequestIdentity
from moorage.usecases.ledger.allocations import allocate
from moorage.usecases.plans.plan_maker import make_plan
from moorage.usecases.shared.allocation_write import WriteSettings

FLEET = """
fleet: plans
topology:
  location: {levels: [rack], domains: [{name: "r{n}", count: 3, level: rack}]}
hosts:
  - {name: "a{n}", count: 3, inventories: {VCPU: 8, MEMORY_MB: 8192}, place: {location: r1}}
  - {name: "b{n}", count: 3, inventories: {VCPU: 8, MEMORY_MB: 8192}, place: {location: r2}}
  - {name: "c{n}", count: 3, inventories: {VCPU: 8, MEMORY_MB: 8192}, place: {location: r3}}
flavors:
  - {name: small, resources: {VCPU: 1, MEMORY_MB: 1024}}
  - {name: big, resources: {VCPU: 4, MEMORY_MB: 4096}}
"""
APART = {"name": "apart", "type": "anti-affinity", "members": ["m"]}
TOGETHER = {"name": "together", "type": "affinity", "members": ["m"]}


class Cloud:
    """A service with servers, which are moved as Nova moves them."""

    def __init__(self, service: Service, seed: int = 0) -> None:
        self.service, self.random = service, Random(seed)
        self.numbers = iter(range(1, 10_000))

    def uuid(self) -> str:
        return str(UUID(int=next(self.numbers) + (1 << 100), version=4))

    @property
    def snapshot(self) -> Snapshot:
        return self.service.store.snapshot()

    def row(self, name: str) -> int:
        return self.snapshot.names.index(name)

    def stranger(self, host: str, vcpu: int = 1, project: str = "p") -> str:
        """A server that no ensemble describes."""
        owner = Consumer(self.uuid(), project, "u", SERVER_TYPE)
        self.allocate(owner, host, vcpu)
        return owner.uuid

    def allocate(self, owner: Consumer, host: str, vcpu: int) -> None:
        uuid = self.snapshot.uuids[self.row(host)]
        amounts = {uuid: {"VCPU": vcpu, "MEMORY_MB": 1024 * vcpu}}
        change = ReplaceAllocations(owner, amounts, ANY_GENERATION)
        self.service.store.commit(Changeset((change,)))

    def ensemble(
        self, name: str, hosts: Sequence[str], *policies: dict[str, Any], vcpu: int = 1
    ) -> str:
        """An ensemble whose servers are on these hosts, whatever its policies say."""
        flavor = "small" if vcpu == 1 else "big"
        members = [{"name": "m", "count": 0, "flavor": flavor}]
        body = {"name": name, "members": members, "policies": list(policies)}
        made = self.service.call("POST", "/ensembles", {"ensemble": body}, caller=TENANT)
        assert made.status_code == 201, made.text
        id_ = str(made.json["ensemble"]["id"])
        for host in hosts:
            server = self.stranger(host, vcpu, TENANT.project_id)
            member = {"name": "m", "server_id": server, "on_violation": "accept_and_report"}
            answer = self.service.call("POST", f"/ensembles/{id_}/members", {"member": member})
            assert answer.status_code == 201, answer.text
        return id_

    def placed(self, name: str, counts: tuple[int, int], *policies: dict[str, Any]) -> str | None:
        """An ensemble of servers on hosts that a decision has found; None: there are none."""
        members: list[dict[str, Any]] = [
            {"name": "m", "count": counts[0], "flavor": "small"},
            {"name": "n", "count": counts[1], "flavor": self.random.choice(["small", "big"])},
        ]
        body = {
            "name": name,
            "members": members,
            "policies": list(policies),
            "decide": {"hold": "PT1H"},
        }
        made = self.service.call("POST", "/ensembles", {"ensemble": body}, caller=TENANT)
        assert made.status_code in {201, 400, 409}, made.text
        if made.status_code != 201:
            return None
        found = made.json["ensemble"]
        flavors = {one["name"]: one["flavor"] for one in members}
        for member in self.service.store.ensemble(found["id"]).members:
            server = {"flavorRef": flavors[member.name.role]}
            claim = {"claim": {"member": str(member.name), "server": server}}
            path = f"/decisions/{made.json['decision']['id']}/claims"
            claimed = self.service.call("POST", path, claim, caller=TENANT)
            assert claimed.status_code == 201, claimed.text
            active = {"claim": {"status": "active", "server_id": self.uuid()}}
            path = f"/claims/{claimed.json['claim']['id']}"
            assert self.service.call("PATCH", path, active, caller=TENANT).status_code == 200
        return str(found["id"])

    def plan(self, kind: PlanKind, **given: Any) -> Plan:
        request = PlanRequest(kind, **given)
        return make_plan(self.service.env, OPERATOR, request, RequestIdentity(self.uuid()))

    def names(self, plan: Plan) -> list[str]:
        return [f"{one.source_name}>{one.target_name}" for one in plan.moves]

    def hosts(self, id_: str) -> list[str]:
        found = judge(self.snapshot, self.service.store.ensemble(id_)).hosts
        return [self.snapshot.names[row] for _, row in sorted(found.items())]

    def broken(self, *ids: str, phases: frozenset[Phase] = STANDING) -> Counter[tuple[str, str]]:
        """By how much each policy of the ensembles is violated."""
        found: Counter[tuple[str, str]] = Counter()
        for id_ in ids:
            ensemble = self.service.store.ensemble(id_)
            for one in judge(self.snapshot, ensemble, phases).violations:
                found[id_, one.policy] += one.amount
        return found

    def make(self, move: Move, meanwhile: Callable[[], None] = lambda: None) -> None:
        """Move a server as Nova does: the source's allocations go to a migration first."""
        store = self.service.store
        found = store.consumer(move.server)
        assert found is not None
        server, bookings = found
        migration = Consumer(self.uuid(), server.project_id, server.user_id, "MIGRATION")
        old = {one.provider: one.amounts for one in bookings}
        taken = ReplaceAllocations(migration, old, None)
        self.write(taken, ReplaceAllocations(server, {}, ANY_GENERATION))
        self.write(ReplaceAllocations(server, move.allocations, ANY_GENERATION))
        meanwhile()
        self.write(ReplaceAllocations(migration, {}, ANY_GENERATION))

    def write(self, *writes: ReplaceAllocations) -> None:
        """Write allocations as Placement's API does, whatever policies say of the end."""
        settings = WriteSettings(misplaced_members=OnViolation.REPORT)
        allocate(self.service.store, writes, ids=self.service.env.ids, settings=settings)
