"""The commands about leases, over a running simulation of three racks."""

import re
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.process

WEEK = ("--start", "2026-12-07T08:00Z", "--end", "2026-12-11T18:00Z")
PAIR = """\
name: pair
members: [{name: web, count: 2, flavor: m1.small}]
policies: [{name: apart, type: anti-affinity, members: [web], level: rack}]
"""


@pytest.fixture
def lease(sim: Any) -> Iterator[str]:
    """A lease of four small servers, by its name."""
    name = f"week-{uuid.uuid4().hex[:8]}"
    made = sim("lease", "create", "--flavor", "m1.small", "--count", "4", "--name", name, *WEEK)
    assert re.fullmatch(
        r"lease L\d+  pending  2026-12-07T08:00Z \.\. 2026-12-11T18:00Z  4 places"
        r"  guarantee: proved\n",
        made.out,
    ), made
    yield name
    sim("lease", "cancel", name)


def test_an_ensemble_deleted_with_its_lease_names_that(sim: Any, lease: str) -> None:
    shown = sim.body("lease", "show", lease)["lease"]
    kept = sim("ensemble", "delete", shown["ensemble_id"])
    assert kept.status == 4
    gone = sim("ensemble", "delete", shown["ensemble_id"], "--cascade", "leases")
    assert gone.status == 0, gone
    assert f", cancelled lease {shown['handle']} ({lease}), freed 4 held places" in gone.out


def test_a_dry_run_writes_nothing(sim: Any) -> None:
    before = sim.body("lease", "list")
    told = sim("lease", "create", "--flavor", "m1.small", *WEEK, "--dry-run")
    assert told.out.startswith("verdict feasible (computed at revision "), told
    assert told.out.endswith("   2026-12-07T08:00Z .. 2026-12-11T18:00Z\n")
    assert sim.body("lease", "list") == before


def test_a_description_is_leased_on_terms(sim: Any, tmp_path: Path) -> None:
    file = tmp_path / "pair.yaml"
    file.write_text(PAIR, encoding="utf-8")
    words = ("--start", "2026-12-07", "--duration", "4d10h", "--lead", "30m", "--cleaning", "1h")
    more = ("--expiry", "2h", "--priority", "7", "--before-start", "bounded")
    actions = ("--before-end", "notify:PT24H", "--on-end", "notify", "--on-end", "release")
    answer = sim("lease", "create", "-f", str(file), *words, *more, *actions, "-f", "json")
    assert answer.status == 0, answer
    made = answer.body["lease"]
    assert (made["name"], made["start"], made["end"]) == (
        "pair",
        "2026-12-07T00:00:00Z",
        "2026-12-11T10:00:00Z",
    )
    assert (made["lead"], made["cleaning"], made["expiry"]) == ("PT30M", "PT1H", "PT2H")
    assert (made["priority"], made["before_start"]) == (7, ["bounded"])
    assert made["on_end"] == ["notify", "release"]
    shown = sim("lease", "show", made["id"][:8]).out
    for said in (
        "30m",
        "expires       2026-12-07T02:00Z",
        "notify, release",
        "CUSTOM_RESERVATION_",
    ):
        assert said in shown
    assert re.search(r"web +m1\.small +2 +0 +2\n", shown)
    due = [line.split()[:2] for line in sim("lease", "events", made["id"]).out.splitlines()[2:]]
    assert ["2026-12-06T23:30Z", "prepare"] in due
    assert due == sorted(due, key=lambda one: one[0])
    cancelled = sim("lease", "cancel", made["id"][:8])
    assert cancelled.out == f"lease {made['handle']}  closed\n"


def test_events_of_a_lease_are_those_of_its_ensemble_too(sim: Any) -> None:
    words = ("--flavor", "m1.small", "--count", "1", "--name", "told")
    made = sim.body("lease", "create", *words, *WEEK)["lease"]
    for subject in ("told", made["id"], made["handle"]):
        found = sim.body("event", "list", "--subject", subject)["events"]
        assert {one["subject"] for one in found} == {made["id"], made["ensemble_id"]}
        assert {"lease.pending", "ensemble.created"} <= {one["type"] for one in found}
    alone = sim.body("event", "list", "--subject", made["ensemble_id"])["events"]
    assert {one["subject"] for one in alone} == {made["ensemble_id"]}
    assert sim("lease", "cancel", made["id"]).status == 0


def test_an_ensemble_that_is_there_is_leased_once(sim: Any) -> None:
    made = sim.body("ensemble", "create", "--server", "m1.small", "--describe-only")["ensemble"]
    words = ("lease", "create", "--ensemble", made["id"], *WEEK)
    first = sim(*words)
    assert first.status == 0, first
    again = sim(*words)
    assert (again.status, "wrong_state" in again.err) == (4, True), again
    assert sim("lease", "cancel", first.out.split()[1]).status == 0


TIER = """\
parameters: {count: {type: number, default: 2}, flavor: {}}
members: [{name: web, count: "{count}", flavor: "{flavor}"}]
"""


def test_what_a_template_describes_is_leased(sim: Any, tmp_path: Path) -> None:
    file = tmp_path / "tier.yaml"
    file.write_text(TIER, encoding="utf-8")
    kept = sim.body("template", "create", "tier", "-f", str(file))["template"]
    words = ("--param", "flavor=m1.small", "--param", "count=3", *WEEK)
    made = sim.body("lease", "create", "--template", "tier@1", *words)
    assert made["lease"]["name"] == "tier"
    assert made["ensemble"]["template"] == {"id": kept["id"], "version": 1}
    assert len(made["decision"]["assignments"]) == 3
    assert sim("lease", "create", "--template", "tier", *WEEK).status == 1, "no flavor"
    assert sim("lease", "cancel", made["lease"]["id"]).status == 0
    assert sim("template", "delete", "tier").status == 0


def test_it_is_listed_and_drawn(sim: Any, lease: str) -> None:
    assert lease in sim("lease", "list", "--state", "pending").out
    assert lease not in sim("lease", "list", "--state", "active").out
    assert [one["name"] for one in sim.body("lease", "list", "--name", lease)["leases"]] == [lease]
    chart = sim("lease", "gantt", "--from", "2026-12-01", "--to", "2026-12-20").out.splitlines()
    (line,) = (one for one in chart if one.startswith(lease))
    assert line.rstrip("░").endswith(" ")
    assert line.count("░") == round((100 - chart[1].index("┬")) * 4.42 / 19)
    assert max(map(len, chart)) <= 100
    (row,) = (one for one in sim.body("lease", "gantt")["rows"] if one["name"] == lease)
    assert row["status"] == "pending"
    assert lease not in sim("lease", "gantt", "--to", "2026-12-01").out
    assert sim("lease", "gantt", "--from", "2026-12-02", "--to", "2026-12-01").status == 2


def test_it_is_extended_shrunk_moved_grown_and_renamed(sim: Any, lease: str) -> None:
    def said(*words: str) -> str:
        result = sim("lease", *words)
        assert result.status == 0, result
        return str(result.out)

    before = sim.body("lease", "show", lease)
    assert "2026-12-13T18:00Z" in said("extend", lease, "--by", "2d", "--dry-run")
    assert sim.body("lease", "show", lease) == before
    assert "2026-12-13T18:00Z" in said("extend", lease, "--by", "2d")
    assert ".. 2026-12-14T00:00Z" in said("extend", lease, "--until", "2026-12-14")
    assert ".. 2026-12-13T00:00Z" in said("shrink", lease, "--by", "1d")
    assert "  3 places" in said("shrink", lease, "--role", "server=3", "--end", "2026-12-12")
    assert "  5 places" in said("grow", lease, "--role", "server=5")
    moved = said("move", lease, "--start", "2026-12-14T08:00Z")
    assert "2026-12-14T08:00Z .. 2026-12-19T00:00Z  5 places" in moved
    shorter = said("move", lease, "--start", "2026-12-15", "--duration", "36h")
    assert "2026-12-15T00:00Z .. 2026-12-16T12:00Z" in shorter
    now = said("move", lease, "--start", "now", "--dry-run")
    assert "   2026-11-21T09:00Z .. 2026-11-22T21:00Z" in now
    said("rename", lease, f"{lease}-b")
    assert sim("lease", "show", lease).status == 6
    said("rename", f"{lease}-b", lease)


@pytest.mark.parametrize(
    "words",
    [
        ("extend", "--until", "2026-12-08"),
        ("extend",),
        ("shrink", "--end", "2026-12-25"),
        ("shrink",),
        ("shrink", "--role", "server=9"),
        ("grow", "--role", "server=2"),
        ("grow", "--role", "server"),
        ("move", "--start", "next week"),
    ],
    ids="-".join,
)
def test_a_change_the_wrong_way_is_a_usage_error(
    sim: Any, lease: str, words: tuple[str, ...]
) -> None:
    before = sim.body("lease", "show", lease)
    told = sim("lease", words[0], lease, *words[1:])
    assert told.status == 2, told
    assert "usage: moorage lease" in told.err
    assert sim.body("lease", "show", lease) == before


FLAVOR = ("lease", "create", "--flavor", "m1.small")


@pytest.mark.parametrize(
    ("words", "status"),
    [
        (("lease", "create", *WEEK), 2),
        ((*FLAVOR, "--ensemble", "x", *WEEK), 2),
        (FLAVOR, 2),
        ((*FLAVOR, *WEEK, "--duration", "1d"), 2),
        ((*FLAVOR, "--end", "soon"), 2),
        ((*FLAVOR, "--duration", "soon"), 2),
        ((*FLAVOR, *WEEK, "--before-start", "everybody"), 2),
        (("lease", "create", "--ensemble", "x", "--count", "2", *WEEK), 2),
        ((*FLAVOR, "--template", "x", *WEEK), 2),
        ((*FLAVOR, "--param", "a=b", *WEEK), 2),
        (("lease", "create", "--template", "x", "--param", "a", *WEEK), 2),
        (("lease", "create", "--template", "nobody", *WEEK), 6),
        (("lease", "create", "--flavor", "m1.nothing", *WEEK), 1),
        (("lease", "create", "--ensemble", "nobody", *WEEK), 6),
        ((*FLAVOR, "--duration", "36000d"), 5),
        (("lease", "create", "--flavor", "m1.2xlarge", "--count", "9", *WEEK), 3),
        (("lease", "show", "nobody"), 6),
    ],
    ids=lambda value: "-".join(value[2:]) if isinstance(value, tuple) else None,
)
def test_what_cannot_be_has_its_exit_status(sim: Any, words: tuple[str, ...], status: int) -> None:
    told = sim(*words)
    assert told.status == status, told
    assert told.err
    assert "Traceback" not in told.err


def test_of_one_that_is_over_is_shown_what_still_means_something(sim: Any, lease: str) -> None:
    before = sim("lease", "show", lease).out
    id_ = sim.body("lease", "show", lease)["lease"]["id"]
    assert all(word in before for word in ("guarantee", "binding", "places", "resource class"))
    sim("lease", "cancel", lease)
    after = sim("lease", "show", id_).out
    assert "closed" in after
    assert not [
        word for word in ("guarantee", "binding", "places", "resource class") if word in after
    ]
    assert sim("lease", "show", id_, "-c", "guarantee").out == "proved\n", "where asked for"


def test_of_ports_no_resource_class_is_shown(sim: Any, tmp_path: Path) -> None:
    link = "{name: link, kind: port, resources: {MEMORY_MB: 1}}"
    for roles in (link, f"{link}, {{name: web, flavor: m1.small}}"):
        file = tmp_path / "net.yaml"
        file.write_text(f"name: net\nmembers: [{roles}]\n", encoding="utf-8")
        assert sim("lease", "create", "-f", str(file), *WEEK).status == 0
        shown = sim("lease", "show", "net").out
        named = [line.split()[0] for line in shown.splitlines() if "CUSTOM_RESERVATION_" in line]
        assert named == (["web"] if "web" in roles else [])
        assert ("resource class" in shown) == bool(named)
        assert sim("lease", "cancel", "net").status == 0


def test_an_end_is_an_end_however_it_is_called(sim: Any, lease: str) -> None:
    told = sim("lease", "extend", lease, "--end", "2026-12-13T18:00Z", "--dry-run").out
    assert ".. 2026-12-13T18:00Z" in told
    told = sim("lease", "shrink", lease, "--until", "2026-12-10T18:00Z", "--dry-run").out
    assert ".. 2026-12-10T18:00Z" in told


@pytest.mark.parametrize(
    "words",
    [
        ("lease", "create", "--flavor", "m1.small", *WEEK, "--name", ""),
        ("offer", "create", "--flavor", "m1.small", "--duration", "1h", "--name", " "),
        ("lease", "rename", "L1", ""),
    ],
)
def test_a_name_is_not_empty(sim: Any, words: tuple[str, ...]) -> None:
    told = sim(*words)
    assert told.status == 2, told
    assert "a name must not be empty" in told.err


def test_a_tenant_sees_its_own_leases_only(sim: Any, lease: str) -> None:
    tenant = sim.as_tenant("nowhere-else")
    assert tenant("lease", "show", lease).status == 6
    assert tenant.body("lease", "list")["leases"] == []
    assert tenant("lease", "list", "--all-projects").status == 5
    assert tenant("lease", "gantt").out == "no leases\n"
    assert "--all-projects" not in tenant("lease", "list").out


@pytest.mark.parametrize("noun", ["lease", "offer", "series", "waitlist", "ensemble"])
def test_of_all_projects_it_is_said_whose_each_is(sim: Any, noun: str) -> None:
    assert sim(noun, "list", "--all-projects").out.split()[1] == "project"
    assert "project" not in sim(noun, "list").out.split()[:6]


def test_an_operator_hears_of_other_projects(sim: Any, lease: str) -> None:
    mine = sim.body("lease", "show", lease)["lease"]
    elsewhere = sim.as_tenant("empty-handed", "admin")
    hint = "none in this project; --all-projects lists those of others"
    assert elsewhere("lease", "list").out.splitlines()[-1] == hint
    assert elsewhere("lease", "list", "--state", "ending").out.count("\n") == 2
    assert elsewhere("lease", "gantt").out == f"{hint}\n"
    listed = elsewhere("lease", "list", "--all-projects", "-c", "id", "-c", "project").out
    assert f"{mine['id'][:8]}   {mine['project_id']}" in listed
    (line,) = (
        one
        for one in elsewhere("lease", "gantt", "--all-projects").out.splitlines()
        if one.startswith(lease)
    )
    assert line.split()[1].rstrip("…") in mine["project_id"]


def test_planned_changes_say_which_leases_move_by_what_they_are_called(
    sim: Any, lease: str
) -> None:
    found = sim.body("lease", "show", lease)["lease"]
    decision = sim.body("decision", "show", found["decision_id"])["decision"]
    host = decision["assignments"][0]["host"]
    words = ("--host", host, "--down", "2026-12-08T00:00Z/24h", "--dry-run")
    told = sim("capacity", "window", "create", *words)
    whose = f"{found['handle']} {lease} of {found['project_id']}"
    assert f"would move: leases {whose}\n" in told.out, told


def test_a_lead_for_which_there_is_no_time_is_told(sim: Any) -> None:
    words = ("--flavor", "m1.small", "--start", "now", "--duration", "1h", "--lead", "30m")
    said = sim("lease", "create", *words, "--dry-run")
    assert said.out.endswith("\nlead: none instead of 30m, because the start is too soon\n"), said
