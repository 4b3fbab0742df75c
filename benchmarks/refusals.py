"""How long a refusal takes as a tenant gets it: over HTTP, with conflict and relaxations.

    .venv/bin/python benchmarks/refusals.py                     # 20 members on 10,000 hosts
    .venv/bin/python benchmarks/refusals.py --hosts 1000 --rounds 5

A fleet in racks is written into a ledger once (and kept in `--folder`), `moorage serve` is started
on it, and each request that cannot be met is sent some times. The processor time is that of all the
service's processes. Times depend on the machine; compare runs of one machine only.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.joint.draft import NotPlantable
from benchmarks.joint.families import SETS, make
from benchmarks.joint.fleet import BEYOND, make_fleet, rare
from benchmarks.joint.over_http import body_of, fill
from benchmarks.joint.refusals import REFUSALS
from benchmarks.placement.client import Client
from benchmarks.placement.databases import Database
from benchmarks.placement.servers import ours

from moorage.domain.changes import Changeset, CreateTrait
from moorage.store import open_store
from moorage.testing.problems import PROJECT

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from benchmarks.joint.fleet import Fleet
    from benchmarks.placement.servers import Server

NOWHERE: Final = "CUSTOM_NOWHERE"
_SEEDS: Final = 4


def planted(fleet: Fleet, members: int) -> Iterator[tuple[str, dict[str, Any]]]:
    """Name -> an application of several roles and policies, of which a part cannot be placed."""
    for family in REFUSALS:
        for number in range(_SEEDS):
            try:
                instance = make(family, fleet, members, SETS["held-out"] + 5_000_000 + number)
            except NotPlantable:
                continue
            asked = json.loads(body_of(instance.request, ""))["ensemble"]
            yield f"{family} {number}", {key: asked[key] for key in ("members", "policies")}


def requests(fleet: Fleet, members: int) -> Mapping[str, dict[str, Any]]:
    """Name -> what is asked for in vain; each with its own reason."""
    first, second = fleet.called["zone"][:2]

    def ensemble(
        cores: int, *policies: dict[str, Any], traits: tuple[str, ...] = (), count: int = members
    ) -> dict[str, Any]:
        resources = {"VCPU": cores, "MEMORY_MB": 2 * cores}
        role = {"name": "web", "count": count, "resources": resources, "required": list(traits)}
        return {"members": [role], "policies": list(policies)}

    def policy(name: str, type_: str, **parameters: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON
        return {"name": name, "type": type_, "members": ["web"], **parameters}

    apart = policy("apart", "anti-affinity")
    return {
        "too large": ensemble(200),
        "trait nowhere": ensemble(2, apart, traits=(NOWHERE,)),
        "fence and trait": ensemble(
            2, policy("in", "fence", domains=[first]), apart, traits=(BEYOND,)
        ),
        "more than hosts": ensemble(2, apart, traits=(rare(16),)),
        "more than racks": ensemble(
            2, policy("racks", "anti-affinity", level="rack"), traits=(rare(16),)
        ),
        "more than zones": ensemble(
            2, policy("zones", "spread", level="zone", min_domains=len(fleet.called["zone"]) + 1)
        ),
        "more than zones allowed": ensemble(
            2,
            policy("zones", "spread", level="zone", min_domains=len(fleet.called["zone"])),
            policy("out", "ban", domains=[second]),
            apart,
        ),
        "one host": ensemble(16, policy("together", "affinity", level="host")),
        "one rack": ensemble(
            2, policy("near", "affinity", level="rack"), apart, traits=(rare(64),)
        ),
        "used up": ensemble(32, traits=(rare(16),)),
    }


def measure(
    server: Server, fleet: Fleet, members: int, rounds: int, chosen: str
) -> dict[str, dict[str, Any]]:
    """Name -> medians, and what the first answer said."""
    found = {}
    client = Client(server.port, "/v1", project=PROJECT)
    for name, asked in {**requests(fleet, members), **dict(planted(fleet, members))}.items():
        if chosen not in name:
            continue
        seconds, cpu, answers = [], [], []
        for number in range(rounds + 1):
            called = f"{name.replace(' ', '-')}-{number}"
            ensemble = {"name": called, **asked, "decide": {"hold": "PT1H"}}
            body = json.dumps({"ensemble": ensemble}).encode()
            used, started = server.cpu(), time.perf_counter()
            answers.append(client.send("POST", "/ensembles", body))
            seconds.append(time.perf_counter() - started)
            cpu.append(server.cpu() - used)
        why = answers[0].json["errors"][0].get("explanation", {})
        found[name] = {
            "status": answers[0].status,
            "p50": round(1000 * statistics.median(seconds[1:])),
            "max": round(1000 * max(seconds[1:])),
            "cpu": round(1000 * statistics.fmean(cpu[1:])),
            "first": round(1000 * seconds[0]),
            "stage": why.get("stage"),
            "minimal": why.get("minimal"),
            "relaxations": len(why.get("relaxations", ())),
            "complete": why.get("complete"),
        }
        print(f"{name:26}", *(f"{key} {value}" for key, value in found[name].items()), flush=True)
    client.close()
    return found


def _ledger(folder: Path, hosts: int, load: float, fleet: Fleet) -> Path:
    kept = folder / f"refusals-{hosts}-{round(100 * load)}.db"
    if not kept.exists():
        part = kept.with_suffix(".part")
        url = f"sqlite:///{part}"
        fill(url, fleet)
        store = open_store(url)
        store.commit(Changeset((CreateTrait(NOWHERE),)))
        store.close()
        part.rename(kept)
    return kept


def main() -> None:
    """Measure and print."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--hosts", type=int, default=10_000)
    options.add_argument("--members", type=int, default=20)
    options.add_argument("--load", type=float, default=0.75)
    options.add_argument("--rounds", type=int, default=9)
    options.add_argument("--only", default="", help="requests whose name has this")
    options.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()))
    options.add_argument("--settings", nargs="*", default=[])
    chosen = options.parse_args()
    fleet = make_fleet(chosen.hosts, load=chosen.load, seed=71 + chosen.hosts)
    kept = _ledger(chosen.folder, chosen.hosts, chosen.load, fleet)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        shutil.copy(kept, folder / "ledger.db")
        url = f"sqlite:///{folder / 'ledger.db'}"
        with ours(Database(url), folder, "--planners", "1", *chosen.settings) as server:
            measure(server, fleet, chosen.members, chosen.rounds, chosen.only)


if __name__ == "__main__":
    main()
