"""How long plans of moves take in the engine, and how many moves they have.

    python -m benchmarks.plans                   # prints the medians
    python -m benchmarks.plans --record          # and writes them to benchmarks/ranges.toml
    python -m benchmarks.plans --only admit      # one kind of instance

Each plan is carried out by a checker that shares nothing with the engine. Seconds are processor
time and depend on the machine; moves are those of all plans together, for each move of the planted
answers.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

from benchmarks.plans import instances
from benchmarks.plans.checker import check, widest

from moorage.domain import deadline
from moorage.engine.moves.plan import order_moves, plan_moves
from moorage.engine.moves.problem import MovePlan

if TYPE_CHECKING:
    from collections.abc import Callable

    from benchmarks.plans.instances import Instance

    from moorage.engine.moves.problem import MoveProblem, NoPlan

LIMIT: Final = 20.0
"""Seconds that a plan may take."""


def _ordered(seed: int) -> tuple[Instance, Callable[[MoveProblem], MovePlan | NoPlan]]:
    problem, targets = instances.cycles(seed)
    changed = sum(a != b for a, b in zip(problem.start.tolist(), targets, strict=True))
    # A temporary host for one of each pair is one move more.
    return instances.Instance(problem, changed * 3 // 2), lambda one: order_moves(one, targets)


def _planned(instance: Instance) -> tuple[Instance, Callable[[MoveProblem], MovePlan | NoPlan]]:
    return instance, plan_moves


KINDS: Final[
    dict[str, Callable[[int], tuple[Instance, Callable[[MoveProblem], MovePlan | NoPlan]]]]
] = {
    "drain-host": lambda seed: _planned(instances.drain(seed, hosts=10_000, leave=1, units=20)),
    "drain-rack": lambda seed: _planned(instances.drain(seed, hosts=10_000, leave=40, units=800)),
    "drain-10000": lambda seed: _planned(
        instances.drain(seed, hosts=10_000, leave=500, units=10_000)
    ),
    "lost-rack": lambda seed: _planned(instances.lost_rack(seed)),
    "broken": lambda seed: _planned(instances.broken(seed)),
    "admit": lambda seed: _planned(instances.admit(seed)),
    "admit-tight": lambda seed: _planned(instances.admit(seed, tight=True)),
    "cycles": _ordered,
}


def measure(kind: str, runs: int, first: int) -> dict[str, float]:
    """Medians of one kind; prints a line for each instance."""
    seconds, moves, planted, bounds = [], 0, 0, 0
    for seed in range(first, first + runs):
        instance, solve = KINDS[kind](seed)
        with deadline.within(time.perf_counter, LIMIT):
            began = time.process_time()
            plan = solve(instance.problem)
            seconds.append(time.process_time() - began)
        if not isinstance(plan, MovePlan):
            codes = sorted({one.code.value for one in plan.stuck})
            raise SystemExit(f"{kind} {seed}: no plan, {seconds[-1]:.2f} s, {codes}")
        check(instance.problem, plan)
        moves += len(plan.steps)
        planted += instance.planted
        bounds += plan.lower_bound
        print(
            f"{kind:12} {seed:3} {seconds[-1]:7.3f} s, {len(plan.steps)} moves"
            f" (planted {instance.planted}, bound {plan.lower_bound}),"
            f" {widest(plan)} at a time"
        )
    return {
        f"{kind}-seconds": statistics.median(seconds),
        f"{kind}-moves-per-planted": moves / planted,
        f"{kind}-moves-per-bound": moves / max(bounds, 1),
    }


def main() -> None:
    """Measure, print, and record where asked to."""
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=raw)
    parser.add_argument("--record", action="store_true")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    parser.add_argument("--only", choices=list(KINDS), action="append")
    chosen = parser.parse_args()
    found: dict[str, float] = {}
    for kind in chosen.only or KINDS:
        found |= measure(kind, chosen.runs, chosen.seed)
    for name, value in found.items():
        print(f"{name:32} {value:8.3f}")
    if chosen.record:
        sys.path.insert(0, str(Path(__file__).parents[1]))
        from ranges import record  # noqa: PLC0415 - a script's neighbour

        record("plans", "seconds of processor time, and ratios; python -m benchmarks.plans", found)


if __name__ == "__main__":
    main()
