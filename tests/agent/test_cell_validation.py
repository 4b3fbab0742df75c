"""What is reported where NUMA nodes and the whole machine do not say the same."""

import uuid
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.agent.machines import Machine
from tests.agent.reporting import NodeAgent, Placement, codes

from moorage.agent.discovery import discover
from moorage.agent.facts import InconsistentNode
from moorage.agent.files import Files
from moorage.agent.main import INCONSISTENT, exit_status
from moorage.agent.node_providers import target_of
from moorage.agent.target import Target
from moorage.client.agent_file import read_agent_config

OWN_ROOT = "{root: agent}"
NODES = "sys/devices/system/node"
ONLINE = "sys/devices/system/cpu/online"
TOTALS = (ONLINE, "proc/cpuinfo", "proc/meminfo")


@pytest.fixture
def host() -> str:
    return f"n{uuid.uuid4().hex[:8]}"


def target(machine: Machine, where: Path, config: str = OWN_ROOT) -> Target:
    return target_of(discover(Files(machine.write(where))), read_agent_config(config))


def amounts(found: Target) -> dict[str, dict[str, int]]:
    return {
        one.key: {name: some.total for name, some in one.inventories.items()}
        for one in found.providers
        if one.inventories
    }


def total(found: Target, name: str) -> int:
    return sum(some.get(name, 0) for some in amounts(found).values())


def accelerators(pages: int = 0) -> Machine:
    """Two sockets, and the memory of two accelerators as nodes of its own."""
    return (
        Machine("acc")
        .cpus("0-15")
        .cell(0, "0-7", 65_536)
        .cell(8, "8-15", 65_536)
        .cell(252, "", 16_384, {2048: pages})
        .cell(253, "", 16_384)
        .flat_memory(163_840)
    )


# --- memory without processors --------------------------------------------------------------------


def test_memory_of_accelerators_is_left_out(tmp_path: Path) -> None:
    found = target(accelerators(pages=512), tmp_path)
    assert amounts(found) == {
        "numa0": {"VCPU": 8, "MEMORY_MB": 65_536},
        "numa8": {"VCPU": 8, "MEMORY_MB": 65_536},
    }
    [caution] = found.cautions
    assert caution.code == "memory-without-processors"
    assert "32768 MiB of NUMA nodes 252, 253" in caution.message


def test_memory_that_the_configuration_names_is_reported(tmp_path: Path) -> None:
    found = target(accelerators(pages=512), tmp_path, "{root: agent, memory_nodes: [252]}")
    assert amounts(found)["numa252"] == {"MEMORY_MB": 15_360, "CUSTOM_HUGEPAGES_2MB": 512}
    assert "numa253" not in amounts(found)
    assert found.cautions == ()


@pytest.mark.parametrize("config", ["{}", OWN_ROOT, "{root: agent, numa: false}"])
def test_named_nodes_that_are_no_memory_nodes_are_told(config: str, tmp_path: Path) -> None:
    without = f"{config[:-1]}{', ' if len(config) > 2 else ''}memory_nodes: "
    plain = target(accelerators(), tmp_path / "a", f"{without}[252]}}")
    found = target(accelerators(), tmp_path / "b", f"{without}[0, 9, 252, 300]}}")
    assert (amounts(found), plain.cautions) == (amounts(plain), ())
    absent, having = found.cautions
    assert absent.code == having.code == "memory-nodes"
    assert absent.message.startswith("NUMA nodes 9, 300 do not exist")
    assert having.message.startswith("NUMA nodes 0 have processors")


def test_named_nodes_of_a_machine_without_numa_do_not_exist(tmp_path: Path) -> None:
    machine = Machine("flat").cpus("0-3").flat_memory(8192)
    [caution] = target(machine, tmp_path, "{root: agent, memory_nodes: [0]}").cautions
    assert "NUMA nodes 0 do not exist" in caution.message


def test_dedicated_processors_that_are_not_there_are_told(tmp_path: Path) -> None:
    found = target(accelerators().cpus("0-12"), tmp_path, "root: agent\ndedicated_cpus: 4-15,40")
    assert (total(found, "VCPU"), total(found, "PCPU")) == (4, 9)
    (caution,) = [one for one in found.cautions if one.code == "dedicated-cpus"]
    assert caution.message.startswith("4 of them (13, 14, 15, 40) are not online")


def test_leaving_all_of_it_out_can_be_said(tmp_path: Path) -> None:
    found = target(accelerators(), tmp_path, "{root: agent, numa: false, memory_nodes: []}")
    assert amounts(found) == {"": {"VCPU": 16, "MEMORY_MB": 131_072}}
    assert found.cautions == ()


def test_beside_nova_it_has_no_huge_pages(tmp_path: Path) -> None:
    machine = accelerators(pages=512).nic("0000:3b:00.0", "ens1", 252, 4, 4)
    found = target(machine, tmp_path, "{}")
    assert {one.key: one.parent for one in found.providers} == {
        "numa0": "",
        "numa8": "",
        "pf:0000:3b:00.0": "",
    }


def test_what_was_reported_of_it_goes(placement: Placement, agent: NodeAgent, host: str) -> None:
    machine = accelerators()
    machine.put("proc/sys/kernel/hostname", host)
    agent.run(machine, "{root: agent, memory_nodes: 252-253}")
    assert placement.stocks(host)[f"{host}/numa252"] == {"MEMORY_MB": 16_384}
    agent.run(machine, OWN_ROOT)
    assert {name for name in placement.stocks(host) if "numa" in name} == {
        f"{host}/numa0",
        f"{host}/numa8",
    }


def test_a_machine_with_all_memory_apart(tmp_path: Path) -> None:
    """Its processors are in nodes without memory: which memory is for guests must be said."""
    machine = Machine("apart").cpus("0-3").cell(0, "0-1", 0).cell(1, "2-3", 0)
    machine.cell(2, "", 8192).cell(3, "", 4096).flat_memory(12_288)
    with pytest.raises(InconsistentNode, match="no-memory"):
        target(machine, tmp_path / "a")
    found = target(machine, tmp_path / "b", "{root: agent, memory_nodes: [2]}")
    assert (total(found, "VCPU"), total(found, "MEMORY_MB")) == (4, 8192)


# --- processors -----------------------------------------------------------------------------------


def test_processors_that_are_offline_do_not_count(tmp_path: Path) -> None:
    """A kernel may list for a node all that it could have."""
    machine = Machine("power").cpus("0-3,16-19").cell(0, "0-15", 8192).cell(8, "16-31", 8192)
    assert total(target(machine.flat_memory(16_384), tmp_path), "VCPU") == 8


def test_an_operator_may_take_processors_offline(tmp_path: Path) -> None:
    """The memory of their node stays whole."""
    found = target(spoiled(ONLINE, "0-23")(sockets()), tmp_path)
    assert amounts(found) == {
        "numa0": {"VCPU": 16, "MEMORY_MB": 65_536},
        "numa1": {"VCPU": 8, "MEMORY_MB": 65_536},
    }
    assert found.cautions == ()


def test_a_node_without_memory_may_be_offline_as_a_whole(tmp_path: Path) -> None:
    machine = Machine("bare").cpus("0-7").flat_memory(65_536)
    machine.cell(0, "0-7", 65_536).cell(1, "8-15", 0)
    assert amounts(target(machine, tmp_path)) == {"numa0": {"VCPU": 8, "MEMORY_MB": 65_536}}


def test_cells_that_share_processors_are_one(tmp_path: Path) -> None:
    machine = Machine("fake").cpus("0-15").flat_memory(16_384)
    machine.cell(0, "0-7", 4096, {2048: 8}).cell(1, "8-15", 4096)
    machine.cell(2, "0-7", 4096, {2048: 8}).cell(3, "8-15", 4096)
    found = target(machine, tmp_path)
    assert amounts(found) == {
        "numa0": {"VCPU": 8, "MEMORY_MB": 8160, "CUSTOM_HUGEPAGES_2MB": 16},
        "numa1": {"VCPU": 8, "MEMORY_MB": 8192},
    }
    assert [(one.subject, one.message) for one in found.cautions] == [
        (node, f"8 of its 8 processors are also in {other}; the two are reported as one")
        for node, other in (("node2", "node0"), ("node3", "node1"))
    ]


def test_cells_that_share_some_processors(tmp_path: Path) -> None:
    machine = Machine("some").cpus("0-15").flat_memory(16_384)
    found = target(machine.cell(0, "0-9", 8192).cell(1, "6-15", 8192), tmp_path)
    assert amounts(found) == {"numa0": {"VCPU": 16, "MEMORY_MB": 16_384}}
    [caution] = found.cautions
    assert caution.message.startswith("4 of its 10 processors are also in node0;")


@pytest.mark.parametrize("config", [OWN_ROOT, "{root: agent, numa: false}"])
def test_a_cell_that_overlaps_two_others(config: str, tmp_path: Path) -> None:
    machine = Machine("odd").cpus("0-11").flat_memory(12_288)
    machine.cell(0, "0-3", 4096).cell(1, "8-11", 4096).cell(2, "2-9", 4096)
    found = target(machine, tmp_path, config)
    assert (total(found, "VCPU"), total(found, "MEMORY_MB")) == (12, 12_288)
    assert len(amounts(found)) == 1


@pytest.mark.parametrize("end", ["\0", "\n\0", "\0\n"])
def test_lists_that_end_in_nul(end: str, tmp_path: Path) -> None:
    machine = Machine("nul").cpus(f"0-7{end}").cell(0, f"0-7{end}", 8192)
    found = target(machine, tmp_path)
    assert (total(found, "VCPU"), found.cautions) == (8, ())


def test_without_a_list_of_those_online(tmp_path: Path) -> None:
    info = "".join(f"processor\t: {number}\nflags\t\t: sse sse2\n\n" for number in range(4))
    machine = Machine("old").cell(0, "0-7", 8192)
    with pytest.raises(InconsistentNode, match="processors-unknown"):
        target(machine, tmp_path / "a")
    machine.put("proc/cpuinfo", info)
    with pytest.raises(InconsistentNode, match="4 of its 8 processors are not in /proc/cpuinfo"):
        target(machine, tmp_path / "b")
    machine.cell(0, "0-3", 8192)
    assert total(target(machine, tmp_path / "e"), "VCPU") == 4
    flat = Machine("flat").flat_memory(8192)
    with pytest.raises(InconsistentNode, match="no-processors"):
        target(flat, tmp_path / "c")
    flat.put("proc/cpuinfo", info)
    assert amounts(target(flat, tmp_path / "d")) == {"": {"VCPU": 4, "MEMORY_MB": 8192}}


# --- sums -----------------------------------------------------------------------------------------


def sockets(host: str = "n1") -> Machine:
    machine = Machine(host).cpus("0-31").flat_memory(131_072)
    return machine.cell(0, "0-15", 65_536).cell(1, "16-31", 65_536)


def spoiled(path: str, text: str) -> Callable[[Machine], Machine]:
    def spoil(machine: Machine) -> Machine:
        machine.put(path, text)
        return machine

    return spoil


HALF: dict[str, tuple[Callable[[Machine], Machine], str]] = {
    "a node is missing": (lambda one: one.without(f"{NODES}/node1"), "processors-differ"),
    "processors of a node": (
        lambda one: one.without(f"{NODES}/node1/cpulist"),
        "processors-differ",
    ),
    "memory of a node": (lambda one: one.without(f"{NODES}/node1/meminfo"), "memory-differs"),
    "no nodes, no memory": (lambda one: one.without(NODES, "proc/meminfo"), "no-memory"),
    "not a list": (spoiled(f"{NODES}/node1/cpulist", "16-"), "not-a-number"),
    "NUL in between": (spoiled(f"{NODES}/node1/cpulist", "16-2\00"), "not-a-number"),
    "a part of a list": (spoiled(f"{NODES}/node1/cpulist", "16-23"), "processors-differ"),
    "another's list": (spoiled(f"{NODES}/node1/cpulist", "0-15"), "processors-differ"),
    "no list of those online": (spoiled(ONLINE, "all"), "not-a-number"),
    "more are online": (spoiled(ONLINE, "0-63"), "processors-differ"),
    "no total of a node": (
        spoiled(f"{NODES}/node1/meminfo", "Node 1 MemFree: 1 kB"),
        "not-a-number",
    ),
    "no total": (spoiled("proc/meminfo", "MemFree: 1 kB"), "not-a-number"),
    "nodes with more": (spoiled("proc/meminfo", f"MemTotal: {2**26} kB"), "memory-differs"),
    "nodes with less": (spoiled("proc/meminfo", f"MemTotal: {2**28} kB"), "memory-differs"),
    "huge pages": (
        spoiled(f"{NODES}/node1/hugepages/hugepages-2048kB/nr_hugepages", "many"),
        "not-a-number",
    ),
    "no file of a node with no processors": (
        lambda one: one.cell(2, "", 64).without(f"{NODES}/node2/cpulist"),
        "missing",
    ),
    "no file of little memory": (
        lambda one: one.cell(2, "", 64).without(f"{NODES}/node2/meminfo"),
        "missing",
    ),
    "nothing in a file of a node": (spoiled(f"{NODES}/node1/meminfo", "\0"), "not-a-number"),
    "nothing in the total": (spoiled("proc/meminfo", ""), "not-a-number"),
    "nobody is online": (spoiled(ONLINE, "\0"), "not-a-number"),
    "only one node is online": (spoiled(ONLINE, "0-15"), "processors-differ"),
    "only one node is online, no total": (
        lambda one: spoiled(ONLINE, "0-15")(one.without("proc/meminfo")),
        "processors-differ",
    ),
    "no list, and few processors": (
        lambda one: spoiled("proc/cpuinfo", "processor : 0\nprocessor : 1")(one.without(ONLINE)),
        "processors-differ",
    ),
    "no list, and few processors of each node": (
        lambda one: spoiled("proc/cpuinfo", "processor : 0\nprocessor : 16")(one.without(ONLINE)),
        "processors-differ",
    ),
    "no totals": (lambda one: one.without(*TOTALS), "processors-unknown"),
    "no totals, a node is missing": (
        lambda one: one.without(*TOTALS, f"{NODES}/node1"),
        "processors-unknown",
    ),
    "no totals, no list of a node": (
        lambda one: one.without(*TOTALS, f"{NODES}/node1/cpulist"),
        "missing",
    ),
    "no totals, nothing in a list": (
        lambda one: spoiled(f"{NODES}/node1/cpulist", "\0")(one.without(*TOTALS)),
        "processors-unknown",
    ),
    "no total, no memory of a node": (
        lambda one: one.without("proc/meminfo", f"{NODES}/node1/meminfo"),
        "missing",
    ),
    "no total, a node is missing": (
        lambda one: one.without("proc/meminfo", f"{NODES}/node1"),
        "processors-differ",
    ),
    "large huge pages": (
        lambda one: one.cell(0, "0-15", 65_536, {1_048_576: 100}),
        "huge-pages-differ",
    ),
    "many huge pages": (
        lambda one: one.cell(1, "16-31", 65_536, {2048: 40_000}),
        "huge-pages-differ",
    ),
    "huge pages of two sizes": (
        lambda one: one.cell(1, "16-31", 65_536, {2048: 16_385, 1_048_576: 32}),
        "huge-pages-differ",
    ),
    "huge pages without NUMA": (
        lambda one: one.without(NODES).flat_memory(131_072, {2048: 65_537}),
        "huge-pages-differ",
    ),
    "a file that is none": (spoiled(f"{NODES}/node1/cpulist", "../../../../.."), "not-a-number"),
}


@pytest.mark.parametrize("name", HALF)
def test_half_a_truth_is_refused(name: str, tmp_path: Path) -> None:
    spoil, code = HALF[name]
    with pytest.raises(InconsistentNode, match=code) as caught:
        target(spoil(sockets()), tmp_path)
    assert exit_status(caught.value) == INCONSISTENT


def test_without_the_total_of_memory(tmp_path: Path) -> None:
    """The processors tell that no node is missing."""
    found = target(sockets().without("proc/meminfo"), tmp_path)
    assert (total(found, "VCPU"), total(found, "MEMORY_MB"), found.cautions) == (32, 131_072, ())


def test_all_memory_in_huge_pages(tmp_path: Path) -> None:
    found = target(sockets().cell(1, "16-31", 65_536, {2048: 16_384, 1_048_576: 32}), tmp_path)
    assert total(found, "MEMORY_MB") == 65_536
    assert total(found, "CUSTOM_HUGEPAGES_1GB") == 32


@pytest.mark.parametrize("name", sorted(HALF.keys() - {"no nodes, no memory"}))
def test_beside_nova_no_node_is_believed(name: str, tmp_path: Path) -> None:
    spoil, code = HALF[name]
    found = target(spoil(sockets().nic("0000:3b:00.0", "ens1", 1, 8, 8)), tmp_path, "{}")
    assert [one.key for one in found.providers] == ["pf:0000:3b:00.0"]
    assert code in {one.code for one in found.cautions}
    assert "numa" in found.blind


def test_nothing_is_written_of_half_a_truth(
    placement: Placement, agent: NodeAgent, host: str
) -> None:
    half = sockets(host).without(f"{NODES}/node1")
    with pytest.raises(InconsistentNode):
        agent.run(half, OWN_ROOT)
    assert placement.call("GET", f"/resource_providers?name={host}")["resource_providers"] == []
    agent.run(sockets(host), OWN_ROOT)
    before = placement.tree(host)
    with pytest.raises(InconsistentNode):
        agent.run(half, OWN_ROOT)
    assert placement.tree(host) == before


def test_beside_nova_nodes_stay_as_they_are(
    placement: Placement, agent: NodeAgent, host: str
) -> None:
    placement.host(host, VCPU=32)
    agent.run(sockets(host).nic("0000:3b:00.0", "ens1", 1, 8, 4), "{}")
    before = placement.tree(host)
    half = sockets(host).nic("0000:3b:00.0", "ens1", 1, 8, 8).without(f"{NODES}/node1")
    found = agent.run(half, "{}")
    assert codes(found) == ["memory-differs", "processors-differ", "source-empty"]
    assert [type(one).__name__ for one in found.steps] == ["PutInventories"], "of the card"
    after = placement.tree(host)
    assert after[f"{host}/numa1"] == before[f"{host}/numa1"]
    assert after[f"{host}/pf:0000:3b:00.0"]["parent"] == before[f"{host}/numa1"]["uuid"]


@pytest.mark.parametrize("per_mille", [0, 16, 28])
def test_older_kernels_count_more_for_their_nodes(per_mille: int, tmp_path: Path) -> None:
    """What they keep for themselves is in the sum over nodes, and not in the total."""
    machine = sockets().flat_memory(131_072 * (1000 - per_mille) // 1000)
    assert total(target(machine, tmp_path), "MEMORY_MB") == 131_072


def test_many_small_nodes_are_rounded_down(tmp_path: Path) -> None:
    machine = Machine("small").cpus("0-63")
    for number in range(64):
        path = f"{NODES}/node{number}"
        machine.put(f"{path}/cpulist", number)
        machine.put(f"{path}/meminfo", f"Node {number} MemTotal: {65_535} kB")
    machine.put("proc/meminfo", f"MemTotal: {64 * 65_535} kB")
    assert total(target(machine, tmp_path), "MEMORY_MB") == 64 * 63


@st.composite
def machines(draw: st.DrawFn) -> tuple[Sequence[tuple[int, str, int]], str | None, str | None]:
    """Nodes (number, processors, MiB), the file that is lost (None) or spoiled, its content."""
    numbers = draw(st.lists(st.integers(0, 255), min_size=1, max_size=6, unique=True))
    nodes: list[tuple[int, str, int]] = []
    first = 0
    for number in sorted(numbers):
        count = draw(st.integers(0 if nodes else 1, 8))
        cpus = f"{first}-{first + count - 1}" if count else ""
        first += count
        nodes.append((number, cpus, draw(st.integers(1024, 8192))))
    files = [
        f"{NODES}/node{number}/{name}" for number in numbers for name in ("cpulist", "meminfo")
    ]
    lost = draw(st.none() | st.sampled_from([*files, ONLINE, "proc/meminfo"]))
    return (
        nodes,
        lost,
        draw(st.sampled_from(["", None, "x", "MemTotal: 7 kB", "0-300", "1,,2", "3-1", "\0"])),
    )


@given(machines())
@example(([(0, "0-0", 1024), (1, "", 1024)], f"{NODES}/node1/cpulist", "0-300"))
def test_the_whole_truth_or_nothing(
    tmp_path_factory: pytest.TempPathFactory,
    given_: tuple[Sequence[tuple[int, str, int]], str | None, str | None],
) -> None:
    nodes, lost, text = given_
    machine = Machine("any")
    counted = 0
    for number, cpus, memory in nodes:
        machine.cell(number, cpus, memory)
        counted += len(range(*_bounds(cpus)))
    machine.cpus(f"0-{counted - 1}").flat_memory(sum(memory for *_, memory in nodes))
    machine.put("proc/cpuinfo", "".join(f"processor : {one}\n" for one in range(counted)))
    if lost is not None and text is None:
        machine = machine.without(lost)
    elif lost is not None:
        machine.put(lost, text)
    try:
        found = target(machine, tmp_path_factory.mktemp("any"))
    except InconsistentNode:
        assert lost is not None
        return
    guests = sum(memory for _, cpus, memory in nodes if cpus)
    assert total(found, "MEMORY_MB") == guests
    assert total(found, "VCPU") == counted


def _bounds(cpus: str) -> tuple[int, int]:
    first, _, last = cpus.partition("-")
    return (int(first), int(last) + 1) if cpus else (0, 0)
