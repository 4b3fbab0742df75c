"""Tasks that share GPUs: read, placed by decisions and one-at-a-time schedulers."""

import random
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from benchmarks.public.gpu_shares import (
    AS_THEY_COME,
    NODES,
    SHARE,
    TASKS,
    Engine,
    Node,
    Task,
    hosts_of,
    measure,
    read_nodes,
    read_tasks,
    stated_mix,
    ways,
)
from benchmarks.public.share_weighers import (
    WHOLE,
    ShareFragmentation,
    SharePacking,
    ShareSpreading,
    ShareWeigher,
    Size,
)

HALF = Size(1000, 1024, 1, 500)
WHOLES = Size(1000, 1024, 2, WHOLE)
PLAIN = Size(1000, 1024, 0, 0)
KINDS = (
    (96_000, 393_216, 8, "G2"),
    (104_000, 524_288, 2, "T4"),
    (16_000, 122_880, 2, "P100"),
    (32_000, 131_072, 4, "V100M16"),
)


def _nodes(count: int) -> list[Node]:
    return [Node(f"node-{n:02}", *KINDS[n % len(KINDS)]) for n in range(count)]


def _made_tasks(seed: int, nodes: list[Node]) -> list[Task]:
    """Tasks of the shape of the trace, for nearly all GPUs: most take one, or a part of one."""
    dice, found = random.Random(seed), list[Task]()
    left = 0.98 * WHOLE * sum(one.gpus for one in nodes)
    while left > 0:
        cpu = dice.choice((3_000, 6_000, 8_000, 11_000, 12_000, 18_000))
        share = dice.choice((WHOLE, WHOLE, WHOLE, 810, 460, 650, 230))
        gpus = dice.choices((0, 1, 2, 4, 8), (13, 84, 1, 1, 1))[0]
        models = frozenset({"T4", "G2"}) if dice.random() < 0.2 else frozenset[str]()
        share = 0 if not gpus else WHOLE if gpus > 1 else share
        size = Size(cpu, 4 * cpu, gpus, share, models)
        found.append(Task(f"task-{len(found)}", size))
        left -= size.shares
    return found


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two nodes and three tasks in the published format."""
    (tmp_path / NODES).write_text(
        "sn,cpu_milli,memory_mib,gpu,model\nn0,64000,262144,2,P100\nn1,96000,393216,8,G2\n"
    )
    (tmp_path / TASKS[0]).write_text(
        "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos\n"
        "t0,12000,16384,1,1000,,LS\nt1,6000,12288,1,460,G2|P100,LS\nt2,4000,8192,0,1000,,BE\n"
    )
    return tmp_path


def test_nodes_and_tasks_are_read(folder: Path) -> None:
    assert read_nodes(folder)[1] == Node("n1", 96_000, 393_216, 8, "G2")
    assert [task.size for task in read_tasks(folder / TASKS[0])] == [
        Size(12_000, 16_384, 1, 1000),
        Size(6_000, 12_288, 1, 460, frozenset({"G2", "P100"})),
        Size(4_000, 8_192, 0, 0),
    ]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("sn,cpu_milli\nn0,1\n", "lacks the columns gpu, memory_mib, model"),
        ("sn,cpu_milli,memory_mib,gpu,model\nn0,1,2,many,G2\n", "line 2"),
        ("sn,cpu_milli,memory_mib,gpu,model\nn0,1,2\n", "line 2"),
    ],
)
def test_a_file_of_another_form_is_refused(folder: Path, text: str, said: str) -> None:
    (folder / NODES).write_text(text)
    with pytest.raises(ValueError, match=said):
        read_nodes(folder)


def test_a_decision_takes_shares_of_gpus_of_a_model_that_will_do() -> None:
    engine = Engine([Node("n0", 64_000, 262_144, 2, "P100"), Node("n1", 64_000, 262_144, 2, "T4")])
    on_t4 = HALF._replace(models=frozenset({"T4", "G2"}))
    for _ in range(4):
        taken = engine.place(on_t4)
        assert taken is not None
        assert taken["n1"] == {"VCPU": 1000, "MEMORY_MB": 1024}
        (gpu,) = taken.keys() - {"n1"}
        assert gpu in {"n1-gpu0", "n1-gpu1"}
    assert engine.place(on_t4) is None
    taken = engine.place(WHOLES)
    assert taken is not None
    assert taken.keys() == {"n0", "n0-gpu0", "n0-gpu1"}
    assert engine.place(HALF) is None
    assert engine.place(PLAIN) is not None


@pytest.mark.parametrize("weigher", [SharePacking, ShareSpreading])
def test_kept_costs_are_those_that_would_be_computed_anew(weigher: type[ShareWeigher]) -> None:
    nodes = _nodes(12)
    kept = weigher(hosts_of(nodes))
    for task in _made_tasks(5, nodes)[:60]:
        hosts = kept.hosts
        same = replace(
            hosts, cpu=hosts.cpu.copy(), memory=hosts.memory.copy(), gpus=hosts.gpus.copy()
        )
        assert kept.place(task.size) == weigher(same).place(task.size)
    assert (kept.hosts.cpu >= 0).all()
    assert (kept.hosts.gpus >= 0).all()


def test_packing_fills_a_shared_gpu_and_spreading_the_emptiest_host() -> None:
    nodes = [Node("n0", 64_000, 262_144, 2, "T4"), Node("n1", 64_000, 262_144, 2, "T4")]
    packing, spreading = SharePacking(hosts_of(nodes)), ShareSpreading(hosts_of(nodes))
    assert [packing.place(HALF) for _ in range(3)] == [(0, (0,)), (0, (0,)), (0, (1,))]
    assert [spreading.place(HALF) for _ in range(3)] == [(0, (0,)), (1, (0,)), (0, (0,))]
    assert packing.place(WHOLES) == (1, (0, 1))
    assert packing.place(WHOLES) is None


def test_the_gradient_spares_gpus_that_the_mix_can_use() -> None:
    """Two whole GPUs are asked for as often as a half: of n1 they cannot be had any more."""
    nodes = [Node("n0", 64_000, 262_144, 2, "T4"), Node("n1", 64_000, 262_144, 2, "T4")]
    hosts = hosts_of(nodes)
    hosts.gpus[1, 1] = 600
    weigher = ShareFragmentation(hosts, {HALF: 1, WHOLES: 1})
    # On the whole GPU of n1 nothing is left that a half could not use; on the other 100 shares.
    assert [weigher.place(HALF) for _ in range(3)] == [(1, (0,)), (1, (0,)), (1, (1,))]


def test_the_gradient_keeps_a_task_without_gpus_from_the_last_cpus_beside_them() -> None:
    nodes = [Node("n0", 1_500, 262_144, 2, "T4"), Node("n1", 64_000, 262_144, 2, "T4")]
    weigher = ShareFragmentation(hosts_of(nodes), {HALF: 1})
    assert weigher.place(PLAIN) == (1, ())
    assert SharePacking(hosts_of(nodes)).place(PLAIN) == (0, ())


def test_a_stated_mix_is_that_of_the_tasks() -> None:
    mix = stated_mix({HALF: 3, WHOLES: 1, PLAIN: 2})
    assert [(one.weight, one.shape.whole.get(SHARE, 0)) for one in mix.shapes] == [
        (3, 500),
        (2, 0),
        (1, 2 * WHOLE),
    ]


def test_a_decision_spares_what_the_stated_mix_asks_for() -> None:
    """A half could go to either host; only one of them can be given as a whole to others."""
    nodes = [Node("n0", 64_000, 262_144, 2, "T4"), Node("n1", 64_000, 262_144, 1, "T4")]
    engine = Engine(nodes, stated_mix({WHOLES: 1}))
    for _ in range(2):
        taken = engine.place(HALF)
        assert taken is not None
        assert "n1-gpu0" in taken


def test_decisions_allocate_no_fewer_shares_than_packing_and_spreading() -> None:
    nodes = _nodes(24)
    tasks = _made_tasks(1, nodes)
    row = measure(nodes, tasks, "made", AS_THEY_COME)
    assert row == measure(nodes, tasks, "made", AS_THEY_COME) | {"seconds": row["seconds"]}
    assert row["allocated"]["room"] >= row["allocated"]["spreading"]
    assert all(share <= row["asked"] for share in row["allocated"].values())
    assert list(ways(tasks)) == [
        "room",
        "room, stated mix",
        "packing",
        "spreading",
        "FGD",
    ]
    assert np.isclose(row["asked"], 0.98, atol=0.05)
