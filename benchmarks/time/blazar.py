"""The same question to Blazar's own manager and to our door for its clients, on the same fleet.

Hosts of 64 vCPUs in racks of ten. Every lease that is there takes a slot of one vCPU on each host
of a rack, for a period that lies across the window. What is asked: four slots of two vCPUs.
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from pathlib import Path
from typing import Any, Final

from benchmarks.time.world import World, several

from moorage.api.leases import create_app
from moorage.testing.service import OPERATOR

PEER: Final = Path(__file__).with_name("peer.py")
PYTHON: Final = Path(__file__).parents[2] / ".cache" / "blazar" / "bin" / "python"
SIZE: Final = {"vcpus": 64, "memory_mb": 262_144, "disk_gb": 2_000}
RACK: Final = 10
SLOT: Final = {"resource_type": "virtual:instance", "disk_gb": 0, "resource_properties": ""}
BODY: Final = {
    "name": "mine",
    "start_date": "2027-01-11 10:00",
    "end_date": "2027-01-11 11:00",
    "events": [],
    "reservations": [SLOT | {"amount": 4, "vcpus": 2, "memory_mb": 1024, "affinity": "None"}],
}


def question(hosts: int, per_host: int, rounds: int) -> dict[str, Any]:
    """The fleet, the leases that are there, and what is asked."""
    racks = hosts // RACK
    taken = SLOT | {"amount": RACK, "vcpus": 1, "memory_mb": 1024, "affinity": "False"}
    leases = [
        {
            "name": f"other-{number}",
            "start_date": f"2027-01-11 09:{number * 7 % 60:02}",
            "end_date": f"2027-01-11 11:{number * 11 % 60:02}",
            "events": [],
            "reservations": [taken],
            "on": [number % racks * RACK + one for one in range(RACK)],
        }
        for number in range(racks * per_host)
    ]
    return {"hosts": hosts, **SIZE, "leases": leases, "body": BODY, "rounds": rounds}


def ours(asked: dict[str, Any], rounds: int) -> dict[str, Any]:
    """Through `POST /v1/leases` of the lease API, all that is there made through it as well."""
    fleet = f"""
fleet: bench
hosts:
  - name: "h{{n}}"
    count: {asked["hosts"]}
    inventories: {{VCPU: {asked["vcpus"]}, MEMORY_MB: {asked["memory_mb"]}, DISK_GB: 2000}}
"""
    with tempfile.TemporaryDirectory() as folder:
        world = World(fleet, folder)
        app = create_app(world.service.env)
        for host in range(asked["hosts"]):
            offer = {"name": f"h{host + 1}", "rack": f"r{host // RACK}"}
            world.ask(app, "POST", "/v1/os-hosts", offer, caller=OPERATOR)
        for lease in asked["leases"]:
            rack = json.dumps(["==", "$rack", f"r{lease['on'][0] // RACK}"])
            parts = [one | {"resource_properties": rack} for one in lease["reservations"]]
            body = {key: value for key, value in lease.items() if key != "on"}
            world.ask(app, "POST", "/v1/leases", body | {"reservations": parts})
        (found,) = several(rounds, lambda: world.ask(app, "POST", "/v1/leases", asked["body"]))
        found["statements"] = world.statements
        world.service.close()
    return found


def theirs(asked: dict[str, Any]) -> dict[str, Any]:
    """Blazar's manager, in an environment of its own.

    Raises:
        RuntimeError: it failed.
    """
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "question.json"
        file.write_text(json.dumps(asked))
        run = subprocess.run(  # noqa: S603 - our own script
            [PYTHON, "-P", PEER, file],
            env=os.environ | {"PYTHONWARNINGS": "ignore"},
            capture_output=True,
            text=True,
            check=False,
        )
    if run.returncode:
        raise RuntimeError(f"Blazar's manager failed:\n{run.stderr[-3000:]}")
    found: dict[str, Any] = json.loads(run.stdout)
    return found


def blazar(scale: float) -> list[dict[str, Any]]:
    """On 100 hosts, with 10 leases and with 40 on each in the window."""
    hosts = max(RACK, int(100 * scale) // RACK * RACK)
    rows = []
    for per_host, rounds, target in ((10, 3, 500), (40, 1, None)):
        asked = question(hosts, per_host, rounds)
        rows.append(
            {
                "row": f"blazar-{per_host}",
                "title": f"POST of a lease of 4 slots, {per_host} leases a host in its window",
                "hosts": hosts,
                "bookings": hosts * per_host,
                "ours": ours(asked, 15),
                "beside": {"what": "Blazar 18.0.0", **theirs(asked)},
                "target": {"at_least": target} if target else {},
            }
        )
    return rows
