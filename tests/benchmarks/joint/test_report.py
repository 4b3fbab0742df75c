"""The command, and the table that is made of its results."""

import json
import sys
from pathlib import Path

import pytest
from benchmarks.joint import __main__ as command
from benchmarks.joint import pictures, report
from benchmarks.joint.cells import Bench, Cell


def row(**found: float) -> dict[str, object]:
    cell = Cell("mixed", 100, 10_000, 75, "tune", instances=1)
    for what, value in found.items():
        cell.note(what.replace("_", " "), value)
    return cell.as_row()


def test_what_misses_its_target_is_bold() -> None:
    assert " 0.015 / 0.015 " in report.line(row(first=0.015))
    assert " **0.05** / 0.05 " in report.line(row(first=0.05))
    assert "**4.0%**" in report.line(row(first=0.01, hop_gap=0.04))
    wrong = row(first=0.01) | {"wrong": ["1: overfull"], "undecided": 2}
    assert " **1** | **2** " in report.line(wrong)


def test_a_cell_that_cannot_be_planted_is_shown() -> None:
    assert "none can be planted" in report.line(Cell("nested", 1000, 1000, 90, "tune").as_row())


def test_what_was_not_run_is_said() -> None:
    page = "\n".join(report.page({}))
    assert page.count(report.NOT_RUN) == 3


def test_rows_of_each_machine_are_in_a_table_of_their_own() -> None:
    machines = [{"processor": name, "cores": 2, "python": "3"} for name in "xyx"]
    rows = [row(first=0.01) | {"machine": one} for one in machines]
    before, x, y = "\n".join(report.page({"cells": rows})).split("Measured on ")
    assert "| mixed |" not in before
    assert (x[:20], x.count("| mixed |")) == ("x, 2 cores, Python 3", 2)
    assert (y[:20], y.count("| mixed |")) == ("y, 2 cores, Python 3", 1)


def test_cells_measure_answers_and_refusals() -> None:
    bench = Bench(200, 60, "tune")
    found = bench.cell("tight", 10, 2)
    assert (found.instances, found.undecided, found.wrong) == (2, 0, [])
    assert set(found.beside.values()) <= {0, 1, 2}
    assert len(found.times["hop gap"]) == 2
    refused = bench.cell("too-many", 10, 2)
    assert refused.wrong == []
    assert refused.other_conflicts == 0
    assert min(refused.times["relaxations shown"]) >= 1


def test_the_command_keeps_results(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(report, "RESULTS", tmp_path / "results.json")
    monkeypatch.setattr(report, "TABLE", tmp_path / "RESULTS.md")
    monkeypatch.setattr(report, "PICTURE", tmp_path / "joint.svg")
    monkeypatch.setattr(report, "PICTURED_LOAD", 60)
    words = "--cells 10x200 --instances 1 --families exact --loads 60 --write"
    monkeypatch.setattr(sys, "argv", ["joint", *words.split()])
    command.main()
    command.main()
    assert "10 x 200 | 60 % | exact" in capsys.readouterr().out
    (kept,) = json.loads((tmp_path / "results.json").read_text())["cells"]
    assert (kept["family"], kept["instances"], kept["wrong"]) == ("exact", 1, [])
    assert "| exact |" in (tmp_path / "RESULTS.md").read_text()
    plot = (tmp_path / "joint.svg").read_text()
    assert plot.count("<circle") == 1
    assert "10 members: first valid answer" in plot


def test_the_plot_has_a_line_for_each_family() -> None:
    rows = []
    for hosts in (1_000, 10_000):
        for family, what in (("mixed", "first"), ("too-many", "conflict")):
            cell = Cell(family, 100, hosts, 75, "tune", instances=1)
            cell.note(what, hosts / 100_000)
            rows.append(cell.as_row())
    plot = pictures.picture(rows)
    assert plot.count("<polyline") == 2
    assert plot.count("<circle") == 4
