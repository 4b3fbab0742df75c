"""`moorage admin import blazar` from a server with Blazar's shapes, and from our own door."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID
from wsgiref.simple_server import WSGIRequestHandler, make_server

import httpx
import pytest
from tests.cli.conftest import Cli, Result
from tests.servers.blazar import Blazar, serving

from moorage.app import create_app
from moorage.domain.bookings import BookingState
from moorage.domain.changes import (
    Changeset,
    CreateProvider,
    CreateResourceClass,
    PutFlavor,
    PutInventories,
    ReplaceAllocations,
)
from moorage.domain.consumers import Consumer
from moorage.domain.effects import Lane
from moorage.domain.flavors import Flavor
from moorage.domain.leases import LeaseState, reservation_class
from moorage.domain.period import from_datetime
from moorage.domain.providers import Inventory
from moorage.domain.reservables import ReservableKind
from moorage.service_environment import plain_environment
from moorage.settings import configure, read
from moorage.store import Ledger, open_store
from moorage.testing.ledger_copy import new_database, private_ledger
from moorage.usecases.effect_dispatch import EffectResult, OutwardActions, carry_out
from moorage.usecases.leases.queries import remaining

NETWORK = "aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa"
SMALL = Flavor("small", "small", {"VCPU": 4})
NOW = datetime.now(UTC).replace(second=0, microsecond=0)
"""Leases are granted some years ahead, and not in the past."""


def named(number: int) -> str:
    return str(UUID(int=number, version=4))


def day(number: float) -> datetime:
    return NOW + timedelta(days=number)


def whole(id_: str, least: int = 1, most: int = 1, **more: Any) -> dict[str, Any]:
    words = {"min": least, "max": most, "hypervisor_properties": "", "resource_properties": ""}
    return {"id": id_, "resource_type": "physical:host", "before_end": "default", **words, **more}


def instances(id_: str, amount: int, vcpus: int, **more: Any) -> dict[str, Any]:
    words = {"amount": amount, "vcpus": vcpus, "memory_mb": 1024, "disk_gb": 0, "affinity": None}
    drawn = {"flavor_id": id_, "aggregate_id": 7, "server_group_id": None}
    said = {"resource_properties": "", **words, **drawn, **more}
    return {"id": id_, "resource_type": "virtual:instance", **said}


def flavored(id_: str, amount: int, **specs: str) -> dict[str, Any]:
    flavor = {"id": "f1", "name": "small", "vcpus": 4, "ram": 2048, "disk": 10}
    flavor |= {"OS-FLV-EXT-DATA:ephemeral": 5, "extra_specs": specs}
    words = {"amount": amount, "vcpus": 4, "memory_mb": 2048, "disk_gb": 10, "affinity": None}
    properties = {"resource_properties": json.dumps(flavor), "flavor_id": id_}
    return {"id": id_, "resource_type": "flavor:instance", **words, **properties}


def address(id_: str, amount: int, *required: str) -> dict[str, Any]:
    words = {"network_id": NETWORK, "amount": amount, "required_floatingips": list(required)}
    return {"id": id_, "resource_type": "virtual:floatingip", **words}


@pytest.fixture
def blazar() -> Iterator[Blazar]:
    with serving() as found:
        yield found


@pytest.fixture
def store(offline: Cli, tmp_path: Path) -> Iterator[Ledger]:
    """The ledger that is written: three hosts of 64 VCPU."""
    database = new_database(tmp_path)
    offline.environment["MOORAGE_DATABASE"] = database
    ledger = open_store(database)
    fleet(ledger)
    yield ledger
    ledger.close()


def fleet(ledger: Ledger) -> None:
    for number in (1, 2, 3):
        totals = {"VCPU": 64, "PCPU": 8, "MEMORY_MB": 65536, "DISK_GB": 1000}
        stock = tuple(Inventory(name, total) for name, total in totals.items())
        host = named(number)
        ledger.commit(
            Changeset((CreateProvider(host, f"n{number}"), PutInventories(host, stock, None)))
        )


def taken(offline: Cli, blazar: Blazar | str, *more: str) -> Result:
    url = blazar if isinstance(blazar, str) else blazar.url
    return offline("admin", "import", "blazar", "--from", url, *more)


def content(ledger: Ledger) -> Any:
    """What an import may write."""
    kinds = [list(ledger.reservables(kind)) for kind in ReservableKind]
    leases = list(ledger.leases(project_id=None))
    return kinds, leases, list(ledger.bookings()), ledger.snapshot().revision


def test_hosts_addresses_and_leases_of_every_type_come_over(
    offline: Cli, store: Ledger, blazar: Blazar
) -> None:
    blazar.host(4, "n1", gpu="a100", rank="10")
    blazar.host(7, "n2", gpu="v100")
    blazar.private = {"rank"}
    blazar.floatingip(named(50), NETWORK, "10.0.0.1")
    wish = {"resource_properties": '["==", "$gpu", "a100"]'}
    blazar.lease(named(60), day(10), day(12), whole(named(70), 1, 2, **wish), hosts=(4,))
    blazar.lease(named(61), day(10), day(12), instances(named(71), 3, 20), address(named(72), 1))
    specs = {"hw:cpu_policy": "dedicated", "resources:MEMORY_MB": "3000"}
    blazar.lease(named(62), day(10), day(12), flavored(named(73), 2, **specs))
    blazar.lease(named(63), day(-4), day(-2), instances(named(74), 1, 1), status="TERMINATED")

    told = taken(offline, blazar, "-f", "json")
    assert told.status == 0, told
    counts = {"hosts": 2, "floating ips": 1, "leases": 3, "reservations": 4}
    assert (told.body["source"], told.body["ledger"]) == (counts, counts)
    assert (told.body["written"], told.body["ended"]) == (7, 1)
    assert (told.body["refused"], told.body["differences"]) == ([], [])

    hosts = {one.name: one for one in store.reservables(ReservableKind.HOST)}
    assert hosts["n1"].properties == {"gpu": "a100", "rank": "10"}
    assert (hosts["n1"].id, hosts["n2"].id) == ("4", "7")
    (kept,) = store.reservables(ReservableKind.FLOATING_IP)
    assert (kept.id, kept.name) == (named(50), "10.0.0.1")
    (private,) = store.reservables(ReservableKind.PROPERTY)
    assert (private.name, private.properties["private"]) == ("rank", "true")

    lease = store.lease(named(61))
    assert (lease.name, lease.project_id, lease.user_id) == ("lease-0000", "project-a", "ann")
    period = (lease.terms.period.start, lease.terms.period.end)
    assert period == (from_datetime(day(10)), from_datetime(day(12)))
    assert [one.id for one in lease.reservations] == [named(71), named(72)]
    assert store.lease_of_reservation(named(73)).id == named(62)
    assert [one.count for one in remaining(store, lease)] == [3, 1]
    (role,) = store.ensemble(store.lease(named(62)).ensemble_id).roles
    assert role.resources == {"PCPU": 4, "MEMORY_MB": 3000, "DISK_GB": 15}
    placed = store.decision(store.lease(named(60)).decision_id).places.values()
    assert [one.host for one in placed] == [named(1)]


def test_a_second_time_changes_nothing(offline: Cli, store: Ledger, blazar: Blazar) -> None:
    blazar.host(1, "n1")
    blazar.floatingip(named(50), NETWORK, "10.0.0.1")
    blazar.lease(named(60), day(10), day(12), whole(named(70)), hosts=(1,))
    assert taken(offline, blazar).status == 0
    before = content(store)
    told = taken(offline, blazar)
    assert told.status == 0, told
    assert told.out.splitlines()[-1] == "wrote 0; all equal"
    assert content(store) == before


def test_what_was_overbooked_is_told_and_stays_out(
    offline: Cli, store: Ledger, blazar: Blazar
) -> None:
    for number in (1, 2, 3):
        blazar.host(number, f"n{number}")
    late, early = named(60), named(61)
    blazar.lease(late, day(1), day(3), instances(named(70), 3, 40), created_at="2026-02-01")
    blazar.lease(early, day(1), day(3), instances(named(71), 3, 40), created_at="2026-01-01")
    told = taken(offline, blazar, "-f", "json")
    assert told.status == 4, told
    assert [one.id for one in store.leases(project_id=None)] == [early], "the older comes first"
    (refused,) = told.body["refused"]
    assert (refused["kind"], refused["id"]) == ("lease", late)
    assert "no placement meets the request" in refused["reason"]
    assert [(one["subject"], one["way"]) for one in told.body["differences"]] == [(late, "missing")]
    before = content(store)
    again = taken(offline, blazar)
    assert again.status == 4
    assert f"lease lease-0000 ({late}) cannot be taken over: no placement" in again.out
    assert content(store) == before


def test_a_dry_run_judges_and_writes_nothing(offline: Cli, store: Ledger, blazar: Blazar) -> None:
    blazar.host(1, "n1")
    blazar.host(9, "nowhere")
    blazar.lease(named(60), day(10), day(12), instances(named(70), 1, 1))
    before = content(store)
    told = taken(offline, blazar, "--dry-run")
    assert told.status == 4, "a host is not of this fleet"
    assert "host nowhere (9) cannot be taken over: " in told.out
    assert told.out.splitlines()[-1] == "would write 2; nothing was written"
    assert content(store) == before
    blazar.hosts, blazar.allocations = [], {}
    blazar.lease(named(61), day(10), day(12), instances(named(71), 1, 65))
    blazar.lease(named(62), day(10), day(12), instances(named(72), 1, 1), name="l" * 256)
    judged = taken(offline, blazar, "--dry-run", "-f", "json")
    assert (judged.status, judged.body["would_write"]) == (4, 1)
    assert {one["id"] for one in judged.body["refused"]} == {named(61), named(62)}
    reasons = [one["reason"] for one in judged.body["refused"]]
    assert "name is longer than 255 characters" in reasons
    assert content(store) == before


def test_a_host_lease_that_has_begun_keeps_its_hosts(
    offline: Cli, store: Ledger, blazar: Blazar
) -> None:
    blazar.host(1, "n1")
    blazar.host(2, "n2")
    server = Consumer(named(90), "project-a", "ann", "INSTANCE")
    store.commit(Changeset((ReplaceAllocations(server, {named(2): {"VCPU": 8}}, None),)))
    begun = whole(named(70), 1, 2)
    blazar.lease(named(60), day(-1), day(2), begun, status="ACTIVE", hosts=(2,))
    told = taken(offline, blazar)
    assert told.status == 0, told
    lease = store.lease(named(60))
    assert lease.terms.period.start == from_datetime(day(-1))
    places = store.decision(lease.decision_id).places.values()
    assert [one.host for one in places] == [named(2)], "where its server is"
    env = plain_environment(configure(read({}, {}, files=())), store)
    for lane in Lane:
        while due := store.due_effects(1, lane):
            assert carry_out(env, OutwardActions(), due[0]) is EffectResult.DONE
    assert store.lease(named(60)).state is LeaseState.ACTIVE, "the worker's first look"
    assert taken(offline, blazar).out.splitlines()[-1] == "wrote 0; all equal"


def test_servers_that_draw_from_a_lease_are_its_members(
    offline: Cli, store: Ledger, blazar: Blazar
) -> None:
    blazar.host(1, "n1")
    unit, class_ = named(80), reservation_class(named(70))
    stock = (Inventory(class_, 2),)
    store.commit(
        Changeset(
            (
                CreateResourceClass(class_),
                CreateProvider(unit, "blazar_n1", named(1)),
                PutInventories(unit, stock, None),
            )
        )
    )
    server = Consumer(named(90), "project-a", "ann", "INSTANCE")
    drawn = {named(1): {"VCPU": 60, "MEMORY_MB": 1024}, unit: {class_: 1}}
    store.commit(Changeset((ReplaceAllocations(server, drawn, None),)))
    part = instances(named(70), 2, 60)
    blazar.lease(named(60), day(-1), day(2), part, status="ACTIVE", hosts=(1,))
    # Two of three hosts are taken until it ends, one of them by the server; then all are free.
    blazar.lease(named(61), day(1), day(2), instances(named(71), 1, 60))
    blazar.lease(named(62), day(2), day(3), instances(named(72), 3, 60))
    told = taken(offline, blazar)
    assert told.status == 0, told
    lease = store.lease(named(60))
    (left,) = remaining(store, lease)
    assert (left.count, left.claimed, left.remaining) == (2, 1, 1)
    ((_, booking), *_) = store.bookings(consumer=named(90))
    assert booking.state is BookingState.ALLOCATED
    assert booking.period.end == lease.terms.period.end, "it ends with its lease"
    (host,) = store.reservables(ReservableKind.HOST)
    assert host.provider == unit, "Blazar's provider is the host's unit"


@pytest.mark.parametrize(
    ("reservation", "status", "reason"),
    [
        ({"resource_type": "virtual:moon"}, "PENDING", "virtual:moon"),
        (instances(named(70), 1, 1), "ERROR", "state is ERROR"),
        (instances(named(70), 1, 1, resource_properties="["), "PENDING", "requirements"),
        (address(named(70), 1), "PENDING", "placement"),
        (flavored(named(70), 1, **{"resources:CUSTOM_NONE": "1"}), "PENDING", "CUSTOM_NONE"),
        (flavored(named(70), 1, **{"resources:VCPU": "many"}), "PENDING", "many"),
    ],
    ids=range(6),
)
def test_a_lease_that_means_nothing_here_is_told(
    offline: Cli,
    store: Ledger,
    blazar: Blazar,
    reservation: dict[str, Any],
    status: str,
    reason: str,
) -> None:
    blazar.lease(named(60), day(1), day(2), {"id": named(70), **reservation}, status=status)
    blazar.lease(named(61), day(1), day(2), instances(named(71), 1, 1))
    told = taken(offline, blazar, "-f", "json")
    assert told.status == 4, told
    (refused,) = told.body["refused"]
    assert (refused["id"], reason in refused["reason"]) == (named(60), True), refused
    assert [one.id for one in store.leases(project_id=None)] == [named(61)]


def test_what_changed_on_either_side_since_is_told(
    offline: Cli, store: Ledger, blazar: Blazar
) -> None:
    blazar.host(1, "n1", gpu="a100")
    blazar.lease(named(60), day(10), day(12), instances(named(70), 1, 1))
    assert taken(offline, blazar).status == 0
    blazar.hosts[0]["gpu"] = "h100"
    blazar.leases[0] |= {"name": "other"}
    blazar.leases[0]["reservations"][0]["amount"] = 5
    told = taken(offline, blazar)
    assert told.status == 4
    assert "host n1 otherwise: gpu: h100 / a100" in told.out
    assert f"{named(70)}: virtual:instance amount=5 / virtual:instance amount=1" in told.out
    assert "name: other / lease-0000" in told.out
    assert store.lease(named(60)).name == "lease-0000"


@pytest.mark.parametrize(
    ("path", "answer", "says"),
    [
        ("/v1/leases", (403, {"error_code": 403, "error_message": "not you"}), "403 not you"),
        ("/v1/os-hosts", (200, {"x": []}), "lacks hosts"),
        ("/v1/os-hosts", (200, b"<html>"), "not JSON"),
        ("/v1/leases", (200, {"leases": [{"id": "1"}]}), "not Blazar's"),
    ],
    ids=range(4),
)
def test_a_source_that_is_none_is_told(
    offline: Cli,
    store: Ledger,
    blazar: Blazar,
    path: str,
    answer: tuple[int, Any],
    says: str,
) -> None:
    blazar.bad[path] = answer
    before = content(store)
    told = taken(offline, blazar)
    assert (told.status, told.out) == (1, "")
    assert says in told.err
    assert content(store) == before


def test_it_is_asked_in_its_words_and_refusals_of_the_token_are_told(
    offline: Cli, store: Ledger, blazar: Blazar
) -> None:
    bare = blazar.url.removesuffix("/v1")
    assert taken(offline, bare, "--from-token", "admin").status == 0
    assert {one["Openstack-Api-Version"] for one in map(_titled, blazar.headers)} == {
        "reservation 1.0"
    }
    assert all(one["Accept"] == "application/json" for one in map(_titled, blazar.headers))
    refused = taken(offline, blazar, "--from-token", "nobody")
    assert refused.status == 1
    assert "401" in refused.err
    assert list(store.leases(project_id=None)) == []


def _titled(headers: dict[str, str]) -> dict[str, str]:
    return {name.title(): value for name, value in headers.items()}


# --- our own door ---------------------------------------------------------------------------


class Quiet(WSGIRequestHandler):
    def log_message(self, *args: object) -> None:
        """Say nothing."""


@contextmanager
def door() -> Iterator[str]:
    """The lease API of another ledger with the same hosts, at a loopback port."""
    other = private_ledger()
    fleet(other)
    other.commit(Changeset((PutFlavor(SMALL),)))
    settings = configure(read({"mount": ["reservation=/reservation"]}, {}, files=()))
    server = make_server("127.0.0.1", 0, create_app(settings, store=other), handler_class=Quiet)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/reservation/v1"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
        other.close()


def test_leases_of_our_own_door_come_over(offline: Cli, store: Ledger) -> None:
    store.commit(Changeset((PutFlavor(SMALL),)))
    with door() as url, httpx.Client(headers={"X-Auth-Token": "admin"}, trust_env=False) as http:

        def made(path: str, body: dict[str, Any]) -> Any:
            answer = http.post(f"{url}{path}", json=body)
            assert answer.status_code == 201, answer.text
            return answer.json()

        made("/os-hosts", {"name": "n3", "gpu": "a100"})
        made("/floatingips", {"floating_network_id": NETWORK, "floating_ip_address": "10.0.0.9"})
        dates = {
            "start_date": day(10).strftime("%Y-%m-%d %H:%M"),
            "end_date": day(12).strftime("%Y-%m-%d %H:%M"),
        }
        parts = [
            whole("", resource_properties='["==", "$gpu", "a100"]'),
            instances("", 2, 8),
            {"resource_type": "flavor:instance", "flavor_id": "small", "amount": 3},
            address("", 1, "10.0.0.9"),
        ]
        lease = made("/leases", {"name": "all", **dates, "reservations": parts})["lease"]
        told = taken(offline, url)
        assert told.status == 0, told
        assert taken(offline, url).out.splitlines()[-1] == "wrote 0; all equal"
    found = store.lease(lease["id"])
    assert (found.name, found.state) == ("all", LeaseState.PENDING)
    assert [one.id for one in found.reservations] == [one["id"] for one in lease["reservations"]]
    assert [one.count for one in remaining(store, found)] == [1, 2, 3, 1]
