"""Servers of ordinary clients take held places by a scheduler hint."""

import json
from concurrent.futures import ThreadPoolExecutor

import pytest
from tests.minicloud.admin import admin
from tests.minicloud.cloud import INSIDE, Cloud
from tests.minicloud.layout import inside
from tests.minicloud.tenant import Operator, Refused, Tenant, eventually
from tests.minicloud.test_ticket_flavors import APART, DB, places

WEB = {"name": "web", "count": 3, "flavor": "m1.small"}
STRANGE = "11111111-2222-4333-8444-555555555555"
"""The id of no claim, and of no server."""


def test_six_at_once_take_their_own_places(operator: Operator, demo: Tenant) -> None:
    held = demo.hold(DB, WEB, policies=[APART])
    named = [
        (f"{role}[{number}]", flavor)
        for role, flavor in (("db", "m1.large"), ("web", "m1.small"))
        for number in range(3)
    ]

    def boot(place: tuple[str, str]) -> str:
        member, flavor = place
        [server] = demo.boot(flavor, member, hints={"moorage": f"{held['name']}/{member}"})
        return server

    with ThreadPoolExecutor(6) as pool:
        servers = dict(zip((member for member, _ in named), pool.map(boot, named), strict=True))
    demo.built(*servers.values())
    assert {one: operator.host(server) for one, server in servers.items()} == places(
        operator, held["id"]
    )
    members = demo.members(held["ensemble"])
    assert {name: one["server_id"] for name, one in members.items()} == servers


@pytest.mark.parametrize("hint", ["{name}/web", "{name}", "{id}/web[2]", "{id}"])
def test_any_place_of_a_role_or_of_the_ensemble(
    operator: Operator, demo: Tenant, hint: str
) -> None:
    held = demo.hold(WEB)
    named = hint.format(name=held["name"], id=held["ensemble"])
    [server] = demo.boot("m1.small", hints={"moorage": named})
    demo.built(server)
    [member] = [one for one in demo.members(held["ensemble"]).values() if one["server_id"]]
    assert member["server_id"] == server
    assert operator.host(server) == places(operator, held["id"])[member["name"]]


def test_the_ensemble_is_a_group(operator: Operator, demo: Tenant) -> None:
    held = demo.hold(WEB)
    [server] = demo.boot("m1.small", hints={"group": held["ensemble"]})
    demo.built(server)
    assert server in {one["server_id"] for one in demo.members(held["ensemble"]).values()}


def test_a_group_of_novas_own_passes(demo: Tenant) -> None:
    group = demo.nova.create_server_group(name="own", policy="anti-affinity")
    demo.built(*demo.boot("m1.small", hints={"group": group.id}))
    demo.nova.delete_server_group(group)


def test_refusals_come_at_once_and_name_the_reason(demo: Tenant, neighbour: Tenant) -> None:
    held = demo.hold({"name": "db", "count": 1, "flavor": "m1.large"})
    theirs = neighbour.hold(WEB)
    for flavor, hint, status, told in (
        ("m1.xlarge", f"{held['name']}/db[0]", 409, "flavor.VCPU is 8, described as 4"),
        ("m1.large", f"{held['name']}/db[7]", 404, "db[7]"),
        ("m1.large", f"{held['name']}/cache", 404, "cache"),
        ("m1.large", "no-such", 404, "no-such"),
        ("m1.small", theirs["ensemble"], 404, theirs["ensemble"]),
        ("m1.small", f"{theirs['name']}/web", 404, theirs["name"]),
        ("m1.large", "a/b[c]", 400, "a/b[c]"),
    ):
        with pytest.raises(Refused) as refused:
            demo.boot(flavor, hints={"moorage": hint})
        assert refused.value.status == status, (hint, str(refused.value))
        assert told in refused.value.message, refused.value.message
    with pytest.raises(Refused) as refused:
        demo.boot("m1.large", hints={"moorage": held["name"]}, min_count=2, max_count=2)
    assert refused.value.status == 400
    assert "ticket" in refused.value.message
    demo.built(*demo.boot("m1.large", hints={"moorage": held["name"]}))
    with pytest.raises(Refused) as refused:
        demo.boot("m1.large", hints={"moorage": held["name"]})
    assert refused.value.status == 409


def test_what_nova_refuses_gives_the_place_back(demo: Tenant) -> None:
    held = demo.hold({"name": "web", "count": 1, "flavor": "m1.small"})
    with pytest.raises(Refused) as refused:
        demo.boot("m1.small", hints={"moorage": held["name"]}, networks=[{"uuid": held["id"]}])
    assert refused.value.status == 400
    demo.built(*demo.boot("m1.small", hints={"moorage": held["name"]}))


def test_a_failed_build_gives_its_place_back(demo: Tenant) -> None:
    held = demo.hold({"name": "web", "count": 1, "flavor": "m1.small"})
    [failed] = demo.boot(
        "m1.small", hints={"moorage": held["name"]}, metadata={"minicloud:fail": "*"}
    )
    demo.built(failed, expected="ERROR")
    eventually(lambda: demo.members(held["ensemble"])["web[0]"]["status"] == "held", "held again")
    # One for each host on which Nova tried.
    claims = demo.native("GET", f"/decisions/{held['id']}/claims")["claims"]
    assert {one["status"] for one in claims} <= {"ended", "failed"}
    demo.built(*demo.boot("m1.small", hints={"moorage": f"{held['name']}/web[0]"}))


def test_moorage_away_refuses_the_hint_alone(demo: Tenant, operator: Operator) -> None:
    held = demo.hold({"name": "web", "count": 1, "flavor": "m1.small"})
    operator.cloud.program("moorage").kill()
    try:
        with pytest.raises(Refused) as refused:
            demo.boot("m1.small", hints={"moorage": held["name"]})
    finally:
        operator.cloud.start("moorage")
    assert refused.value.status == 503
    demo.built(*demo.boot("m1.small", hints={"moorage": held["name"]}))


def test_the_schedulers_filter_refuses_all_other_hosts(operator: Operator, demo: Tenant) -> None:
    """Asked as nova-scheduler asks it, for a server that was given every host of the cloud.

    The others have the other members, so that none is left to build on again.
    """
    held = demo.hold(DB, policies=[APART])
    body = {"claim": {"member": "db[0]", "server": {"flavorRef": "m1.large"}}}
    claim = demo.native("POST", f"/decisions/{held['id']}/claims", body)["claim"]
    computes = {
        one.name: one.id
        for one in operator.connection.placement.resource_providers()
        if one.name in operator.cloud.layout.computes
    }

    def passed(claim: str, server: str = STRANGE, most: int = 1000, **hints: str) -> list[str]:
        scheduler = operator.cloud.layout.folder("scheduler") / "nova.conf"
        said = operator.cloud.run(
            "env",
            f"OS_SCHEDULER__MAX_PLACEMENT_RESULTS={most}",
            inside("python"),
            str(INSIDE / "held_place_filter.py"),
            *("--config-file", str(scheduler), server, claim, "4,8192,80", json.dumps(hints)),
            *(f"{name}={uuid}" for name, uuid in computes.items()),
        )
        return sorted(said.split())

    place, named = places(operator, held["id"])["db[0]"], {"moorage": held["name"]}
    claimed = {**named, "moorage_claim": claim["id"]}
    assert passed(claim["id"], **claimed) == [place]
    assert passed(claim["id"], most=1, **claimed) == [place], "as many as Nova asks for"
    assert passed(claim["id"]) == sorted(computes), "without the hint nothing is asked"
    assert passed(STRANGE, **named) == [], "nova-api's filter has not seen it"
    [old] = demo.boot("m1.small")
    demo.built(old)
    for most in (1, 1000):
        moved = passed(STRANGE, old, most, **named)
        assert moved == sorted(computes), "a server is moved that is older than this hint"


def test_a_nova_api_without_the_filter(operator: Operator, demo: Tenant) -> None:
    """Its servers with the hint get no host, and the audit finds it."""
    held = demo.hold({"name": "web", "count": 1, "flavor": "m1.small"})
    cloud = operator.cloud
    paste = cloud.layout.folder("nova") / "api-paste.ini"
    words = ("audit", "--nova", "catalog", "--keystone")

    def unfiltered() -> list[str]:
        findings = admin(cloud, *words)[1]["findings"]
        return [one["subject"] for one in findings if one["kind"] == "unfiltered"]

    assert unfiltered() == []
    kept = paste.read_text()
    endpoint = cloud.layout.url("nova", "/v2.1")
    try:
        legacy = "moorage keystonecontext legacy_v2_compatible"
        assert legacy in kept
        paste.write_text(kept.replace(legacy, legacy.removeprefix("moorage ")))
        restarted(cloud)
        assert unfiltered() == [endpoint.replace("/v2.1", "/v2")]
        paste.write_text(kept.replace(" moorage keystonecontext", " keystonecontext"))
        restarted(cloud)
        assert unfiltered() == [endpoint, endpoint.replace("/v2.1", "/v2")]
        [server] = demo.boot("m1.small", hints={"moorage": held["name"]})
        demo.built(server, expected="ERROR")
    finally:
        paste.write_text(kept)
        restarted(cloud)
    assert demo.members(held["ensemble"])["web[0]"]["status"] == "held"
    assert unfiltered() == []
    demo.built(*demo.boot("m1.small", hints={"moorage": held["name"]}))


def restarted(cloud: Cloud) -> None:
    """With the pipelines as they are written now."""
    cloud.program("nova").stop()
    cloud.start("nova")
