"""Probes understand what a kernel shows, and survive what it should not."""

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.agent.machines import SHAPES, Machine, edge, two_sockets

from moorage.agent import files as files_module
from moorage.agent.cell_validation import online_cells
from moorage.agent.discovery import discover
from moorage.agent.facts import NO_CELL, InconsistentNode, Node
from moorage.agent.files import Files, Texts, link_name, numbers, pci_address, whole_number
from moorage.agent.node_providers import target_of
from moorage.agent.probes import (
    cells,
    disks,
    fpga_regions,
    identity,
    interfaces,
    mediated_types,
    mounts,
    pci_functions,
    processors,
)
from moorage.client.agent_file import read_agent_config
from moorage.domain.agent_config import AgentConfig
from moorage.domain.resources import MAX_AMOUNT

PARSERS: list[Callable[[Texts], Any]] = [
    cells.parse,
    fpga_regions.parse,
    identity.parse,
    interfaces.parse,
    mediated_types.parse,
    mounts.parse,
    pci_functions.parse,
    processors.parse,
    lambda texts: disks.parse(texts, ()),
]
GARBAGE = st.one_of(
    st.text(max_size=30),
    st.integers(-(2**70), 2**70).map(str),
    st.sampled_from(["", "-1", "0x", "0-", "9-1", "1e9", "٣", "00", "NaN", "\x00", "../..", "~"]),
)


def as_read(machine: Machine) -> dict[str, str]:
    """A machine's files by the paths of sysfs's classes, as `Files` reads them."""
    links = {
        path: text[len("-> ") :] for path, text in machine.files.items() if text.startswith("-> ")
    }
    content = {path: text for path, text in machine.files.items() if path not in links}
    for path, target in links.items():
        content[path] = target
        whole = os.path.normpath(Path(path).parent / target)
        for other, text in machine.files.items():
            if other.startswith(f"{whole}/"):
                content[path + other[len(whole) :]] = text.removeprefix("-> ")
    return {path: text for path, text in content.items() if not path.endswith("/physfn")}


READ = {shape: as_read(make()) for shape, make in SHAPES.items()}
PATHS = sorted({path for content in READ.values() for path in content})


@st.composite
def spoiled(draw: st.DrawFn) -> Texts:
    """The files of a machine, as they are read, with garbage in many of them."""
    path = st.sampled_from(PATHS)
    content: dict[str, str] = {}
    for one in draw(st.lists(path, max_size=40)):
        content[one] = draw(GARBAGE)
    names = st.text("abc0123.:-_", max_size=8)
    for one, name in draw(st.lists(st.tuples(path, names), max_size=10)):
        content[f"{one.rpartition('/')[0]}/{name}"] = draw(GARBAGE)
    return Texts(content)


@given(spoiled())
def test_no_parser_fails_on_garbage(texts: Texts) -> None:
    for parse in PARSERS:
        parse(texts)


@given(st.sampled_from(sorted(SHAPES)), st.data())
def test_a_spoiled_machine_makes_a_target(shape: str, data: st.DataObject) -> None:
    """Some files have garbage: what follows is in bounds, and what is left out is told."""
    content = dict(READ[shape])
    for path in data.draw(st.lists(st.sampled_from(sorted(content)), max_size=12)):
        content[path] = data.draw(GARBAGE)
    texts = Texts(content)
    functions, unclear = pci_functions.parse(texts)
    listed, unclear_cells = cells.parse(texts)
    of_processors, _ = processors.parse(texts)
    found_cells, _ = online_cells(listed, of_processors)
    found_mounts = mounts.parse(texts)
    node = Node(
        host_name="n",
        processors=of_processors,
        cells=found_cells,
        functions=functions,
        interfaces=interfaces.parse(texts),
        mediated=mediated_types.parse(texts)[0],
        regions=fpga_regions.parse(texts)[0],
        disks=disks.parse(texts, found_mounts)[0],
        mounts=found_mounts,
        cautions=(*unclear, *unclear_cells),
    )
    config = read_agent_config("{root: agent, networks: [{address: '*', bandwidth: link}]}")
    try:
        target = target_of(node, config)
    except InconsistentNode:  # nothing of its processors, or of its memory, is left
        return
    keys = [one.key for one in target.providers]
    assert len(keys) == len(set(keys))
    for one in target.providers:
        assert one.parent is None or one.parent == "" or one.parent in keys
        for inventory in one.inventories.values():
            assert 0 < inventory.total <= MAX_AMOUNT
            assert 0 <= (inventory.reserved or 0) <= inventory.total


# --- numbers --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("0-3,8", {0, 1, 2, 3, 8}),
        ("", set()),
        ("5\n", {5}),
        ("3-1", None),
        ("1,,2", None),
        ("0-99999999999", None),
        ("a", None),
        ("-1", None),
    ],
)
def test_lists_of_numbers(text: str, meant: set[int] | None) -> None:
    assert numbers(text, 1000) == meant


@given(st.text(max_size=25), st.sampled_from([10, 16]))
def test_a_number_is_plain_and_in_bounds(text: str, base: int) -> None:
    value = whole_number(text, 1000, base)
    if value is not None:
        assert 0 <= value <= 1000
        assert re.fullmatch(r"\s*(0x)?[0-9a-fA-F]+\s*", text)


def test_addresses_in_links() -> None:
    assert pci_address("../../devices/pci0000:3a/0000:3b:00.0/virtio1/net/e0") == "0000:3b:00.0"
    assert pci_address("../../devices/virtual/net/lo") == ""
    assert link_name("../../../bus/pci/drivers/mlx5_core") == "mlx5_core"


# --- files ----------------------------------------------------------------------------------------


def test_what_cannot_be_read_is_told(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "back").symlink_to("../there")
    (tmp_path / "out").symlink_to("/etc")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "bytes").write_bytes(b"\xff\xfe7")
    files = Files(tmp_path)
    texts = files.read(
        (
            "loop/x",
            "*/x",
            "out/hostname",
            "out/*",
            "pipe",
            "bytes",
            "there/back/back/back",
            "gone/*",
        )
    )
    assert texts.content == {"bytes": "\ufffd\ufffd7", "there/back/back/back": "../there"}
    told = {(one.code, one.subject) for one in files.cautions}
    assert ("not-a-file", "pipe") in told
    assert ("leads-outside", "out/hostname") in told
    assert ("leads-outside", "out") in told


def test_a_file_without_permission_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "secret").write_text("x")

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", refuse)
    files = Files(tmp_path)
    assert files.read(("secret",)).content == {}
    assert [str(one) for one in files.cautions] == ["unreadable: secret: Permission denied"]


def test_directories_and_files_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files_module, "MAX_NAMES", 10)
    monkeypatch.setattr(files_module, "MAX_BYTES", 4)
    for number in range(20):
        (tmp_path / f"{number:02}").write_text("123456")
    files = Files(tmp_path)
    texts = files.read(("*",))
    assert len(texts.content) == 10
    assert set(texts.content.values()) == {"1234"}
    assert [one.code for one in files.cautions] == ["too-many"]


def test_ten_thousand_virtual_functions(tmp_path: Path) -> None:
    machine = Machine("n").cpus("0-7").cell(0, "0-7", 65_536).disk("sda", 100)
    machine.nic("0000:10:00.0", "ens0", 0, 10_000, 10_000)
    node = discover(Files(machine.write(tmp_path)))
    assert node.cautions == ()
    assert [one.address for one in node.functions] == ["0000:10:00.0"]
    [card] = (one for one in target_of(node, AgentConfig()).providers if one.address)
    assert card.inventories["SRIOV_NET_VF"].total == 10_000


# --- single probes --------------------------------------------------------------------------------


def test_more_functions_than_a_card_can_have(tmp_path: Path) -> None:
    machine = two_sockets()
    for path in machine.files:
        if "0000:3b:00.0/sriov_totalvfs" in path:
            machine.files[path] = "4"
    found = target_of(discover(Files(machine.write(tmp_path))), AgentConfig())
    [card] = (one for one in found.providers if one.address == "0000:3b:00.0")
    assert card.unsure
    assert [one.code for one in found.cautions] == ["out-of-bounds"]


def test_an_absent_socket_is_no_cell() -> None:
    node = "sys/devices/system/node"
    texts = Texts(
        {
            f"{node}/node0/cpulist": "0-3",
            f"{node}/node0/meminfo": "Node 0 MemTotal: 1048576 kB",
            f"{node}/node1/cpulist": "",
            f"{node}/node1/meminfo": "Node 1 MemTotal: 0 kB",
            f"{node}/node2/cpulist": "",
            f"{node}/node2/meminfo": "Node 2 MemTotal: 2097152 kB",
        }
    )
    found, cautions = cells.parse(texts)
    assert [(one.number, one.memory_mb) for one in found] == [(0, 1024), (2, 2048)]
    assert cautions == ()


def test_what_virtual_functions_offer_is_their_cards() -> None:
    """A100 and later: the types are below virtual functions, and bounded by the card."""
    content = {}
    for number in range(8):
        at = f"sys/class/mdev_bus/0000:41:00.{number}"
        content[f"{at}/physfn"] = "../0000:40:00.0"
        kind = f"{at}/mdev_supported_types/nvidia-474"
        content[f"{kind}/name"] = "GRID A100-10C"
        content[f"{kind}/available_instances"] = "0" if number == 0 else "1"
        content[f"{kind}/description"] = "num_heads=1, framebuffer=10240M, max_instance=4"
        if number == 0:
            content[f"{kind}/devices/uuid"] = "../../../uuid"
    [one], cautions = mediated_types.parse(Texts(content))
    assert (one.address, one.available, one.existing) == ("0000:40:00.0", 3, 1)
    assert cautions == ()


def test_mounts_with_escapes() -> None:
    text = r"10.0.0.9:/my\040vms /srv/a\040b nfs4 rw 0 0" + "\nbroken\n"
    [one] = mounts.parse(Texts({"proc/self/mounts": text}))
    assert (one.source, one.directory, one.kind) == ("10.0.0.9:/my vms", "/srv/a b", "nfs4")


def test_disks_that_the_node_uses(tmp_path: Path) -> None:
    machine = edge()
    machine.disk("sda", 100).disk("sdb", 100).disk("sdc", 100)
    machine.put("sys/block/sda/sda1/partition", 1)
    machine.put("sys/block/sdb/holders/dm-0", "-> ../../dm-0")
    machine.put("sys/block/loop0/size", 100)
    node = discover(Files(machine.write(tmp_path)))
    assert {one.name: one.mounted for one in node.disks} == {
        "nvme0n1": False,
        "sda": True,
        "sdb": True,
        "sdc": False,
    }
    config = read_agent_config('disks: [{name: "sd*", class: CUSTOM_DISK}]')
    found = target_of(node, config)
    assert [one.key for one in found.providers if one.key.startswith("disk")] == ["disk:sdc"]
    assert [one.code for one in found.cautions] == ["not-offered"] * 2


def test_who_the_node_is() -> None:
    texts = Texts(
        {
            "proc/sys/kernel/hostname": "n1\n",
            identity.COMPUTE_ID: "9B3C7F6E-8B1C-4C39-8B0F-0D3A5C1C9F11\n",
            "etc/machine-id": "nonsense",
        }
    )
    who, cautions = identity.parse(texts)
    assert who.compute_id == "9b3c7f6e-8b1c-4c39-8b0f-0d3a5c1c9f11"
    assert who.machine_id is None
    assert [one.code for one in cautions] == ["not-a-uuid"]


def test_devices_of_no_node_are_below_the_root(tmp_path: Path) -> None:
    machine = two_sockets().nic("0000:c1:00.0", "ens9", NO_CELL, 4, 4)
    machine.nic("0000:c2:00.0", "ens10", 7, 4, 4)
    found = target_of(discover(Files(machine.write(tmp_path))), AgentConfig())
    parents = {one.address: one.parent for one in found.providers if one.address}
    assert parents["0000:c1:00.0"] == parents["0000:c2:00.0"] == ""
