"""A node's providers follow the node, on Moorage and on the reference Placement."""

import uuid

import pytest
from tests.agent.machines import SHAPES, Machine, two_sockets, with_fpgas
from tests.agent.reporting import NodeAgent, Placement, codes, named

from moorage.agent.plan_steps import CreateProvider, DeleteProvider, Reshape
from moorage.client.placement_wire import SourceFailed
from moorage.domain.errors import Conflict, NotFound


@pytest.fixture
def host() -> str:
    return f"n{uuid.uuid4().hex[:8]}"


NETS = """
networks:
  - {address: "0000:3b:00.0", physnet: A}
  - {address: "0000:af:00.0", physnet: B}
"""


def one_card(host: str, vfs: int = 8, cell: int = 0) -> Machine:
    machine = Machine(host).cpus("0-15").cell(0, "0-7", 32_768).cell(1, "8-15", 32_768)
    machine.nic("0000:3b:00.0", "ens1f0", cell, 64, vfs)
    return machine.disk("sda", 480)


def test_a_host_of_novas_gets_its_devices(
    placement: Placement, agent: NodeAgent, host: str
) -> None:
    root = placement.host(host, VCPU=32, MEMORY_MB=131_072, DISK_GB=480)
    before = placement.tree(host)[host]
    agent.run(two_sockets(host), NETS)
    tree = placement.tree(host)
    assert tree[host] == before, "Nova's own provider is as it was"
    assert {
        name.removeprefix(host): one["stock"] for name, one in tree.items() if name != host
    } == {
        "/numa0": {"CUSTOM_HUGEPAGES_2MB": 1024, "CUSTOM_HUGEPAGES_1GB": 4},
        "/numa1": {"CUSTOM_HUGEPAGES_2MB": 1024},
        "/pf:0000:3b:00.0": {"SRIOV_NET_VF": 8},
        "/pf:0000:af:00.0": {"SRIOV_NET_VF": 8},
    }
    assert tree[f"{host}/numa0"]["parent"] == root
    assert tree[f"{host}/pf:0000:af:00.0"]["parent"] == tree[f"{host}/numa1"]["uuid"]
    assert tree[f"{host}/pf:0000:af:00.0"]["traits"] == {
        "CUSTOM_MOORAGE_AGENT",
        "CUSTOM_PCI_15B3_1017",
        "CUSTOM_PHYSNET_B",
        "HW_NIC_SRIOV",
    }


@pytest.mark.parametrize(
    ("shape", "config"), [("two_sockets", ""), *((one, "root: agent") for one in sorted(SHAPES))]
)
def test_a_second_run_writes_nothing(
    placement: Placement, agent: NodeAgent, host: str, shape: str, config: str
) -> None:
    if not config:
        placement.host(host, VCPU=8)
    machine = SHAPES[shape](host)
    first = agent.run(machine, config)
    before = placement.tree(host)
    again = agent.run(machine, config)
    assert again.steps == ()
    assert placement.tree(host) == before
    assert again.cautions == first.cautions
    assert again.providers == first.providers


def test_a_dry_run_writes_nothing(placement: Placement, agent: NodeAgent, host: str) -> None:
    placement.host(host, VCPU=8)
    found = agent.run(two_sockets(host), dry_run=True)
    assert sum(isinstance(one, CreateProvider) for one in found.steps) == 4
    assert list(placement.tree(host)) == [host]


def test_without_a_root_there_is_nothing_to_report(agent: NodeAgent, host: str) -> None:
    with pytest.raises(NotFound, match="Nova's compute service makes it"):
        agent.run(two_sockets(host))


def test_a_root_of_novas_is_not_taken(placement: Placement, agent: NodeAgent, host: str) -> None:
    placement.host(host, VCPU=8)
    with pytest.raises(Conflict, match="is not the agent's"):
        agent.run(two_sockets(host), "root: agent")
    assert placement.stocks(host) == {host: {"VCPU": 8}}


# --- devices that come, go and change -------------------------------------------------------------


def test_more_and_fewer_virtual_functions(
    placement: Placement, agent: NodeAgent, host: str
) -> None:
    placement.host(host, VCPU=8)
    card = f"{host}/pf:0000:3b:00.0"
    agent.run(one_card(host, 8))
    placement.allocate(host, (card, {"SRIOV_NET_VF": 5}))
    agent.run(one_card(host, 16))
    assert placement.stocks(host)[card] == {"SRIOV_NET_VF": 16}
    found = agent.run(one_card(host, 4))
    assert placement.stocks(host)[card] == {"SRIOV_NET_VF": 5}, "never below what is in use"
    assert codes(found) == ["below-use"]
    placement.release(host)
    agent.run(one_card(host, 4))
    assert placement.stocks(host)[card] == {"SRIOV_NET_VF": 4}


def test_a_card_is_pulled_and_comes_back(placement: Placement, agent: NodeAgent, host: str) -> None:
    placement.host(host, VCPU=8)
    card = f"{host}/pf:0000:3b:00.0"
    agent.run(two_sockets(host))
    placement.allocate(host, (card, {"SRIOV_NET_VF": 2}))
    pulled = two_sockets(host).without("sys/bus/pci/devices/0000:3b", "sys/bus/pci/devices/0000:af")
    found = agent.run(pulled)
    assert not any(isinstance(one, DeleteProvider) for one in found.steps)
    free = placement.tree(host)[f"{host}/pf:0000:af:00.0"]
    assert free["stock"] == {}
    assert "CUSTOM_MOORAGE_VANISHED" in free["traits"]
    assert codes(found) == ["vanished-in-use"]
    kept = placement.tree(host)[card]
    assert kept["stock"] == {"SRIOV_NET_VF": 0}
    assert "CUSTOM_MOORAGE_VANISHED" in kept["traits"]
    assert placement.allocations(host) == {card: {"SRIOV_NET_VF": 2}}
    assert agent.run(pulled).steps == ()
    agent.run(two_sockets(host))
    back = placement.tree(host)[card]
    assert back["stock"] == {"SRIOV_NET_VF": 8}
    assert "CUSTOM_MOORAGE_VANISHED" not in back["traits"]
    placement.release(host)
    agent.run(pulled)
    assert placement.tree(host)[card]["stock"] == {}, "nova-compute would miss it"
    assert agent.run(pulled).steps == ()
    assert len(agent.run(pulled, prune=True).steps) == 2
    assert card not in placement.tree(host)


def test_devices_with_new_addresses_are_the_same(
    placement: Placement, agent: NodeAgent, host: str
) -> None:
    placement.host(host, VCPU=8)
    agent.run(one_card(host))
    card = placement.tree(host)[f"{host}/pf:0000:3b:00.0"]["uuid"]
    placement.allocate(host, (f"{host}/pf:0000:3b:00.0", {"SRIOV_NET_VF": 2}))
    moved = Machine(host).cpus("0-15").cell(0, "0-7", 32_768).cell(1, "8-15", 32_768)
    moved.nic("0000:5e:00.0", "ens1f0", 1, 64, 8).disk("sda", 480)
    found = agent.run(moved)
    assert codes(found) == ["renumbered"]
    tree = placement.tree(host)
    assert f"{host}/pf:0000:3b:00.0" not in tree
    assert tree[f"{host}/pf:0000:5e:00.0"]["uuid"] == card
    assert tree[f"{host}/pf:0000:5e:00.0"]["parent"] == tree[f"{host}/numa1"]["uuid"]
    # A new card where the old one was is another one.
    moved.nic("0000:3b:00.0", "ens2f0", 0, 64, 4)
    agent.run(moved)
    tree = placement.tree(host)
    assert tree[f"{host}/pf:0000:3b:00.0"]["uuid"] != card
    assert agent.run(moved).steps == ()


def test_a_source_that_looks_empty_removes_nothing(
    placement: Placement, agent: NodeAgent, host: str
) -> None:
    placement.host(host, VCPU=8)
    agent.run(two_sockets(host))
    before = placement.tree(host)
    found = agent.run(two_sockets(host).without("sys/"))
    assert found.steps == ()
    assert placement.tree(host) == before
    assert codes(found) == ["source-empty"] * 2
    assert agent.run(two_sockets(host).without("sys/bus")).steps == ()
    assert placement.tree(host) == before


def test_most_devices_do_not_go_at_once(placement: Placement, agent: NodeAgent, host: str) -> None:
    placement.host(host, VCPU=8)
    full = Machine(host).cpus("0-7").cell(0, "0-7", 32_768).disk("sda", 100)
    for number in range(6):
        full.nic(f"0000:{number + 1}0:00.0", f"ens{number}", 0, 8, 2)
    agent.run(full)
    before = placement.tree(host)
    starts = [f"sys/bus/pci/devices/0000:{number + 1}0" for number in range(5)]
    bare = full.without(*starts)
    found = agent.run(bare)
    assert codes(found) == ["many-removals"]
    assert placement.tree(host) == before
    agent.run(bare, many_removals=True)
    assert sum(not some for some in placement.stocks(host).values()) == 1 + 5, "cell and cards"
    assert agent.run(bare).cautions == ()
    agent.run(bare, prune=True)
    assert len(placement.tree(host)) == len(before) - 5


def test_what_is_not_understood_stays(placement: Placement, agent: NodeAgent, host: str) -> None:
    placement.host(host, VCPU=8)
    agent.run(one_card(host))
    before = placement.tree(host)
    odd = one_card(host)
    for path in list(odd.files):
        if path.endswith("/sriov_numvfs"):
            odd.files[path] = "many\n"
    found = agent.run(odd)
    assert codes(found) == ["not-a-number"]
    assert placement.tree(host) == before


# --- others beside the agent ----------------------------------------------------------------------


def test_devices_that_nova_reports_are_left_to_it(
    placement: Placement, agent: NodeAgent, host: str
) -> None:
    root = placement.host(host, VCPU=8)
    body = {
        "name": f"{host}_0000:3b:00.0",
        "uuid": named(f"{host}-pf"),
        "parent_provider_uuid": root,
    }
    placement.call("POST", "/resource_providers", body)
    placement.stock(named(f"{host}-pf"), PCI_DEVICE=8)
    found = agent.run(two_sockets(host))
    assert codes(found) == ["reported-by-others"]
    stocks = placement.stocks(host)
    assert f"{host}/pf:0000:3b:00.0" not in stocks
    assert f"{host}/pf:0000:af:00.0" in stocks
    assert stocks[f"{host}_0000:3b:00.0"] == {"PCI_DEVICE": 8}


def test_what_others_add_to_a_provider_stays(
    placement: Placement, agent: NodeAgent, host: str
) -> None:
    placement.host(host, VCPU=8)
    agent.run(one_card(host))
    card = placement.uuid(f"{host}/pf:0000:3b:00.0")
    placement.call("PUT", "/traits/CUSTOM_TESTED")
    placement.call("PUT", "/resource_classes/CUSTOM_LICENCE")
    found = placement.call("GET", f"/resource_providers/{card}/traits")
    found["traits"] = [*found["traits"], "CUSTOM_TESTED"]
    placement.call("PUT", f"/resource_providers/{card}/traits", found)
    found = placement.call("GET", f"/resource_providers/{card}/inventories")
    found["inventories"]["CUSTOM_LICENCE"] = {"total": 3}
    found["inventories"]["SRIOV_NET_VF"]["reserved"] = 1
    placement.call("PUT", f"/resource_providers/{card}/inventories", found)
    agent.run(one_card(host, 12))
    shown = placement.tree(host)[f"{host}/pf:0000:3b:00.0"]
    assert "CUSTOM_TESTED" in shown["traits"]
    assert shown["stock"] == {"SRIOV_NET_VF": 11, "CUSTOM_LICENCE": 3}


def test_a_provider_that_was_renamed_gets_its_name_back(
    placement: Placement, agent: NodeAgent, host: str
) -> None:
    placement.host(host, VCPU=8)
    agent.run(one_card(host))
    card = placement.tree(host)[f"{host}/pf:0000:3b:00.0"]
    body = {"name": f"{host} uplink", "parent_provider_uuid": card["parent"]}
    placement.call("PUT", f"/resource_providers/{card['uuid']}", body)
    agent.run(one_card(host))
    assert placement.tree(host)[f"{host}/pf:0000:3b:00.0"]["uuid"] == card["uuid"]


def test_a_renamed_node_keeps_its_providers(
    placement: Placement, agent: NodeAgent, host: str
) -> None:
    root = placement.host(host, VCPU=8)
    agent.run(one_card(host), f"uuid: {root}")
    before = {one["uuid"] for one in placement.tree(host).values()}
    new = f"{host}-new"
    placement.call("PUT", f"/resource_providers/{root}", {"name": new})
    agent.run(one_card(new), f"uuid: {root}")
    tree = placement.tree(new)
    assert {one["uuid"] for one in tree.values()} == before
    assert all(name.startswith(new) for name in tree)


def test_a_reinstalled_node_beside_its_old_tree(
    placement: Placement, agent: NodeAgent, host: str
) -> None:
    """The old tree still has the names; Nova's new provider has another one."""
    old = placement.host(host, VCPU=8)
    agent.run(one_card(host), f"uuid: {old}")
    placement.call("PUT", f"/resource_providers/{old}", {"name": f"{host}-old"})
    new = placement.call(
        "POST", "/resource_providers", {"name": host, "uuid": named(f"{host} again")}
    )["uuid"]
    found = agent.run(one_card(host), f"uuid: {new}")
    assert "name-taken" in codes(found)
    assert f"{host}/numa0~" in " ".join(placement.tree(host))
    assert agent.run(one_card(host), f"uuid: {new}").steps == ()


# --- flat to NUMA, and back -----------------------------------------------------------------------

FLAT = "{root: agent, numa: false, reserved: {MEMORY_MB: 1024}}"
NUMA = "{root: agent, numa: true, reserved: {MEMORY_MB: 1024}}"


def test_flat_to_numa_keeps_every_allocation(
    placement: Placement, agent: NodeAgent, host: str
) -> None:
    agent.run(two_sockets(host), FLAT)
    flat = placement.stocks(host)[host]
    for number in range(5):
        parts: list[tuple[str, dict[str, int]]] = [
            (host, {"VCPU": 3, "MEMORY_MB": 8192, "DISK_GB": 20}),
            (f"{host}/pf:0000:3b:00.0", {"SRIOV_NET_VF": 1}),
        ]
        placement.allocate(f"{host}-{number}", *parts)
    found = agent.run(two_sockets(host), NUMA)
    assert sum(isinstance(one, Reshape) for one in found.steps) == 1
    stocks = placement.stocks(host)
    assert stocks[host] == {"DISK_GB": 480}
    for name in ("VCPU", "MEMORY_MB"):
        assert stocks[f"{host}/numa0"][name] + stocks[f"{host}/numa1"][name] == flat[name]
    cells = set()
    for number in range(5):
        own = dict(placement.allocations(f"{host}-{number}"))
        assert own.pop(host) == {"DISK_GB": 20}
        assert own.pop(f"{host}/pf:0000:3b:00.0") == {"SRIOV_NET_VF": 1}
        [(cell, amounts)] = own.items()
        assert amounts == {"VCPU": 3, "MEMORY_MB": 8192}
        cells.add(cell)
    assert cells == {f"{host}/numa0"}, "15 of 16 processors are together"
    assert agent.run(two_sockets(host), NUMA).steps == ()
    agent.run(two_sockets(host), FLAT)
    stocks = placement.stocks(host)
    assert stocks[host] == flat
    assert not any("numa" in name for name in stocks)
    for number in range(5):
        own = dict(placement.allocations(f"{host}-{number}"))
        assert own[host] == {"VCPU": 3, "MEMORY_MB": 8192, "DISK_GB": 20}


def test_what_fits_no_cell_is_spread_or_stays(
    placement: Placement, agent: NodeAgent, host: str
) -> None:
    agent.run(two_sockets(host), FLAT)
    placement.allocate(host, (host, {"VCPU": 20, "MEMORY_MB": 1024}))
    agent.run(two_sockets(host), NUMA)
    own = placement.allocations(host)
    assert sum(one.get("VCPU", 0) for one in own.values()) == 20
    assert sum(one.get("MEMORY_MB", 0) for one in own.values()) == 1024
    # Now with fewer processors than are in use: nothing moves.
    agent.run(two_sockets(host), FLAT)
    before = placement.stocks(host)
    small = two_sockets(host).cpus("0-11").cell(0, "0-7", 65_536).cell(1, "8-11", 65_536)
    found = agent.run(small, NUMA)
    assert "not-moved" in codes(found)
    assert placement.stocks(host)[host] == before[host]
    assert placement.allocations(host) == {host: {"VCPU": 20, "MEMORY_MB": 1024}}


def test_huge_pages_move_to_the_cells_of_novas_host(
    placement: Placement, agent: NodeAgent, host: str
) -> None:
    placement.host(host, VCPU=32)
    agent.run(two_sockets(host), "numa: false")
    memory = f"{host}/memory"
    assert placement.stocks(host)[memory] == {
        "CUSTOM_HUGEPAGES_2MB": 2048,
        "CUSTOM_HUGEPAGES_1GB": 4,
    }
    placement.allocate(host, (memory, {"CUSTOM_HUGEPAGES_1GB": 2}), (host, {"VCPU": 4}))
    agent.run(two_sockets(host), "numa: true")
    assert placement.stocks(host)[memory] == {}
    assert placement.allocations(host) == {
        f"{host}/numa0": {"CUSTOM_HUGEPAGES_1GB": 2},
        host: {"VCPU": 4},
    }


# --- conflicts ------------------------------------------------------------------------------------


def test_a_write_in_between_is_not_lost(
    placement: Placement, agent: NodeAgent, host: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody books on the card between the agent's reading and its writing."""
    placement.host(host, VCPU=8)
    card = f"{host}/pf:0000:3b:00.0"
    agent.run(one_card(host, 8))
    real = placement.wire.call
    booked: list[str] = []

    def call(method: str, path: str, *args: object, **more: object) -> object:
        if method == "PUT" and path.endswith("/inventories") and not booked:
            booked.append(path)
            placement.allocate(host, (card, {"SRIOV_NET_VF": 7}))
        return real(method, path, *args, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(placement.wire, "call", call)
    found = agent.run(one_card(host, 2))
    assert booked
    assert codes(found) == ["below-use"]
    assert placement.stocks(host)[card] == {"SRIOV_NET_VF": 7}


def test_a_refusal_is_an_error(placement: Placement, agent: NodeAgent, host: str) -> None:
    placement.host(host, VCPU=8)
    machine = Machine("n" * 150).cpus("0-7").cell(0, "0-7", 1024)
    with pytest.raises(SourceFailed) as caught:
        agent.run(machine, f"{{root: agent, name: {'n' * 201}}}")
    assert caught.value.status == 400


@pytest.mark.parametrize("roles", ["admin"])
@pytest.mark.parametrize("placement", ["reference"], indirect=True)  # Moorage lets administrators
def test_without_the_role_service_what_is_in_use_does_not_move(
    placement: Placement, agent: NodeAgent, host: str
) -> None:
    agent.run(two_sockets(host), FLAT)
    placement.allocate(host, (host, {"VCPU": 20}))
    found = agent.run(two_sockets(host), NUMA)
    assert codes(found) == ["not-moved"]
    assert placement.allocations(host) == {host: {"VCPU": 20}}
    placement.release(host)
    agent.run(two_sockets(host), NUMA)
    stocks = placement.stocks(host)
    assert stocks[host] == {"DISK_GB": 480}
    assert stocks[f"{host}/numa0"]["VCPU"] == 16


def test_traits_that_the_service_does_not_know_are_left_out(
    placement: Placement, agent: NodeAgent, host: str
) -> None:
    placement.host(host, VCPU=8)
    config = "networks: [{address: '*', traits: [HW_NIC_SRIOW]}]"
    found = agent.run(one_card(host), config)
    assert codes(found) == ["unknown-trait"]
    assert agent.run(one_card(host), config).steps == ()


def test_fpga_regions_are_counted_within_their_card(
    placement: Placement, agent: NodeAgent, host: str
) -> None:
    placement.host(host, VCPU=8)
    agent.run(with_fpgas(host))
    before = placement.tree(host)
    other = with_fpgas(host).without("sys/class/fpga_region", "sys/devices/pci0000:b0")
    other.fpga("0000:b0:00.0", 1, [(0, "9926ab6d6c925a68aabca7d84c545738"), (7, "9926ab6d")])
    assert agent.run(other).steps == ()
    assert placement.tree(host) == before
