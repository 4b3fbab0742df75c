"""Search for disagreements with the reference: `python -m tests.fuzz [FIRST_SEED] [SECONDS]`."""

import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from tests.fuzz.sides import Reference
from tests.fuzz.walk import walk

TOLD = 20
"""Disagreements told in full; the others are counted."""


def main(first: int, seconds: float) -> int:
    """Walk seed after seed; the exit status is 1 if some answer differed that should not."""
    until = time.monotonic() + seconds
    kinds: Counter[str] = Counter()
    meant: Counter[str] = Counter()
    statuses: Counter[int] = Counter()
    seed = first
    with tempfile.TemporaryDirectory() as folder:
        reference = Reference(Path(folder))
        while time.monotonic() < until:
            outcome = walk(seed, reference)
            meant += outcome.meant
            statuses += outcome.statuses
            for one in outcome.disagreements:
                if one.kind not in kinds and len(kinds) < TOLD:
                    say(f"seed {seed}: {one}\n")
                kinds[one.kind] += 1
            seed += 1
        reference.close()
    say(f"seeds {first} to {seed - 1}: {statuses.total()} requests, by status {dict(statuses)}")
    for name, count in meant.most_common():
        say(f"{count:6}  meant: {name}")
    for kind, count in kinds.most_common():
        say(f"{count:6}  NOT MEANT: {kind}")
    return min(kinds.total(), 1)


def say(line: str) -> None:
    """A line of the result, at once."""
    print(line, flush=True)  # noqa: T201 - a command's result


if __name__ == "__main__":
    words = sys.argv[1:]
    sys.exit(main(int(words[0]) if words else 1, float(words[1]) if len(words) > 1 else 60))
