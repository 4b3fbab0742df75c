"""Judge HTTP servers beside ours: the same trial for each, five minutes in all.

    make bench-http [ARGS="--servers waitress,gunicorn --rows bodies,end --write"]

The first server is what the speed of the others is compared with. `--write` writes RESULTS.md.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.http_servers import ends, raw, report, slow, speed
from benchmarks.http_servers.servers import NAMES, raise_limits, serving

if TYPE_CHECKING:
    from collections.abc import Callable

ROWS = {
    "heads": ("1,000 half-sent heads", slow.heads),
    "bodies": ("128 stalled bodies", slow.bodies),
    "stalled": ("16 stalled bodies of 15 MB (64 MB may be kept)", slow.stalled_megabytes),
    "readers": ("16 unread answers of 8 MB (64 MB may be kept)", slow.readers),
    "streams": ("64 unread streams of 64 MB", slow.stream_readers),
    "idle": ("5,000 idle connections", slow.idle),
    "address": ("connections of one address are bounded", slow.per_address),
    "limits": ("bodies past the limit, `Expect: 100-continue`", slow.limits),
    "broken": ("a body that breaks off is never whole, and is logged", slow.broken_bodies),
    "leaving": ("a stream ends with its client", slow.leaving),
    "client": ("the client's address", slow.address),
    "socket": ("a listening socket of the supervisor's", ends.socket_given),
    "balance": ("200 connections on two workers", ends.balance),
    "end": ("SIGTERM", ends.end),
    "replacement": ("five replacements under 4 clients", ends.replacement),
    "tls": ("TLS", ends.tls),
    "signs": ("signs of life (by reading)", ends.signs),
}


def attempt(trial: Callable[[str], slow.Finding], name: str) -> slow.Finding:
    """What a trial found of a server; that it failed is a finding too."""
    time.sleep(0.5)
    try:
        return trial(name)
    except Exception as error:  # noqa: BLE001 - whatever it is
        return slow.Finding(f"failed: {type(error).__name__}: {error}", good=False)


def main() -> None:
    """Run, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--servers", default=",".join(NAMES))
    parser.add_argument("--rows", default=",".join(["raw", *ROWS, "speed"]))
    parser.add_argument("--seconds", type=float, default=2, help="of each measurement of speed")
    parser.add_argument("--rounds", type=int, default=2, help="of speed")
    parser.add_argument("--write", action="store_true")
    asked = parser.parse_args()
    names, rows = asked.servers.split(","), asked.rows.split(",")
    raise_limits()
    parts = [report.head(names)]
    wrong = {}
    if "raw" in rows:
        of, right = Counter[str](), {}
        for name in names:
            with serving(name) as server:
                of, right[name], wrong[name] = raw.run(server)
        parts.append(report.raw_rows(of, right, names))
    for key in (key for key in ROWS if key in rows):
        title, trial = ROWS[key]
        found = {name: attempt(trial, name) for name in names}
        parts.append(report.row(title, found, names))
        print(parts[-1], end="", file=sys.stderr, flush=True)
    if "speed" in rows:
        rounds: dict[str, list[dict[str, speed.Speed]]] = {name: [] for name in names}
        for _ in range(asked.rounds):
            for name in names:
                rounds[name].append(speed.speeds(name, asked.seconds))
        parts.append(report.speed_rows(rounds, names))
    text = "".join([*parts, report.wrong(wrong) if wrong else ""])
    print(text)
    if asked.write:
        Path(__file__).with_name("RESULTS.md").write_text(text)


if __name__ == "__main__":
    main()
