"""The page of the metrics, from their table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gen.markdown import code, table, text

if TYPE_CHECKING:
    from moorage.telemetry.table import Row

ABOUT: Final = """\
`GET /metrics` tells these in Prometheus' text form, added up over all workers of one `moorage
serve`; each replica tells its own. [Operating a cloud's service](../guide/operate.md#watch) says
who may read it and what to be woken for. A metric with labels appears when it has something to
tell. `worker` is the number of an HTTP worker; the one that replaces a dead worker has its number,
and goes on with its counts. `route` is the template of a path, `none` where no route was found."""
HEAD: Final = ("Metric", "Kind", "Labels", "Meaning")


def page() -> str:
    """One row per metric."""
    from moorage.telemetry.table import TABLE

    return "\n\n".join(["# Metrics", ABOUT, table(HEAD, map(row, TABLE))])


def row(metric: Row) -> tuple[str, ...]:
    """One metric."""
    labels = ", ".join(code(label) for label in metric.labels)
    return code(metric.name), metric.kind.value, labels, text(metric.help)
