"""The instruments of one process, made from the table, and the page that shows them all.

With a folder, the counts of all workers are added up from its files, whoever is asked; without
one, a process tells of itself alone. What belongs to the ledger is asked of it when the page is
read.
"""

from __future__ import annotations

import logging
import os
import struct
import time
from typing import TYPE_CHECKING, Any, Final, Protocol

from prometheus_client import CollectorRegistry, Gauge, generate_latest, values
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from prometheus_client.multiprocess import MultiProcessCollector

from moorage.telemetry import files, table
from moorage.telemetry.quick import QuickCounter, QuickHistogram, quick
from moorage.telemetry.table import Kind

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    from moorage.telemetry.table import Row

_log = logging.getLogger(__name__)

CONTENT_TYPE: Final = CONTENT_TYPE_LATEST
"""What the page is, for its header."""

_LOOKS: Final = 10
_MOMENT: Final = 0.02
"""How often a file that was only half written is looked at again, and after how many seconds."""
_WHERE: Final = "PROMETHEUS_MULTIPROC_DIR"
"""How the library is told of the folder; it asks when its first value is made."""


class Metrics:
    """Counts, and shows what was counted. Safe for threads."""

    def __init__(self, folder: Path | None = None, worker: str = "1") -> None:
        self.worker = worker
        self._own = CollectorRegistry()
        self._folder = _shared(folder, worker)
        self._rows: dict[str, Any] = {
            row.name: _instrument(row, self._own) for row in table.TABLE if not row.asked
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

    def page(self, asked: Mapping[Row, Ask]) -> bytes:
        """Everything in the text form of Prometheus; what cannot be asked now is left out."""
        counted = generate_latest(self._own) if self._folder is None else _of_all(self._folder)
        asking = CollectorRegistry()
        asking.register(_Asking(asked))
        return bytes(counted) + bytes(generate_latest(asking))

    def of(self, row: Row, *labels: str) -> Any:  # noqa: ANN401 - the library's classes
        """The instrument itself, for who uses it so often that it keeps it."""
        return self._of(row, labels)

    def _of(self, row: Row, labels: tuple[str, ...]) -> Any:  # noqa: ANN401 - the library's classes
        key = (row.name, labels)
        found = self._kept.get(key)
        if found is None:
            instrument = self._rows[row.name]
            found = self._kept[key] = instrument.labels(*labels) if labels else instrument
        return found


def _of_all(folder: Path) -> bytes:
    """What all workers have counted.

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


class Ask(Protocol):
    """Finds the samples of a row that is `asked`."""

    def __call__(self) -> Iterable[tuple[tuple[str, ...], float]]:
        """Label values and value of each sample."""


class _Asking:
    """The rows that are asked for, as the library wants them."""

    def __init__(self, asked: Mapping[Row, Ask]) -> None:
        self._asked = asked

    def describe(self) -> list[Any]:
        """Nothing: asking costs a look at the ledger, which registering need not."""
        return []

    def collect(self) -> Iterator[Any]:
        for row, ask in self._asked.items():
            family = GaugeMetricFamily(row.name, row.help, labels=row.labels)
            try:
                for labels, value in ask():
                    family.add_metric(labels, value)
            except Exception as error:  # noqa: BLE001 - the rest of the page is worth having
                _log.warning("%s cannot be told now: %s", row.name, error)
                continue
            yield family


def _shared(folder: Path | None, worker: str) -> Path | None:
    """Let the library keep its values in the folder, or else in this process alone."""
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
        values.ValueClass = quick(values.MultiProcessValue(lambda: worker))  # type: ignore[no-untyped-call]
    return folder


def _instrument(row: Row, registry: CollectorRegistry) -> Any:  # noqa: ANN401 - the library's classes
    match row.kind:
        case Kind.COUNTER:
            return QuickCounter(row.name, row.help, row.labels, registry=registry)
        case Kind.HISTOGRAM:
            return QuickHistogram(
                row.name, row.help, row.labels, buckets=row.buckets, registry=registry
            )
        case Kind.GAUGE:
            # Every value has one writer: the sum over workers is each worker's own.
            return Gauge(
                row.name, row.help, row.labels, registry=registry, multiprocess_mode="livesum"
            )
