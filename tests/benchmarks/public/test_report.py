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


def test_without_results_nothing_was_run() -> None:
    assert "not run" in "\n".join(page({}))
