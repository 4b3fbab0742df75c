"""What an audit finds by Nova's servers, claims and compute services."""

from collections.abc import Iterator
from uuid import UUID

import pytest

from moorage.domain.audit import Finding, FindingKind, NovaView
from moorage.domain.changes import Changeset, PutTraits, ReplaceAllocations, UpdateProvider
from moorage.domain.host_states import DISABLED_TRAIT
from moorage.domain.nova_hosts import NovaHost
from moorage.domain.period import HOUR, MINUTE
from moorage.domain.servers import Server
from moorage.testing.service import OPERATOR, Service
from moorage.usecases.claims.place_returns import commit_with_returns
from moorage.usecases.ledger.audit import audit
from moorage.usecases.ledger.hypervisor_rows import hypervisor_rows

FLEET = """
fleet: f
hosts:
  - {name: "n{n}", count: 2, inventories: {VCPU: 64}}
flavors:
  - {name: small, resources: {VCPU: 2}}
"""
SERVERS = tuple(str(UUID(int=number, version=4)) for number in (1, 2))


@pytest.fixture
def service() -> Iterator[Service]:
    made = Service(FLEET)
    yield made
    made.close()


def held(service: Service, count: int = 2) -> tuple[str, str]:
    """An ensemble and its decision, which holds the places of all members."""
    roles = [{"name": "web", "flavor": "small", "count": count}]
    body = {"name": "e", "members": roles, "decide": {"hold": "PT4H"}}
    made = service.call("POST", "/ensembles", {"ensemble": body}).json
    return made["ensemble"]["id"], made["decision"]["id"]


def boot(service: Service, decision: str, index: int) -> str:
    """A server with the place of a member."""
    claim = {"claim": {"member": f"web[{index}]", "server": {"flavor": "small"}}}
    made = service.call("POST", f"/decisions/{decision}/claims", claim).json["claim"]
    used = {"claim": {"status": "active", "server_id": SERVERS[index]}}
    assert service.call("PATCH", f"/claims/{made['id']}", used).status_code == 200
    return str(made["id"])


def found(service: Service, *servers: str, hosts: tuple[NovaHost, ...] = ()) -> list[Finding]:
    listed = {one: Server(one, "s", "ACTIVE", host_of(service, one)) for one in servers}
    view = NovaView(listed, service.clock.now(), hosts)
    return list(audit(service.store, OPERATOR, view).findings)


def host_of(service: Service, server: str) -> str | None:
    snapshot = service.store.snapshot()
    rows = snapshot.rows_of_consumer(server)
    return next((snapshot.names[row] for row in rows), None)


def kinds(some: list[Finding]) -> list[tuple[FindingKind, str]]:
    return sorted((one.kind, one.subject) for one in some)


def test_a_claim_of_a_server_that_is_gone(service: Service) -> None:
    _, decision = held(service)
    claims = [boot(service, decision, index) for index in range(2)]
    assert found(service, *SERVERS) == []
    assert kinds(found(service, SERVERS[0])) == [(FindingKind.UNLISTED, SERVERS[1])], "too young"
    service.clock.pass_by(HOUR)
    assert kinds(found(service, SERVERS[0])) == [
        (FindingKind.CLAIMED, claims[1]),
        (FindingKind.ORPHAN, SERVERS[1]),
    ]


def test_a_member_whose_server_is_gone(service: Service) -> None:
    ensemble, decision = held(service)
    for index in range(2):
        boot(service, decision, index)
    closed = service.call("POST", f"/decisions/{decision}/confirm", headers={"If-Match": "*"})
    assert closed.status_code == 200, closed.text
    owner, *_ = service.store.consumer(SERVERS[1]) or (None,)
    assert owner is not None
    gone = ReplaceAllocations(owner, {}, owner.generation)
    commit_with_returns(service.store, Changeset((gone,)))
    service.clock.pass_by(HOUR)
    assert (FindingKind.VACANT, ensemble) in kinds(found(service, SERVERS[0]))
    assert FindingKind.VACANT not in {one.kind for one in found(service, *SERVERS)}


def test_services_that_are_disabled_or_down(service: Service) -> None:
    held(service, 1)
    snapshot = service.store.snapshot()
    used = next(
        row for row in snapshot.roots.tolist() if any(one for one in snapshot.bookings_of(row))
    )
    name, uuid = snapshot.names[used], snapshot.uuids[used]
    other = next(one for one in ("n1", "n2") if one != name)
    service.clock.pass_by(MINUTE)
    fine = NovaHost(other, enabled=True, up=True)
    assert found(service, hosts=(fine, NovaHost(name))) == []
    assert kinds(found(service, hosts=(NovaHost(name, up=False),))) == [(FindingKind.DOWN, uuid)]
    assert found(service, hosts=(NovaHost(other, up=False),)) == [], "nothing waits there"
    off = NovaHost(name, enabled=False)
    assert kinds(found(service, hosts=(off,))) == [(FindingKind.UNMARKED, uuid)]
    provider = snapshot.state(used).provider
    service.store.commit(
        Changeset((PutTraits(uuid, frozenset({DISABLED_TRAIT}), provider.generation),))
    )
    assert kinds(found(service, hosts=(off,))) == [(FindingKind.CLOSED, uuid)]


def renamed(service: Service, old: str, new: str) -> str:
    """The UUID of a host that is renamed in Placement."""
    snapshot = service.store.snapshot()
    row = next(one for one in snapshot.roots.tolist() if snapshot.names[one] == old)
    service.store.commit(Changeset((UpdateProvider(snapshot.uuids[row], new),)))
    return str(snapshot.uuids[row])


def test_a_host_that_is_renamed_in_placement_is_known_by_its_uuid(service: Service) -> None:
    _, decision = held(service)
    boot(service, decision, 0)
    service.clock.pass_by(HOUR)
    name = host_of(service, SERVERS[0])
    assert name is not None
    uuid = renamed(service, name, "renamed")
    server = Server(SERVERS[0], "s", "ACTIVE", name)
    other = NovaHost("n2" if name == "n1" else "n1")
    names = frozenset({"n1", "n2"})

    def of(*hosts: NovaHost) -> list[FindingKind]:
        view = NovaView({server.uuid: server}, service.clock.now(), hosts)
        return sorted(one.kind for one in audit(service.store, OPERATOR, view, names).findings)

    assert of(NovaHost(name, uuid=uuid), other) == []
    unknown = [FindingKind.DEPARTED, FindingKind.MISPLACED, FindingKind.UNREGISTERED]
    assert of(NovaHost(name), other) == unknown
    assert of(NovaHost(name, uuid=str(UUID(int=9))), other) == unknown
    assert FindingKind.UNMARKED in of(NovaHost(name, enabled=False, uuid=uuid), other)


def test_a_uuid_counts_before_a_name(service: Service) -> None:
    """A provider that has got another host's name is not that host."""
    gone = renamed(service, "n2", "gone")
    uuid = renamed(service, "n1", "n2")
    snapshot = service.store.snapshot()
    hosts = (NovaHost("n2"), NovaHost("n1", uuid=uuid))
    assert hypervisor_rows(snapshot, hosts) == {"n1": snapshot.row_of[uuid]}
    view = NovaView({}, service.clock.now(), hosts)
    found = audit(service.store, OPERATOR, view, frozenset({"n1", "n2"})).findings
    assert sorted((one.kind, one.subject) for one in found) == [
        (FindingKind.DEPARTED, gone),
        (FindingKind.UNREGISTERED, "n2"),
    ]
