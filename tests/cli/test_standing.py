"""What is told of an ensemble is how it stands now, not what was decided once."""

import json
import re
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.cli.bodies import body
from tests.cli.conftest import Cli, started

from moorage.cli.ensemble import policy_states
from moorage.wire.ensembles import Ensemble, Role, Violation
from moorage.wire.members import Member

pytestmark = pytest.mark.process

WEB = """\
name: {name}
members: [{{name: web, count: 2, flavor: m1.small}}]
policies: [{{name: apart, type: anti-affinity, members: [web]}}]
"""


@pytest.fixture(scope="module")
def sim(state: Path) -> Cli:
    """One of its own, without the rack that neighbours fill: a server is put beside the first."""
    sim = started(state, "standing")
    for host in ("h7", "h8", "h9"):
        assert sim("host", "close", host, "--reason", "full").status == 0
    return sim


@pytest.fixture
def web(sim: Any, tmp_path: Path) -> Iterator[str]:
    """Two web servers on hosts of their own, held; the ensemble's id."""
    file = tmp_path / "web.yaml"
    file.write_text(WEB.format(name=f"web-{uuid.uuid4().hex[:8]}"), encoding="utf-8")
    made = sim.body("ensemble", "create", "-f", str(file), "--hold", "30m")
    yield made["ensemble"]["id"]
    sim("ensemble", "delete", made["ensemble"]["id"])


def joined_on(sim: Any, host: str) -> str:
    """A server that runs on that host, of no ensemble."""
    fence = {"name": "there", "type": "fence", "members": ["one"], "domains": [host]}
    file = Path(sim.environment["XDG_STATE_HOME"]) / "one.json"
    role = {"name": "one", "flavor": "m1.small"}
    file.write_text(
        json.dumps({"name": "one", "members": [role], "policies": [fence]}), encoding="utf-8"
    )
    other = sim.body("ensemble", "create", "-f", str(file))["ensemble"]["id"]
    claim = sim("claim", "create", other, "one[0]", "--flavor", "m1.small").out.split()[1]
    server = str(uuid.uuid4())
    assert sim("claim", "set", claim, "--active", "--server", server).status == 0
    assert sim("ensemble", "delete", other, "--yes").status == 0
    return server


def test_a_server_that_broke_a_policy_is_seen_and_drawn(sim: Any, web: str) -> None:
    host = sim.body("member", "list", web)["members"][0]["domains"]["host"]
    server = joined_on(sim, host)
    words = ("--role", "web", "--server", server, "--on-violation", "accept_and_report")
    assert sim("member", "add", web, *words).status == 0
    shown = sim("ensemble", "show", web).out
    assert "yes" not in shown
    assert f"VIOLATED apart: host {host}" in shown
    assert f"{host}  web[0,2]" in sim("ensemble", "show", web, "--map").out
    for dry in (["--dry-run"], []):
        grown = sim("member", "add", web, "--role", "web", *dry)
        assert grown.status == 0, grown
        assert "policies 0/1 (apart: violated (standing))" in grown.out


def test_what_confirm_gave_back_is_not_met(sim: Any, web: str) -> None:
    assert "yes (slack" in sim("ensemble", "show", web).out
    sim("claim", "create", web, "web[0]", "--flavor", "m1.small")
    assert sim("ensemble", "confirm", web, "--yes").status == 0
    assert "so far (1 of 2 placed)" in sim("ensemble", "show", web).out
    drawn = sim("ensemble", "show", web, "--map").out
    assert drawn.endswith("not placed: web[1]\n")


def test_claims_are_listed_when_nothing_is_in_force(sim: Any, web: str) -> None:
    sim("claim", "create", web, "web[0]", "--flavor", "m1.small")
    assert sim("decision", "release", web).status == 0
    assert "released (past places" in sim("decision", "show", web).out
    listed = sim("claim", "list", web)
    assert listed.status == 0, listed
    assert "web[0]" in listed.out
    again = sim("claim", "create", web, "web[1]", "--flavor", "m1.small")
    assert again.status == 4, again
    assert re.fullmatch(
        rf"{web} has no place for web\[1\]: decision \w{{8}} is released; to place it: (.*)\n",
        again.err,
    ), again
    refused = sim("ensemble", "confirm", web)
    assert refused.status == 4, refused
    assert "no decision in force" not in refused.err


def test_the_command_that_a_refusal_names_places_the_members_anew(sim: Any, web: str) -> None:
    assert sim("decision", "release", web).status == 0
    refused = sim("claim", "create", web, "web[1]", "--flavor", "m1.small")
    _, _, command = refused.err.strip().partition("to place it: moorage ")
    tried = sim("decision", "create", web, "--dry-run")
    assert "verdict feasible" in tried.out
    placed = sim(*command.split())
    assert (placed.status, " held until " in placed.out) == (0, True), placed
    assert sim("claim", "create", web, "web[1]", "--flavor", "m1.small").status == 0
    assert sim("decision", "create", web).status == 0
    members = sim.body("member", "list", web)["members"]
    assert [one["status"] for one in members] == ["held", "building"]


def test_more_of_a_role_needs_no_flavor(sim: Any, web: str) -> None:
    told = sim("member", "add", web, "--role", "web", "--count", "2")
    assert told.status == 0, told
    assert len(sim.body("member", "list", web)["members"]) == 4
    assert sim("member", "add", web, "--role", "web").status == 0
    assert len(sim.body("member", "list", web)["members"]) == 5
    both = sim("member", "add", web, "--role", "web", "--server", web, "--count", "2")
    assert "not with --server" in both.err


def test_a_resource_that_no_host_has_is_an_error(sim: Any) -> None:
    told = sim("fleet", "show", "--resource", "NOPE")
    assert told.status == 1
    assert "no host has NOPE; there are: " in told.err
    assert "VCPU" in told.err


@pytest.mark.parametrize(
    ("selectors", "said"),
    [
        ({"members": ["a"]}, "NO"),
        ({"members": ["a"], "strength": {"preferred": 2}}, "no"),
        ({"zip": ["b", "b"]}, "so far (1 of 2 placed)"),
        ({"members": [{"tag": "t"}]}, "yes"),
        ({"members": ["tag:t", "b[0]"]}, "yes"),
        ({"members": ["b[1]"]}, "-"),
    ],
)
def test_a_policy_stands_as_its_members_do(selectors: Any, said: str) -> None:
    policy = {"name": "p", "type": "affinity", **selectors}
    broken = [Violation("p", [], "text", 1)] if selectors.get("members") == ["a"] else []
    ensemble = body(
        Ensemble,
        members=[
            body(Role, name="a"),
            body(Role, name="b", count=2),
            body(Role, name="c", tags=["t"]),
        ],
        policies=[policy],
        compliance=broken,
    )
    members = [
        body(Member, name=f"{role}[{number}]", role=role, status=status)
        for role, number, status in (
            ("a", 0, "held"),
            ("b", 0, "active"),
            ("b", 1, "unplaced"),
            ("c", 0, "held"),
        )
    ]
    assert policy_states(ensemble, members) == [said]


@pytest.mark.parametrize("where", ["missing/placed.yaml", ""])
def test_what_cannot_be_written_is_not_decided(where: str, sim: Any, tmp_path: Path) -> None:
    words = ("--emit", str(tmp_path / where), "--name", "unwritten")
    told = sim("hot", "place", "shop-hot.yaml", "-e", "env.yaml", *words)
    assert told.status == 1, told
    assert "unwritten" not in sim("ensemble", "list").out


def test_f_is_the_format_beside_a_flavor_too(sim: Any) -> None:
    words = ("ensemble", "create", "--server", "m1.small", "--dry-run")
    assert sim(*words, "-f", "json").body["decision"]["assignments"]
    assert sim(*words, "-f", "shop.yaml").status == 2
    assert sim("ensemble", "create", "-f", "shop.yaml", *words[2:]).status == 2
    told = sim("ensemble", "create", "-f", "json")
    assert told.status == 2
    assert "required" in told.err


def test_a_member_placed_anew_is_told_with_its_decision(sim: Any, web: str) -> None:
    words = ("--flavor", "m1.medium", "--on-mismatch", "redecide_member")
    told = sim("claim", "create", web, "web[0]", *words)
    assert re.search(r"\nweb\[0\] now at .*host h\d  decision \w{8} held", told.out), told
    second = sim("claim", "create", web, "web[1]", "--flavor", "m1.small").out.split()[1]
    told = sim("claim", "set", second, "--failed", "--redecide")
    assert re.search(r"\nweb\[1\] now at .*host h\d  decision \w{8} held", told.out), told


def test_decisions_are_listed_whole_in_80_columns(sim: Any, web: str) -> None:
    narrow = type(sim)(sim.environment | {"COLUMNS": "80"})
    lines = narrow("decision", "list", "--ensemble", web).out.splitlines()
    assert len(lines) == 3
    assert max(map(len, lines)) <= 80


def judged(sim: Any, ensemble: str, wanted: str, *words: str) -> Any:
    """What `ensemble compliance` says once its records are there, or what it says after 100 s."""
    ends = time.monotonic() + 100
    while wanted not in (found := sim("ensemble", "compliance", ensemble, *words)).out:
        assert time.monotonic() < ends, found
        time.sleep(0.1)
    return found


def test_compliance_has_an_exit_status_and_a_history(sim: Any, web: str) -> None:
    well = sim("ensemble", "compliance", web)
    assert (well.status, well.out) == (0, "compliant\n")
    host = sim.body("member", "list", web)["members"][0]["domains"]["host"]
    assert sim("sim", "fail", "--host", host).status == 0
    try:
        ill = judged(sim, web, "(since 09:00:00Z)")
        assert ill.status == 4
        why = f"{host}: service down"
        said = f"LOST web[0] (since 09:00:00Z): its host is out of service ({why})\n"
        assert ill.out == said
        shown = sim("ensemble", "compliance", web, "-f", "json")
        assert shown.status == 4
        assert shown.body["compliance"]["compliant"] is False
        listed = sim("violation", "list", "--ensemble", web, "-f", "value", "-c", "what")
        assert listed.out == "member web[0]\n"
        by_host = sim("violation", "list", "--host", host, "--all-projects", "-c", "members")
        assert "web[0]" in by_host.out
        assert "web[0]" not in sim("violation", "list", "--type", "at_risk").out
        column = sim("ensemble", "list", "-f", "value", "-c", "id", "-c", "broken").out
        assert f"{web} 1" in column
    finally:
        assert sim("sim", "recover", "--host", host).status == 0
    after = judged(sim, web, "member web[0]", "--history")
    assert (after.status, after.out.splitlines()[0]) == (0, "compliant")
    tenant = sim.as_tenant("admin")("ensemble", "compliance", web, "--history")
    assert host not in tenant.out
    assert sim.as_tenant("nobody")("ensemble", "compliance", web).status == 6


def test_a_preferred_policy_that_is_not_met_is_no_failure(sim: Any, tmp_path: Path) -> None:
    file = tmp_path / "together.yaml"
    policy = "{name: near, type: affinity, members: [web], level: host, strength: {preferred: 1}}"
    text = WEB.format(name="torn").replace("policies: [", f"policies: [{policy}, ")
    file.write_text(text, encoding="utf-8")
    made = sim.body("ensemble", "create", "-f", str(file), "--hold", "30m")["ensemble"]["id"]
    told = sim("ensemble", "compliance", made)
    assert told.status == 0, told
    assert told.out.splitlines()[0] == "compliant"
    assert told.out.splitlines()[1].startswith("not met: near")
    sim("ensemble", "delete", made)


@pytest.mark.parametrize(
    ("words", "status"),
    [
        (("ensemble", "compliance", "nothing-like-it"), 6),
        (("violation", "list", "--state", "over"), 2),
        (("violation", "list", "--type", "anti afinity"), 1),
        (("violation", "list", "--host", "h99"), 6),
    ],
)
def test_what_is_not_there_cannot_be_judged(sim: Any, words: tuple[str, ...], status: int) -> None:
    assert sim(*words).status == status
