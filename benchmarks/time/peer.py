"""Blazar's own manager in this process: what POST of a lease costs it. Prints JSON.

    .cache/blazar/bin/python -P benchmarks/time/peer.py QUESTION.json

Runs in the environment that `requirements/blazar-bench.txt` makes, and imports nothing of ours.
The manager, its plugin for instances, its enforcement and its database layer are Blazar's,
unchanged; the database is SQLite in a file. What lies outside is left out, which spares it time:
HTTP, Keystone, RPC, and the calls to Nova and to Placement, which are answered at once. The
columns that refer to others get an index each, as MySQL gives them; SQLite by itself would not.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import json
import statistics
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import sqlalchemy
from blazar import (
    config,  # noqa: F401 - registers its options
    context,
)
from blazar.db import api as database
from blazar.db.sqlalchemy import facade_wrapper, models
from blazar.manager.service import ManagerService
from blazar.notification import notifier
from blazar.utils import trusts
from blazar.utils.openstack import nova, placement
from oslo_config import cfg

SETTINGS = """\
[DEFAULT]
transport_url = fake:/
[database]
connection = sqlite:///{folder}/blazar.db
[manager]
plugins = virtual.instance.plugin
"""
PROJECT = "bench"
CATALOG = [
    {
        "type": service,
        "endpoints": [
            {"interface": interface, "url": "http://127.0.0.1"}
            for interface in ("public", "internal", "admin")
        ],
    }
    for service in ("identity", "compute")
]


class Answering:
    """A client of Nova: whatever it is asked to make exists at once."""

    def __getattr__(self, name: str) -> Answering:
        return self

    def __call__(self, *_: object, **__: object) -> SimpleNamespace:
        """Make it."""
        return SimpleNamespace(id="1", set_keys=lambda _: None)


def outside(folder: str) -> None:
    """Settings, and what Blazar calls beyond its own process."""
    file = Path(folder) / "blazar.conf"
    file.write_text(SETTINGS.format(folder=folder))
    cfg.CONF([], project="blazar", default_config_files=[str(file)])
    notifier.init()
    nova.NovaClientWrapper.nova = property(lambda _: Answering())
    placement.BlazarPlacementClient.create_resource_class = lambda *_: None
    trusts.create_ctx_from_trust = lambda _: asking()


def asking() -> context.BlazarContext:
    """Who asks."""
    return context.BlazarContext(user_id="ann", project_id=PROJECT, service_catalog=CATALOG)


def indexes() -> None:
    """One for each column that refers to another table."""
    with facade_wrapper.session_for_write() as session:
        for table in models.Lease.metadata.sorted_tables:
            for column in table.columns:
                if column.foreign_keys:
                    name = f"ix_{table.name}_{column.name}"
                    sqlalchemy.Index(name, column).create(session.get_bind())


def fill(question: dict[str, Any]) -> None:
    """The hosts, and the leases that are there already."""
    for number in range(question["hosts"]):
        database.host_create(
            {
                "id": str(number + 1),
                "vcpus": question["vcpus"],
                "memory_mb": question["memory_mb"],
                "local_gb": question["disk_gb"],
                "cpu_info": "",
                "hypervisor_type": "QEMU",
                "hypervisor_version": 1,
                "hypervisor_hostname": f"h{number}",
                "service_name": f"h{number}",
                "availability_zone": "nova",
                "trust_id": "t",
                "status": "up",
            }
        )
    for lease in question["leases"]:
        _lease(lease)


def _lease(lease: dict[str, Any]) -> None:
    start, end = (
        dt.datetime.strptime(lease[key], "%Y-%m-%d %H:%M")  # noqa: DTZ007 - theirs have none
        for key in ("start_date", "end_date")
    )
    made = database.lease_create(
        {
            "name": lease["name"],
            "user_id": "others",
            "project_id": "others",
            "start_date": start,
            "end_date": end,
            "trust_id": "t",
            "status": "PENDING",
        }
    )
    asked = lease["reservations"][0]
    reservation = database.reservation_create(
        {"lease_id": made["id"], "resource_type": asked["resource_type"], "status": "pending"}
    )
    part = database.instance_reservation_create(
        {
            "reservation_id": reservation["id"],
            **{key: asked[key] for key in ("vcpus", "memory_mb", "disk_gb", "amount")},
            "affinity": False,
            "resource_properties": "",
        }
    )
    database.reservation_update(reservation["id"], {"resource_id": part["id"]})
    for number in lease["on"]:
        database.host_allocation_create(
            {"compute_host_id": str(number + 1), "reservation_id": reservation["id"]}
        )
    for kind, when in (("start_lease", start), ("before_end_lease", start), ("end_lease", end)):
        database.event_create(
            {"lease_id": made["id"], "event_type": kind, "time": when, "status": "UNDONE"}
        )


def measure(manager: ManagerService, body: dict[str, Any], rounds: int) -> dict[str, Any]:
    """Processor milliseconds and statements of some grants, after one that nobody counts."""
    sent: Counter[str] = Counter()
    with facade_wrapper.session_for_read() as session:
        engine = session.get_bind()

    @sqlalchemy.event.listens_for(engine, "before_cursor_execute")
    def _(_connection: object, _cursor: object, statement: str, *_: object) -> None:
        sent[statement.split(None, 1)[0]] += 1

    taken = []
    for _round in range(rounds + 1):
        asked = json.loads(json.dumps(body)) | {"trust_id": "t", "user_id": "ann"}
        sent.clear()
        started = time.process_time()
        with asking():
            granted = manager.create_lease(asked)
        taken.append((time.process_time() - started) * 1000)
        assert granted["status"] == "PENDING"
        print(f"{taken[-1]:.0f} ms, {sent.total()} statements", file=sys.stderr, flush=True)
    return {
        "cpu_ms": statistics.median(taken[1:]),
        "least_ms": min(taken[1:]),
        "most_ms": max(taken[1:]),
        "statements": sent.total(),
        "rounds": rounds,
    }


def main() -> None:
    """Answer the question in the file."""
    question = json.loads(Path(sys.argv[1]).read_text())
    with tempfile.TemporaryDirectory() as folder:
        # Blazar prints in the middle of its work; what is printed here is the result alone.
        with contextlib.redirect_stdout(sys.stderr):
            outside(folder)
            database.setup_db()
            indexes()
            manager = ManagerService()
            fill(question)
            found = measure(manager, question["body"], question["rounds"])
        print(json.dumps(found))


if __name__ == "__main__":
    main()
