"""The tenant's commands over a running simulation of three racks."""

import json
import re
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from moorage.cli.ensemble import survived

pytestmark = pytest.mark.process

WEB = """\
name: {name}
members: [{{name: web, count: 2, flavor: m1.small}}]
policies: [{{name: apart, type: anti-affinity, members: [web], level: rack}}]
"""


@pytest.fixture
def web(sim: Any, tmp_path: Path) -> Iterator[str]:
    """A small ensemble that is placed and held; its id."""
    file = tmp_path / "web.yaml"
    file.write_text(WEB.format(name=f"web-{uuid.uuid4().hex[:8]}"), encoding="utf-8")
    made = sim.body("ensemble", "create", "-f", str(file), "--hold", "30m")
    yield made["ensemble"]["id"]
    sim("ensemble", "delete", made["ensemble"]["id"])


def test_create_says_it_in_one_line(sim: Any, tmp_path: Path) -> None:
    told = sim("ensemble", "create", "--server", "m1.small", "--count", "2", "--hold", "10m")
    assert re.fullmatch(
        r"id [0-9a-f]{8}  decision [0-9a-f]{8} held until \d\d:\d\d:\d\dZ"
        r"  max additional: server \d+\+?\n",
        told.out,
    ), told
    assert sim("ensemble", "delete", told.out.split()[1]).status == 0


def test_the_description_may_stand_alone(sim: Any, tmp_path: Path) -> None:
    file = tmp_path / "alone.yaml"
    file.write_text(WEB.format(name=f"alone-{uuid.uuid4().hex[:8]}"), encoding="utf-8")
    assert sim("ensemble", "create", str(file), "--dry-run").out.startswith("verdict feasible")
    for more in (("-f", str(file)), ("--server", "m1.small")):
        told = sim("ensemble", "create", str(file), *more, "--dry-run")
        assert (told.status, "give one of FILE, -f/--file and --server" in told.err) == (2, True)


def test_a_dry_run_writes_nothing(sim: Any) -> None:
    before = sim.body("ensemble", "list")
    told = sim("ensemble", "create", "--server", "m1.small", "--name", "ghost", "--dry-run")
    assert told.status == 0
    assert told.out.startswith("verdict feasible (computed at revision ")
    assert sim.body("ensemble", "list") == before


def test_a_stay_may_have_an_end_and_yield(sim: Any) -> None:
    words = ("ensemble", "create", "--server", "m1.small", "--until", "2026-11-23 08:00")
    told = sim(*words, "--preemptible")
    assert "  stays until 2026-11-23T08:00Z  preemptible  max additional" in told.out, told
    ensemble = told.out.split()[1]
    shown = sim("decision", "show", ensemble).out
    assert "2026-11-21T09:00Z .. 2026-11-23T08:00Z, preemptible" in shown
    decision = sim.body("decision", "show", ensemble)["decision"]
    assert decision["interval"]["end"] == "2026-11-23T08:00:00Z"
    assert "stays until" in sim(*words, "--name", "another", "--dry-run").out
    assert sim(*words[:-1], "next week").status == 2
    assert sim("ensemble", "delete", ensemble).status == 0


def test_description_only(sim: Any) -> None:
    made = sim.body("ensemble", "create", "--server", "m1.small", "--describe-only")["ensemble"]
    members = sim.body("member", "list", made["id"])["members"]
    assert [one["status"] for one in members] == ["unplaced"]
    assert sim("ensemble", "show", made["id"], "--map").status == 6
    assert sim("ensemble", "delete", made["id"]).status == 0


@pytest.mark.parametrize("how", [str, lambda text: text[:6]], ids=["id", "beginning"])
def test_an_ensemble_is_found_by(how: Any, sim: Any, web: str) -> None:
    assert sim.body("ensemble", "show", how(web))["ensemble"]["id"] == web


def test_an_ensemble_is_found_by_name_and_shown(sim: Any, web: str) -> None:
    name = sim.body("ensemble", "show", web)["ensemble"]["name"]
    told = sim("ensemble", "show", name)
    assert told.status == 0
    for said in (web, name, "m1.small", "anti-affinity", "yes (slack 0)"):
        assert said in told.out
    assert name in sim("ensemble", "list").out


KINDS = """\
name: {name}
members:
  - {{name: db, flavor: m1.small}}
  - name: gate
    alternatives: [{{kind: volume, resources: {{DISK_GB: 1}}}}, {{flavor: m1.small}}]
"""


def test_kinds_of_members_are_shown_where_not_all_are_servers(
    sim: Any, web: str, tmp_path: Path
) -> None:
    assert " kind " not in sim("ensemble", "show", web).out
    file, name = tmp_path / "kinds.yaml", f"kinds-{web[:8]}"
    file.write_text(KINDS.format(name=name), encoding="utf-8")
    made = sim("ensemble", "create", "-f", str(file), "--describe-only")
    assert made.status == 0, made
    lines = [line.split() for line in sim("ensemble", "show", name).out.splitlines()]
    assert ["role", "kind", "count", "flavor", "resources"] in lines
    assert ["0", "volume", "0", "-", "DISK_GB=1"] in lines
    assert sum(line[1:2] == ["server"] for line in lines) == 2
    assert sim("ensemble", "delete", name).status == 0


def test_the_map_shows_both_on_different_racks(sim: Any, web: str) -> None:
    heads, _, *rows = sim("ensemble", "show", web, "--map").out.splitlines()
    assert len(re.findall(r"rack r\d", heads)) == 2
    assert "web[0]" in rows[0]
    assert "web[1]" in rows[0]


def test_members_are_listed(sim: Any, web: str) -> None:
    told = sim("member", "list", web)
    assert [line.split()[:2] for line in told.out.splitlines()[2:]] == [
        ["web[0]", "held"],
        ["web[1]", "held"],
    ]


def test_what_does_not_exist_is_status_6(sim: Any) -> None:
    for words in (
        ("ensemble", "show", "nobody"),
        ("ensemble", "show", str(uuid.uuid4())),
        ("decision", "show", str(uuid.uuid4())),
        ("claim", "show", "ffff"),
    ):
        told = sim(*words)
        assert told.status == 6, words
        assert len(told.err.splitlines()) == 1


def test_a_decision_is_shown_renewed_and_released(sim: Any, web: str) -> None:
    shown = sim("decision", "show", web)
    assert "found by" in shown.out
    assert "host" in shown.out
    decision = sim.body("decision", "list", "--ensemble", web)["decisions"][0]["id"]
    renewed = sim("decision", "renew", decision[:8], "--hold", "1h")
    assert re.match(rf"decision {decision[:8]} held until \d\d:00:00Z", renewed.out)
    assert sim("decision", "release", decision[:8]).out == f"released {decision[:8]}\n"
    assert sim("decision", "renew", decision, "--hold", "1h").status == 4
    members = sim.body("member", "list", web)["members"]
    assert {one["status"] for one in members} == {"unplaced"}


def test_too_long_a_hold_is_status_5(sim: Any, web: str) -> None:
    told = sim("decision", "renew", web, "--hold", "100d")
    assert told.status == 5
    assert "hold: 4h at most (longest_hold), not 100d" in told.err


def test_claims_from_building_to_active_and_failed(sim: Any, web: str) -> None:
    first = sim("claim", "create", web, "web[0]", "--flavor", "m1.small", "--image", "debian")
    assert re.fullmatch(
        r"claim [0-9a-f]{8}  building   web\[0\] at zone az1, rack r\d, host h\d\n"
        r"present as X-Openstack-Request-Id: req-[0-9a-f-]{36}\n",
        first.out,
    )
    claim = first.out.split()[1]
    server = str(uuid.uuid4())
    active = sim("claim", "set", claim, "--active", "--server", server)
    assert active.out == f"claim {claim}  web[0]  active  server {server}\n"
    assert sim("claim", "set", claim, "--failed").status == 4
    for words in (("--failed", "--server", server), ("--ended", "--server", server), ("--active",)):
        assert sim("claim", "set", claim, *words).status == 2
    assert server in sim("claim", "show", claim).out
    second = sim("claim", "create", web, "web[1]", "--flavor", "m1.small").out.split()[1]
    assert sim("claim", "set", second, "--failed").out == f"claim {second}  web[1]  failed\n"
    listed = sim("claim", "list", web).out
    assert [line.split()[2] for line in listed.splitlines()[2:]] == ["active", "failed"]


def test_what_has_servers_is_deleted_only_when_that_is_confirmed(sim: Any, web: str) -> None:
    claim = sim.body("claim", "create", web, "web[0]", "--flavor", "m1.small")
    assert claim["claim"]["member"] == "web[0]"
    refused = sim("ensemble", "delete", web)
    assert refused.status == 4
    assert "web[0] building: their servers stay where they are, without its policies" in refused.err
    assert "repeat with --yes to delete the ensemble" in refused.err
    assert sim("ensemble", "show", web).status == 0
    told = sim("ensemble", "delete", web, "--yes")
    assert told.status == 0
    assert told.out.endswith(", freed 1 held place: web[1]\n")


def test_a_server_that_differs_is_status_4(sim: Any, web: str) -> None:
    told = sim("claim", "create", web, "web[0]", "--flavor", "m1.xlarge")
    assert told.status == 4
    assert told.err.startswith(
        "409 ensemble.description_mismatch: flavor.VCPU described 1 requested 8 (exceeds)"
    )
    body = sim("claim", "create", web, "web[0]", "--flavor", "m1.xlarge", "-f", "json")
    assert body.status == 4
    assert body.body["errors"][0]["code"] == "ensemble.description_mismatch"


def test_confirm_frees_what_is_not_claimed(sim: Any, web: str) -> None:
    sim("claim", "create", web, "web[0]", "--flavor", "m1.small")
    told = sim("ensemble", "confirm", web, "--yes")
    assert told.out == "confirmed 1/2 claimed, 1 released: web[1]\n"
    again = sim("ensemble", "confirm", web)
    assert (again.status, again.out) == (0, "confirmed 1/2 claimed, 0 released\n"), again


def test_set_changes_counts_and_policies(sim: Any, web: str) -> None:
    grown = sim("ensemble", "set", web, "--member", "web:count=3")
    assert (grown.status, "policies 1/1" in grown.out) == (0, True), grown
    refused = sim("ensemble", "set", web, "--member", "web:count=4")
    assert refused.status == 3
    assert refused.err.splitlines()[0].startswith("infeasible [")
    soft = sim(
        "ensemble", "set", web, "--policy", "apart:max_per_domain=2", "--member", "web:count=4"
    )
    assert soft.status == 0, soft
    renamed = sim("ensemble", "set", web, "--name", f"new-{web[:8]}")
    assert renamed.status == 0, renamed
    assert sim("ensemble", "show", f"new-{web[:8]}").status == 0


def test_what_options_say_is_not_blamed_on_the_file(sim: Any, tmp_path: Path) -> None:
    file = tmp_path / "web.yaml"
    file.write_text(WEB.format(name="late"), encoding="utf-8")
    told = sim("ensemble", "create", "-f", str(file), "--until", "2020-01-01")
    assert "invalid_description: --until: the end of the stay lies in the past" in told.err
    assert "web.yaml" not in told.err


def test_what_is_not_there_is_answered_with_what_is(sim: Any, web: str, tmp_path: Path) -> None:
    (tmp_path / "web.yaml").touch()
    told = sim("ensemble", "create", "-f", str(tmp_path / "web.yml"))
    assert told.err.endswith("web.yml: no such file; did you mean web.yaml?\n")
    told = sim("sim", "start", "--fleet", "three-rack.yaml", "--name", "other")
    assert told.err == "three-rack.yaml: no such file; did you mean three-racks.yaml?\n"
    assert sim("lease", "show", "L99").err == "no lease L99; to see them: moorage lease list\n"
    told = sim("capacity", "fit", "--flavor", "m1.smal")
    assert "no flavor m1.smal; did you mean m1.small?" in told.err
    told = sim("ensemble", "set", web, "--member", "web:flavor=gold")
    assert "no such flavor: gold; there are: m1.2xlarge, m1.medium, m1.small," in told.err


def test_set_takes_roles_that_there_are(sim: Any, web: str) -> None:
    told = sim("ensemble", "set", web, "--member", "wbe:flavor=m1.small")
    assert told.status == 2, told
    line = told.err.splitlines()[-1]
    assert f"{web} has no role wbe; did you mean web?; its roles: web; to add one:" in line
    assert f"moorage member add {web} --role wbe --flavor FLAVOR" in line
    assert [one["role"] for one in sim.body("member", "list", web)["members"]] == ["web", "web"]


def test_set_gives_a_role_another_flavor(sim: Any, web: str) -> None:
    tried = sim("ensemble", "set", web, "--member", "web:flavor=m1.medium", "--dry-run")
    assert (tried.status, "verdict feasible" in tried.out) == (0, True), tried
    made = sim("ensemble", "set", web, "--member", "web:flavor=m1.medium")
    assert (made.status, " held until " in made.out) == (0, True), made
    (role,) = sim.body("ensemble", "show", web)["ensemble"]["members"]
    assert role["flavor"] == "m1.medium"


def test_an_infeasible_answer_is_the_api_s_body_in_json(sim: Any, web: str) -> None:
    told = sim("ensemble", "set", web, "--member", "web:count=4", "--dry-run", "-f", "json")
    assert told.status == 3
    error = told.body["errors"][0]
    assert error["code"] == "ensemble.infeasible"
    assert error["explanation"]["minimal"]
    assert all(one["verified"] for one in error["explanation"]["relaxations"])


def test_a_saved_problem_is_replayed(sim: Any, web: str, tmp_path: Path) -> None:
    error = sim("ensemble", "set", web, "--member", "web:count=4", "-f", "json").body["errors"][0]
    saved = tmp_path / "instance.json"
    told = sim("replay", error["explanation"]["id"], "--save", str(saved))
    assert re.fullmatch(r"infeasible by \w+ in \d+ ms, as recorded\n", told.out), told
    again = sim.body("replay", str(saved))["replay"]
    assert (again["verdict"], again["recorded"], again["same"]) == (
        "infeasible",
        "infeasible",
        True,
    )
    document = json.loads(saved.read_text("utf-8"))
    saved.write_text(json.dumps(document | {"recorded": "feasible"}), encoding="utf-8")
    differs = sim("replay", str(saved))
    assert (differs.status, "DIFFERS: recorded feasible" in differs.out) == (1, True)
    for other in ("{}", "[1]", "words", '{"record": {"instance": {}}}', '{"record": {}}'):
        saved.write_text(other, encoding="utf-8")
        wrong = sim("replay", str(saved))
        assert (wrong.status, wrong.out) == (2, ""), wrong
        assert "has neither an instance nor a decision's record" in wrong.err


def test_a_decision_is_replayed_from_its_record(sim: Any, web: str, tmp_path: Path) -> None:
    saved = tmp_path / "record.json"
    told = sim("replay", web, "--save", str(saved))
    assert told.out.endswith("; the same places, as recorded\n"), told
    again = sim.body("replay", str(saved))["replay"]
    assert (again["same"], again["same_places"]) == (True, True)
    assert "replay " in sim("decision", "show", web, "--record").out
    document = json.loads(saved.read_text("utf-8"))
    document["record"]["places"] = "elsewhere"
    saved.write_text(json.dumps(document), encoding="utf-8")
    other = sim("replay", str(saved))
    assert (other.status, "other places at the recorded cost" in other.out) == (0, True)
    document["record"]["solve"]["value"] += 1
    saved.write_text(json.dumps(document), encoding="utf-8")
    differs = sim("replay", str(saved))
    assert (differs.status, "DIFFERS: other places" in differs.out) == (1, True)


def test_a_server_joins_and_leaves(sim: Any, web: str) -> None:
    other = sim.body("ensemble", "create", "--server", "m1.small")["ensemble"]["id"]
    claim = sim("claim", "create", other, "server[0]", "--flavor", "m1.small").out.split()[1]
    server = str(uuid.uuid4())
    sim("claim", "set", claim, "--active", "--server", server)
    sim("ensemble", "delete", other, "--yes")
    joined = sim(
        *("member", "add", web, "--role", "web", "--server", server),
        *("--on-violation", "accept_and_report"),
    )
    assert joined.status == 0, joined
    listed = sim.body("member", "list", web)["members"]
    newcomer = next(one["name"] for one in listed if one["server_id"] == server)
    left = sim("member", "remove", web, newcomer, "--keep-resources")
    assert left.out == f"{newcomer} removed from {web[:8]}\n", left
    assert len(sim.body("member", "list", web)["members"]) == 2


def test_members_are_described_and_placed_beside_the_others(sim: Any, web: str) -> None:
    told = sim("member", "add", web, "--role", "cache", "--flavor", "m1.small", "--count", "2")
    assert told.status == 0, told
    statuses = {one["status"] for one in sim.body("member", "list", web)["members"]}
    assert statuses == {"held"}


def test_projects_do_not_see_each_other(sim: Any) -> None:
    mine, yours = sim.as_tenant("mine"), sim.as_tenant("yours")
    made = mine.body("ensemble", "create", "--server", "m1.small", "--name", "secret")["ensemble"]
    assert "secret" in mine("ensemble", "list").out
    assert "secret" not in yours("ensemble", "list").out
    for words in (
        ("ensemble", "show", made["id"]),
        ("ensemble", "delete", made["id"]),
        ("member", "list", made["id"]),
    ):
        assert yours(*words).status == 6
    assert "secret" in sim("ensemble", "list", "--all-projects").out
    assert yours("fleet", "show").status == 5
    assert mine.as_tenant("mine", "reader")("ensemble", "delete", made["id"]).status == 5
    assert mine("ensemble", "delete", made["id"]).status == 0


def test_servers_of_one_flavor_are_created_again_under_a_number(sim: Any) -> None:
    words = ("ensemble", "create", "--server", "m1.small", "--hold", "10m")
    made = [sim.body(*words)["ensemble"] for _ in range(3)]
    assert [one["name"] for one in made] == ["m1.small", "m1.small-2", "m1.small-3"]
    named = sim(*words, "--name", "m1.small")
    assert named.status == 4
    assert "another name: --name" in named.err
    for one in made:
        assert sim("ensemble", "delete", one["id"]).status == 0


@pytest.mark.parametrize(
    "words",
    [
        ("ensemble", "create", "--server", "m1.small"),
        ("ensemble", "set", "web"),
        ("lease", "create", "--flavor", "m1.small", "--duration", "1h"),
        ("hot", "place", "stack.yaml"),
        ("offer", "create", "--flavor", "m1.small", "--duration", "1h"),
        ("offer", "accept", "6f0c"),
        ("subscription", "create", "--event", "lease.*", "--url", "http://127.0.0.1:9/"),
        ("template", "instantiate", "upf"),
    ],
)
def test_an_empty_name_is_refused(offline: Any, words: tuple[str, ...]) -> None:
    for empty in ("", "  "):
        told = offline(*words, "--name", empty)
        assert told.status == 2
        assert "argument --name: a name must not be empty" in told.err


def test_a_name_means_the_ensemble_with_places(sim: Any, tmp_path: Path) -> None:
    file, name = tmp_path / "shop.yaml", f"shop-{uuid.uuid4().hex[:8]}"
    file.write_text(WEB.format(name=name), encoding="utf-8")
    first = sim.body("ensemble", "create", "-f", str(file), "--hold", "30m")["ensemble"]["id"]
    assert sim("ensemble", "confirm", first, "--yes").status == 0
    second = sim.body("ensemble", "create", "-f", str(file), "--hold", "30m")["ensemble"]["id"]
    assert sim.body("ensemble", "show", name)["ensemble"]["id"] == second
    for each in (first, second):
        assert sim("ensemble", "delete", each).status == 0


@pytest.mark.parametrize(
    ("in_service", "told"),
    [
        (2, "lose any 1 rack: no role keeps a member: each is in one rack"),
        (0, "lose any 1 rack: db keeps 0 of 2 NONE LEFT"),
    ],
)
def test_survivability_says_why_no_member_is_kept(in_service: int, told: str) -> None:
    role = {"role": "db", "total": 2, "in_service": in_service, "keeps": 0, "needed": 1}
    level = {"level": "rack", "lose": 1, "roles": [{**role, "ok": False}]}
    assert survived({"survivability": [level]}) == told
