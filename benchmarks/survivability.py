"""How long the fleet's survivability takes: 10,000 hosts in 250 racks with 1,000 ensembles of 20.

    python -m benchmarks.survivability                    # half a minute, most of it to fill
    python -m benchmarks.survivability --ensembles 200 --hosts 2000
    python -m benchmarks.survivability --profile
    python -m benchmarks.survivability --write             # record it in ranges.toml

Of ten ensembles four are spread over racks, with a policy that enough are left after any loss of
one; three are in two racks and need 12 of their 20 members; three are in one rack, with a policy
that keeps them together. Hosts are booked by half. Measured is the use case in this process, on a
snapshot that is there: each rack's loss, who loses the quorum and whether that can be placed again;
then each host's, and the losses of every two racks. Times depend on the machine; compare those of
one run.
"""

from __future__ import annotations

import argparse
import cProfile
import pstats
import random
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from benchmarks.compliance import IN_A_RACK, topology, uuid_of
from benchmarks.ranges import record

from moorage.domain.changes import Changeset, PutEnsemble, PutTopology, ReplaceAllocations
from moorage.domain.consumers import Consumer
from moorage.domain.describe import read_statement
from moorage.domain.ensembles import Ensemble, Member, Role
from moorage.domain.fleet_parts import FleetPart
from moorage.domain.member_names import MemberName
from moorage.domain.period import SECOND
from moorage.domain.providers import Inventory, ResourceProvider
from moorage.service_environment import with_strategies
from moorage.solver.cpsat import CpSat
from moorage.solver.portfolio import Portfolio
from moorage.store import open_store
from moorage.testing.ledger_copy import OPERATOR
from moorage.testing.service import SeededIds
from moorage.usecases.ledger.fleet_loading import load_fleet
from moorage.usecases.shared.environment import Environment
from moorage.usecases.shared.limits import Limits
from moorage.usecases.simulations.replacement import Verdict
from moorage.usecases.simulations.survivability import SurvivabilityQuery, fleet_survivability

if TYPE_CHECKING:
    from moorage.store import Ledger
    from moorage.usecases.environment import UseCaseEnvironment

MEMBERS: Final = 20
SIZE: Final = {"VCPU": 4, "MEMORY_MB": 8192}
SPREAD: Final = (
    {"name": "ha", "type": "survive", "members": ["app"], "level": "rack", "keep": 15},
    {"name": "apart", "type": "anti-affinity", "members": ["app"]},
)
TWO: Final = ({"name": "apart", "type": "anti-affinity", "members": ["app"]},)
NEAR: Final = ({"name": "near", "type": "affinity", "members": ["app"], "level": "rack"},)

RECORDED: Final = (
    "milliseconds of processor time, 10,000 hosts with 1,000 ensembles of 20;"
    " benchmarks/survivability.py"
)
KINDS: Final = (*[(MEMBERS, SPREAD, 15)] * 4, *[(2, TWO, 12)] * 3, *[(1, NEAR, 10)] * 3)
"""Racks of an ensemble, its policies and how many of its members must be up."""


def fill(store: Ledger, hosts: int, ensembles: int) -> None:
    """Load the fleet, half booked, and the ensembles with servers."""
    inventories = (Inventory("VCPU", 64), Inventory("MEMORY_MB", 262_144))
    providers = tuple(
        ResourceProvider(
            uuid=uuid_of("host", n),
            name=f"h{n}",
            parent_uuid=None,
            root_uuid=uuid_of("host", n),
            inventories=inventories,
        )
        for n in range(hosts)
    )
    load_fleet(store, OPERATOR, FleetPart(providers=providers))
    store.commit(Changeset((PutTopology(topology(hosts)),)))
    choose = random.Random(1)
    free: dict[str, int] = {}
    for start in range(0, hosts, 250):
        writes = []
        for n in range(start, min(start + 250, hosts)):
            booked = choose.randrange(8, 56, 4)
            free[uuid_of("host", n)] = (64 - booked) // SIZE["VCPU"]
            amounts = {"VCPU": booked, "MEMORY_MB": 131_072}
            neighbour = Consumer(uuid_of("neighbour", n), "q", "u")
            writes.append(ReplaceAllocations(neighbour, {uuid_of("host", n): amounts}, None))
        store.commit(Changeset(tuple(writes)))
    for number in range(ensembles):
        racks = choose.sample(range(hosts // IN_A_RACK), min(MEMBERS, hosts // IN_A_RACK))
        count, statements, least = KINDS[number % len(KINDS)]
        policies = tuple(read_statement(one, f"policies[{n}]") for n, one in enumerate(statements))
        members, writes, used = [], [], set[str]()
        for at in range(MEMBERS):
            rack = racks[at % min(count, len(racks))]
            every = [uuid_of("host", rack * IN_A_RACK + n) for n in range(IN_A_RACK)]
            host = max((one for one in every if one not in used), key=lambda one: free[one])
            used.add(host)
            free[host] -= 1
            server = uuid_of("server", number, at)
            members.append(Member(MemberName("app", at), uuid_of("member", number, at), server))
            writes.append(ReplaceAllocations(Consumer(server, "p", "u"), {host: SIZE}, None))
        role = Role("app", SIZE, min_available=least)
        one = Ensemble(
            uuid_of("ensemble", number),
            "p",
            "u",
            f"e{number}",
            (role,),
            tuple(members),
            policies,
            salt="salt",
        )
        store.commit(Changeset((PutEnsemble(one, None), *writes)))


def environment(store: Ledger) -> UseCaseEnvironment:
    """The environment of one process."""
    limits = Limits(longest_time_limit=600 * SECOND)
    solver = Portfolio(CpSat())
    return with_strategies(
        Environment(store, solver, SeededIds(), limits, time.monotonic, time.sleep)
    )


def report(env: UseCaseEnvironment, query: SurvivabilityQuery) -> float:
    """Print what a query finds, and how long it takes; the milliseconds of processor time."""
    began, busy = time.perf_counter(), time.process_time()
    found = fleet_survivability(env, OPERATOR, query)
    took, busy = time.perf_counter() - began, time.process_time() - busy
    lost = [one for loss in found.losses for one in loss.without_quorum]
    verdicts = {one.value: sum(each.again is one for each in lost) for one in Verdict}
    print(
        f"lose {found.lose} {found.level}: {took:6.2f} s; {found.considered} losses, {found.fatal}"
        f" fatal, {len(lost)} ensembles without quorum in {len(found.losses)} of them: {verdicts}"
    )
    return busy * 1000


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--hosts", type=int, default=10_000)
    parser.add_argument("--ensembles", type=int, default=1_000)
    parser.add_argument("--profile", action="store_true")
    parser.add_argument("--write", action="store_true", help="record it in ranges.toml")
    parser.add_argument("--database", metavar="FILE", help="keep it there, or use it")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(args.database or Path(folder) / "ledger.db")
        there = path.exists()
        store = open_store(f"sqlite:///{path}")
        began = time.perf_counter()
        if not there:
            fill(store, args.hosts, args.ensembles)
        env = environment(store)
        store.snapshot()
        print(f"filled and read in {time.perf_counter() - began:.1f} s")
        long: Any = 300 * SECOND
        if args.profile:
            profile = cProfile.Profile()
            profile.runcall(report, env, SurvivabilityQuery("rack", time_limit=long))
            pstats.Stats(profile).sort_stats("cumulative").print_stats(45)
            return
        report(env, SurvivabilityQuery("rack", time_limit=long))
        found = {
            "racks": report(env, SurvivabilityQuery("rack", time_limit=long)),
            "hosts": report(env, SurvivabilityQuery("host", time_limit=long)),
            "two-racks": report(env, SurvivabilityQuery("rack", lose=2, time_limit=long)),
        }
        if args.write:
            record("survivability", RECORDED, found)


if __name__ == "__main__":
    main()
