"""Servers of members that move in a simulation, and servers of others that arrive."""

import uuid
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import Cli, started

pytestmark = pytest.mark.process

PAIR = """\
name: {name}
members: [{{name: db, count: 2, flavor: m1.small}}]
policies: [{{name: apart, type: anti-affinity, members: [db], level: host, on_violation: {what}}}]
"""


@pytest.fixture(scope="module")
def sim(state: Path) -> Cli:
    return started(state, "moving")


def placed(sim: Any, folder: Path, name: str, what: str) -> str:
    """Two members with servers on hosts of their own; the ensemble's id."""
    file = folder / f"{name}.yaml"
    file.write_text(PAIR.format(name=name, what=what), encoding="utf-8")
    made: str = sim.body("ensemble", "create", "-f", str(file))["ensemble"]["id"]
    for member in ("db[0]", "db[1]"):
        claim = sim("claim", "create", made, member, "--flavor", "m1.small").out.split()[1]
        words = ("--active", "--server", str(uuid.uuid4()))
        assert sim("claim", "set", claim, *words).status == 0
    return made


def hosts(sim: Any, ensemble: str) -> list[str]:
    return [one["host"] for one in sim.body("member", "list", ensemble)["members"]]


def test_a_move_that_policies_report_is_made_and_breaks_them(sim: Any, tmp_path: Path) -> None:
    id_ = placed(sim, tmp_path, "reported", "report")
    first, second = hosts(sim, id_)
    moved = sim("sim", "move", "--member", "db[1]", "--next-to", "db[0]", "--ensemble", id_)
    assert (moved.status, moved.out) == (0, f"db[1] moved from {second} to {first}\n"), moved
    assert hosts(sim, id_) == [first, first]
    assert sim("ensemble", "compliance", id_).status == 4
    again = sim("sim", "move", "--member", "db[1]", "--next-to", "db[0]", "--ensemble", id_)
    assert (again.status, again.err) == (4, f"db[1] is on {first} already\n")
    back = sim("sim", "move", "--member", "db[1]", "--host", second, "--ensemble", id_)
    assert back.status == 0, back
    assert (hosts(sim, id_), sim("ensemble", "compliance", id_).status) == ([first, second], 0)


def test_a_move_that_policies_refuse_is_not_made(sim: Any, tmp_path: Path) -> None:
    id_ = placed(sim, tmp_path, "kept", "refuse")
    before = hosts(sim, id_)
    told = sim("sim", "move", "--member", "db[1]", "--next-to", "db[0]", "--ensemble", "kept")
    assert told.status == 4, told
    assert "apart" in told.err
    assert hosts(sim, id_) == before


def test_a_member_needs_a_server_to_move(sim: Any) -> None:
    made = sim.body("ensemble", "create", "--name", "held", "--server", "m1.small", "--count", "1")
    told = sim("sim", "move", "--member", "server[0]", "--host", "h1")
    assert (told.status, "has no server yet" in told.err) == (4, True), told
    assert sim("sim", "move", "--member", "cache[0]", "--host", "h1").status == 6
    assert sim("ensemble", "delete", made["ensemble"]["id"]).status == 0


def test_a_move_without_room_leaves_the_server_where_it_is(sim: Any, tmp_path: Path) -> None:
    id_ = placed(sim, tmp_path, "stays", "report")
    before = hosts(sim, id_)
    full = next(name for name in ("h1", "h2", "h3", "h4") if name not in before)
    free = 16
    while sim("sim", "load", "--fill", full, "--vcpu", str(free)).status:
        free -= 1
    told = sim("sim", "move", "--member", "db[1]", "--host", full, "--ensemble", id_)
    assert told.status == 4, told
    assert hosts(sim, id_) == before
    assert sim("sim", "load", "--clear").status == 0


def test_load_arrives_on_each_host_of_a_domain_and_goes(sim: Any) -> None:
    arrived = sim("sim", "load", "--fill", "r3", "--vcpu", "1")
    assert (arrived.status, arrived.out) == (0, "VCPU=1 on h7, h8, h9\n"), arrived
    more = sim("sim", "load", "--fill", "r3", "--amount", "VCPU=8")
    assert (more.status, more.out) == (4, "no room for VCPU=8 on h7, h8, h9\n"), more
    assert sim("sim", "load", "--clear").out == "deleted 3 servers of others\n"
    assert sim("sim", "load", "--clear").out == "deleted 0 servers of others\n"


@pytest.mark.parametrize(
    ("words", "status"),
    [
        (("--fill", "r9", "--vcpu", "1"), 6),
        (("--fill", "r1", "--amount", "CUSTOM_GOLD=1"), 6),
        (("--fill", "r1"), 2),
        ((), 2),
        (("--fill", "r1", "--amount", "VCPU"), 2),
        (("--clear", "--vcpu", "3"), 2),
    ],
)
def test_what_cannot_be_loaded_is_said(sim: Any, words: tuple[str, ...], status: int) -> None:
    assert sim("sim", "load", *words).status == status
