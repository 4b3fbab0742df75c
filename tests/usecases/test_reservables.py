"""Hosts and addresses that are offered: once, not while used, not withdrawn while reserved."""

import pytest
from tests.api.leases.conftest import TWO, Door, whole

from moorage.domain.changes import (
    Changeset,
    DeleteAllocations,
    ReplaceAllocations,
    UpdateProvider,
)
from moorage.domain.consumers import Consumer
from moorage.domain.errors import DuplicateName, Forbidden, InUse, InvalidDescription, NotFound
from moorage.testing.service import OPERATOR, TENANT
from moorage.usecases.blazar import reservable_hosts, reservables

NETWORK = "aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa"
SERVER = Consumer("11111111-1111-4111-8111-111111111111", "project-z", "zoe", "INSTANCE")


@pytest.fixture
def door() -> Door:
    return Door(TWO)


@pytest.fixture(autouse=True)
def closed(door: Door) -> object:
    yield
    door.service.close()


def test_a_host_is_offered_once_and_withdrawn(door: Door) -> None:
    env = door.service.env
    made = reservable_hosts.offer_host(env, OPERATOR, "n1", {"gpu": "a100"})
    assert (made.reservable.id, made.properties["vcpus"], made.properties["gpu"]) == (
        "1",
        64,
        "a100",
    )
    before = env.store.snapshot().revision
    with pytest.raises(DuplicateName):
        reservable_hosts.offer_host(env, OPERATOR, "n1", {})
    with pytest.raises(NotFound):
        reservable_hosts.offer_host(env, OPERATOR, "nowhere", {})
    with pytest.raises(InvalidDescription):
        reservable_hosts.offer_host(env, OPERATOR, "n2", {"k" * 65: "v"})
    with pytest.raises(Forbidden):
        reservable_hosts.offer_host(env, TENANT, "n2", {})
    assert env.store.snapshot().revision == before
    reservable_hosts.withdraw_host(env, OPERATOR, "1")
    with pytest.raises(NotFound):
        reservable_hosts.withdraw_host(env, OPERATOR, "1")
    again = reservable_hosts.offer_host(env, OPERATOR, "n1", {})
    assert "gpu" not in again.properties


def test_a_host_with_servers_is_not_offered(door: Door) -> None:
    env = door.service.env
    snapshot = env.store.snapshot()
    (host,) = (snapshot.uuids[r] for r in snapshot.roots.tolist() if snapshot.names[r] == "n1")
    env.store.commit(Changeset((ReplaceAllocations(SERVER, {host: {"VCPU": 1}}, None),)))
    with pytest.raises(InUse):
        reservable_hosts.offer_host(env, OPERATOR, "n1", {})
    taken = reservable_hosts.enrol_host(env, OPERATOR, "n1", {}, "7")
    assert taken.reservable.id == "7", "another service offers it already"
    assert reservable_hosts.enrol_host(env, OPERATOR, "n2", {}, "7").reservable.id == "8"
    with pytest.raises(InUse):
        reservable_hosts.withdraw_host(env, OPERATOR, "7")
    env.store.commit(Changeset((DeleteAllocations(SERVER.uuid),)))
    reservable_hosts.withdraw_host(env, OPERATOR, "7")


def test_a_reserved_host_stays_offered_until_its_lease_is_gone(door: Door) -> None:
    env = door.service.env
    door.offer("n1")
    lease = door.lease("10:00", "12:00", whole()).json["lease"]
    with pytest.raises(InUse):
        reservable_hosts.withdraw_host(env, OPERATOR, "1")
    (kept,) = reservables.offered_hosts(env.store, env.store.snapshot())
    assert kept.usable
    assert door.call("DELETE", f"/leases/{lease['id']}").status_code == 204
    reservable_hosts.withdraw_host(env, OPERATOR, "1")
    assert list(reservables.offered_hosts(env.store, env.store.snapshot())) == []


def test_what_is_said_of_a_host_changes_key_by_key(door: Door) -> None:
    env = door.service.env
    reservable_hosts.offer_host(env, OPERATOR, "n1", {"gpu": "a100", "rank": "1"})
    changed = reservable_hosts.describe_host(env, OPERATOR, "1", {"gpu": None, "rank": "2"})
    assert changed.reservable.properties == {"rank": "2"}
    with pytest.raises(InvalidDescription):
        reservable_hosts.describe_host(env, OPERATOR, "1", {})
    with pytest.raises(NotFound):
        reservable_hosts.describe_host(env, OPERATOR, "2", {"rank": "2"})
    reservables.mark_key(env, OPERATOR, "rank", private=True)
    assert reservables.private_keys(env.store) == {"rank"}
    reservables.mark_key(env, OPERATOR, "rank", private=False)
    assert reservables.private_keys(env.store) == frozenset()
    with pytest.raises(NotFound):
        reservables.mark_key(env, OPERATOR, "gpu", private=True)


def test_an_address_is_offered_once_and_not_withdrawn_while_reserved(door: Door) -> None:
    env = door.service.env
    made = reservables.offer_address(env, OPERATOR, NETWORK, "10.0.0.1", {})
    with pytest.raises(DuplicateName):
        reservables.offer_address(env, OPERATOR, NETWORK, "10.0.0.1", {})
    with pytest.raises(Forbidden):
        reservables.offer_address(env, TENANT, NETWORK, "10.0.0.2", {})
    wish = {"resource_type": "virtual:floatingip", "network_id": NETWORK, "amount": 1}
    lease = door.lease("10:00", "12:00", wish)
    assert lease.status_code == 201, lease.text
    refused = door.call("DELETE", f"/floatingips/{made.id}", caller=OPERATOR)
    assert (refused.status_code, refused.json["error_code"]) == (409, 409)
    with pytest.raises(InUse):
        reservables.withdraw_address(env, OPERATOR, made.id)
    second = door.lease("11:00", "12:00", wish)
    assert second.status_code == 400, "it is taken"
    door.call("DELETE", f"/leases/{lease.json['lease']['id']}")
    reservables.withdraw_address(env, OPERATOR, made.id)
    with pytest.raises(NotFound):
        reservables.address(env.store, made.id)


def test_a_renamed_host_stays_offered_under_its_new_name(door: Door) -> None:
    env, store = door.service.env, door.service.store
    reservable_hosts.offer_host(env, OPERATOR, "n1", {"gpu": "a100"})
    leased = door.lease("10:00", "12:00", whole(resource_properties='["==", "$gpu", "a100"]'))
    assert leased.status_code == 201, leased.text
    snapshot = store.snapshot()
    (host,) = (snapshot.uuids[r] for r in snapshot.roots.tolist() if snapshot.names[r] == "n1")
    store.commit(Changeset((UpdateProvider(host, "n7"),)))
    [offered] = reservables.offered_hosts(store, store.snapshot())
    assert (offered.reservable.name, offered.properties["hypervisor_hostname"]) == ("n7", "n7")
    assert offered.root == host
    shown = door.call("GET", "/os-hosts/1/allocation", caller=OPERATOR).json["allocation"]
    assert [one["lease_id"] for one in shown["reservations"]] == [leased.json["lease"]["id"]]
    with pytest.raises(DuplicateName):
        reservable_hosts.offer_host(env, OPERATOR, "n7", {})
