"""Maps and words, without a server."""

import io
from typing import Any

import pytest
from msgspec import UNSET, structs
from rich.console import Console
from tests.cli.bodies import body

from moorage.cli import (
    calendar,
    capacity,
    decision_text,
    explanation_text,
    failures,
    placement_map,
    topology,
)
from moorage.cli import fleet as fleets
from moorage.cli.gantt import Scale
from moorage.cli.output import draw, table
from moorage.client import errors
from moorage.client.errors import error_for
from moorage.domain.errors import Contradiction, InvalidDescription
from moorage.domain.period import DAY, Period, format_instant
from moorage.domain.words import counted
from moorage.wire.capacity import Amounts, CapacityValue, Course
from moorage.wire.decisions import Additional, Assignment, Decision, Interval, PolicyStatus


def drawn(picture: Any) -> list[str]:
    out = io.StringIO()
    draw(picture, out)
    return out.getvalue().splitlines()


def at(member: str, **domains: str) -> Assignment:
    return body(Assignment, member=member, domains=domains)


def test_racks_are_columns_and_hosts_their_lines() -> None:
    lines = drawn(
        placement_map.picture(
            [
                at("web[0]", host="h2", rack="r1", zone="z"),
                at("web[1]", host="h2", rack="r1", zone="z"),
                at("db[0]", host="h10", rack="r2", zone="z"),
                at("db[1]", host="h9", rack="r2", zone="z"),
            ],
            80,
        )
    )
    assert lines[0].split() == ["rack", "r1", "rack", "r2"]
    assert lines[2].split() == ["h2", "web[0-1]", "h9", "db[1]"]
    assert lines[3].split() == ["h10", "db[0]"]


def test_many_racks_are_lines_below_their_zone() -> None:
    some = [at(f"a[{i}]", host=f"h{i}", rack=f"r{i}", zone=f"z{i % 2}") for i in range(8)]
    lines = drawn(placement_map.picture(some, 80))
    assert lines[0].split() == ["zone", "rack", "hosts", "members"]
    assert [line.split()[0] for line in lines[2:]] == [
        "z0",
        "r2",
        "r4",
        "r6",
        "z1",
        "r3",
        "r5",
        "r7",
    ]


def test_members_without_a_domain_are_not_lost() -> None:
    lines = drawn(placement_map.picture([at("a[0]", host="h1"), at("a[1]", host="h2")], 80))
    assert "a[0]" in lines[-1]
    assert "a[1]" in lines[-1]


@pytest.mark.parametrize(
    ("members", "said"),
    [
        (["db[0]"], "db[0]"),
        (["w[0]", "w[1]", "w[2]", "w[5]", "db[7]"], "w[0-2,5] db[7]"),
        ([], ""),
    ],
)
def test_members_are_summed_up(members: list[str], said: str) -> None:
    assert placement_map.summed(members) == said


def fleet(hosts: int, capacity: int = 10, booked: int = 5) -> dict[str, Any]:
    return {
        "revision": 3,
        "levels": {"location": ["zone", "rack"]},
        "hosts": [
            {
                "name": f"h{i}",
                "domains": {"zone": "z", "rack": f"r{i % 3}"},
                "resources": {"VCPU": {"capacity": capacity, "booked": booked, "allocated": 0}},
            }
            for i in range(hosts)
        ],
    }


def test_a_small_fleet_has_a_bar_for_each_host() -> None:
    lines = drawn(fleets.picture(fleet(4), None, {}))
    assert lines[0] == "4 hosts, VCPU 50% booked, revision 3"
    assert sum("█████░░░░░" in line and "5/10" in line for line in lines) == 4


def test_a_large_fleet_has_a_cell_for_each_host() -> None:
    lines = drawn(fleets.picture(fleet(120), None, {}))
    assert sum(line.count("▄") for line in lines[2:]) == 120
    assert len(lines) == 4 + 1 + 3


@pytest.mark.parametrize(
    ("used", "capacity", "cell"),
    [(0, 10, "·"), (1, 1000, "▁"), (10, 10, "█"), (30, 10, "█"), (1, 0, "█"), (0, 0, "·")],
)
def test_a_cell_shows_the_fill(used: int, capacity: int, cell: str) -> None:
    assert fleets.cell(fleets.Bar("h", (), used, capacity)) == cell


def test_closed_hosts_are_neither_empty_nor_full() -> None:
    for count in (4, 120):
        some = fleet(count)
        closed = {"start": None, "end": None, "kind": None, "reason": "", "user_id": None}
        some["hosts"][0] |= {"state": "closed", "closed": [{"why": "disabled", **closed}]}
        away = {"why": "away", "end": "2026-12-08T00:00:00Z", "kind": "maintenance"}
        some["hosts"][1] |= {"state": "down", "closed": [{**closed, **away}]}
        some["hosts"][1]["resources"]["VCPU"]["booked"] = 4
        some["hosts"][2]["closed"] = [{**closed, **away, "why": "planned", "start": away["end"]}]
        text = "\n".join(drawn(fleets.picture(some, None, {})))
        assert f"{count} hosts (2 out of service), VCPU 50% booked" in text
        if count == 4:
            assert text.count("xxxxxxxxxx") == 2
            assert "4/10" in text
            assert "down: away until" in text
            assert "closed: disabled" in text
        else:
            assert "x out of service" in text
            assert text.count("x") == 3


def test_a_shared_store_is_no_host() -> None:
    some = fleet(2)
    disks = {"DISK_GB": {"capacity": 1000, "booked": 20, "allocated": 20}}
    store = {"name": "nfs", "domains": {}, "resources": disks, "shares": True, "closed": []}
    some["hosts"].append(store)
    lines = drawn(fleets.picture(some, None, {}))
    assert lines[0] == "2 hosts, VCPU 50% booked, revision 3"
    assert lines[-1] == "shared: nfs  DISK_GB 20/1000"


def test_another_class_can_be_drawn_even_where_hosts_lack_it() -> None:
    assert any("-" in line for line in drawn(fleets.picture(fleet(2), "FPGA", {})))
    assert "0 hosts" in drawn(fleets.picture(fleet(0), None, {}))[0]


DECISION = body(
    Decision,
    id="6f0c0000-0000",
    status="held",
    expires_at="2026-11-21T09:10:00.25Z",
    policies=[
        body(PolicyStatus, name="p", satisfied=True),
        body(PolicyStatus, name="q", penalty=3),
    ],
    max_additional={
        "web": body(Additional, count=5, exact=True),
        "db": body(Additional, count=10),
    },
)


@pytest.mark.parametrize(
    ("end", "preemptible", "told_of_it"),
    [
        (None, False, []),
        ("2026-12-07T07:00:00Z", False, ["stays until 2026-12-07T07:00Z"]),
        ("2026-12-07T07:00:00Z", True, ["stays until 2026-12-07T07:00Z", "preemptible"]),
        (None, True, ["preemptible"]),
    ],
    ids=["open-ended", "bounded", "both", "preemptible"],
)
def test_what_bounds_a_stay_is_told(
    end: str | None, *, preemptible: bool, told_of_it: list[str]
) -> None:
    interval = Interval("2026-11-21T09:00:00Z", end)
    one = structs.replace(DECISION, interval=interval, preemptible=preemptible)
    assert decision_text.stay(one) == told_of_it
    assert decision_text.held(one)[1 : 1 + len(told_of_it)] == told_of_it


def test_who_makes_way_for_a_lease_is_named_with_the_end() -> None:
    ends = (None, "2026-12-07T07:25:00Z", "2026-12-05T07:25:00Z", *(["2026-12-08T07:25:00Z"] * 3))
    places = [
        structs.replace(at(f"n[{number}]"), until=end or UNSET) for number, end in enumerate(ends)
    ]
    one = structs.replace(DECISION, preemptible=True, assignments=places)
    named = "n[2] until 2026-12-05T07:25Z, n[1] until 2026-12-07T07:25Z, n[3] until"
    line = f"makes way for leases: {named} 2026-12-08T07:25Z, 2 more later"
    assert decision_text.stay(one) == ["preemptible", line]


def test_a_hold_that_ends_another_day_says_which() -> None:
    one = structs.replace(
        DECISION, computed_at="2026-11-20T09:00:00Z", expires_at="2026-11-21T09:10:00Z"
    )
    assert decision_text.held_until(one) == "2026-11-21T09:10:00Z"
    assert (
        decision_text.held_until(structs.replace(one, computed_at="2026-11-21T09:00:00Z"))
        == "09:10:00Z"
    )


def test_places_that_are_gone_are_not_held() -> None:
    places = [at("db[1]", host="h2")]
    some = structs.replace(DECISION, status="held", withdrawn=["db[0]"], assignments=places)
    assert " held until " in decision_text.held(some)[0]
    assert decision_text.held(some)[0].endswith(", but what gave the places of db[0] was deleted")
    none = structs.replace(some, assignments=[], status="released")
    assert "held until" not in decision_text.held(none)[0]
    assert "holds nothing: what gave the places of db[0] was deleted" in decision_text.held(none)[0]


def test_a_decision_is_one_line() -> None:
    assert decision_text.SEPARATOR.join(decision_text.held(DECISION)) == (
        "decision 6f0c0000 held until 09:10:00Z  policies 1/2 (q: no)"
        "  max additional: web 5, db 10+"
    )
    assert "   policies 1/2 (q: no)   max additional" in decision_text.dry_run(DECISION)


CONFLICT: dict[str, Any] = {
    "verdict": "infeasible",
    "stage": "policy",
    "minimal": True,
    "conflict": [
        {"policy": "db-ha", "needs": "4 racks"},
        {"topology": "racks usable for m1.xlarge", "have": 3},
    ],
    "relaxations": [
        {"change": {"policy": "db-ha", "keep": [3, 2]}, "verified": True, "result": "fits now"},
        {"change": {"member": "db", "count": [4, 5]}, "verified": True, "result": "fits now"},
    ],
}


def test_an_explanation_is_two_lines() -> None:
    assert explanation_text.explained(CONFLICT).splitlines() == [
        (
            "infeasible [policy]  conflict (minimal): db-ha needs 4 racks"
            "  <->  racks usable for m1.xlarge: 3"
        ),
        "relaxations (each solved): 1. db-ha keep 3->2: fits now   2. db count 4->5: fits now",
    ]


def test_what_follows_and_what_is_undecided_says_how_to_go_on() -> None:
    pending = {**CONFLICT, "id": "6f0c", "links": ["self"], "pending": True}
    error = error_for(409, {"errors": [{"code": "ensemble.infeasible", "explanation": pending}]})
    assert failures.exit_status(error) == 3
    assert failures.sentence(error).splitlines()[-1] == (
        "explanation 6f0c   more follows: moorage explanation show 6f0c --wait"
    )
    why = {"id": "6f0d", "verdict": "undecided", "stage": "unknown", "note": "time ran out"}
    body = {"code": "ensemble.undecided", "explanation": {**why, "links": ["self"]}}
    error = error_for(409, {"errors": [body]})
    assert failures.exit_status(error) == 1
    assert failures.sentence(error).splitlines() == [
        "undecided [unknown]  time ran out",
        "explanation 6f0d",
    ]


@pytest.mark.parametrize(
    ("item", "said"),
    [
        ({"resources": "db", "needs": "8 VCPU each"}, "resources db needs 8 VCPU each"),
        ({"policy": "p"}, "p"),
        ({"topology": "hosts", "have": "10+"}, "hosts: 10+"),
    ],
)
def test_each_side_of_a_conflict_has_its_words(item: dict[str, Any], said: str) -> None:
    assert explanation_text.side(item) == said


def test_a_policy_turned_soft_is_a_relaxation() -> None:
    change = {"policy": "p", "strength": ["required", {"preferred": 1}]}
    said = explanation_text.relaxation({"change": change, "result": "fits now"})
    assert said == "p strength required->preferred 1: fits now"


def test_an_explanation_without_a_conflict_tells_its_note() -> None:
    told_ = explanation_text.explained(
        {"verdict": "undecided", "stage": "policy", "note": "time ran out"}
    )
    assert told_ == "undecided [policy]  time ran out"


def test_pools_are_no_hosts_of_a_rack() -> None:
    racks = [{"name": n, "level": "rack", "tree": "location", "parent": None} for n in ("r1", "r2")]
    places = [("n1", "r1"), ("n2", "r1"), ("ceph", "r1"), ("nfs", "r2")]
    there = [{"host": host, "domain": rack, "tree": "location"} for host, rack in places]
    shown = {"levels": {"location": ["rack"]}, "domains": racks, "attachments": there}
    lines = drawn(topology.drawn(shown, {"ceph", "nfs", "elsewhere"}))
    assert [line[4:] for line in lines[1:]] == ["rack r1  2 hosts, 1 pool", "rack r2  1 pool"]


def test_pools_that_several_racks_share_have_a_table_of_their_own() -> None:
    amounts = Amounts("2026-12-01T00:00:00Z", 9, 0.0, 9, 0, 0, 0, 0)
    racks = [f"r{number}" for number in range(7)]
    pools = Course(None, {"DISK_GB": [amounts]}, None, 0, racks)
    found = body(CapacityValue, step=None, exact=True, parts=[pools])
    lines = drawn(capacity.tables(found))
    assert lines[0] == "pools shared by r0, r1, r2, r3, r4, and 2 more"
    found = structs.replace(found, start="2026-12-01T00:00:00Z", end="2026-12-02T00:00:00Z")
    found = structs.replace(found, computed_at=found.start)
    lines = drawn(calendar.drawn(found, frozenset(), 80, plain=True))
    assert [line.split()[:2] for line in lines if "DISK_GB" in line] == [["shared", "DISK_GB"]]


def test_what_of_a_stays_time_would_do_is_told_as_options() -> None:
    lease = "lease L1 from 2026-12-07T07:30:00Z to 2026-12-11T18:00:00Z"
    changes: list[dict[str, object]] = [
        {"time": "stay", "until": [None, "2026-12-07T07:30:00Z"]},
        {"time": "stay", "preemptible": [False, True]},
        {"time": "stay", "start": ["2026-11-21T09:00:00Z", "2026-12-11T18:00:00Z"]},
    ]
    told_ = explanation_text.explained(
        {
            "verdict": "infeasible",
            "stage": "time",
            "conflict": [{"booked": lease, "needs": ""}, {"stay": "3 open-ended servers"}],
            "relaxations": [{"change": one, "verified": True} for one in changes],
        }
    )
    options = "1. --until 2026-12-07T07:30Z   2. --preemptible   3. start after 2026-12-11T18:00Z"
    assert told_.splitlines() == [
        (
            "infeasible [time]  conflict: lease L1 from 2026-12-07T07:30Z to 2026-12-11T18:00Z"
            "  <->  3 open-ended servers"
        ),
        f"relaxations (each solved): {options}",
    ]


def test_a_shorter_lead_and_a_window_as_long_are_told_in_words() -> None:
    told_ = explanation_text.explained(
        {
            "stage": "time",
            "relaxations": [
                {"change": {"time": "stay", "lead": ["PT1H", "PT30M"]}, "verified": True},
                {"change": {"time": "stay", "cleaning": ["PT1H", "PT0S"]}, "verified": True},
            ],
            "earliest_start": "2026-12-11T18:00:00Z",
            "earliest_end": "2026-12-29T09:00:00Z",
            "earliest_proved": True,
            "earliest_beyond": True,
        }
    )
    assert told_.splitlines()[1:] == [
        "relaxations (each solved): 1. --lead 30m   2. --cleaning 0s",
        (
            "same length, later: 2026-12-11T18:00Z .. 2026-12-29T09:00Z"
            " (proved for an ensemble; a lease may start sooner)"
        ),
    ]


def test_every_conflict_and_the_note_are_told() -> None:
    second = {"conflict": [{"resources": "b", "needs": "17 VCPU"}], "minimal": True}
    told_ = explanation_text.explained(
        {**CONFLICT, "more_conflicts": [second], "note": "independent"}
    )
    assert told_.splitlines()[1:3] == [
        "and another conflict (minimal): resources b needs 17 VCPU",
        "note: independent",
    ]
    assert told_.splitlines()[3].startswith("relaxations (each solved): 1. ")


def test_a_conflict_of_many_sides_has_a_line_for_each() -> None:
    sides = [*CONFLICT["conflict"], {"policy": "pair"}, {"topology": "VCPU free", "have": 104}]
    many = CONFLICT["relaxations"] * 3
    said = explanation_text.explained(
        {**CONFLICT, "conflict": sides, "relaxations": many}
    ).splitlines()
    assert said[:6] == [
        "infeasible [policy]  conflict (minimal):",
        "  db-ha needs 4 racks",
        "  pair",
        "  <->  racks usable for m1.xlarge: 3",
        "  <->  VCPU free: 104",
        "relaxations (each solved):",
    ]
    assert len(said) == 12
    assert max(map(len, said)) <= 80


def test_only_differences_that_matter_are_told() -> None:
    diff = [
        {"path": "flavor.DISK_GB", "described": 1, "requested": 2, "effect": "exceeds"},
        {"path": "imageRef", "effect": "ignored"},
        {"path": "flavor.VCPU", "described": 8, "requested": 16, "effect": "exceeds"},
    ]
    error = {
        "code": "ensemble.description_mismatch",
        "title": "T",
        "diff": diff,
        "remedies": ["resubmit_as_described", "redecide_member"],
    }
    found = error_for(409, {"errors": [error]})
    assert failures.sentence(found) == (
        "409 ensemble.description_mismatch: flavor.VCPU described 8 requested 16 (exceeds),"
        " flavor.DISK_GB described 1 requested 2 (exceeds)   remedies: resubmit, redecide"
    )


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (error_for(409, {"errors": [{"code": "ensemble.infeasible"}]}), 3),
        (error_for(400, {"errors": [{"code": "ensemble.contradiction"}]}), 3),
        (Contradiction("x", policies=("p",)), 3),
        (error_for(409, {}), 4),
        (error_for(412, {}), 4),
        (error_for(403, {}), 5),
        (error_for(401, {}), 5),
        (error_for(404, {}), 6),
        (error_for(503, {}), 1),
        (errors.Unreachable("http://x", "why"), 1),
        (InvalidDescription("x"), 1),
        (ZeroDivisionError(), 1),
    ],
)
def test_statuses_are_those_promised(error: Exception, status: int) -> None:
    assert failures.exit_status(error) == status


def test_a_terminal_gets_colour() -> None:
    out = io.StringIO()
    Console(file=out, force_terminal=True, color_system="standard", width=80).print(
        fleets.picture(fleet(2), None, {})
    )
    assert "\x1b[" in out.getvalue()


@pytest.mark.parametrize("width", [40, 80, 200])
def test_no_id_or_time_breaks_in_a_table(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    ids = ["8d0a7a8e-5ad0-4c5e-9b0e-4f3d6a1d2c3b", "2026-11-21T09:10:00Z"]
    row = ["web[0]", "zone az1, rack r1, host h1", *ids, "some more words that may go round"]
    lines = drawn(table(["member", "place", "server", "until", "note"], [row]))
    for whole in ids:
        assert any(whole in line for line in lines), lines
    gap = "   " if width >= len(f"size   {ids[0]}") else "  "
    assert drawn(table(["#size", "id"], [[9, ids[0]]]))[-1] == f"   9{gap}{ids[0]}"


def test_what_is_counted_agrees_with_its_number() -> None:
    assert [counted(n, "rack") for n in (0, 1, 2)] == ["0 racks", "1 rack", "2 racks"]
    assert counted(2, "policy", "policies") == "2 policies"


def test_where_a_refusal_is_in_a_nested_file_is_told() -> None:
    error = {"code": "ensemble.invalid", "detail": "not so", "line": 11, "path": "in.yaml.a"}
    found = error_for(400, {"errors": [error]})
    assert failures.sentence(found) == "400 ensemble.invalid: line 11, in.yaml.a: not so"


def test_a_member_that_moved_says_where_to() -> None:
    decision = body(Decision, id="9b1e0000-0", status="held", assignments=[at("a[0]", host="h2")])
    assert decision_text.moved("a[0]", decision) == (
        "a[0] now at host h2  decision 9b1e0000 held until -"
    )


def test_a_host_that_is_away_is_not_drawn_as_full() -> None:
    """Away for a day, here again, then full: three columns of a day each."""
    window = Period(0, 3 * DAY)
    amounts = [
        Amounts(at=format_instant(0), available=0, busy=1.0, total=0, away=8),
        Amounts(at=format_instant(DAY), available=8, busy=0.0, total=8, away=0),
        Amounts(at=format_instant(2 * DAY), available=0, busy=1.0, total=8, away=0),
    ]
    assert calendar.cells(amounts, Scale(window, 3), plain=True) == "x.#"
