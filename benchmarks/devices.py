"""How long members with devices take to be decided, without HTTP and without a store.

    .venv/bin/python benchmarks/devices.py            # prints the medians
    .venv/bin/python benchmarks/devices.py --record   # and writes them to benchmarks/ranges.toml

Processor time of stating a problem, solving, proving and checking it, on hosts of two NUMA nodes
with a physical function below each; `loaded` hosts are full at random. Times depend on the
machine; compare runs of one machine only.
"""

from __future__ import annotations

import argparse
import random
import statistics
import time
from typing import TYPE_CHECKING

from ranges import record

from moorage.domain.ensembles import Role
from moorage.domain.request_groups import Group
from moorage.engine.joint.build import build_on_terrain
from moorage.engine.joint.proved_solve import solve
from moorage.engine.joint.verify import places, verify
from moorage.solver.cpsat import CpSat
from moorage.solver.portfolio import Portfolio
from moorage.testing.trees import Node, asked, edge_host, forest, vf

if TYPE_CHECKING:
    from collections.abc import Sequence

LIMIT = 5_000_000
UPF = Role("upf", {"VCPU": 8, "MEMORY_MB": 512}, groups=(vf("a", "A", beside=True), vf("b", "B")))
WEB = Role("web", {"VCPU": 4, "MEMORY_MB": 256})


def fleet(count: int, *, loaded: bool) -> list[Node]:
    """Hosts with two nodes; what is free of a loaded one is drawn."""
    dice = random.Random(0)
    return [
        node
        for number in range(count)
        for node in (
            edge_host(f"h{number}", vcpu=dice.randint(0, 16), vfs=dice.randint(0, 8))
            if loaded
            else edge_host(f"h{number}")
        )
    ]


def flat(children: int, groups: int) -> tuple[list[Node], Role]:
    """One host with so many equal devices, and a role that wants one of them per group."""
    nodes = [Node("h", "h", {"VCPU": 64})]
    nodes += [Node(f"d{number}", "h", {"VF": 1}, "h") for number in range(children)]
    wants = tuple(Group(f"g{number}", {"VF": 1}) for number in range(groups))
    return nodes, Role("x", {"VCPU": 1}, groups=wants, isolate=True)


def decide(nodes: Sequence[Node], roles: Sequence[tuple[Role, int]], runs: int) -> float:
    """Median milliseconds."""
    terrain, request = forest(nodes, [role for role, _ in roles]), asked(roles)
    solver = Portfolio(CpSat())
    taken = []
    for _ in range(runs + 1):
        started = time.process_time()
        built = build_on_terrain(request, terrain)
        outcome = solve(solver, built.problem, time_limit=LIMIT, seed=0)
        if outcome.hosts is None:
            raise SystemExit(f"{roles}: {outcome.verdict}")
        verify(built, outcome.hosts)
        places(built, outcome.hosts)
        taken.append((time.process_time() - started) * 1000)
    return statistics.median(taken[1:])


def measure(runs: int) -> dict[str, float]:
    """Medians in milliseconds; prints a line each."""
    rows: list[tuple[str, Sequence[Node], Sequence[tuple[Role, int]]]] = [
        ("devices-4-on-1000", fleet(1_000, loaded=False), [(UPF, 4)]),
        ("devices-4-on-1000-loaded", fleet(1_000, loaded=True), [(UPF, 4)]),
        ("devices-100-on-1000-loaded", fleet(1_000, loaded=True), [(UPF, 50), (WEB, 50)]),
    ]
    for children, groups in ((8, 6), (64, 16)):
        devices, role = flat(children, groups)
        rows.append((f"devices-{children}-children-{groups}-groups", devices, [(role, 1)]))
    found = {}
    for name, nodes, roles in rows:
        found[name] = decide(nodes, roles, runs)
        print(f"{name:32} p50 {found[name]:8.1f} ms")
    return found


def main() -> None:
    """Measure, print, and record where asked to."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--record", action="store_true")
    options.add_argument("--runs", type=int, default=11)
    chosen = options.parse_args()
    found = measure(chosen.runs)
    if chosen.record:
        record("devices", "milliseconds of processor time; benchmarks/devices.py", found)


if __name__ == "__main__":
    main()
