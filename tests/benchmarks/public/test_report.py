"""The page of public traces."""

from typing import Any

from benchmarks.public.report import page

MACHINE = {"processor": "P", "cores": 2, "python": "3.11"}
ROW: dict[str, Any] = {
    "load": 90,
    "order": "size",
    "barred": True,
    "hosts": 2748,
    "applications": 146,
    "members": 8983,
    "admitted": {"room": [146, 8983], "spread": [140, 8000], "FGD": [146, 8983]},
    "broken": 0,
    "cpu": {"room": 1.0, "spread": 2.0, "FGD": 3.0},
    "longest": {"room": 0.5, "spread": 0.25},
    "better": {"room": [], "spread": ["FGD"]},
    "one application": {"room": None, "spread": "app_35"},
    "machine": MACHINE,
}


def test_rows_sums_and_what_a_peer_does_better_are_said() -> None:
    text = "\n".join(page({"admission": [ROW, ROW | {"order": "random 1"}]}))
    assert (
        "| 90 % | no | size | 2,748 | 146 (8,983) | 140 (8,000) | 146 (8,983)"
        " | **FGD** than spread | app_35 (spread) |" in text
    )
    sums = "| | | sum | | 292 (17,966) | **280 (16,000)** | 292 (17,966) | | |"
    assert sums in text
    assert "| | | processor, s | | 2 | 4 | 6 | | |" in text
    assert "| | | longest decision, s | | 0.5 | 0.25 |  | | |" in text
    assert "Measured on P, 2 cores, Python 3.11." in text


def test_a_part_has_a_table_of_its_own() -> None:
    text = "\n".join(page({"admission": [ROW, ROW | {"part": 8, "hosts": 344}]}))
    before, after = text.split("One of 8 applications, hosts, tasks and queues:")
    assert "| 90 % | no | size | 2,748 |" in before
    assert "| 90 % | no | size | 344 |" in after


def test_without_results_nothing_was_run() -> None:
    assert "\n".join(page({})).count("not run") == 5


def test_growth_shares_and_gangs_have_their_tables() -> None:
    times = {"p50": 0.01, "p95": 0.02, "max": 0.5}
    ways = ("room", "FGD")
    growth = {
        "load": 97,
        "barred": False,
        "hosts": 2550,
        "applications": 140,
        "requests": 100,
        "members": 200,
        "first": {"room": 139, "FGD": 140},
        "granted": {"room": [90, 150], "FGD": [95, 160]},
        "seconds": dict.fromkeys(ways, times),
        "machine": MACHINE,
    }
    shares = {
        "name": "openb.csv",
        "order": "as published",
        "hosts": 1213,
        "tasks": 8152,
        "asked": 0.98,
        "allocated": {"room": 0.92, "FGD": 0.93},
        "placed": {"room": 8000, "FGD": 8010},
        "seconds": dict.fromkeys(ways, times),
        "machine": MACHINE,
    }
    gangs = {
        "name": "room",
        "hosts": 640,
        "gangs": 15_000,
        "placed": 14_998,
        "refused that fit": 2,
        "in several racks": 0,
        "a second": 200.4,
        "seconds": times,
        "machine": MACHINE,
    }
    text = "\n".join(page({"growth": [growth], "shares": [shares], "gangs": [gangs]}))
    assert "| 97 % | yes | 2,550 | first | 140 | 139 | 140 |" in text
    assert "| | | | grown | 100 (200) | **90 (150)** | 95 (160) |" in text
    assert "| | | | instances, share | | 75.0% | 80.0% |" in text
    assert (
        "| openb.csv, 8,152 | as published | 1,213 | 98.0% | **92.0% (8,000)** | 93.0% (8,010)"
        " | 0.01 / 0.02 / 0.5 |" in text
    )
    assert "| room | 640 | 15,000 | 14,998 | **2** | 0 | 200 | 0.01 / 0.02 / 0.5 |" in text
