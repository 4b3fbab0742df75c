"""Nodes that change at random, under load: nothing in use is lost, and a second run is quiet."""

import random
import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from tests.agent.machines import Machine
from tests.agent.reporting import NodeAgent, Placement, WithRoles, placement_over, totals

from moorage.agent.facts import InconsistentNode
from moorage.client.placement_wire import SourceFailed, within
from moorage.testing import in_process

STEPS = 8
ADDRESSES = [f"0000:{bus:02x}:00.0" for bus in (0x17, 0x3B, 0x5E, 0xAF, 0xC1, 0xD8)]


@pytest.fixture
def placement() -> Iterator[Placement]:
    with in_process.app() as application:
        transport = WithRoles(within(application))
        with placement_over(transport, "http://moorage.invalid/placement") as found:
            yield found


class Walk:
    """A node that changes, and the consumers on it."""

    def __init__(self, placement: Placement, folder: Path, seed: int) -> None:
        self.dice = random.Random(seed)
        self.placement = placement
        self.own_root = self.dice.random() < 0.6
        self.host = f"n{seed}"
        self.agent = NodeAgent(placement, folder)
        self.cards: dict[str, tuple[int, int, str]] = {}
        """Address -> NUMA node, virtual functions, model."""
        self.cells = 2
        self.numa = False
        self.blank = False
        self.consumers: dict[str, Mapping[str, int]] = {}
        if not self.own_root:
            placement.host(self.host, VCPU=32, MEMORY_MB=65_536, DISK_GB=100)
        for address in self.dice.sample(ADDRESSES, 2):
            self.insert(address)

    @property
    def machine(self) -> Machine:
        machine = Machine(self.host).cpus("0-31").disk("sda", 400)
        machine.function("0000:00:00.0", 0x060400, "8086:2711", -1)
        size = 32 // self.cells
        for number in range(self.cells):
            cpus = f"{number * size}-{number * size + size - 1}"
            pages = {2048: 512 // self.cells}
            machine.cell(number, cpus, 65_536 // self.cells, pages)
        for address, (cell, vfs, model) in self.cards.items():
            machine.nic(address, f"e{address[5:7]}", cell, 16, vfs, model)
        return machine.without("sys/") if self.blank else machine

    @property
    def config(self) -> str:
        root = "agent" if self.own_root else "nova"
        return f"{{root: {root}, numa: {str(self.numa).lower()}, reserved: {{MEMORY_MB: 512}}}}"

    # --- what may happen ----------------------------------------------------------------------

    def insert(self, address: str) -> None:
        model = self.dice.choice(("15b3:1017", "8086:1593"))
        self.cards[address] = self.dice.randrange(2), self.dice.randint(1, 8), model

    def change(self) -> None:
        self.blank = False
        free = [one for one in ADDRESSES if one not in self.cards]
        match self.dice.choice(("vfs", "pull", "insert", "move", "numa", "cells", "blank", "load")):
            case "vfs" if self.cards:
                address = self.dice.choice(sorted(self.cards))
                cell, _, model = self.cards[address]
                self.cards[address] = cell, self.dice.randint(0, 8), model
            case "pull" if self.cards:
                del self.cards[self.dice.choice(sorted(self.cards))]
            case "insert" if free:
                self.insert(self.dice.choice(free))
            case "move" if free and self.cards:
                before = self.dice.choice(sorted(self.cards))
                self.cards[self.dice.choice(free)] = self.cards.pop(before)
            case "numa":
                self.numa = not self.numa
            case "cells":
                self.cells = self.dice.choice((1, 2, 4))
            case "blank":
                self.blank = True
            case _:
                for _ in range(4):
                    self.load()

    def load(self) -> None:
        """Give something to a new consumer, or take it from an old one."""
        if self.consumers and self.dice.random() < 0.4:
            gone = self.dice.choice(sorted(self.consumers))
            del self.consumers[gone]
            self.placement.release(gone)
            return
        stocks = self.placement.stocks(self.host)
        parts = []
        for name in self.dice.sample(sorted(stocks), min(2, len(stocks))):
            amounts = {
                one: self.dice.randint(1, min(free, 6))
                for one, free in stocks[name].items()
                if free > 0 and self.dice.random() < 0.7
            }
            if amounts:
                parts.append((name, amounts))
        consumer = f"{self.host} {uuid.UUID(int=self.dice.getrandbits(128))}"
        try:
            if parts:
                self.placement.allocate(consumer, *parts)
                self.consumers[consumer] = totals(amounts for _, amounts in parts)
        except SourceFailed as error:
            assert "409" in str(error), "no room any more"  # noqa: PT017 - else it fits

    # --- what must hold -----------------------------------------------------------------------

    def check(self) -> None:
        before = self.root
        if self.blank and self.own_root:
            with pytest.raises(InconsistentNode):
                self.agent.run(self.machine, self.config)
            assert self.root == before, "nothing is written of half a node"
            return
        self.agent.run(self.machine, self.config)
        assert self.agent.run(self.machine, self.config).steps == (), "a second run is quiet"
        if not self.own_root:
            assert self.root == before, "Nova's provider is as it was"
        for consumer, amounts in self.consumers.items():
            assert totals(self.placement.allocations(consumer).values()) == amounts
        self.reported()

    @property
    def root(self) -> object:
        """Nova's provider. Its generation moves where a consumer's allocations are written anew."""
        found = self.placement.call("GET", f"/resource_providers?name={self.host}")
        shown = [self.placement.show(one) for one in found["resource_providers"]]
        return [{**one, "generation": None} for one in shown]

    def reported(self) -> None:
        """What the node shows is reported, but for what is in use and cannot go or move."""
        if self.blank:
            return
        stocks = self.placement.stocks(self.host)
        used = totals(self.consumers.values()).get("SRIOV_NET_VF", 0)
        shown = sum(vfs for _, vfs, _ in self.cards.values())
        assert shown <= totals(stocks.values()).get("SRIOV_NET_VF", 0) <= shown + used
        if self.own_root:
            assert totals(stocks.values())["VCPU"] == 32
        pages = totals(stocks.values())["CUSTOM_HUGEPAGES_2MB"]
        assert pages == 512


@pytest.mark.parametrize("seed", range(6))
def test_nothing_in_use_is_lost(seed: int, placement: Placement, tmp_path: Path) -> None:
    walk = Walk(placement, tmp_path, seed)
    walk.check()
    for _ in range(STEPS):
        walk.change()
        walk.check()


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(100, 400))
def test_nothing_in_use_is_lost_at_length(seed: int, placement: Placement, tmp_path: Path) -> None:
    test_nothing_in_use_is_lost(seed, placement, tmp_path)
