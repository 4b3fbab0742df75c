"""What leases cost.

    python -m benchmarks.time                       # all rows, at their full size
    python -m benchmarks.time --rows slots large    # some of them
    python -m benchmarks.time --scale 0.1           # smaller fleets, to try it
    python -m benchmarks.time --json FILE           # keep what was found; other rows stay

Every row runs in this process on SQLite in a file, but for Blazar's manager, which has one of its
own. Times are processor time of the whole process, medians over rounds; statements are those that
reach the database.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any, Final

from benchmarks.placement.report import machine
from benchmarks.time.blazar import blazar
from benchmarks.time.capacity import capacity
from benchmarks.time.earliest import earliest
from benchmarks.time.leases import beside, large, slots

ROWS: Final = {
    "slots": slots,
    "large": large,
    "blazar": blazar,
    "beside": beside,
    "earliest": earliest,
    "capacity": capacity,
}


def main() -> None:
    """Measure the rows asked for."""
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=raw)
    parser.add_argument("--rows", nargs="+", choices=ROWS, default=list(ROWS))
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--json", type=Path, help="where to keep what was found")
    args = parser.parse_args()
    for name in args.rows:
        facts = machine()
        for row in ROWS[name](args.scale):
            print(line(row), flush=True)
            if args.json:
                keep(args.json, facts, row)


def line(row: dict[str, Any]) -> str:
    """One row, in words."""
    said = [
        f"{row['title']}, {row['hosts']} hosts, {row['bookings']} bookings: {cost(row['ours'])}"
    ]
    if other := row.get("beside"):
        said.append(f"{other['what']}: {cost(other)}; {ratio(row):.2f}x")
    return "; ".join([*said, f"target {row['target']}" if row["target"] else "no target"])


def cost(found: dict[str, Any]) -> str:
    """Median, spread and statements."""
    spread = f"{found['cpu_ms']:.1f} ms ({found['least_ms']:.1f} to {found['most_ms']:.1f})"
    return spread + (f", {found['statements']} statements" if "statements" in found else "")


def ratio(row: dict[str, Any]) -> float:
    """How much more the costlier side takes where that is Blazar; else ours by the other."""
    mine, other = row["ours"]["cpu_ms"], row["beside"]["cpu_ms"]
    return float(other / mine if row["row"].startswith("blazar") else mine / other)


def keep(file: Path, facts: dict[str, Any], row: dict[str, Any]) -> None:
    """Put one row into the file, with its own date and load; the others stay as they were."""
    found = json.loads(file.read_text()) if file.exists() else {"results": []}
    own = {"date": facts["date"], "load": facts["load"]}
    kept = [one for one in found["results"] if one["row"] != row["row"]]
    order = [
        *("slots", "blazar-10", "blazar-40", "large"),
        *("beside-search", "beside-answer", "earliest"),
        *("capacity-read", "capacity-answer"),
    ]
    every = sorted([*kept, row | own], key=lambda one: order.index(one["row"]))
    fixed = {key: value for key, value in facts.items() if key not in own}
    file.write_text(json.dumps({"machine": fixed, "results": every}, indent=1) + "\n")


if __name__ == "__main__":
    main()
