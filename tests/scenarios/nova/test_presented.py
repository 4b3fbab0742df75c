"""A server whose request presents a claim gets the claim's place, through Placement alone."""

from typing import Any

import pytest
from tests.scenarios.nova.conftest import Cloud, new

from moorage.domain.period import HOUR

FULL = "The requested amount would exceed the capacity."
XLARGE = {"DISK_GB": 160, "MEMORY_MB": 16384, "VCPU": 8}


def presents(claim: Any) -> str:
    """The request id that the claim's answer tells to send."""
    return str(claim["present_as"]["header"]["X-Openstack-Request-Id"])


def at(provider: str, **amounts: int) -> dict[str, Any]:
    return {"allocations": {provider: {"resources": amounts}}, "mappings": {"": [provider]}}


@pytest.fixture
def held(cloud: Cloud) -> Any:
    return cloud.tenant.hold()


@pytest.fixture
def claim(cloud: Cloud, held: Any) -> Any:
    return cloud.tenant.claim(held)


@pytest.fixture
def host(cloud: Cloud, claim: Any) -> str:
    """The claim's host, where nothing is free but what is held."""
    found = cloud.tenant.host_of(claim)
    cloud.nova.fill(found)
    return found


def test_a_hold_on_a_full_host_becomes_the_servers_allocation(
    cloud: Cloud, claim: Any, host: str
) -> None:
    nova, server = cloud.nova, new()
    assert host not in {uuid for one in nova.candidates() for uuid in one["allocations"]}
    (candidate,) = nova.candidates(presents(claim))
    assert candidate == {
        "allocations": {host: {"resources": XLARGE}},
        "mappings": {"": [host]},
    }
    before = nova.generation(host)
    answer = nova.claim_resources(server, candidate, presents(claim))
    assert (answer.status_code, answer.content) == (204, b""), answer.text
    assert nova.generation(host) == before + 1
    assert nova.allocations(server) == {
        "allocations": {host: {"resources": XLARGE, "generation": before + 1}},
        "project_id": "project-a",
        "user_id": "ann",
        "consumer_generation": 1,
    }
    assert cloud.tenant.claimed(claim) == ("active", server)
    member = cloud.tenant.member(claim)
    assert (member["server_id"], member["status"]) == (server, "active")
    refused = nova.claim_resources(new(), at(host, VCPU=1))
    assert FULL in refused.json()["errors"][0]["detail"], "hold and allocation do not both count"
    told = {"claim": {"status": "active", "server_id": server}}
    assert cloud.tenant.call("PATCH", f"/claims/{claim['id']}", told)["claim"]["status"] == "active"


def test_the_same_write_repeated_has_been_done(cloud: Cloud, claim: Any, host: str) -> None:
    """Nova repeats what it got no answer to; whoever does not present the claim is another."""
    nova, server = cloud.nova, new()
    (candidate,) = nova.candidates(presents(claim))
    assert nova.claim_resources(server, candidate, presents(claim)).status_code == 204
    before = nova.allocations(server)
    assert nova.claim_resources(server, candidate, presents(claim)).status_code == 204
    assert nova.allocations(server) == before
    assert cloud.tenant.claimed(claim) == ("active", server)
    less = at(host, **{**XLARGE, "VCPU": 1})
    others: list[tuple[dict[str, Any], str | None, str]] = [
        (candidate, None, "project-a"),
        (candidate, f"req-{new()}", "project-a"),
        (candidate, presents(claim), "project-b"),
        (less, presents(claim), "project-a"),
    ]
    for body, request_id, project in others:
        refused = nova.claim_resources(server, body, request_id, project=project)
        assert refused.status_code == 409
        assert refused.json()["errors"][0]["code"] == "placement.concurrent_update"
    assert nova.allocations(server) == before


def test_afterwards_a_write_of_the_server_is_a_rewrite(cloud: Cloud, claim: Any, host: str) -> None:
    nova, server = cloud.nova, new()
    (candidate,) = nova.candidates(presents(claim))
    assert nova.claim_resources(server, candidate, presents(claim)).status_code == 204
    again = nova.claim_resources(server, candidate, presents(claim), generation=1)
    assert again.status_code == 204
    assert nova.allocations(server)["consumer_generation"] == 2
    stale = nova.claim_resources(server, candidate, presents(claim))
    assert stale.status_code == 409
    assert stale.json()["errors"][0]["code"] == "placement.concurrent_update"
    assert nova.generation(host) == nova.allocations(server)["allocations"][host]["generation"]
    assert cloud.tenant.claimed(claim) == ("active", server)
    assert nova.candidates(presents(claim)) == nova.candidates(), "a used claim presents nothing"


def test_only_the_claims_own_room_is_shown(cloud: Cloud, claim: Any, host: str) -> None:
    nova = cloud.nova
    assert nova.candidates(presents(claim), {**XLARGE, "VCPU": 9}) == [], (
        "others' room stays theirs"
    )
    assert nova.candidates(presents(claim), root_required="!COMPUTE_NODE") == []
    assert nova.candidates(presents(claim), {"MEMORY_MB": 1024}) == [
        {"allocations": {host: {"resources": {"MEMORY_MB": 1024}}}, "mappings": {"": [host]}}
    ], "its host only, though every host has memory"
    everybody = nova.candidates()
    assert nova.candidates(f"req-{new()}") == everybody
    assert nova.candidates(f"req-{claim['decision_id']}") == everybody
    assert nova.candidates(presents(claim).upper().replace("REQ", "req")) != everybody


def test_other_projects_and_other_hosts_take_no_place(cloud: Cloud, claim: Any, host: str) -> None:
    nova, presented = cloud.nova, presents(claim)
    (candidate,) = nova.candidates(presented)
    foreign = nova.claim_resources(new(), candidate, presented, project="project-b")
    assert (foreign.status_code, FULL in foreign.text) == (409, True)
    (elsewhere, *_) = nova.candidates()
    stray = new()
    assert nova.claim_resources(stray, elsewhere, presented).status_code == 204
    assert nova.allocations(stray)["consumer_generation"] == 1
    assert cloud.tenant.claimed(claim) == ("building", None)
    moving = nova.claim_resources(stray, candidate, presented, generation=1)
    assert moving.status_code == 409, "a server that has allocations is not the one being built"
    assert nova.candidates(presented) == [candidate]
    assert nova.claim_resources(new(), candidate, presented).status_code == 204


def test_more_than_was_held_must_fit_beside(cloud: Cloud, claim: Any) -> None:
    nova, presented, host = cloud.nova, presents(claim), cloud.tenant.host_of(claim)
    larger = at(host, **{**XLARGE, "MEMORY_MB": 32768})
    greedy = nova.claim_resources(new(), at(host, **{**XLARGE, "VCPU": 17}), presented)
    assert greedy.status_code == 409
    assert cloud.tenant.claimed(claim) == ("building", None)
    server = new()
    assert nova.claim_resources(server, larger, presented).status_code == 204
    assert cloud.tenant.claimed(claim) == ("active", server)


def test_one_post_writes_the_server_beside_others(cloud: Cloud, claim: Any, host: str) -> None:
    nova, server, other = cloud.nova, new(), new()
    (elsewhere, *_) = nova.candidates()
    owner = {"project_id": "project-a", "user_id": "ann", "consumer_generation": None}
    body = {other: {**elsewhere, **owner}, server: {**at(host, **XLARGE), **owner}}
    assert nova.call("POST", "/allocations", body).status_code == 409
    answer = nova.call("POST", "/allocations", body, presents(claim))
    assert answer.status_code == 204, answer.text
    assert cloud.tenant.claimed(claim) == ("active", server)
    assert nova.allocations(other)["allocations"].keys() == elsewhere["allocations"].keys()


# --- between GET and PUT ----------------------------------------------------------------------


def test_a_claim_that_lapses_meanwhile_presents_nothing(
    cloud: Cloud, claim: Any, host: str
) -> None:
    nova = cloud.nova
    (candidate,) = nova.candidates(presents(claim))
    cloud.clock.pass_by(HOUR)
    ordinary = new()
    assert nova.claim_resources(ordinary, candidate, presents(claim)).status_code == 204
    assert cloud.tenant.claimed(claim) == ("expired", None)
    assert cloud.tenant.member(claim)["server_id"] is None
    late = nova.claim_resources(new(), candidate, presents(claim))
    assert (late.status_code, FULL in late.text) == (409, True)
    assert host not in {uuid for one in nova.candidates() for uuid in one["allocations"]}


def test_confirming_meanwhile_changes_nothing_and_the_last_build_closes(
    cloud: Cloud, held: Any, claim: Any, host: str
) -> None:
    nova, server = cloud.nova, new()
    (candidate,) = nova.candidates(presents(claim))
    path = f"/decisions/{held['decision']['id']}"
    assert cloud.tenant.call("POST", f"{path}/confirm", {})["decision"]["status"] == "confirmed"
    assert nova.candidates(presents(claim)) == [candidate]
    assert nova.claim_resources(server, candidate, presents(claim)).status_code == 204
    assert cloud.tenant.claimed(claim) == ("active", server)
    assert cloud.tenant.call("GET", path)["decision"]["status"] == "closed"


def test_releasing_meanwhile_leaves_claimed_places(
    cloud: Cloud, held: Any, claim: Any, host: str
) -> None:
    (candidate,) = cloud.nova.candidates(presents(claim))
    cloud.tenant.call("DELETE", f"/decisions/{held['decision']['id']}")
    server = new()
    answer = cloud.nova.claim_resources(server, candidate, presents(claim))
    assert answer.status_code == 204, answer.text
    assert cloud.tenant.claimed(claim) == ("active", server)
    assert candidate["allocations"].keys() == {host}


@pytest.mark.parametrize("how", ["failed", "deleted"])
def test_a_hold_that_ends_meanwhile_is_free_for_all(
    cloud: Cloud, claim: Any, host: str, how: str
) -> None:
    nova = cloud.nova
    (candidate,) = nova.candidates(presents(claim))
    if how == "failed":
        cloud.tenant.call("PATCH", f"/claims/{claim['id']}", {"claim": {"status": "failed"}})
    else:
        cloud.tenant.call("DELETE", f"/ensembles/{claim['ensemble_id']}")
    nova.fill(host)
    gone = nova.claim_resources(new(), candidate, presents(claim))
    assert (gone.status_code, FULL in gone.text) == (409, True)
    assert nova.candidates(presents(claim)) == nova.candidates()


def test_the_claim_follows_its_ensemble_to_a_new_decision(
    cloud: Cloud, held: Any, claim: Any, host: str
) -> None:
    nova, server = cloud.nova, new()
    (candidate,) = nova.candidates(presents(claim))
    decide = {"decision": {"ensemble_id": claim["ensemble_id"], "hold": "PT10M"}}
    fresh = cloud.tenant.call("POST", "/decisions", decide)["decision"]
    assert fresh["id"] != held["decision"]["id"]
    assert nova.claim_resources(server, candidate, presents(claim)).status_code == 204
    now = cloud.tenant.call("GET", f"/claims/{claim['id']}")["claim"]
    assert (now["decision_id"], now["server_id"]) == (fresh["id"], server)
    assert candidate["allocations"].keys() == {host}


def test_a_deleted_server_may_come_again_as_another_member(
    cloud: Cloud, held: Any, claim: Any
) -> None:
    """Its place went back to its member, which is held again."""
    nova, server = cloud.nova, new()
    (candidate,) = nova.candidates(presents(claim))
    assert nova.claim_resources(server, candidate, presents(claim)).status_code == 204
    assert nova.call("DELETE", f"/allocations/{server}").status_code == 204
    other = cloud.tenant.claim(held, "db[1]")
    (place,) = nova.candidates(presents(other))
    nova.claim_resources(server, place, presents(other))
    assert cloud.tenant.claimed(claim) == ("ended", server)
    assert cloud.tenant.claimed(other) == ("active", server)
    former = cloud.tenant.member(claim)
    assert (former["server_id"], former["status"]) == (None, "held")


def test_a_server_is_of_one_ensemble_only(cloud: Cloud) -> None:
    """It was a member of an ensemble whose decision is over, and is deleted, but still its member.

    The claims are of two ensembles, whose members' tags hosts must tell apart.
    """
    claims = []
    for name in ("one", "two"):
        role = {"name": "db", "count": 1, "flavor": "m1.xlarge", "tags": ["stateful"]}
        body = {"name": name, "members": [role], "decide": {"hold": "PT10M"}}
        claims.append(
            cloud.tenant.claim(cloud.tenant.call("POST", "/ensembles", {"ensemble": body}))
        )
    server = new()
    for claim in claims:
        (candidate,) = cloud.nova.candidates(presents(claim))
        answer = cloud.nova.claim_resources(server, candidate, presents(claim))
        assert answer.status_code == 204, answer.text
        cloud.tenant.call("POST", f"/decisions/{claim['decision_id']}/confirm")
        assert cloud.nova.call("DELETE", f"/allocations/{server}").status_code == 204
    assert cloud.tenant.claimed(claims[0]) == ("ended", server)
    assert cloud.tenant.claimed(claims[1]) == ("building", None)


def test_the_hint_for_the_server_is_metadata_that_nova_takes(claim: Any) -> None:
    assert claim["server_patch"] == {
        "metadata": {"moorage:ensemble": claim["ensemble_id"], "moorage:member": "db[0]"}
    }


def test_a_server_that_failed_after_all_leaves_its_member_to_the_next_decision(
    cloud: Cloud, held: Any, claim: Any
) -> None:
    nova, server = cloud.nova, new()
    (candidate,) = nova.candidates(presents(claim))
    assert nova.claim_resources(server, candidate, presents(claim)).status_code == 204
    cloud.tenant.call("POST", f"/decisions/{claim['decision_id']}/confirm")
    assert nova.call("DELETE", f"/allocations/{server}").status_code == 204
    assert cloud.tenant.member(claim)["status"] == "unplaced"
    decide = {"decision": {"ensemble_id": claim["ensemble_id"], "hold": "PT10M"}}
    fresh = {"decision": cloud.tenant.call("POST", "/decisions", decide)["decision"]}
    assert cloud.tenant.member(claim)["status"] == "held"
    again, other = cloud.tenant.claim(fresh), new()
    (place,) = nova.candidates(presents(again))
    assert nova.claim_resources(other, place, presents(again)).status_code == 204
    assert cloud.tenant.claimed(again) == ("active", other)
    assert cloud.tenant.member(claim)["server_id"] == other
