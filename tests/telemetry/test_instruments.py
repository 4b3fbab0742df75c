"""Instruments of one process: what is counted is told, and what cannot be asked is left out."""

from prometheus_client.parser import text_string_to_metric_families

from moorage.telemetry import table
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
