"""The claims of servers that are deleted in one request."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tests.usecases.leases.conftest import build, named

from moorage.domain.changes import ReplaceAllocations
from moorage.domain.consumers import Consumer
from moorage.domain.decisions import Claim, ClaimState
from moorage.domain.tickets import ticket_class
from moorage.testing.service import TENANT
from moorage.usecases.ledger.allocations import allocate
from moorage.usecases.paging import Page


@dataclass
class Counted:
    """A store that counts the readings of a decision's claims."""

    store: Any
    readings: int = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self.store, name)

    def claims(self, *, decision_id: str, page: Page | None = None) -> Sequence[Claim]:
        self.readings += 1
        found: Sequence[Claim] = self.store.claims(decision_id=decision_id, page=page)
        return found


def test_they_are_read_once_and_ended() -> None:
    here = build(16)
    try:
        made = here.ensemble(1, members=5)
        assert made.decision is not None
        ids, counted = here.service.env.ids, Counted(here.service.store)
        taken = {here.hosts[0]: {"VCPU": 1, ticket_class(made.decision.ticket, "web"): 1}}
        servers = [Consumer(named(n), TENANT.project_id, "nova", "INSTANCE") for n in range(5)]
        allocate(counted, [ReplaceAllocations(one, taken, None) for one in servers], ids=ids)
        counted.readings = 0
        allocate(counted, [ReplaceAllocations(one, {}, 1) for one in servers[:4]], ids=ids)
        assert counted.readings == 1
        claims = counted.claims(decision_id=made.decision.id)
        states = {one.server_id: one.state for one in claims}
        assert states == {
            one.uuid: ClaimState.ACTIVE if one is servers[4] else ClaimState.ENDED
            for one in servers
        }
    finally:
        here.service.close()
