"""What every command has in common: times, formats, exit statuses, names of other projects."""

import csv
import io
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.process

SPREAD = """\
name: {name}
members:
  - {{name: web, count: 2, flavor: m1.small}}
policies:
  - {{name: apart, type: anti-affinity, members: [web], level: rack}}
"""


@pytest.fixture
def shop(sim: Any, tmp_path: Path) -> Iterator[str]:
    """The name of an ensemble that is held."""
    name = f"shop-{uuid.uuid4().hex[:8]}"
    file = tmp_path / "shop.yaml"
    file.write_text(SPREAD.format(name=name), encoding="utf-8")
    made = sim.body("ensemble", "create", "-f", str(file), "--hold", "30m")["ensemble"]["id"]
    yield name
    sim("ensemble", "delete", made, "--yes")


@pytest.mark.parametrize(
    ("typed", "means"),
    [
        ("now", "2026-11-21T09:00:00Z"),
        ("+2h", "2026-11-21T11:00:00Z"),
        ("1w", "2026-11-28T09:00:00Z"),
        ("1w2d", "2026-11-30T09:00:00Z"),
        ("2026-12-07", "2026-12-07T00:00:00Z"),
        ("2026-12-07 08:00+01:00", "2026-12-07T07:00:00Z"),
    ],
)
def test_times_are_of_one_grammar_by_the_services_clock(sim: Any, typed: str, means: str) -> None:
    shown = sim.body("capacity", "show", "--from", typed)["capacity"]
    assert shown["start"] == means
    lease = ("lease", "create", "--flavor", "m1.small", "--duration", "1h", "--dry-run")
    assert sim.body(*lease, "--start", typed)["lease"]["start"] == means


def test_a_planned_window_may_begin_so_long_from_now(sim: Any) -> None:
    words = ("capacity", "window", "create", "--host", "h1", "--dry-run", "--down")
    planned = sim.body(*words, "+1h/24h")["window"]
    assert (planned["start"], planned["end"]) == ("2026-11-21T10:00:00Z", "2026-11-22T10:00:00Z")
    assert sim.body(*words, "+1h/+25h")["window"]["end"] == "2026-11-22T10:00:00Z"
    assert sim(*words, "+1h").status == 2


def test_a_time_that_is_none_is_a_usage_error_that_shows_how(sim: Any) -> None:
    told = sim("capacity", "show", "--from", "yesterday")
    assert told.status == 2
    assert "write 2026-12-07T08:00Z" in told.err


def test_csv_and_value_have_the_tables_cells(sim: Any, shop: str) -> None:
    rows = list(csv.DictReader(io.StringIO(sim("ensemble", "list", "-f", "csv").out)))
    row = next(one for one in rows if one["name"] == shop)
    assert (row["status"], row["members"], row["policies"]) == ("held", "web:2", "1")
    lines = sim("ensemble", "list", "-f", "value", "-c", "name", "-c", "status").out.splitlines()
    assert f"{shop} held" in lines
    assert sim("ensemble", "show", shop, "-f", "value", "-c", "name").out == f"{shop}\n"
    shown = list(csv.DictReader(io.StringIO(sim("ensemble", "show", shop, "-f", "csv").out)))
    assert [one["name"] for one in shown] == [shop]


def test_an_ensemble_that_was_never_decided_is_described(sim: Any, tmp_path: Path) -> None:
    name = f"only-{uuid.uuid4().hex[:8]}"
    file = tmp_path / "only.yaml"
    file.write_text(SPREAD.format(name=name), encoding="utf-8")
    assert sim("ensemble", "create", "-f", str(file), "--describe-only").status == 0
    lines = sim("ensemble", "list", "-f", "value", "-c", "name", "-c", "status").out.splitlines()
    assert f"{name} described" in lines
    assert sim("ensemble", "delete", name).status == 0


def test_what_is_not_there_has_an_exit_status_of_its_own(sim: Any) -> None:
    assert sim("ensemble", "show", "nowhere").status == 6
    assert sim("flavor", "show", "nowhere").status == 6
    assert sim("lease", "show", str(uuid.uuid4())).status == 6


@pytest.mark.parametrize("noun", ["ensemble", "decision"])
def test_closing_with_unclaimed_places_wants_a_yes(sim: Any, shop: str, noun: str) -> None:
    """There is no terminal here: it refuses, and nothing is freed."""
    refused = sim(noun, "confirm", shop)
    assert refused.status == 4
    assert "2 of 2 places are unclaimed and would be freed (web[0-1]);" in refused.err
    assert "repeat with --yes" in refused.err
    assert "to keep them held: moorage decision renew" in refused.err
    assert sim.body("decision", "show", shop)["decision"]["status"] == "held"
    assert "2 released" in sim(noun, "confirm", shop, "--yes").out


def test_operators_name_what_belongs_to_other_projects_by_ids(sim: Any, tmp_path: Path) -> None:
    """A name that they mistype, or have used up, must not be another project's."""
    tenant = sim.as_tenant("elsewhere")
    name = f"theirs-{uuid.uuid4().hex[:8]}"
    file = tmp_path / "theirs.yaml"
    file.write_text(SPREAD.format(name=name), encoding="utf-8")
    made = tenant.body("ensemble", "create", "-f", str(file))
    ensemble, decision = made["ensemble"]["id"], made["decision"]["id"]
    assert sim.body("ensemble", "show", ensemble[:8])["ensemble"]["id"] == ensemble
    lease = tenant.body(
        "lease",
        "create",
        "-f",
        str(file),
        "--start",
        "+1d",
        "--duration",
        "1h",
        "--name",
        f"l-{name}",
    )["lease"]
    assert sim.body("lease", "show", lease["id"][:8])["lease"]["id"] == lease["id"]
    told = "in this project; another project has one: give its id"
    for noun, called in (("ensemble", name), ("lease", lease["name"])):
        for verb in ("show", "delete" if noun == "ensemble" else "cancel"):
            refused = sim(noun, verb, called)
            assert (refused.status, refused.err) == (6, f"no {noun} {called} {told}\n")
    assert tenant("lease", "cancel", lease["handle"]).status == 0
    assert sim.body("decision", "show", decision[:8])["decision"]["id"] == decision
    stranger = sim.as_tenant("a-third")
    assert stranger("ensemble", "show", name).status == 6
    assert tenant("ensemble", "delete", name).status == 0


def test_a_policys_mistake_is_told_with_file_and_line(sim: Any, tmp_path: Path) -> None:
    file = tmp_path / "wrong.yaml"
    file.write_text(SPREAD.format(name="wrong").replace("level:", "levle:"), encoding="utf-8")
    offline = sim("ensemble", "check", str(file))
    assert offline.status == 1
    assert f"{file}: line 5, policies[0].levle: " in offline.err
    assert "no parameter 'levle'; did you mean level?" in offline.err
    online = sim("ensemble", "create", "-f", str(file))
    assert f"{file}, line 5, policies[0].levle: " in online.err
    file.write_text(SPREAD.format(name="wrong").replace("count:", "cuont:"), encoding="utf-8")
    assert "line 3, members[0].cuont: unknown field cuont; did you mean count?" in (
        sim("ensemble", "check", str(file)).err
    )


def test_a_simulation_without_a_time_says_that_its_clock_stands(offline: Any) -> None:
    words = ("sim", "start", "--fleet", "three-racks.yaml", "--name", "standing")
    try:
        assert "and stands still: move it with moorage sim clock +1h" in offline(*words).out
        before = offline("sim", "clock", "--name", "standing").out.strip()
        after = offline("sim", "clock", "+1h", "--name", "standing").out.strip()
        assert after > before
    finally:
        offline("sim", "stop", "--name", "standing")


def test_csv_and_value_have_whole_ids_and_every_cell(sim: Any, shop: str) -> None:
    whole = sim.body("ensemble", "show", shop)["ensemble"]["id"]
    rows = list(csv.DictReader(io.StringIO(sim("ensemble", "list", "-f", "csv").out)))
    assert whole in {one["id"] for one in rows}
    assert whole in sim("ensemble", "list", "-f", "value", "-c", "id").out.splitlines()
    assert whole in {one["id"] for one in sim.body("ensemble", "list", "-c", "id")}
    assert whole not in sim("ensemble", "list").out
    lines = sim("capacity", "show", "--flavor", "m1.small", "-f", "csv").out
    courses = list(csv.DictReader(io.StringIO(lines)))
    assert len(courses) > 1
    assert all(one["from"] and one["fit"] for one in courses)


@pytest.mark.parametrize("form", ["csv", "value"])
@pytest.mark.parametrize(
    "words",
    [
        ("topology", "show"),
        ("fleet", "show"),
        ("provider", "tree", "h1"),
        ("capacity", "calendar"),
    ],
)
def test_a_picture_is_drawn_in_every_format(sim: Any, words: tuple[str, ...], form: str) -> None:
    assert sim(*words, "-f", form).out == sim(*words).out


def test_a_list_of_nothing_has_no_words_among_its_rows(sim: Any) -> None:
    assert "no closed hosts" in sim("host", "list", "--closed").out
    assert sim("host", "list", "--closed", "-f", "value").out == ""


def test_a_name_that_a_shell_would_run_is_completed_by_its_id(sim: Any) -> None:
    name = f"$(touch${{IFS}}{uuid.uuid4().hex[:8]})"
    made = sim.body("ensemble", "create", "--server", "m1.small", "--name", name)["ensemble"]["id"]
    offered = sim("complete", "--names", "ensemble").out.splitlines()
    assert made in offered
    assert name not in offered
    assert sim("ensemble", "delete", made).status == 0


NOWHERE = "no ensemble nowhere; to see them: moorage ensemble list\n"


@pytest.mark.parametrize("form", ["table", "csv", "value"])
def test_what_went_wrong_is_said_in_every_format(sim: Any, form: str) -> None:
    told = sim("ensemble", "show", "nowhere", "-f", form)
    assert (told.status, told.out, told.err) == (6, "", NOWHERE)


def test_a_change_of_a_list_is_told_in_words(sim: Any, tmp_path: Path) -> None:
    file = tmp_path / "vmx.yaml"
    role = "{name: a, count: 1, flavor: m1.small, required: [HW_CPU_X86_VMX]}"
    file.write_text(f"name: vmx\nmembers:\n  - {role}\n", encoding="utf-8")
    told = sim("ensemble", "create", "-f", str(file))
    assert told.status == 3
    assert "1. a required HW_CPU_X86_VMX->none: fits now" in told.err


def test_a_member_without_its_number_is_refused_with_an_example(sim: Any, shop: str) -> None:
    told = sim("claim", "create", shop, "web", "--flavor", "m1.small")
    assert told.status == 1
    assert "not a member: 'web'; write a role and a number, such as 'db[0]'" in told.err
    assert "Expected" not in sim("claim", "create", shop, "w", "--flavor", "m1.small").err


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (
            ("member", "remove", "{}", "web[7]"),
            "no member web[7]: role web has 2 members, web[0] to web[1]",
        ),
        (
            ("claim", "create", "{}", "webb[0]", "--flavor", "m1.small"),
            "no role webb; did you mean web?",
        ),
        (("member", "remove", "{}", "cache[0]"), "no role cache; its roles: web"),
    ],
)
def test_a_member_that_is_not_there_is_answered_with_those_that_are(
    words: tuple[str, ...], told: str, sim: Any, shop: str
) -> None:
    answer = sim(*(word.format(shop) for word in words))
    assert answer.status == 6
    assert told in answer.err


def test_a_server_larger_than_every_host_is_told_the_largest(sim: Any, tmp_path: Path) -> None:
    file = tmp_path / "large.yaml"
    file.write_text("{name: large, members: [{name: a, resources: {VCPU: 64}}]}", encoding="utf-8")
    told = sim.as_tenant("project-a")("ensemble", "create", str(file))
    assert told.status == 3
    assert "the largest host gives one server 16 VCPU" in told.err


@pytest.mark.parametrize(
    ("words", "has", "use"),
    [
        (("--token", "ann:p1", "ensemble", "list"), "none", "--project p1 --role reader"),
        (("--project", "p1", "fleet", "show"), "member", "--project p1 --role admin"),
    ],
)
def test_noauth2_says_where_roles_come_from(
    words: tuple[str, ...], has: str, use: str, sim: Any
) -> None:
    told = sim(*words)
    assert told.status == 5
    assert f"your roles ({has}) do not meet the rule" in told.err
    assert f"its header X-Roles says: moorage {use} ..." in told.err


def test_a_mistyped_name_is_answered_with_the_one_meant(sim: Any, shop: str) -> None:
    told = sim("ensemble", "show", f"{shop}x")
    assert (told.status, told.err) == (6, f"no ensemble {shop}x; did you mean {shop}?\n")


def test_an_option_of_the_program_behind_the_command_is_told_its_place(sim: Any) -> None:
    told = sim("quota", "show", "--project", "p1")
    assert told.status == 2
    assert "it stands before the command: moorage --project ..." in told.err


def test_a_verb_without_its_noun_is_answered_with_its_nouns(sim: Any) -> None:
    told = sim("create", "shop.yaml")
    assert told.status == 2
    assert "Did you mean:\n  moorage ensemble create " in told.err
