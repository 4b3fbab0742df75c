"""Walk many schedules: `python -m tests.scenarios.schedules [FIRST_SEED] [SCHEDULES]`."""

from __future__ import annotations

import sys
import time
import traceback
from collections import Counter

from tests.scenarios.schedules.plan import Plan, plan
from tests.scenarios.schedules.walk import Walked, shrunk, walk


def outcome(one: Plan) -> Walked | str:
    """What a schedule came to; or where it fails, and with what."""
    try:
        return walk(one)
    except Exception as error:  # noqa: BLE001 - whatever goes wrong is what is looked for
        last = traceback.extract_tb(error.__traceback__)[-1]
        return f"{type(error).__name__} in {last.name}: {str(error).splitlines()[:1]}"


def place(told: Walked | str) -> str:
    """What failures have in common that are the same; nothing where nothing fails."""
    return told.partition(":")[0] if isinstance(told, str) else ""


def main(first: int, schedules: int) -> int:
    """Walk seed after seed; the exit status is 1 if some schedule failed."""
    began = time.process_time()
    told: Counter[str] = Counter()
    commits = judged = 0
    days = 0.0
    failed: dict[str, int] = {}
    for seed in range(first, first + schedules):
        one = plan(seed)
        walked = outcome(one)
        if isinstance(walked, str):
            found = walked
            say(f"seed {seed}: {found}")
            if place(found) not in failed:
                small = shrunk(one, lambda fewer: place(outcome(fewer)) == place(found))  # noqa: B023 - used at once
                say(f"  with {small.hosts}, lifetime {small.lifetime}: {outcome(small)}")
                for step in small.steps:
                    say(f"    {step}")
            failed[place(found)] = failed.get(place(found), 0) + 1
            continue
        told += walked.told
        commits, judged, days = commits + walked.commits, judged + walked.judged, days + walked.days
    for what, count in sorted(told.items()):
        say(f"{count:7,}  {what}")
    say(
        f"seeds {first} to {first + schedules - 1}: {commits:,} commits, {judged:,} sums, "
        f"{days:,.0f} days, {time.process_time() - began:.0f} s of CPU; failed: {failed or 'none'}"
    )
    return 1 if failed else 0


def say(line: str) -> None:
    """Write a line at once."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    numbers = [int(one) for one in sys.argv[1:]]
    sys.exit(main(*(*numbers, *(0, 1000)[len(numbers) :])))
