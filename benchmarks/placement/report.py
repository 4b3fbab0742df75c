"""The table, the results file, and the machine they are from."""

from __future__ import annotations

import json
import os
import platform
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks.placement.rows import ROWS

HEAD = (
    "| row | hosts | theirs CPU ms | ours CPU ms | ratio | target | theirs wall | ours wall |",
    "|---|---|---|---|---|---|---|---|",
)

HOW = (
    "CPU is user and system time of the server's whole process tree per repetition, wall what one"
    " client waits; medians over samples. The reference runs behind gunicorn with two processes,"
    " Moorage as `moorage serve` with one worker, both on the same engine and fleet."
)


def machine() -> dict[str, Any]:
    """Facts of this machine and moment."""
    model = next(
        (
            line.partition(":")[2].strip()
            for line in Path("/proc/cpuinfo").read_text().splitlines()
            if line.startswith("model name")
        ),
        platform.machine(),
    )
    return {
        "date": datetime.now(UTC).isoformat(timespec="minutes"),
        "processor": model,
        "cores": os.cpu_count(),
        "load": os.getloadavg()[0],
        "python": platform.python_version(),
        "kernel": platform.release(),
    }


def line(result: dict[str, Any]) -> str:
    """One row of the table."""
    ours, theirs = result["ours"], result.get("theirs")
    target = f"{result['target']:g}x" if result["target"] else "-"
    if result["bound_ms"]:
        target = f"< {result['bound_ms']:g} ms"
    ratio = f"{theirs['cpu_ms'] / ours['cpu_ms']:.0f}x" if theirs else "-"
    cells = (
        result["title"],
        f"{result['hosts']:,}",
        f"{theirs['cpu_ms']:.1f}" if theirs else "-",
        f"{ours['cpu_ms']:.2f}",
        ratio,
        target,
        f"{theirs['wall_ms']:.1f}" if theirs else "-",
        f"{ours['wall_ms']:.2f}",
    )
    return f"| {' | '.join(cells)} |"


def write(folder: Path, facts: dict[str, Any], results: list[dict[str, Any]]) -> None:
    """The table and the figures of one engine, in the folder.

    Rows that this run did not measure stay as they were, with their own date and load.
    """
    file = folder / f"results-{facts['engine']}.json"
    before = json.loads(file.read_text()) if file.exists() else {"machine": {}, "results": []}
    own = {"date": facts["date"], "load": facts["load"]}
    found = {_key(one): one for one in before["results"]}
    found |= {_key(one): one | own for one in results}
    order = [row.key for row in ROWS]
    every = sorted(found.values(), key=lambda one: (one["hosts"], order.index(one["row"])))
    facts = facts | {"memory": before["machine"].get("memory", {}) | facts["memory"]}
    file.write_text(json.dumps({"machine": facts, "results": every}, indent=1) + "\n")
    (folder / f"RESULTS-{facts['engine']}.md").write_text("\n".join(_page(facts, every)) + "\n")


def _key(result: dict[str, Any]) -> tuple[str, int]:
    return result["row"], result["hosts"]


def _page(facts: dict[str, Any], results: list[dict[str, Any]]) -> list[str]:
    about = (
        f"{facts['date']}, {facts['processor']}, {facts['cores']} cores (load {facts['load']:.1f}),"
        f" Python {facts['python']}, Linux {facts['kernel']}, {facts['engine']}."
    )
    memory = [
        f"- {shape}: ours {one['ours']}, theirs {one['theirs']}"
        for shape, one in facts["memory"].items()
    ]
    return [
        "# Placement beside openstack-placement 16.0.0",
        "",
        about,
        "",
        f"    {facts['command']}",
        *("", HOW, "", *HEAD, *(line(one) for one in results), ""),
        *("Resident MiB after the rows (biggest process, whole tree):", "", *memory),
    ]
