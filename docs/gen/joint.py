"""The page of joint decisions at the size of a cloud, from the results that were kept."""

from __future__ import annotations

from pathlib import Path
from typing import Final

RESULTS: Final = Path(__file__).parents[2] / "benchmarks" / "joint" / "RESULTS.md"

AFTER: Final = """\
![Seconds of a decision by the number of hosts, for answers and for refusals](joint.svg)

A line is the median of a family, the bar above it ends at its 95th percentile; both axes are
logarithmic. How a decision is made, and what is proved of it, is described in
[Joint decisions](../concept/joint-decisions.md). The tables and the plot are made by

    make bench-joint ARGS="--set held-out --write"
    make bench-joint ARGS="--set held-out --devices 9704 --loads 60 --write"
"""


def page() -> str:
    """The tables, and the plot."""
    return f"{RESULTS.read_text(encoding='utf-8')}\n## By size\n\n{AFTER}"
