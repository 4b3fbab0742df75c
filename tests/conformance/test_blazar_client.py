"""python-blazarclient from PyPI, unmodified, against a real server process: every command.

`blazar` and `openstack reservation` run inside this process, which spares seconds each.
"""

import contextlib
import io
import json
import os
import shlex
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from importlib.metadata import entry_points
from typing import Any

import pytest
from tests.servers import openstack_shell
from tests.servers.replica import Replica

pytestmark = [
    pytest.mark.process,
    # The client's own deprecations are not ours to repair.
    pytest.mark.filterwarnings("ignore"),
]

COMMANDS = {
    one.name.removeprefix("reservation_").replace("_", " ")
    for one in entry_points(group="openstack.reservation.v1")
}
BROKEN = {"host unset"}
"""Of `openstack reservation` in 4.6.0: an entry point that names no class; `blazar` has it."""
NETWORK = "aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa"
ADMIN = {"X-Auth-Token": "admin", "Content-Type": "application/json"}
MONTH = (datetime.now(UTC) + timedelta(days=30)).date()
"""A month ahead: leases are granted some years ahead, and not in the past."""


def on(day: int, time: str, between: str = " ") -> str:
    return f"{MONTH + timedelta(days=day)}{between}{time}"


SOON, LATER = f"--start-date '{on(0, '08:00')}'", f"--end-date '{on(4, '18:00')}'"


class Blazar:
    """The `blazar` command. It has no machine-readable form for all that it shows."""

    def __init__(self, endpoint: str) -> None:
        self._endpoint = endpoint

    def run(self, words: str) -> tuple[int, str, str]:
        from blazarclient.shell import BlazarShell

        out, err = io.StringIO(), io.StringIO()
        options = ["--os-auth-type", "admin_token", "--os-token", "admin"]
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            shell = BlazarShell()
            shell.stdout, shell.stderr = out, err
            status = shell.run([*options, "--os-endpoint", self._endpoint, *shlex.split(words)])
        return status, out.getvalue(), err.getvalue()

    def __call__(self, words: str) -> Any:
        status, out, err = self.run(words)
        assert not status, f"{words}: {out}{err}"
        return _json(out)


class Openstack:
    """`openstack reservation`, which remembers what it was used for."""

    def __init__(self) -> None:
        self.used: set[str] = set()

    def __call__(self, words: str) -> Any:
        self.used.add(max((one for one in COMMANDS if f"{words} ".startswith(f"{one} ")), key=len))
        ran = openstack_shell.openstack("reservation", *shlex.split(words))
        assert not ran.status, f"{words}: {ran.out}{ran.err}"
        return _json(ran.out)


def _json(text: str) -> Any:
    """What a command shows, below the line that the client prints before it."""
    starts = [at for at in (text.find("["), text.find("{")) if at >= 0]
    return json.loads(text[min(starts) :]) if starts else text


@pytest.fixture(scope="module")
def endpoint(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The lease API of a server with three hosts of 64 VCPU."""
    home = tmp_path_factory.mktemp("served")
    server = Replica(home, f"sqlite:///{home}/ledger.db", "--planners", "1")
    server.start()
    server.up()
    newest = {**ADMIN, "OpenStack-API-Version": "placement 1.39"}
    totals = {"VCPU": 64, "MEMORY_MB": 65536, "DISK_GB": 1000}
    stock = {"inventories": {name: {"total": total} for name, total in totals.items()}}
    for number in range(1, 4):
        name = {"name": f"n{number}"}
        status, made = server.ask("POST", "/placement/resource_providers", name, newest)
        assert status == 200, made
        path = f"/placement/resource_providers/{made['uuid']}/inventories"
        body = {"resource_provider_generation": 0, **stock}
        assert server.ask("PUT", path, body, ADMIN)[0] == 200
    flavor = {"name": "small", "resources": {"VCPU": 1, "MEMORY_MB": 1024}}
    assert server.ask("POST", "/v1/flavors", {"flavor": flavor}, ADMIN)[0] == 201
    yield f"http://127.0.0.1:{server.port}/reservation/v1"
    server.down()


@pytest.fixture(autouse=True)
def nobody_elses_cloud(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("OS_")]:
        monkeypatch.delenv(name)


@pytest.fixture
def blazar(endpoint: str) -> Blazar:
    return Blazar(endpoint)


@pytest.fixture
def openstack(endpoint: str, monkeypatch: pytest.MonkeyPatch) -> Openstack:
    monkeypatch.setenv("OS_AUTH_TYPE", "admin_token")
    monkeypatch.setenv("OS_TOKEN", "admin")
    monkeypatch.setenv("OS_ENDPOINT", endpoint)
    return Openstack()


def test_hosts_and_their_properties(blazar: Blazar) -> None:
    made = blazar("host-create n1 --extra gpu=a100 --extra rank=10 -f json")
    assert (made["hypervisor_hostname"], made["vcpus"], made["gpu"]) == ("n1", 64, "a100")
    assert [one["id"] for one in blazar("host-list -f json")] == ["1"]
    blazar("host-update n1 --extra gpu=h100")
    assert blazar("host-show n1 -f json")["gpu"] == "h100"
    blazar("host-unset n1 --extra gpu")
    assert "gpu" not in blazar("host-show 1 -f json")
    told = blazar("host-property-list --detail -f json")
    assert told == [{"property": "rank", "private": False, "property_values": ["10"]}]
    blazar("host-property-set rank --private")
    assert blazar("host-property-list -f json") == []
    assert [one["property"] for one in blazar("host-property-list --all -f json")] == ["rank"]
    blazar("host-property-set rank --public")
    assert blazar("host-property-show rank -f json")["property_values"] == ["10"]
    for words in ("host-create n1", "host-create nobody", "host-show 99", "host-delete 99"):
        assert blazar.run(words)[0]
    blazar("host-delete n1")
    assert blazar("host-list -f json") == []


def test_a_lease_of_hosts_from_the_first_command_to_the_last(blazar: Blazar) -> None:
    for name in ("n1", "n2"):
        blazar(f"host-create {name} --extra rank=10")
    wish = 'min=1,max=3,hypervisor_properties=\'[">=", "$vcpus", "2"]\''
    more = 'resource_properties=\'[">", "$rank", "9"]\''
    lease = blazar(f"lease-create {SOON} {LATER} --physical-reservation {wish},{more} one -f json")
    assert lease["status"] == "PENDING"
    assert lease["start_date"] == on(0, "08:00:00.000000", "T")
    shown = [one for one in blazar("allocation-list host -f json") if one["reservations"]]
    assert len(shown) == 2, "as many as there are, up to max"
    of_one = blazar("allocation-show host n1 -f json")
    assert _first(of_one["reservations"])["lease_id"] == lease["id"]
    blazar("lease-update one --prolong-for 1h --name uno")
    blazar("lease-update uno --defer-by 1d")
    shown = blazar("lease-show uno -f json")
    assert (shown["start_date"], shown["end_date"]) == (
        on(1, "08:00:00.000000", "T"),
        on(4, "19:00:00.000000", "T"),
    )
    status, out, err = blazar.run(
        f"lease-create {SOON} {LATER} --physical-reservation min=1,max=1 two"
    )
    assert status
    assert "Not enough hosts available" in out + err
    assert blazar.run("host-delete n1")[0], "it is reserved"
    blazar("lease-delete uno")
    assert blazar("lease-list -f json") == []
    for name in ("n1", "n2"):
        blazar(f"host-delete {name}")


def test_leases_of_instances_and_flavors(blazar: Blazar) -> None:
    instance = "resource_type=virtual:instance,vcpus=20,memory_mb=1024,disk_gb=10,amount=3"
    lease = blazar(f"lease-create {SOON} {LATER} --reservation {instance},affinity=False i -f json")
    part = _first(lease["reservations"])
    assert (part["amount"], part["affinity"], part["flavor_id"]) == (3, False, part["id"])
    blazar(f"lease-update i --reservation id={part['id']},amount=2")
    part = _first(blazar("lease-show i -f json")["reservations"])
    assert part["amount"] == 2
    apart = f"{instance.replace('amount=3', 'amount=4')},affinity=False"
    assert blazar.run(f"lease-create {SOON} {LATER} --reservation {apart} j")[0]
    flavored = "resource_type=flavor:instance,flavor_id=small,amount=5,affinity=None"
    part = _first(
        blazar(f"lease-create {SOON} {LATER} --reservation {flavored} f -f json")["reservations"]
    )
    assert part["resource_type"] == "flavor:instance"
    unknown = flavored.replace("small", "huge")
    assert blazar.run(f"lease-create {SOON} {LATER} --reservation {unknown} g")[0]
    for name in ("i", "f"):
        blazar(f"lease-delete {name}")


def _first(shown: Any) -> Any:
    """The client shows a list of reservations as texts, one under the other."""
    return json.loads(shown) if isinstance(shown, str) else shown[0]


def test_every_command_of_openstack_reservation(openstack: Openstack) -> None:
    made = openstack("host create n3 --extra ssd=true -f json")
    openstack("host set n3 --extra ssd=false")
    assert openstack("host show n3 -f json")["ssd"] == "false"
    assert [one["id"] for one in openstack("host list -f json")] == [made["id"]]
    assert openstack("host property list -f json") == [{"property": "ssd"}]
    assert openstack("host property show ssd -f json")["property_values"] == ["false"]
    openstack("host property set ssd --public")
    address = openstack(f"floatingip create {NETWORK} 10.0.0.1 -f json")
    assert openstack("floatingip list -f json")[0]["floating_ip_address"] == "10.0.0.1"
    assert openstack(f"floatingip show {address['id']} -f json")["id"] == address["id"]
    wish = f"resource_type=virtual:floatingip,network_id={NETWORK},amount=1"
    openstack(f"lease create {SOON} {LATER} --reservation {wish} ip -f json")
    assert [one["name"] for one in openstack("lease list -f json")] == ["ip"]
    openstack("lease set ip --name pi")
    assert openstack("lease show pi -f json")["status"] == "PENDING"
    assert openstack("allocation list host -f json") == [
        {"resource_id": made["id"], "reservations": []}
    ]
    assert openstack("allocation show host n3 -f json")["reservations"] in ([], "")
    openstack("lease delete pi")
    openstack(f"floatingip delete {address['id']}")
    openstack("host delete n3")
    assert openstack.used == COMMANDS - BROKEN
