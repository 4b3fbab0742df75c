"""Series of leases as text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from moorage.cli.decision_text import SEPARATOR
from moorage.cli.explanation_text import explained
from moorage.cli.output import short, table
from moorage.cli.times import length, minute, period
from moorage.domain.words import counted, first_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rich.console import RenderableType

    from moorage.client.errors import SeriesInfeasible
    from moorage.wire.series import LeftOut, Occurrence, OneSeries, Series


_SHOWN: Final = 12
"""Occurrences that are named one by one where a series is refused."""


def granted(made: OneSeries, new: Sequence[Occurrence]) -> str:
    """A series: `series 1f2e3d4c  20 leases  weekdays at 08:00 Europe/Berlin for 10h  ...`."""
    one = made.series
    head = "would be granted" if made.dry_run else f"series {short(one.id)}"
    parts = [head, counted(len(new), "lease"), recurring(one)]
    if new:
        parts.append(period(new[0].start, new[-1].end))
    return SEPARATOR.join(parts)


def recurring(one: Series) -> str:
    """A recurrence: `weekdays at 08:00 Europe/Berlin for 10h`."""
    clock = one.start.partition("T")[2]
    every = f"every {one.every}" if one.every[0].isdigit() else one.every
    return f"{every} at {clock} {one.zone} for {length(one.duration)}"


def occurrences(some: Sequence[Occurrence]) -> RenderableType:
    """A row for each lease of a series."""
    rows = [
        (
            one.index,
            one.handle or "-",
            one.name,
            f"{one.status}, degraded" if one.degraded else one.status,
            minute(one.start),
            minute(one.end),
        )
        for one in some
    ]
    return table(["#no", "lease", "name", "status", "start", "end"], rows)


def skipped_occurrences(some: Sequence[LeftOut]) -> list[str]:
    """Occurrences left out, a line each: `not granted: 4  <start> .. <end>  why`."""
    return [
        SEPARATOR.join((f"not granted: {one.index}", period(one.start, one.end), minute(one.why)))
        for one in some
    ]


def refused(error: SeriesInfeasible) -> str:
    """The occurrences that do not fit, why the first does not, and possible changes."""
    lines = [f"infeasible  {error.detail}"]
    every = error.occurrences
    missing = [f"{one['index']}  {period(one['start'], one['end'])}" for one in every]
    lines += [f"  {line}" for line in first_of(missing, _SHOWN)]
    if error.explanation and every:
        # When one occurrence alone would fit is no answer here: the series says when all do.
        why = {**error.explanation, "earliest_start": None}
        lines.append(f"occurrence {every[0]['index']}: {explained(why)}")
    numbered = [f"{n}. {_instead(one)}" for n, one in enumerate(error.instead, 1)]
    if numbered:
        lines.append("the series fits (each solved):")
        lines += [f"  {one}" for one in numbered]
    return "\n".join(lines)


def _instead(one: Mapping[str, Any]) -> str:
    fits = counted(int(one["fits"]), "occurrence")
    if one.get("start"):
        return f"--start {one['start']}: {fits}"
    return f"--as-many-as-fit: {fits}"
