"""The loaders of public data, with small files in the published formats."""

from pathlib import Path

import pytest
from benchmarks.public import cluster_trace, reassignment

CURVE = "|".join(["1.5"] * 97 + ["2"])


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    """Three machines; web on hosts of its own, noisy never beside web, quiet once beside noisy."""
    files = {
        "app_resources": [
            f"app_web,{CURVE},{CURVE},10,1,0,0",
            f"app_noisy,{CURVE},{CURVE},10,0,1,0",
            f"app_quiet,{CURVE},{CURVE},10,0,0,0",
        ],
        "machine_resources": [f"machine_{number},8,16,100,7,3,7" for number in (1, 2, 3)],
        "instance_deploy": [
            "inst_1,app_web,machine_1",
            "inst_2,app_web,",
            "inst_3,app_noisy,",
            "inst_4,app_quiet,",
        ],
        "app_interference": ["app_web,app_web,0", "app_web,app_noisy,0", "app_noisy,app_quiet,1"],
    }
    for name, rows in files.items():
        file = tmp_path / f"scheduling_preliminary_{name}_20180606.csv"
        file.write_text("\n".join(rows) + "\n", encoding="utf-8")
    return tmp_path


def test_a_cluster_trace_is_read(trace: Path) -> None:
    found = cluster_trace.read(trace)
    assert found.machines["machine_1"] == (800, 1600, 10_000, 700, 300, 700)
    assert found.applications["app_web"] == (200, 200, 1000, 100, 0, 0)
    assert found.instances == {"app_web": 2, "app_noisy": 1, "app_quiet": 1}
    assert found.limits["app_web", "app_web"] == 1
    assert found.limits["app_web", "app_noisy"] == 0
    assert found.largest(2) == ["app_web", "app_noisy"]


def test_a_cluster_trace_is_placed(trace: Path) -> None:
    row = cluster_trace.measure(trace)
    assert (row["groups"], row["broken"]) == (3, 0)
    assert {way: groups for way, (groups, _) in row["admitted"].items()} == {
        "spread": 3,
        "room": 3,
        "first fit": 3,
    }
    scarce = cluster_trace.measure(trace, share=2)
    assert (scarce["admitted"]["room"], scarce["broken"]) == (
        [2, 3],
        0,
    )  # no machine is left for noisy


def test_broken_limits_of_a_trace_are_counted(trace: Path) -> None:
    found = cluster_trace.read(trace)
    fleet = cluster_trace.fleet_of(found, sorted(found.machines))
    placed = cluster_trace.Applications(found, fleet)
    members = {name: placed.request(name)[0].members for name in found.instances}
    placed.put("app_web", dict.fromkeys(members["app_web"], 0))
    assert placed.broken() == 1
    placed.put("app_noisy", dict.fromkeys(members["app_noisy"], 0))
    assert placed.broken() == 2


@pytest.mark.parametrize("part", ["app_resources", "machine_resources"])
def test_a_trace_of_another_form_is_refused(trace: Path, part: str) -> None:
    (file,) = trace.glob(f"*{part}*")
    file.write_text("app_web,1,2,3\n", encoding="utf-8")
    with pytest.raises(ValueError, match="not the amounts of CPU"):
        cluster_trace.read(trace)


def test_a_trace_without_a_file_is_refused(trace: Path) -> None:
    (file,) = trace.glob("*interference*")
    file.unlink()
    with pytest.raises(FileNotFoundError, match="app_interference"):
        cluster_trace.read(trace)


MODEL = """\
2
1 100
0 10
4
0 0 30 400 16 80 0 1 4 5
0 0 10 240 8 160 1 0 3 4
1 1 15 100 12 80 4 3 0 2
0 2 10 100 8 80 4 3 2 0
2
2 0
1 1 0
3
0 12 10 1000
0 10 20 100
1 6 200 1
1
0 1 20
10
1 10 100
"""


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """Service 0 in two locations; service 1 in a neighbourhood of service 0.

    Wherever service 0 goes, one of its machines is in neighbourhood 0, where service 1 has room.
    """
    (tmp_path / "model_a.txt").write_text(MODEL, encoding="utf-8")
    (tmp_path / "assignment_a.txt").write_text("0 3 0\n", encoding="utf-8")
    return tmp_path


def test_a_reassignment_is_read(model: Path) -> None:
    found = reassignment.read(model, "a")
    assert reassignment.names_in(model) == ["a"]
    assert found.capacity.tolist() == [[30, 400], [10, 240], [15, 100], [10, 100]]
    assert found.locations.tolist() == [0, 0, 1, 2]
    assert found.neighbourhoods.tolist() == [0, 0, 1, 0]
    assert found.least_locations == (2, 1)
    assert found.depends_on == ((), (0,))
    assert found.service_of.tolist() == [0, 0, 1]
    assert found.demand.tolist() == [[12, 10], [10, 20], [6, 200]]
    assert found.assignment.tolist() == [0, 3, 0]
    assert found.order() == [0, 1]


def test_a_reassignment_is_placed(model: Path) -> None:
    row = reassignment.measure(model, "a")
    assert (row["groups"], row["admitted"]["room"], row["broken"]) == (2, [2, 3], 0)


def test_broken_rules_of_a_reassignment_are_counted(model: Path) -> None:
    found = reassignment.read(model, "a")
    placed = reassignment.Services(found, reassignment.fleet_of(found))
    members = {name: placed.request(name)[0].members for name in ("0", "1")}
    placed.put("0", dict(zip(members["0"], (0, 1), strict=True)))  # one location
    assert placed.broken() == 1
    placed.put("1", dict(zip(members["1"], (2,), strict=True)))  # away from service 0
    assert placed.broken() == 2


def test_services_that_depend_on_each_other_are_ordered(model: Path) -> None:
    text = MODEL.replace("2 0\n1 1 0\n", "2 1 1\n1 1 0\n")
    (model / "model_a.txt").write_text(text, encoding="utf-8")
    assert sorted(reassignment.read(model, "a").order()) == [0, 1]


@pytest.mark.parametrize(
    ("text", "match"),
    [(MODEL + "7\n", "more numbers"), (MODEL[:40], "too early"), ("x", "invalid")],
)
def test_a_model_of_another_form_is_refused(model: Path, text: str, match: str) -> None:
    (model / "model_a.txt").write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=match):
        reassignment.read(model, "a")
