"""Another Placement can move servers whose flavors request virtual classes of Moorage."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.servers.nova_records import NovaRecords, serving
from tests.servers.reference import ZONE, Cloud, Placement, named

from moorage.domain.stand_ins import stand_in_id

pytestmark = [pytest.mark.process, pytest.mark.timeout(300)]

TICKET = "CUSTOM_MOORAGE_TICKET_0B1E_2C3D"
HOURS = "CUSTOM_MOORAGE_HOURS"
TIED = named("web-2")
HOST = named("az1-r2-n3")
DRY = "classes: 2 added, 0 removed; providers of 4 hosts would be written; nothing was written"
WANTED = "/allocation_candidates?resources=VCPU:2,MEMORY_MB:2048"


@pytest.fixture
def nova() -> Iterator[NovaRecords]:
    """It has a server by a ticket flavor with an end, and one that is nobody's business."""
    with serving() as found:
        wear(found, TIED, {f"resources:{TICKET}": "1", f"resources:{HOURS}": "48"})
        wear(found, named("web-1"), {"resources:CUSTOM_FPGA": "1", "hw:cpu_policy": "shared"})
        yield found


def wear(nova: NovaRecords, server: str, specs: dict[str, str]) -> None:
    """A server with a flavor of these extra specs."""
    found = nova.server(server, "az1-r1-n2")
    found["flavor"]["extra_specs"] = specs


@pytest.fixture
def other(
    cloud: Placement,
    cloud_file: Path,
    start: Callable[[str], Placement],
    admin: Any,
    tmp_path: Path,
) -> Placement:
    """An empty Placement, beside a ledger with the small cloud."""
    assert admin("admin", "import", "placement", "--from", f"sqlite:///{cloud_file}").status == 0
    return start(f"sqlite:///{tmp_path / 'other.db'}")


def places(placement: Placement, query: str) -> set[str]:
    """The hosts of the candidates of a query."""
    body = placement.done("GET", query, version="1.36")
    roots = {key: one["root_provider_uuid"] for key, one in body["provider_summaries"].items()}
    return {
        roots[provider] for one in body["allocation_requests"] for provider in one["allocations"]
    }


def test_the_export_names_servers_and_lets_them_move(
    other: Placement, admin: Any, nova: NovaRecords
) -> None:
    handed = admin("admin", "export", "--to", other.url, "--nova", nova.url, "-f", "json")
    assert handed.status == 0, handed
    assert handed.body["differences"] == []
    assert [(one["id"], one["classes"]) for one in handed.body["servers"]] == [
        (TIED, [HOURS, TICKET])
    ]
    asked = f"{WANTED},{TICKET}:1,{HOURS}:48"
    plain = places(other, WANTED)
    assert plain
    for narrowed in ("", f"&in_tree={HOST}", f"&member_of={ZONE}"):
        assert places(other, asked + narrowed) == places(other, WANTED + narrowed) != set(), (
            narrowed
        )
    # As an evacuation writes it: on both hosts at once, with what Nova was given for the new one.
    [new] = other.done("GET", f"{asked}&in_tree={HOST}", version="1.36")["allocation_requests"]
    before = other.done("GET", f"/allocations/{TIED}")
    both = {
        provider: {"resources": one["resources"]}
        for provider, one in (before["allocations"] | new["allocations"]).items()
    }
    other.done("PUT", f"/allocations/{TIED}", {**kept(before), "allocations": both})


def kept(found: dict[str, Any]) -> dict[str, Any]:
    """What a write repeats of a consumer that was read."""
    names = ("project_id", "user_id", "consumer_generation", "consumer_type")
    return {name: found[name] for name in names}


def test_an_export_without_nova_says_what_it_leaves_out(other: Placement, admin: Any) -> None:
    told = admin("admin", "export", "--to", other.url, "--connections", "1")
    assert told.status == 0
    assert "--nova names them" in told.out
    status, refused = other.ask("GET", f"{WANTED},{TICKET}:1", version="1.36")
    assert (status, "No such resource class" in refused["errors"][0]["detail"]) == (400, True)


def test_the_written_requests_have_the_stand_ins(
    other: Placement, admin: Any, nova: NovaRecords
) -> None:
    printed = admin("admin", "export", "--nova", nova.url)
    assert printed.status == 0
    assert TIED in printed.err
    wrote = admin("admin", "export", "--output", "cloud.jsonl", "--nova", nova.url)
    assert TIED in wrote.out
    assert admin("admin", "replay", "cloud.jsonl", "--to", other.url).status == 0
    assert places(other, f"{WANTED},{TICKET}:1")


def test_the_classes_follow_the_servers(other: Placement, admin: Any, nova: NovaRecords) -> None:
    assert admin("admin", "export", "--to", other.url).status == 0
    words = (
        "admin",
        "sync",
        "classes",
        "--nova",
        nova.url,
        "--to",
        other.url,
        "--connections",
        "1",
    )
    dry = admin(*words, "--dry-run")
    assert (dry.status, dry.out.splitlines()) == (
        0,
        [
            "1 server has a flavor with virtual classes of Moorage:",
            f"  {TIED} server-{TIED[:4]}: {HOURS}, {TICKET}",
            DRY,
        ],
    )
    assert other.ask("GET", f"/resource_classes/{TICKET}")[0] == 404
    assert admin.body(*words)["created"] == 4
    assert places(other, f"{WANTED},{TICKET}:1&in_tree={HOST}") == {HOST}
    assert admin.body(*words)["hosts"] == 0
    # A host comes, and the server is moved.
    Cloud(other).host(5)
    assert admin.body(*words)["created"] == 1
    move(other, {HOST: {"VCPU": 2, "MEMORY_MB": 2048}, stand_in_id(HOST): {TICKET: 1, HOURS: 48}})
    # It is resized to a flavor of the cloud, with its old allocations until that is confirmed.
    nova.lists["servers"][0]["flavor"]["extra_specs"] = {}
    waits = admin(*words)
    assert waits.status == 4
    assert f"{TICKET}: no server requests it, but it is allocated still" in waits.out
    listed = other.done("GET", f"/resource_providers?resources={TICKET}:1")
    assert [one["uuid"] for one in listed["resource_providers"]] == [stand_in_id(HOST)]
    move(other, {HOST: {"VCPU": 2, "MEMORY_MB": 2048}})
    gone = admin.body(*words)
    assert (gone["deleted"], gone["removed"], gone["kept"]) == (1, [HOURS, TICKET], [])
    every = other.done("GET", "/resource_providers")["resource_providers"]
    assert not [one["name"] for one in every if one["name"].startswith("moorage-")]
    names = {one["name"] for one in other.done("GET", "/resource_classes")["resource_classes"]}
    assert names.isdisjoint({TICKET, HOURS})
    assert admin.body(*words)["hosts"] == 0


def move(placement: Placement, allocations: dict[str, dict[str, int]]) -> None:
    """The server has other allocations than before."""
    body = {
        **kept(placement.done("GET", f"/allocations/{TIED}")),
        "allocations": {uuid: {"resources": of} for uuid, of in allocations.items()},
    }
    placement.done("PUT", f"/allocations/{TIED}", body)


def test_classes_of_others_are_left_alone(other: Placement, admin: Any, nova: NovaRecords) -> None:
    blazars = "CUSTOM_RESERVATION_4A1B"
    assert admin("admin", "export", "--to", other.url).status == 0
    for name in (blazars, "CUSTOM_RESERVATION_IDLE"):
        other.done("PUT", f"/resource_classes/{name}")
    Cloud(other).stock(Cloud(other).provider("blazar"), {blazars: {"total": 3}})
    wear(nova, named("db-1"), {f"resources:{blazars}": "1"})
    words = (
        "admin",
        "sync",
        "classes",
        "--nova",
        nova.url,
        "--to",
        other.url,
        "--connections",
        "1",
    )
    found = admin.body(*words)
    assert (found["elsewhere"], found["added"]) == ([blazars], [HOURS, TICKET])
    nova.lists["servers"].clear()
    assert admin.body(*words)["removed"] == [HOURS, TICKET]
    assert other.ask("GET", "/resource_classes/CUSTOM_RESERVATION_IDLE")[0] < 300


def test_moorage_takes_nothing_of_it_over_again(
    other: Placement, admin: Any, nova: NovaRecords, tmp_path: Path
) -> None:
    handed = admin("admin", "export", "--to", other.url, "--nova", nova.url)
    assert handed.status == 0, handed
    stand_in = {stand_in_id(HOST): {TICKET: 1}}
    move(other, {HOST: {"VCPU": 2, "MEMORY_MB": 2048}, **stand_in})
    admin.environment["MOORAGE_DATABASE"] = f"sqlite:///{tmp_path / 'again.db'}"
    for source in (other.url, f"sqlite:///{tmp_path / 'other.db'}"):
        found = admin.body("admin", "import", "placement", "--from", source)
        assert found["differences"] == found["answered_differently"] == []
        assert found["ledger"]["resource providers"] == 9
        assert any("stand in for virtual classes" in one for one in found["remarks"])


def test_who_may_not_see_extra_specs_is_told(
    other: Placement, admin: Any, nova: NovaRecords
) -> None:
    del nova.lists["servers"][0]["flavor"]["extra_specs"]
    words = (
        "admin",
        "sync",
        "classes",
        "--nova",
        nova.url,
        "--to",
        other.url,
        "--connections",
        "1",
    )
    refused = admin(*words)
    assert refused.status == 1
    assert f"does not show the extra specs of server {TIED}'s flavor" in refused.err
