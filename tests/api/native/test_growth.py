"""`/v1/ensembles/{id}/extend` and `/shrink`: more members, and fewer, under the same policies."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

import pytest
from tests.api.native.conftest import refused

from moorage.domain.period import MINUTE
from moorage.testing.service import OPERATOR, OTHER, READER, Service

FLEET = """
fleet: hadoop
topology:
  location:
    levels: [rack]
    domains:
      - {name: "r{n}", count: 4, level: rack}
hosts:
  - name: "h{n}"
    count: 20
    inventories: {VCPU: 16}
    place:
      location: {name: "r{n}", count: 4}
"""
REQUEST = "dddddddd-0000-4000-8000-00000000000d"
HADOOP: dict[str, Any] = {
    "name": "hadoop",
    "members": [
        {"name": "master", "count": 2, "resources": {"VCPU": 4}},
        {"name": "worker", "count": 12, "resources": {"VCPU": 8}},
    ],
    "policies": [
        {"name": "masters", "type": "survive", "members": ["master"], "level": "rack", "keep": 1},
        {"name": "one-per-host", "type": "anti-affinity", "members": ["worker"], "level": "host"},
        {
            "name": "racks",
            "type": "spread",
            "members": ["worker"],
            "level": "rack",
            "max_skew": 1,
        },
    ],
    "decide": {"hold": "PT1H"},
}
"""The cluster of story C: 12 workers on 4 racks of 5 hosts."""


@pytest.fixture
def hadoop(service: Service) -> str:
    made = service.call("POST", "/ensembles", {"ensemble": HADOOP})
    assert made.status_code == 201, made.text
    return f"/ensembles/{made.json['ensemble']['id']}"


def ask(service: Service, path: str, verb: str, *, dry: bool = False, **body: Any) -> Any:
    query = {"dry_run": "true"} if dry else None
    return service.call("POST", f"{path}/{verb}", {verb: body}, query=query)


def done(answer: Any, verb: str) -> Any:
    assert answer.status_code == 200, answer.text
    return answer.json[verb]


def members(service: Service, path: str) -> dict[str, Any]:
    answer = service.call("GET", f"{path}/members", caller=OPERATOR, query={"limit": 100})
    return {one["name"]: one for one in answer.json["members"]}


def racks(service: Service, path: str, role: str = "worker") -> list[int]:
    """How many members of the role each rack has, the fullest first."""
    some = members(service, path).values()
    counts = Counter(one["domains"]["rack"] for one in some if one["role"] == role)
    return sorted(counts.values(), reverse=True)


def counts(service: Service, path: str) -> Mapping[str, int]:
    shown = service.call("GET", path).json["ensemble"]
    return {one["name"]: one["count"] for one in shown["members"]}


def claimed(service: Service, path: str, names: list[str]) -> dict[str, str]:
    """Each of these members gets a server at its place: member -> server."""
    decision = service.call("GET", path).json["ensemble"]["decision"]["id"]
    servers = {}
    for name in names:
        size = {"resources": {"VCPU": 8 if name.startswith("worker") else 4}}
        claim = {"claim": {"member": name, "server": size}}
        made = service.call("POST", f"/decisions/{decision}/claims", claim)
        assert made.status_code == 201, made.text
        servers[name] = service.ids.uuid()
        active = {"claim": {"status": "active", "server_id": servers[name]}}
        changed = service.call("PATCH", f"/claims/{made.json['claim']['id']}", active)
        assert changed.status_code == 200, changed.text
    return servers


def test_new_members_are_decided_beside_those_that_stay(service: Service, hadoop: str) -> None:
    before = members(service, hadoop)
    made = done(ask(service, hadoop, "extend", role="worker", count=3), "extend")
    assert made["members"] == ["worker[12]", "worker[13]", "worker[14]"]
    assert made["decision"]["status"] == "held"
    assert made["max_additional"]["worker"]["count"] == 5
    after = members(service, hadoop)
    assert {name: after[name]["host"] for name in before} == {
        name: one["host"] for name, one in before.items()
    }
    assert racks(service, hadoop) == [4, 4, 4, 3]


def test_all_are_placed_or_none(service: Service, hadoop: str) -> None:
    before = service.call("GET", hadoop).json
    error = refused(ask(service, hadoop, "extend", role="worker", count=9), 409, "infeasible")
    assert "one-per-host" in str(error["explanation"])
    assert service.call("GET", hadoop).json == before


def test_the_largest_step_that_fits(service: Service, hadoop: str) -> None:
    made = done(ask(service, hadoop, "extend", role="worker", count=30, least=1), "extend")
    assert len(made["members"]) == 8
    assert made["max_additional"] == {"worker": {"count": 0, "exact": True, "step": 1}}
    error = refused(
        ask(service, hadoop, "extend", role="worker", count=3, least=1), 409, "infeasible"
    )
    assert error["explanation"]["links"] or error["links"], "the refusal is kept"


def test_the_largest_step_of_whole_rounds(service: Service) -> None:
    policies = [{**HADOOP["policies"][2], "max_skew": 0}]
    body = {**HADOOP, "policies": policies}
    made = service.call("POST", "/ensembles", {"ensemble": body})
    path = f"/ensembles/{made.json['ensemble']['id']}"
    step = done(ask(service, path, "extend", role="worker", count=7, least=2), "extend")
    assert len(step["members"]) == 4


def test_a_dry_run_says_the_same_and_writes_nothing(service: Service, hadoop: str) -> None:
    before = service.call("GET", hadoop).json
    dry = done(ask(service, hadoop, "extend", dry=True, role="worker", count=3), "extend")
    assert (dry["dry_run"], len(dry["members"])) == (True, 3)
    assert service.call("GET", hadoop).json == before


def test_several_roles_are_decided_jointly(service: Service, hadoop: str) -> None:
    made = done(ask(service, hadoop, "extend", roles={"worker": 4, "master": 1}), "extend")
    assert sorted(made["max_additional"]) == ["master", "worker"]
    assert counts(service, hadoop) == {"worker": 16, "master": 3}
    refused(ask(service, hadoop, "extend", roles={"worker": 5, "master": 1}), 409, "infeasible")
    assert counts(service, hadoop) == {"worker": 16, "master": 3}


def test_a_size_is_reached_once(service: Service, hadoop: str) -> None:
    assert (
        len(done(ask(service, hadoop, "extend", role="worker", size=14), "extend")["members"]) == 2
    )
    again = done(ask(service, hadoop, "extend", role="worker", size=14), "extend")
    assert (again["members"], counts(service, hadoop)["worker"]) == ([], 14)
    assert done(ask(service, hadoop, "shrink", role="worker", size=14), "shrink")["victims"] == []
    assert (
        len(done(ask(service, hadoop, "shrink", role="worker", size=11), "shrink")["victims"]) == 3
    )


def test_sizes_of_several_roles_are_reached_once(service: Service, hadoop: str) -> None:
    wanted = {"worker": 15, "master": 3}
    first = done(ask(service, hadoop, "extend", sizes=wanted), "extend")
    assert len(first["members"]) == 4
    again = done(ask(service, hadoop, "extend", sizes=wanted), "extend")
    assert (again["members"], counts(service, hadoop)) == ([], wanted)
    ask(service, hadoop, "shrink", role="worker", count=2)
    rest = done(ask(service, hadoop, "extend", sizes={**wanted, "master": 1}), "extend")
    assert len(rest["members"]) == 2
    assert counts(service, hadoop) == wanted, "nobody leaves"
    left = done(ask(service, hadoop, "shrink", sizes={"worker": 12, "master": 4}), "shrink")
    assert {one["role"] for one in left["victims"]} == {"worker"}
    assert counts(service, hadoop) == {"worker": 12, "master": 3}
    refused(ask(service, hadoop, "extend", sizes={"worker": 99, "master": 4}), 409, "infeasible")


def test_the_largest_step_of_several_roles(service: Service, hadoop: str) -> None:
    """20 hosts let 8 more workers in: of each role equally many are missing then."""
    wanted = {"worker": 30, "master": 22}
    made = done(ask(service, hadoop, "extend", sizes=wanted, least=1), "extend")
    assert counts(service, hadoop) == {"worker": 20, "master": 12}
    assert len(made["members"]) == 18
    refused(ask(service, hadoop, "extend", sizes=wanted, least=1), 409, "infeasible")


def test_the_largest_step_counts_headroom_of_several_roles(service: Service, hadoop: str) -> None:
    body = {"headroom": {"role": "worker", "count": 8}}
    assert service.call("PUT", f"{hadoop}/headroom", body).status_code == 200
    made = done(ask(service, hadoop, "extend", roles={"worker": 9, "master": 9}, least=2), "extend")
    assert counts(service, hadoop) == {"worker": 20, "master": 10}
    assert made["from_headroom"] == 8


def test_an_extension_holds_as_long_as_the_rest(service: Service, hadoop: str) -> None:
    before = service.call("GET", hadoop).json["ensemble"]["decision"]["expires_at"]
    service.clock.pass_by(20 * MINUTE)
    made = done(ask(service, hadoop, "extend", role="worker", count=1), "extend")
    assert made["decision"]["expires_at"] == before
    longer = done(
        ask(service, hadoop, "extend", role="worker", count=1, decide={"hold": "PT2H"}), "extend"
    )
    assert longer["decision"]["expires_at"] > before


def test_members_without_a_place_stay_without(service: Service, hadoop: str) -> None:
    service.clock.pass_by(90 * MINUTE)
    made = done(ask(service, hadoop, "extend", role="worker", count=2), "extend")
    held = {one["member"] for one in made["decision"]["assignments"]}
    assert held == {"worker[12]", "worker[13]"}


def test_held_members_move_only_if_they_may() -> None:
    fleet = """
fleet: tight
topology: {location: {levels: [rack], domains: [{name: r1, level: rack}]}}
hosts:
  - {name: h1, inventories: {VCPU: 4}, place: {location: r1}}
  - {name: h2, inventories: {VCPU: 8}, place: {location: r1}}
"""
    service = Service(fleet)
    body = {
        "name": "tight",
        "members": [
            {"name": "small", "count": 1, "resources": {"VCPU": 4}},
            {"name": "large", "count": 0, "resources": {"VCPU": 8}},
        ],
        "policies": [{"name": "here", "type": "fence", "members": ["small"], "domains": ["h2"]}],
        "decide": {},
    }
    made = service.call("POST", "/ensembles", {"ensemble": body}, caller=OPERATOR)
    path = f"/ensembles/{made.json['ensemble']['id']}"
    gone = service.call(
        "DELETE", f"{path}/policies/here", caller=OPERATOR, headers={"If-Match": "*"}
    )
    assert gone.status_code == 204, gone.text

    def extended(**more: object) -> Any:
        said = {"extend": {"role": "large", "count": 1, **more}}
        return service.call("POST", f"{path}/extend", said, caller=OPERATOR)

    refused(extended(), 409, "infeasible")
    done(extended(movable=True), "extend")
    assert {n: one["host"] for n, one in members(service, path).items()} == {
        "small[0]": "h1",
        "large[0]": "h2",
    }
    service.close()


def test_a_request_is_carried_out_once(service: Service, hadoop: str) -> None:
    asked: dict[str, Any] = {"role": "worker", "count": 2, "id": REQUEST}
    first, again = (done(ask(service, hadoop, "extend", **asked), "extend") for _ in range(2))
    assert first["members"] == again["members"] == ["worker[12]", "worker[13]"]
    assert counts(service, hadoop)["worker"] == 14
    other = {**asked, "count": 3}
    refused(ask(service, hadoop, "extend", **other), 409, "duplicate_name")
    asked["id"] = REQUEST[:-1] + "e"
    gone, same = (done(ask(service, hadoop, "shrink", **asked), "shrink") for _ in range(2))
    assert gone["victims"] == same["victims"]
    assert counts(service, hadoop)["worker"] == 12


def test_who_leaves_keeps_the_racks_even(service: Service, hadoop: str) -> None:
    done(ask(service, hadoop, "extend", role="worker", count=3), "extend")
    dry = done(ask(service, hadoop, "shrink", dry=True, role="worker", count=4), "shrink")
    assert sorted(dry["after"]["worker"]["rack"].values()) == [2, 3, 3, 3]
    assert counts(service, hadoop)["worker"] == 15
    made = done(ask(service, hadoop, "shrink", role="worker", count=4), "shrink")
    assert made["victims"] == dry["victims"]
    assert racks(service, hadoop) == [3, 3, 3, 2]
    shown = service.call("GET", hadoop, query={"compliance": "true"}).json["ensemble"]
    assert shown["compliance"] == []
    assert len(shown["decision"]["assignments"]) == 13


def test_members_with_servers_leave_last_and_their_servers_stay(
    service: Service, hadoop: str
) -> None:
    servers = claimed(service, hadoop, [f"worker[{n}]" for n in range(10)])
    made = done(ask(service, hadoop, "shrink", role="worker", count=4), "shrink")
    gone = {one["name"]: one["server_id"] for one in made["victims"]}
    assert list(gone.values()).count(None) == 2, "the two without a server are in different racks"
    for name, server in gone.items():
        if server is not None:
            assert server == servers[name]
            assert service.store.consumer(server) is not None
    assert racks(service, hadoop) == [2, 2, 2, 2]


def test_members_with_servers_may_be_kept(service: Service, hadoop: str) -> None:
    claimed(service, hadoop, [f"worker[{n}]" for n in range(11)])
    error = refused(
        ask(service, hadoop, "shrink", role="worker", count=2, servers=False),
        400,
        "invalid_description",
    )
    assert error["path"] == "servers"
    made = done(ask(service, hadoop, "shrink", role="worker", count=1, servers=False), "shrink")
    assert [one["name"] for one in made["victims"]] == ["worker[11]"]


def test_preferred_members_leave_if_the_policies_allow_it(service: Service, hadoop: str) -> None:
    made = done(
        ask(service, hadoop, "shrink", role="worker", count=1, prefer=["worker[3]"]), "shrink"
    )
    assert [one["name"] for one in made["victims"]] == ["worker[3]"]
    rack = members(service, hadoop)
    same = [n for n, one in rack.items() if one["role"] == "worker"]
    by_rack: dict[str, list[str]] = {}
    for name in same:
        by_rack.setdefault(rack[name]["domains"]["rack"], []).append(name)
    full = max(by_rack.values(), key=len)
    made = done(ask(service, hadoop, "shrink", role="worker", count=2, prefer=full[:2]), "shrink")
    gone = {one["name"] for one in made["victims"]}
    assert len(gone & set(full[:2])) == 1, "both would leave the racks uneven"


def test_a_shrinking_that_no_choice_of_members_allows(service: Service, hadoop: str) -> None:
    before = service.call("GET", hadoop).json
    error = refused(
        ask(service, hadoop, "shrink", role="master", count=1), 409, "would_break_policy"
    )
    assert [one["policy"] for one in error["violations"]] == ["masters"]
    assert service.call("GET", hadoop).json == before


def test_everybody_may_leave(service: Service, hadoop: str) -> None:
    done(ask(service, hadoop, "shrink", roles={"worker": 12}), "shrink")
    assert counts(service, hadoop) == {"worker": 0, "master": 2}
    made = done(ask(service, hadoop, "extend", role="worker", count=4), "extend")
    assert made["members"] == [f"worker[{n}]" for n in range(4)]


def test_the_first_member_of_a_group_that_was_never_decided(service: Service) -> None:
    body = {
        "name": "group",
        "members": [{"name": "web", "count": 0, "resources": {"VCPU": 8}}],
        "policies": [{"name": "apart", "type": "anti-affinity", "members": ["web"]}],
    }
    made = service.call("POST", "/ensembles", {"ensemble": body})
    assert made.status_code == 201, made.text
    path = f"/ensembles/{made.json['ensemble']['id']}"
    assert done(ask(service, path, "extend", role="web", size=0), "extend")["decision"] is None
    first = done(ask(service, path, "extend", role="web", count=25, least=1), "extend")
    assert len(first["members"]) == 20


@pytest.mark.parametrize(
    ("verb", "body", "path"),
    [
        ("extend", {"role": "worker"}, "role"),
        ("extend", {"count": 1}, "role"),
        ("extend", {"role": "worker", "count": 1, "size": 2}, "role"),
        ("extend", {"role": "worker", "roles": {"worker": 1}}, "roles"),
        ("extend", {"role": "absent", "count": 1}, "role"),
        ("extend", {"role": "worker", "count": 0}, "extend.count"),
        ("extend", {"role": "worker", "count": 2, "least": 3}, "least"),
        ("extend", {"roles": {"worker": 2, "master": 1}, "least": 3}, "least"),
        ("extend", {"roles": {"worker": 2}, "sizes": {"master": 3}}, "roles"),
        ("extend", {"role": "worker", "sizes": {"master": 3}}, "sizes"),
        ("extend", {"sizes": {"absent": 3}}, "role"),
        ("shrink", {"role": "worker", "count": 13}, "count"),
        ("shrink", {"role": "worker", "count": 1, "prefer": ["worker"]}, "member"),
        ("shrink", {"role": "worker", "count": 1, "least": 1}, "shrink"),
    ],
)
def test_wrong_requests_are_refused_by_their_place(
    service: Service, hadoop: str, verb: str, body: dict[str, Any], path: str
) -> None:
    before = service.call("GET", hadoop).json
    error = refused(ask(service, hadoop, verb, **body), 400, "invalid_description")
    assert error["path"] == path
    assert service.call("GET", hadoop).json == before


def test_whose_ensemble_it_is(service: Service, hadoop: str) -> None:
    for verb in ("extend", "shrink"):
        body = {verb: {"role": "worker", "count": 1}}
        refused(service.call("POST", f"{hadoop}/{verb}", body, caller=OTHER), 404, "not_found")
        refused(service.call("POST", f"{hadoop}/{verb}", body, caller=READER), 403, "forbidden")
    refused(
        ask(service, hadoop, "shrink", role="worker", count=1, prefer=["worker[99]"]),
        404,
        "not_found",
    )


def test_how_many_sets_of_roles_fit(service: Service, hadoop: str) -> None:
    asked = {"max_additional": ["worker+master", "worker", "master"]}
    body = {"extend": {"role": "worker", "count": 1, "decide": asked}}
    # An operator: tenants are told rounded numbers.
    answer = service.call(
        "POST", f"{hadoop}/extend", body, caller=OPERATOR, query={"dry_run": "true"}
    )
    made = done(answer, "extend")
    found = {name: one["count"] for name, one in made["max_additional"].items()}
    assert (found["worker"], found["worker+master"]) == (7, 7)
    grown = done(ask(service, hadoop, "extend", roles={"worker": 8, "master": 7}), "extend")
    assert len(grown["members"]) == 15
    for wrong in (["worker+absent"], ["worker+worker"], ["worker+"]):
        answer = ask(
            service, hadoop, "extend", role="worker", count=1, decide={"max_additional": wrong}
        )
        assert refused(answer, 400, "invalid_description")["path"] == "max_additional"
