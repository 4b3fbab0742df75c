"""How long decisions take, family by family.

    .venv/bin/python benchmarks/solver/run.py            # prints medians
    .venv/bin/python benchmarks/solver/run.py --record   # and writes them to benchmarks/ranges.toml
    .venv/bin/python benchmarks/solver/run.py --large    # also 100 and 1000 members on 10,000 hosts

Times are of the engine alone, in one process: stating the problem from columns, the answer, its
verification. They depend on the machine; compare runs of one machine only.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from moorage.domain.period import SECOND
from moorage.engine.explain.refusal import explain
from moorage.engine.joint.build import BuiltProblem, build_on_terrain
from moorage.engine.joint.problem import Outcome, Verdict
from moorage.engine.joint.verify import verify
from moorage.solver.cpsat import CpSat
from moorage.solver.greedy import Greedy
from moorage.solver.portfolio import Portfolio
from moorage.testing.problems import story_a

sys.path.insert(0, str(Path(__file__).parents[1]))
from families import instance
from ranges import record

if TYPE_CHECKING:
    from collections.abc import Callable

LIMIT = 5 * SECOND


@dataclass(frozen=True)
class Case:
    """One family at one size."""

    family: str
    members: int
    hosts: int
    load: float

    @property
    def name(self) -> str:
        """`mixed-60x1000-60%`."""
        return f"{self.family}-{self.members}x{self.hosts}-{self.load:.0%}"


USUAL = (
    Case("mixed", 60, 1000, 0.6),
    Case("mixed", 60, 1000, 0.75),
    Case("spread", 60, 1000, 0.6),
    Case("exclusive", 60, 1000, 0.2),
    Case("proximity", 60, 1000, 0.6),
)
LARGE = (
    Case("mixed", 100, 10_000, 0.6),
    Case("spread", 100, 10_000, 0.6),
    Case("mixed", 1000, 10_000, 0.6),
    Case("spread", 1000, 10_000, 0.6),
)


def decide(built: BuiltProblem, seed: int) -> Outcome:
    """The whole engine's part of a first answer: state, refute or search, verify."""
    stated = build_on_terrain(built.request, built.terrain)
    outcome = Portfolio(CpSat(), Greedy(polishing=0)).solve(
        stated.problem, time_limit=LIMIT, seed=seed
    )
    if outcome.hosts is not None:
        verify(stated, outcome.hosts)
    return outcome


def timed(work: Callable[[], object]) -> float:
    """Milliseconds."""
    started = time.perf_counter()
    work()
    return (time.perf_counter() - started) * 1000


def measure(case: Case, runs: int) -> float:
    """The median over fleets of different seeds; prints a line."""
    times, verdicts = [], list[Verdict]()

    def noted(built: BuiltProblem, seed: int) -> None:
        verdicts.append(decide(built, seed).verdict)

    for seed in range(runs):
        built = instance(case.family, case.members, case.hosts, load=case.load, seed=seed)
        times.append(timed(partial(noted, built, seed)))
    answered = sum(verdict is Verdict.FEASIBLE for verdict in verdicts)
    median = statistics.median(times)
    print(
        f"{case.name:28} p50 {median:8.1f} ms   max {max(times):8.1f} ms   placed {answered}/{runs}"
    )
    return median


def measure_story_a(runs: int) -> dict[str, float]:
    """The shop on three racks: its decision, and the explanation of one rack too few."""
    built, refused = story_a(), story_a(db=4, keep=3)
    solver = Portfolio(CpSat())
    decided = statistics.median(timed(lambda: decide(built, 0)) for _ in range(runs))
    explained = statistics.median(
        timed(lambda: explain(refused, solver, remaining=lambda: 10.0)) for _ in range(runs)
    )
    print(f"{'story-a':28} p50 {decided:8.1f} ms")
    print(f"{'story-a-explained':28} p50 {explained:8.1f} ms")
    return {"story-a": decided, "story-a-explained": explained}


def measure_explanation(runs: int) -> dict[str, float]:
    """A quorum over too few zones, 60 members on 1,000 hosts: conflict and relaxations."""
    solver = Portfolio(CpSat())
    times = []
    for seed in range(runs):
        built = instance("infeasible", 60, 1000, seed=seed)
        times.append(timed(partial(explain, built, solver, remaining=lambda: 10.0)))
    median = statistics.median(times)
    print(f"{'explain-60x1000':28} p50 {median:8.1f} ms   max {max(times):8.1f} ms")
    return {"explain-60x1000": median}


def main() -> None:
    """Measure and print."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--record", action="store_true")
    options.add_argument("--large", action="store_true")
    options.add_argument("--runs", type=int, default=7)
    chosen = options.parse_args()
    decide(story_a(), 0)  # load what is loaded once
    found = measure_story_a(chosen.runs)
    for case in (*USUAL, *(LARGE if chosen.large else ())):
        found[case.name] = measure(case, chosen.runs)
    found |= measure_explanation(chosen.runs)
    if chosen.record:
        record("solver", "milliseconds, median, engine alone; benchmarks/solver/run.py", found)


if __name__ == "__main__":
    main()
