"""Every file of a node in turn missing, emptied or made garbage: no more than there is is reported.

Nor is a part of the node reported as the whole: either nothing is, with the reason and an exit
status of its own, or all of its processors and memory.
"""

import io
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random

import pytest
from tests.agent.machines import X86_FLAGS, Machine

from moorage.agent.discovery import discover
from moorage.agent.facts import InconsistentNode
from moorage.agent.files import Files
from moorage.agent.main import INCONSISTENT, Agent, parser
from moorage.agent.node_providers import target_of
from moorage.agent.target import Target
from moorage.client.agent_file import read_agent_config
from moorage.domain.errors import BadConfiguration

CONFIG = read_agent_config("{root: agent}")
PAGE_MB = 2


def cpuinfo(count: int) -> str:
    return "\n\n".join(f"processor\t: {one}\nflags\t\t: {X86_FLAGS}" for one in range(count))


def meminfo(memory_mb: int, pages: int) -> str:
    return (
        f"MemTotal:       {memory_mb * 1024} kB\nHugePages_Total:    {pages}\n"
        f"Hugepagesize:       {PAGE_MB * 1024} kB\nHugetlb:        {pages * PAGE_MB * 1024} kB"
    )


def with_numa() -> Machine:
    made = (
        Machine("numa")
        .cpus("0-7")
        .cell(0, "0-3", 8_192, {2048: 1024})
        .cell(1, "4-7", 8_192, {2048: 512})
        .flat_memory(16_384, {2048: 1536})
        .nic("0000:3b:00.0", "eth0", 0, total=8, vfs=2)
        .gpu("0000:5e:00.0", 1)
        .disk("sda", 500)
    )
    made.put("proc/cpuinfo", cpuinfo(8))
    made.put("proc/meminfo", meminfo(16_384, 1536))
    return made


def without_numa() -> Machine:
    made = Machine("flat").cpus("0-3").flat_memory(8_192, {2048: 1024}).disk("sda", 100)
    made.put("proc/cpuinfo", cpuinfo(4))
    made.put("proc/meminfo", meminfo(8_192, 1024))
    return made


MACHINES = {"numa": with_numa, "flat": without_numa}


def directories(machine: Machine) -> Iterator[str]:
    """Every directory of sysfs that has files, as the beginning of their paths."""
    found = {
        "/".join(parts[:depth])
        for parts in (path.split("/") for path in machine.files)
        for depth in range(3, len(parts))
    }
    yield from sorted(f"{one}/" for one in found if one.startswith("sys/"))


def broken(machine: Machine) -> Iterator[tuple[str, Machine]]:
    """The machine with each file, and each directory, broken in each way."""
    dice = Random(6)
    for path, text in sorted(machine.files.items()):
        yield f"{path} missing", machine.without(path)
        noise = "".join(chr(dice.randrange(1, 0x2FF)) for _ in range(40))
        for how, content in (("empty", ""), ("garbage", noise), ("cut", text[: len(text) // 2])):
            other = machine.without()
            other.files[path] = content
            yield f"{path} {how}", other
    for path in directories(machine):
        yield f"{path} missing", machine.without(path)


def amounts(found: Target) -> tuple[int, int, int]:
    """Processors, MiB of memory, and MiB in huge pages."""
    every = [one.inventories for one in found.providers]

    def total(name: str) -> int:
        return sum(some[name].total for some in every if name in some)

    return total("VCPU"), total("MEMORY_MB"), total("CUSTOM_HUGEPAGES_2MB") * PAGE_MB


@pytest.mark.parametrize("shape", MACHINES)
def test_a_broken_file_never_makes_a_part_the_whole(shape: str, tmp_path: Path) -> None:
    machine = MACHINES[shape]()
    whole = amounts(target_of(discover(Files(machine.write(tmp_path / "whole"))), CONFIG))
    assert all(whole)
    wrong: list[tuple[str, tuple[int, int, int]]] = []
    said: dict[str, str] = {}
    for number, (how, other) in enumerate(broken(machine)):
        node = discover(Files(other.write(tmp_path / str(number))))
        try:
            found = amounts(target_of(node, CONFIG))
        except (InconsistentNode, BadConfiguration) as error:
            said[how] = error.message
            continue
        # Without anything that is known of its cells there is nothing to report.
        if found not in {whole, (0, 0, 0)}:
            wrong.append((how, found))
    assert not wrong, whole
    assert len(said) > 10
    of_node = [words for how, words in said.items() if "hostname" not in how]
    assert all(
        re.match(r".+ is not reported, only a part of it is known: .+", one) for one in of_node
    )


@pytest.fixture
def said(tmp_path: Path, reference_url: str) -> Callable[[Machine], tuple[int, str]]:
    """What the program says of a machine: exit status and standard error."""

    def run(machine: Machine) -> tuple[int, str]:
        where = machine.write(tmp_path / f"m{len(list(tmp_path.iterdir()))}")
        config = tmp_path / "agent.yaml"
        config.write_text("{root: agent}")
        words = ["--dry-run", "--sysfs", str(where), "--config", str(config)]
        words += ["--endpoint", reference_url]
        err = io.StringIO()
        return Agent(parser().parse_args(words), {}, io.StringIO(), err).once(), err.getvalue()

    return run


def test_a_missing_folder_of_huge_pages_is_no_memory_of_servers(
    said: Callable[[Machine], tuple[int, str]],
) -> None:
    missing = with_numa().without("sys/devices/system/node/node1/hugepages/")
    status, words = said(missing)
    assert status == INCONSISTENT
    assert "the machine has 3072 MiB of huge pages, of which 2048 MiB are found" in words
    assert "Traceback" not in words
    for path in ("sys/devices/system/cpu/online", "proc/meminfo", "proc/cpuinfo"):
        status, words = said(with_numa().without(path))
        assert (status, "Traceback" in words) == (0, False), path
