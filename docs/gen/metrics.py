"""The page of the metrics, from their table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gen.markdown import code, table, text

if TYPE_CHECKING:
    from moorage.telemetry.table import Row

ABOUT: Final = """\
`GET /metrics` has these in Prometheus' text format, summed over all workers of one `moorage
serve`; each replica has its own. [Operating a cloud's service](../guide/operate.md#watch) describes
who may read it, and the alert rules. A metric with labels appears with its first value. `worker`
is the number of an HTTP worker, or `planner-` and that of a planner; a process that replaces
another has its number and continues its counts. `route` is the
template of a path, `none` where no route was found."""
HEAD: Final = ("Metric", "Kind", "Labels", "Meaning")


def page() -> str:
    """One row per metric."""
    from moorage.telemetry.table import TABLE

    return "\n\n".join(["# Metrics", ABOUT, table(HEAD, map(row, TABLE))])


def row(metric: Row) -> tuple[str, ...]:
    """One metric."""
    labels = ", ".join(code(label) for label in metric.labels)
    return code(metric.name), metric.kind.value, labels, text(metric.help)
