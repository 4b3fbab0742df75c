"""Nova's own functional tests, with Moorage as their Placement and with the reference.

    make nova-functional                                     # an hour and more
    make nova-functional ARGS="--only test_report_client"    # some modules
    make nova-functional ARGS="--json results.json"

Runs the modules that speak of Placement, each with both, and compares test by test. A test with
different outcomes runs once more alone with both: Nova's tests wait for each other's threads, and
some fail now and then on a busy machine. Exits with 1 if a difference is left.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

ROOT: Final = Path(__file__).parents[2]
PYTHON: Final = ROOT / ".cache/nova-functional/bin/python"
SIDES: Final = ("reference", "moorage")
LONGEST: Final = 3600
"""Seconds for one module."""
NOT_OF_PLACEMENT: Final = ("api_sample_tests", "notification_sample_tests", "db")

Outcomes = dict[str, dict[str, Any]]
"""Test id -> its outcome and the end of its traceback."""


@dataclass(frozen=True)
class Compared:
    """One module's tests with both."""

    module: str
    reference: Outcomes
    moorage: Outcomes

    def different(self) -> list[str]:
        """The tests with another outcome, or run with one only."""
        every = self.reference.keys() | self.moorage.keys()
        return sorted(one for one in every if _of(self.reference, one) != _of(self.moorage, one))

    def counts(self) -> dict[str, int]:
        """Outcome with Moorage -> tests."""
        found = [_of(self.moorage, one) for one in self.moorage]
        return {word: found.count(word) for word in ("passed", "skipped", "failed")}


def main() -> None:
    """Run what was asked for, and print a line per module."""
    parser = argparse.ArgumentParser(prog="make nova-functional", description=__doc__)
    parser.add_argument("--only", nargs="*", default=[], help="parts of the modules' names")
    parser.add_argument("--parallel", type=int, default=os.cpu_count() or 1, help="modules at once")
    parser.add_argument("--json", type=Path, help="a file for all outcomes")
    asked = parser.parse_args()
    modules = [
        one for one in _modules() if not asked.only or any(text in one for text in asked.only)
    ]
    if not modules:
        sys.exit("no such module")
    found: list[Compared] = []
    print(f"{'module':70} passed skipped failed different")
    with ThreadPoolExecutor(asked.parallel) as pool:
        for one in pool.map(_compared, modules):
            found.append(one)
            counts = one.counts()
            numbers = (counts["passed"], counts["skipped"], counts["failed"], len(one.different()))
            print(f"{one.module:70} {' '.join(f'{number:7}' for number in numbers)}", flush=True)
            if asked.json:
                _write(asked.json, found)
    left = [(one, test) for one in found for test in one.different()]
    for one, test in left:
        print(f"\n{test}")
        for side, outcomes in zip(SIDES, (one.reference, one.moorage), strict=True):
            print(f"  {side}: {outcomes.get(test, {'outcome': 'not run'})}")
    total = sum(len(one.moorage) for one in found)
    print(f"\n{total} tests in {len(found)} modules, {len(left)} with another outcome")
    sys.exit(1 if left else 0)


def _modules() -> Iterator[str]:
    """The names of the modules of functional tests that speak of Placement."""
    (folder,) = PYTHON.parents[1].glob("lib/python*/site-packages/nova/tests/functional")
    for path in sorted(folder.rglob("test_*.py")):
        parts = path.relative_to(folder).with_suffix("").parts
        if parts[0] not in NOT_OF_PLACEMENT and "placement" in path.read_text(encoding="utf-8"):
            yield ".".join(("nova.tests.functional", *parts))


def _compared(module: str) -> Compared:
    first = Compared(module, *(_outcomes(side, module) for side in SIDES))
    again = {test: [_outcomes(side, test) for side in SIDES] for test in first.different()}
    reference, moorage = dict(first.reference), dict(first.moorage)
    for theirs, ours in again.values():
        reference |= theirs
        moorage |= ours
    return Compared(module, reference, moorage)


def _outcomes(side: str, tests: str) -> Outcomes:
    """The outcomes of a module or one test; those finished by then if it takes too long."""
    command = [str(PYTHON), "-W", "ignore", "-m", "tests.nova_functional.worker", side, tests]
    environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"}
    try:
        done = subprocess.run(
            command,
            cwd=ROOT,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=LONGEST,
            check=False,
        )
        text = done.stdout
    except subprocess.TimeoutExpired as error:
        text = error.stdout or b""
    lines: Iterable[dict[str, Any]] = map(json.loads, text.splitlines())
    return {one.pop("id"): one for one in lines}


def _of(outcomes: Outcomes, test: str) -> str:
    return str(outcomes.get(test, {}).get("outcome", "not run"))


def _write(path: Path, found: Sequence[Compared]) -> None:
    every = [
        {"test": test, "reference": _of(one.reference, test), "moorage": _of(one.moorage, test)}
        for one in found
        for test in sorted(one.reference.keys() | one.moorage.keys())
    ]
    path.write_text(json.dumps(every, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
