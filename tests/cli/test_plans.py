"""Plans on the command line: made, shown, carried out on a simulation, and after a kill."""

import os
import signal
import time
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from tests.cli.conftest import Cli, started

from moorage.client import registry

pytestmark = pytest.mark.process

WHOLE_RACK = "rack/r3"
"""Its three hosts have one server each."""


@pytest.fixture(scope="module")
def sim(state: Path) -> Cli:
    return started(state, "plans")


def plan(sim: Any, *words: str) -> Any:
    return sim.body("plan", "create", *words)["plan"]


def test_a_host_is_drained_and_its_server_is_elsewhere(sim: Any) -> None:
    dry = sim("plan", "create", "--drain", "h7", "--dry-run")
    assert (dry.status, dry.err) == (0, "")
    assert "project" in dry.out
    made = sim("plan", "create", "--drain", "h7")
    assert "drain h7: 1 move, 16 GiB, none costs less" in made.out
    id_ = made.out.split()[1]
    shown = sim("plan", "show", id_)
    assert shown.status == 0, shown
    for word in ("ready", "h7", "live", "16 GiB", "waiting", "2 at a time, 1 per host"):
        assert word in shown.out
    told = sim("plan", "show", id_, "-f", "commands").out.splitlines()
    assert told[0].startswith("# plan ")
    whole = sim.body("plan", "show", id_)["plan"]
    (move,) = whole["moves"]
    assert told[1] == f"# 1: project {move['project_id'][:8]} from h7"
    assert told[2] == (
        "openstack --os-compute-api-version 2.68 server migrate --live-migration"
        f" --host {move['target_name']} --wait {move['server']}"
    )
    run = sim("sim", "run-plan", id_)
    assert run.status == 0, run
    assert run.out == f"plan {id_}  drain h7: done, 1 of 1 move done\n"
    assert "no bookings" in sim("host", "show", "h7").out
    after = sim("plan", "show", id_, "-f", "commands").out.splitlines()
    assert after[1] == f"# 1: {move['server']} is done"
    assert sim("plan", "delete", id_).out == f"deleted {id_}\n"
    assert sim("plan", "show", id_).status == 6


def test_waiting_for_a_plan_shows_how_it_ends(sim: Any) -> None:
    id_ = plan(sim, "--drain", "h8", "--cold")["id"]
    listed = sim("plan", "list", "--kind", "drain", "-f", "value", "-c", "state").out
    assert "ready" in listed.split()

    def pass_time() -> None:
        for _ in range(10):
            time.sleep(1)
            sim_clock("sim", "clock", "+1m")

    sim_clock = Cli(sim.environment)
    # A command line sets the environment of the process: the clock has one of its own.
    clock = Thread(target=pass_time, daemon=True)
    clock.start()
    done = sim("plan", "apply", id_, "--wait")
    assert (done.status, done.out) == (0, f"plan {id_[:8]}  drain h8: done, 1 of 1 move done\n")
    clock.join()


def test_short_forms_and_wrong_usage(sim: Any) -> None:
    made = sim("host", "drain", "h9", "--max-parallel", "3", "--by", "+2h")
    assert made.status == 0, made
    id_ = made.out.split()[1]
    body = sim.body("plan", "show", id_)["plan"]
    assert (body["limits"]["parallel"], body["kind"]) == (3, "drain")
    assert body["by"] is not None
    paused = sim("plan", "pause", id_)
    assert (paused.status, "there is nothing to pause" in paused.err) == (4, True)
    assert sim("plan", "cancel", id_).out == f"plan {id_}  drain h9: canceled, 0 of 1 move done\n"
    assert sim("plan", "apply", id_).status == 4
    assert "give --role and --count" in sim("plan", "create", "--rebalance", "--role", "x").err
    assert "only with --apply" in sim("host", "drain", "h9", "--wait").err
    assert sim("host", "drain", "h99").status == 6
    assert sim("ensemble", "repair", "nothing").status == 6
    assert sim("plan", "create").status == 2
    assert "drain instead" in sim("plan", "create", "--evacuate", "h9").err
    assert sim.as_tenant("project-a")("plan", "list").status == 5


def test_a_plan_goes_on_after_the_service_was_killed(state: Path) -> None:
    sim = started(state, "killed-plan")
    (found,) = running(sim)
    made = sim.body("plan", "create", "--drain", WHOLE_RACK, "--max-parallel", "2")["plan"]
    assert sim("plan", "apply", made["id"]).status == 0
    for _ in range(100):
        if any(one["state"] == "moving" for one in plan_of(sim, made["id"])["moves"]):
            break
        time.sleep(0.1)
    os.killpg(found.pid, signal.SIGKILL)
    for _ in range(200):  # until nobody takes it for running any more
        if not running(sim):
            break
        time.sleep(0.1)
    resumed = sim("sim", "resume", "killed-plan")
    assert resumed.status == 0, resumed
    assert plan_of(sim, made["id"])["state"] == "running"
    run = sim("sim", "run-plan", made["id"], "--name", "killed-plan")
    assert run.status == 0, run
    done = plan_of(sim, made["id"])
    assert [one["state"] for one in done["moves"]] == ["done"] * len(done["moves"])
    targets = {one["server"]: one["target_name"] for one in done["moves"]}
    for host in ("h7", "h8", "h9"):
        assert "no bookings" in sim("host", "show", host).out
    for server, host in targets.items():
        there = sim.body("host", "show", host)["host"]["bookings"]
        assert [one["state"] for one in there if one["consumer"] == server] == ["allocated"]
        assert all(one["state"] == "allocated" for one in there), "nothing stays held"


def running(sim: Any) -> list[Any]:
    """The simulation, if it runs."""
    every = registry.running(registry.state_directory(sim.environment))
    return [one for one in every if one.name == "killed-plan"]


def plan_of(sim: Any, id_: str) -> Any:
    return sim.body("plan", "show", id_)["plan"]
