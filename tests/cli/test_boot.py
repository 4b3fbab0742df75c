"""Servers of an ensemble are created in Nova, each in its held place, whatever fails meanwhile."""

import re
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import NOW, Cli, clean
from tests.servers.nova import NETWORK, Lost, Nova, Reply, environment, running

from moorage.client import nova as nova_client
from moorage.client import registry
from moorage.client.boot import Boot, BootOrder, BootResult
from moorage.client.boot_plan import Rules, State
from moorage.client.boot_session import Timing
from moorage.client.discovery import Wishes, find
from moorage.client.moorage import connect

pytestmark = pytest.mark.process

ROOT = Path(__file__).parents[2]
SHOP = """\
name: {name}
members:
  - name: db
    count: 2
    flavor: m1.xlarge
    server: {{image: debian, networks: [shop-net], key_name: ann, user_data: "#!/bin/sh"}}
  - {{name: web, count: 2, flavor: m1.small, server: {{image: debian}}}}
policies: [{{name: apart, type: anti-affinity, members: [db], level: host}}]
"""


@pytest.fixture(scope="module")
def endpoint(state: Path) -> str:
    """A service of its own, since hosts are counted on, with room for what tests leave there."""
    cli = Cli(clean(state) | {"OS_CLOUD": "booting"})
    fleet, text = state / "booting.yaml", (ROOT / "fleets/three-racks.yaml").read_text("utf-8")
    fleet.write_text(text.replace("VCPU: 16\n", "VCPU: 320\n"), encoding="utf-8")
    started = cli("sim", "start", "--fleet", str(fleet), "--now", NOW, "--name", "booting")
    assert started.status == 0, started
    found = registry.known(registry.state_directory({"XDG_STATE_HOME": str(state)}), "booting")
    assert found is not None
    return found.endpoint


@pytest.fixture
def nova(endpoint: str) -> Iterator[Nova]:
    with running(Nova(f"{endpoint}/placement")) as found:
        yield found


@pytest.fixture
def tenant(state: Path, nova: Nova, endpoint: str) -> Cli:
    found = {"MOORAGE_ENDPOINT": endpoint, "MOORAGE_PROJECT": "project-a", **environment(nova)}
    return Cli(clean(state) | found)


@pytest.fixture
def shop(tenant: Cli, nova: Nova, tmp_path: Path) -> Iterator[str]:
    """The name of an ensemble of four members that is held."""
    file, name = tmp_path / "shop.yaml", f"shop-{uuid.uuid4().hex[:6]}"
    file.write_text(SHOP.format(name=name), encoding="utf-8")
    made = tenant("ensemble", "create", "-f", str(file), "--hold", "10m")
    assert made.status == 0, made
    yield name
    for one in list(nova.servers):
        nova.answer("DELETE", f"/compute/v2.1/servers/{one}", {"X-Auth-Token": "a:b"}, None)
    tenant("ensemble", "delete", name, "--yes")


def as_operator(tenant: Cli) -> Cli:
    return Cli(tenant.environment | {"MOORAGE_PROJECT": "", "MOORAGE_TOKEN": "admin"})


def members(tenant: Cli, shop: str) -> dict[str, tuple[str, str | None]]:
    found = tenant.body("member", "list", shop)["members"]
    return {one["name"]: (one["status"], one["server_id"]) for one in found}


def statuses(tenant: Cli, shop: str) -> set[str]:
    return {status for status, _ in members(tenant, shop).values()}


def test_every_member_gets_its_server_and_the_decision_is_confirmed(
    tenant: Cli, nova: Nova, shop: str
) -> None:
    told = tenant("ensemble", "boot", shop)
    assert told.status == 0, told
    assert "4 of 4 servers active  decision" in told.out
    assert "confirmed" in told.out
    assert statuses(tenant, shop) == {"active"}
    (server,) = nova.named(f"{shop}-db-1")
    assert server.request["networks"] == [{"uuid": NETWORK}]
    assert server.request["key_name"] == "ann"
    assert server.request["user_data"] == "IyEvYmluL3No"
    assert server.request["metadata"]["moorage:member"] == "db[1]"
    (web,) = nova.named(f"{shop}-web-0")
    assert web.request["networks"] == "auto"
    assert members(tenant, shop)["db[1]"][1] == server.id
    assert tenant.body("decision", "show", shop)["decision"]["status"] == "closed"
    again = tenant("ensemble", "boot", shop)
    assert again.status == 0, again
    assert len(nova.created) == 4


def test_one_role_and_one_member_leave_the_others_held(tenant: Cli, nova: Nova, shop: str) -> None:
    only = tenant.body("ensemble", "boot", shop, "--only", "db")["boot"]
    assert not only["confirmed"]
    assert only["unclaimed"] == ["web[0]", "web[1]"]
    one = tenant("server", "create", shop, "web[0]")
    assert one.status == 0, one
    assert "web[1] still held until 09:" in one.out
    assert f"moorage ensemble confirm {shop}" in one.out
    assert tenant.body("server", "create", shop, "web[1]")["boot"]["confirmed"]
    assert len(nova.created) == 4


MIXED = """\
name: {name}
members:
  - {{name: session, kind: slice, resources: {{CUSTOM_SESSION: 1}}}}
  - {{name: link, kind: port, resources: {{DISK_GB: 1}}}}
  - name: gate
    count: 2
    server: {{image: debian}}
    alternatives: [{{kind: slice, resources: {{CUSTOM_VNIC: 1}}}}, {{flavor: m1.small}}]
"""


def test_slices_are_left_to_be_claimed(tenant: Cli, nova: Nova, tmp_path: Path) -> None:
    lobby, name = (f"{one}-{uuid.uuid4().hex[:6]}" for one in ("lobby", "mixed"))
    assert tenant("ensemble", "create", "--server", "m1.small", "--name", lobby).status == 0
    server = str(uuid.uuid4())
    claim = tenant.body("claim", "create", lobby, "server[0]", "--flavor", "m1.small")["claim"]
    assert tenant("claim", "set", claim["id"], "--active", "--server", server).status == 0
    offer = ("server", "provider", "set", server, "CUSTOM_SESSION=1", "CUSTOM_VNIC=1")
    assert tenant(*offer).status == 0
    (tmp_path / "mixed.yaml").write_text(MIXED.format(name=name), encoding="utf-8")
    made = tenant("ensemble", "create", "-f", str(tmp_path / "mixed.yaml"), "--hold", "10m")
    assert made.status == 0, made
    told = tenant.body("ensemble", "boot", name)["boot"]
    assert [one["status"] for one in told["members"]] == ["active"]
    assert (len(nova.created), told["confirmed"]) == (1, False)
    assert sorted(told["unclaimed"]) == ["gate[0]", "link[0]", "session[0]"]
    alone = tenant("ensemble", "boot", name, "--only", "session")
    assert (alone.status, "kind slice" in alone.err) == (1, True)
    tenant("ensemble", "delete", name, "--yes")
    tenant("server", "provider", "delete", server, "--force")


def test_a_dry_run_creates_nothing(tenant: Cli, nova: Nova, shop: str) -> None:
    told = tenant("ensemble", "boot", shop, "--dry-run")
    assert told.status == 0, told
    assert re.search(r"db\[0\] +held +- +claim its place, create its server", told.out)
    assert not nova.created
    assert statuses(tenant, shop) == {"held"}


def test_without_waiting_the_next_run_confirms(tenant: Cli, nova: Nova, shop: str) -> None:
    told = tenant.body("ensemble", "boot", shop, "--no-wait")["boot"]
    assert {one["status"] for one in told["members"]} == {"created"}
    assert not told["confirmed"]
    assert tenant.body("ensemble", "boot", shop)["boot"]["confirmed"]
    assert len(nova.created) == 4


def test_mistakes_are_found_before_anything_is_claimed(tenant: Cli, nova: Nova, shop: str) -> None:
    for words, said in (
        (("--image", "beos"), "no image beos"),
        (("--network", "moon"), "no network moon"),
        (("--network", "auto", "--network", "none"), "stand alone"),
        (("--only", "cache"), "no role cache in ensemble"),
    ):
        told = tenant("ensemble", "boot", shop, *words)
        assert told.status != 0, told
        assert said in told.err
    assert statuses(tenant, shop) == {"held"}
    assert not nova.created


def test_what_is_described_can_be_mended_while_places_are_held(
    tenant: Cli, nova: Nova, shop: str
) -> None:
    before = tenant.body("decision", "show", shop)["decision"]["id"]
    assert tenant("ensemble", "set", shop, "--member", "web:server={image: beos}").status == 0
    assert "no image beos" in tenant("ensemble", "boot", shop).err
    assert tenant("ensemble", "set", shop, "--member", "web:server={image: debian}").status == 0
    assert tenant.body("decision", "show", shop)["decision"]["id"] == before
    assert tenant("ensemble", "boot", shop).status == 0


def test_a_lease_is_booted_and_stays_a_lease(tenant: Cli, nova: Nova, tmp_path: Path) -> None:
    file, name = tmp_path / "leased.yaml", f"leased-{uuid.uuid4().hex[:6]}"
    file.write_text(SHOP.format(name=name), encoding="utf-8")
    words = ("--start", "now", "--duration", "1d", "--name", name)
    assert tenant("lease", "create", "-f", str(file), *words).status == 0
    until(lambda: tenant.body("lease", "show", name)["lease"]["status"] == "active")
    told = tenant("ensemble", "boot", name)
    assert told.status == 0, told
    assert "4 of 4 servers active" in told.out
    assert "to go on" not in told.out
    assert statuses(tenant, name) == {"active"}
    assert tenant("lease", "cancel", name).status == 0


# --- failures of Nova --------------------------------------------------------------------------


def refusing(status: int, message: str = "not now") -> Any:
    def fault(_nova: Nova, _request: Any) -> None:
        raise Reply(status, message)

    return fault


@pytest.mark.parametrize("status", [429, 500, 503])
def test_a_passing_failure_is_tried_again(status: int, tenant: Cli, nova: Nova, shop: str) -> None:
    nova.faults = [refusing(status)] * 2
    told = tenant("ensemble", "boot", shop, "--only", "web")
    assert told.status == 0, told
    assert f"{status} not now; trying again" in told.err
    assert len(nova.created) == 2


def test_a_refusal_keeps_the_place_and_begins_no_more(tenant: Cli, nova: Nova, shop: str) -> None:
    nova.faults = [refusing(403, "Quota exceeded for cores")]
    told = tenant("ensemble", "boot", shop, "--parallel", "1")
    assert told.status == 1
    assert "403 Quota exceeded for cores; its place stays claimed for a while" in told.out
    assert "not begun" in told.out
    assert statuses(tenant, shop) == {"building", "held"}
    assert tenant.body("ensemble", "boot", shop)["boot"]["confirmed"]
    assert len(nova.created) == 4


def test_a_lost_answer_creates_no_second_server(tenant: Cli, nova: Nova, shop: str) -> None:
    nova.lose_answers = 3
    told = tenant("ensemble", "boot", shop)
    assert told.status == 0, told
    assert "looking for it" in told.err
    assert len(nova.created) == 4


def test_a_failed_build_is_kept_and_the_others_go_on(tenant: Cli, nova: Nova, shop: str) -> None:
    nova.broken = {f"{shop}-db-0": 1}
    told = tenant("ensemble", "boot", shop)
    assert told.status == 1
    assert "disk is broken" in told.out
    assert "3 of 4 servers active" in told.out
    assert f"to go on: moorage ensemble boot {shop}" in told.out
    assert [one.status for one in nova.named(f"{shop}-db-0")] == ["ERROR"]
    assert tenant("ensemble", "boot", shop).status == 1
    assert len(nova.created) == 4
    assert tenant("ensemble", "boot", shop, "--on-failure", "delete").status == 0
    assert len(nova.servers) == 4
    assert statuses(tenant, shop) == {"active"}


def test_a_failed_build_is_deleted_and_moves_to_another_host(
    tenant: Cli, nova: Nova, shop: str
) -> None:
    id_ = tenant.body("ensemble", "show", shop)["ensemble"]["id"]
    places = as_operator(tenant).body("decision", "show", id_)["decision"]["assignments"]
    (host,) = next(one["allocations"] for one in places if one["member"] == "db[0]")
    nova.broken_hosts = {host}
    told = tenant("ensemble", "boot", shop, "--only", "db", "--on-failure", "delete")
    assert told.status == 0, told
    assert "deleting it, and placing it anew" in told.err
    first, second = nova.named(f"{shop}-db-0")
    assert first.hosts == [host]
    assert second.hosts != [host]
    assert len(nova.servers) == 2
    assert members(tenant, shop)["web[0]"][0] == "held"


def test_without_another_host_the_same_place_is_tried_again(
    tenant: Cli, nova: Nova, tmp_path: Path
) -> None:
    hosts = len(as_operator(tenant).body("host", "list")["hosts"])
    file, name = tmp_path / "full.yaml", f"full-{uuid.uuid4().hex[:6]}"
    role = f"{{name: web, count: {hosts}, flavor: m1.small, server: {{image: debian}}}}"
    apart = "{name: apart, type: anti-affinity, members: [web], level: host}"
    text = f"name: {name}\nmembers: [{role}]\npolicies: [{apart}]\n"
    file.write_text(text, encoding="utf-8")
    assert tenant("ensemble", "create", "-f", str(file)).status == 0
    nova.broken = {f"{name}-web-0": 1}
    told = tenant("ensemble", "boot", name, "--on-failure", "delete")
    assert told.status == 0, told
    assert "web[0]: no other host can take it: the same place is tried again" in told.err
    first, second = nova.named(f"{name}-web-0")
    assert first.hosts == second.hosts


def test_a_nova_with_another_placement_is_reported_to(tenant: Cli, nova: Nova, shop: str) -> None:
    nova.elsewhere = True
    nova.broken = {f"{shop}-web-1": 1}
    told = tenant("ensemble", "boot", shop, "--on-failure", "delete")
    assert told.status == 0, told
    assert statuses(tenant, shop) == {"active"}
    assert members(tenant, shop)["web[1]"][1] == nova.named(f"{shop}-web-1")[1].id


def test_after_a_failure_no_more_are_begun(tenant: Cli, nova: Nova, shop: str) -> None:
    nova.broken = {f"{shop}-db-0": 1}
    told = tenant("ensemble", "boot", shop, "--on-failure", "stop", "--parallel", "1")
    assert told.status == 1
    assert len(nova.created) == 1
    assert "not begun" in told.out


def test_a_server_that_presents_nothing_is_told(tenant: Cli, nova: Nova, shop: str) -> None:
    nova.presents = False
    told = tenant("server", "create", shop, "web[0]")
    assert told.status == 1
    assert "is active, but not in its held place" in told.out
    assert f"moorage member add {shop} --server {nova.created[0].id} --role web" in told.out


def test_a_build_that_takes_too_long_is_left_to_the_next_run(
    tenant: Cli, nova: Nova, shop: str
) -> None:
    nova.looks = 0
    told = tenant("ensemble", "boot", shop, "--timeout", "2s")
    assert told.status == 1
    assert "db[0]: not there in time; Nova may go on with it" in told.out
    nova.looks = 1
    assert tenant("ensemble", "boot", shop).status == 0
    assert len(nova.created) == 4


# --- other clients, and holds that end ---------------------------------------------------------


def test_a_claim_of_another_client_is_not_taken_over(
    tenant: Cli, nova: Nova, shop: str, endpoint: str
) -> None:
    claim = tenant.body("claim", "create", shop, "web[0]", "--flavor", "m1.small")["claim"]["id"]
    result = boot(tenant, shop, Rules(settle=0.5), role="web")
    told = {one.member: one for one in result.outcomes}
    assert told["web[0]"].state is State.TAKEN
    assert f"moorage claim set {claim[:8]} --failed" in told["web[0]"].message
    assert told["web[1]"].state is State.ACTIVE
    assert len(nova.created) == 1


def boot(tenant: Cli, shop: str, rules: Rules, **which: Any) -> BootResult:
    """Boot by the library, with short pauses."""
    with (
        connect(find(Wishes(), tenant.environment)) as client,
        nova_client.connect(Wishes(), tenant.environment) as compute,
    ):
        ensemble_id = client.ensembles.find(shop)
        order = BootOrder(ensemble_id, rules=rules, timing=Timing(poll=0.05), **which)
        return Boot(client, compute, order).run()


def test_a_request_that_never_arrived_is_sent_again(tenant: Cli, nova: Nova, shop: str) -> None:
    def lost(_nova: Nova, _request: Any) -> None:
        raise Lost

    nova.faults = [lost]
    assert boot(tenant, shop, Rules(settle=0.5)).confirmed
    assert len(nova.created) == 4


def test_two_runs_at_once_create_every_server_once(tenant: Cli, nova: Nova, shop: str) -> None:
    nova.looks = 3
    with ThreadPoolExecutor(2) as pool:
        runs = [pool.submit(boot, tenant, shop, Rules()) for _ in range(2)]
        results = [one.result() for one in runs]
    assert all(one.complete for one in results), results
    assert len(nova.created) == 4
    assert statuses(tenant, shop) == {"active"}


def test_without_a_place_there_is_a_sentence(tenant: Cli, nova: Nova, shop: str) -> None:
    assert tenant("decision", "release", shop).status == 0
    told = tenant("ensemble", "boot", shop)
    assert told.status == 1
    assert "it has no place" in told.out
    assert not nova.created
    remedy = f"to place it anew: moorage decision create {shop} --hold 10m"
    assert remedy in told.out
    (first, *_) = tenant("ensemble", "boot", shop, "-f", "json").body["boot"]["members"]
    assert first["message"].endswith(remedy)


def test_nothing_says_where_nova_is(tenant: Cli, shop: str) -> None:
    del tenant.environment["OS_COMPUTE_ENDPOINT_OVERRIDE"]
    told = tenant("ensemble", "boot", shop)
    assert told.status == 1
    assert "nothing says where the compute API is" in told.err


# --- interruptions -----------------------------------------------------------------------------


def begin(tenant: Cli, *words: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "moorage.cli.main", *words],
        env=tenant.environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def until(done: Any) -> None:
    end = time.monotonic() + 90
    while not done():
        assert time.monotonic() < end, "it takes too long"
        time.sleep(0.02)


@pytest.mark.parametrize("sign", [signal.SIGINT, signal.SIGKILL])
def test_an_interrupted_run_is_taken_up_again(
    sign: signal.Signals, tenant: Cli, nova: Nova, shop: str
) -> None:
    nova.looks = 0
    process = begin(tenant, "ensemble", "boot", shop, "--parallel", "3")
    until(lambda: len(nova.created) == 3)
    time.sleep(0.1)
    process.send_signal(sign)
    _, err = process.communicate(timeout=30)
    if sign is signal.SIGINT:
        assert process.returncode == 130
        assert f"to go on: moorage ensemble boot {shop}" in err
    nova.looks = 1
    told = tenant.body("ensemble", "boot", shop)["boot"]
    assert told["confirmed"]
    assert len(nova.created) == 4
    assert statuses(tenant, shop) == {"active"}


def test_a_role_boots_from_a_volume(tenant: Cli, nova: Nova, tmp_path: Path) -> None:
    file, name = tmp_path / "volume.yaml", f"volume-{uuid.uuid4().hex[:6]}"
    role = "{name: db, count: 1, flavor: m1.xlarge, boot_from_volume: true"
    text = f"name: {name}\nmembers: [{role}, server: {{image: debian, volume_gb: 30}}}}]\n"
    file.write_text(text, encoding="utf-8")
    assert tenant("ensemble", "create", "-f", str(file)).status == 0
    told = tenant("ensemble", "boot", name)
    assert told.status == 0, told
    [server] = nova.created
    [volume] = server.request["block_device_mapping_v2"]
    assert (volume["volume_size"], volume["destination_type"]) == (30, "volume")


def test_each_project_creates_its_own_servers(tenant: Cli, nova: Nova, tmp_path: Path) -> None:
    file, name = tmp_path / "market.yaml", f"market-{uuid.uuid4().hex[:6]}"
    text = SHOP.format(name=name).replace("name: web,", "name: web, project: project-b,")
    file.write_text(text, encoding="utf-8")
    other = Cli(tenant.environment | {"MOORAGE_PROJECT": "project-b"})
    assert tenant("ensemble", "create", "-f", str(file), "--describe-only").status == 0
    (share,) = other.body("share", "list")["shares"]
    assert other("share", "accept", share["id"]).status == 0
    assert tenant("decision", "create", name, "--hold", "10m").status == 0
    own = tenant.body("ensemble", "boot", name)["boot"]
    assert not own["confirmed"]
    assert own["unclaimed"] == ["web[0]", "web[1]"]
    assert {one["member"] for one in own["members"]} == {"db[0]", "db[1]"}
    theirs = other.body("ensemble", "boot", name)["boot"]
    assert {one["member"] for one in theirs["members"]} == {"web[0]", "web[1]"}
    id_ = tenant.body("ensemble", "show", name)["ensemble"]["id"]
    assert statuses(as_operator(tenant), id_) == {"active"}
    tenant("ensemble", "delete", name, "--yes")
