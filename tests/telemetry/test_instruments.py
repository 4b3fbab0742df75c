"""Instruments of one process: what is counted is told, and what cannot be asked is left out."""

import struct
import threading
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from moorage.telemetry import instruments, table
from moorage.telemetry.instruments import Metrics


def test_metrics_without_workers_are_this_process_alone() -> None:
    metrics = Metrics()
    metrics.count(table.COMMITS, "committed")
    metrics.observe(table.REFRESH_SECONDS, 0.002)

    def broken() -> list[tuple[tuple[str, ...], float]]:
        raise OSError("the database is away")

    page = metrics.page({table.HELD: lambda: [((), 7)], table.SOLVERS: broken}).decode()
    found = {
        sample.name: sample.value
        for family in text_string_to_metric_families(page)
        for sample in family.samples
    }
    assert found["moorage_commits_total"] == 1
    assert found["moorage_held_places"] == 7
    assert "moorage_solver_processes" not in found, "what cannot be asked now is left out"


def test_a_worker_that_just_starts_spoils_nobodys_page(tmp_path: Path) -> None:
    file = tmp_path / "counter_2.db"
    file.touch()  # as it is for a moment, before its size and its first number are written
    made = threading.Timer(0.05, file.write_bytes, [struct.pack("<q", 8)])
    made.start()
    assert instruments._of_all(tmp_path) == b""
    made.join()


def test_a_file_that_stays_unreadable_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "counter_2.db").touch()
    with pytest.raises(struct.error):
        instruments._of_all(tmp_path)
