"""What is counted at one go is what two counts would come to, wherever the values are kept."""

from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from prometheus_client import values
from prometheus_client.parser import text_string_to_metric_families

from moorage.telemetry import table
from moorage.telemetry.instruments import Metrics
from moorage.telemetry.quick import Tally

SECONDS = (0.0001, 0.004, 0.02, 0.02, 3.0, 1000.0)


@pytest.fixture(params=["alone", "among workers"])
def metrics(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Metrics:
    monkeypatch.setattr(values, "ValueClass", values.ValueClass)
    monkeypatch.setenv("PROMETHEUS_MULTIPROC_DIR", "")
    return Metrics(None if request.param == "alone" else tmp_path)


def counted(metrics: Metrics, outcome: str) -> dict[tuple[str, str], float]:
    """The samples of an outcome, by their names and buckets."""
    return {
        (sample.name, sample.labels.get("le", "")): sample.value
        for family in text_string_to_metric_families(metrics.page({}).decode())
        for sample in family.samples
        if sample.labels.get("outcome") == outcome and not sample.name.endswith("_created")
    }


def parts(metrics: Metrics, outcome: str) -> tuple[Any, Any]:
    return metrics.of(table.COMMITS, outcome), metrics.of(table.COMMIT_SECONDS, outcome)


def test_a_tally_counts_what_both_would(metrics: Metrics) -> None:
    count, durations = parts(metrics, "refused")
    tally = Tally(*parts(metrics, "committed"))
    for seconds in SECONDS:
        tally(seconds)
        count.inc()
        durations.observe(seconds)
    found = counted(metrics, "committed")
    assert found == counted(metrics, "refused")
    assert found["moorage_commits_total", ""] == len(SECONDS)
    assert found["moorage_commit_duration_seconds_sum", ""] == sum(SECONDS)
    assert found["moorage_commit_duration_seconds_bucket", "+Inf"] == len(SECONDS)


def test_threads_lose_nothing_to_one_another(metrics: Metrics) -> None:
    tally = Tally(*parts(metrics, "committed"))

    def many() -> None:
        for _ in range(2_000):
            tally(0.5)

    threads = [Thread(target=many) for _ in range(4)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    found = counted(metrics, "committed")
    assert found["moorage_commits_total", ""] == 8_000
    assert found["moorage_commit_duration_seconds_sum", ""] == 4_000
