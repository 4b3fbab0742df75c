"""The metrics of one process, made from the table, and the page that shows them all.

With a folder, each worker's page adds up the counts of all workers from its files; without one, a
process shows its own counts alone. Values of the ledger are queried when the page is read.
"""

from __future__ import annotations

import logging
import os
import struct
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Protocol

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest, values
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from prometheus_client.multiprocess import MultiProcessCollector

from moorage.telemetry import files, table
from moorage.telemetry.table import Kind

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    from moorage.telemetry.table import Row

_log = logging.getLogger(__name__)

CONTENT_TYPE: Final = CONTENT_TYPE_LATEST
"""The page's content type."""

_LOOKS: Final = 10
_MOMENT: Final = 0.02
"""How often a file that was only half written is looked at again, and after how many seconds."""
_WHERE: Final = "PROMETHEUS_MULTIPROC_DIR"
"""The variable from which the library reads the folder when its first value is made."""


METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
"""Methods with a label of their own; all others are `other`."""


class Metrics:
    """Records metrics and renders them. Safe for threads."""

    def __init__(self, folder: Path | None = None, worker: str = "1") -> None:
        self.worker = worker
        self._own = CollectorRegistry()
        self._folder = _shared(folder, worker)
        self._rows: dict[str, Any] = {
            row.name: _instrument(row, self._own) for row in table.TABLE if not row.on_scrape
        }
        self._kept: dict[tuple[str, tuple[str, ...]], Any] = {}

    def count(self, row: Row, *labels: str, by: float = 1) -> None:
        """Add to a counter."""
        self._of(row, labels).inc(by)

    def observe(self, row: Row, seconds: float, *labels: str) -> None:
        """Put a duration into a histogram."""
        self._of(row, labels).observe(seconds)

    def set(self, row: Row, value: float, *labels: str) -> None:
        """Set a gauge."""
        self._of(row, labels).set(value)

    def page(self, on_scrape: Mapping[Row, ReadSamples]) -> bytes:
        """All metrics in Prometheus' text format; those that cannot be read now are left out."""
        counted = generate_latest(self._own) if self._folder is None else _of_all(self._folder)
        asking = CollectorRegistry()
        asking.register(_ScrapeCollector(on_scrape))
        return bytes(counted) + bytes(generate_latest(asking))

    def _of(self, row: Row, labels: tuple[str, ...]) -> Any:  # noqa: ANN401 - the library's classes
        key = (row.name, labels)
        found = self._kept.get(key)
        if found is None:
            instrument = self._rows[row.name]
            found = self._kept[key] = instrument.labels(*labels) if labels else instrument
        return found


@dataclass(frozen=True, slots=True)
class RequestMetrics:
    """Counts answered requests; the kernel calls it."""

    metrics: Metrics

    def __call__(self, environ: Mapping[str, object], status: int, seconds: float) -> None:
        """Count an answered request."""
        method = environ.get("REQUEST_METHOD")
        labels = (
            str(environ.get("moorage.mount", "house")),
            str(method) if method in METHODS else "other",
            str(environ.get("moorage.route", "none")),
        )
        self.metrics.count(table.REQUESTS, *labels, str(status))
        self.metrics.observe(table.REQUEST_SECONDS, seconds, *labels)


def _of_all(folder: Path) -> bytes:
    """The counts of all workers.

    A worker that just starts has a file without anything in it for a moment, and one that counts
    something new has half of its name there: then all are read again.
    """
    for left in reversed(range(_LOOKS)):
        shown = CollectorRegistry()
        MultiProcessCollector(shown, str(folder))  # type: ignore[no-untyped-call]
        try:
            return bytes(generate_latest(shown))
        except (struct.error, ValueError, RuntimeError, FileNotFoundError):
            if not left:
                raise
            time.sleep(_MOMENT)
    raise AssertionError


class ReadSamples(Protocol):
    """Reads the samples of a row that is `on_scrape` at each scrape."""

    def __call__(self) -> Iterable[tuple[tuple[str, ...], float]]:
        """Label values and value of each sample."""


class _ScrapeCollector:
    """A collector of the rows that are read at each scrape."""

    def __init__(self, on_scrape: Mapping[Row, ReadSamples]) -> None:
        self._asked = on_scrape

    def describe(self) -> list[Any]:
        """Empty: describing would cost a query, which registration does not need."""
        return []

    def collect(self) -> Iterator[Any]:
        for row, ask in self._asked.items():
            kind = CounterMetricFamily if row.kind is Kind.COUNTER else GaugeMetricFamily
            family = kind(row.name, row.help, labels=row.labels)
            try:
                for labels, value in ask():
                    family.add_metric(labels, value)
            except Exception as error:  # noqa: BLE001 - the rest of the page is worth having
                _log.warning("%s cannot be told now: %s", row.name, error)
                continue
            yield family


def _shared(folder: Path | None, worker: str) -> Path | None:
    """Configure the library to keep its values in the folder, or in this process alone."""
    if folder is not None:
        try:
            files.prepare(folder, worker)
        except OSError as error:
            _log.warning("metrics are of this process alone: %s: %s", folder, error.strerror)
            folder = None
    if folder is None:
        values.ValueClass = values.MutexValue
    else:
        os.environ[_WHERE] = str(folder)
        values.ValueClass = values.MultiProcessValue(lambda: worker)  # type: ignore[no-untyped-call]
    return folder


def _instrument(row: Row, registry: CollectorRegistry) -> Any:  # noqa: ANN401 - the library's classes
    match row.kind:
        case Kind.COUNTER:
            return Counter(row.name, row.help, row.labels, registry=registry)
        case Kind.HISTOGRAM:
            return Histogram(row.name, row.help, row.labels, buckets=row.buckets, registry=registry)
        case Kind.GAUGE:
            # Every value has one writer: the sum over workers is each worker's own.
            return Gauge(
                row.name, row.help, row.labels, registry=registry, multiprocess_mode="livesum"
            )
