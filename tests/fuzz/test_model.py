"""Our Placement against the plain model: whatever is done to both, they hold the same."""

from contextlib import ExitStack
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from tests.fuzz.model import Model, Refused
from tests.fuzz.sides import Call, ours, send

pytestmark = pytest.mark.timeout(3600)  # for the long form, MOORAGE_HYPOTHESIS=nightly

UUIDS = [f"{number:08x}-0000-4000-8000-000000000000" for number in range(1, 6)]
CONSUMERS = [f"{number:08x}-0000-4000-9000-000000000000" for number in range(1, 5)]
AGGREGATES = [f"{number:08x}-0000-4000-a000-000000000000" for number in range(1, 4)]
CLASSES = ["VCPU", "MEMORY_MB", "DISK_GB"]
TRAITS = ["HW_CPU_X86_AVX", "HW_CPU_X86_AVX2", "COMPUTE_NODE"]

providers = st.sampled_from(UUIDS)
consumers = st.sampled_from(CONSUMERS)
stale = st.sampled_from([0, 0, 0, 0, 0, 1, -1])
"""How far off the generation is that a request names."""
amounts = st.dictionaries(st.sampled_from(CLASSES), st.integers(1, 4), min_size=1, max_size=2)
allocations = st.dictionaries(st.sampled_from(UUIDS[:3]), amounts, max_size=2)
plain = st.fixed_dictionaries({"total": st.integers(2, 12)})
strict = st.fixed_dictionaries(
    {"total": st.integers(1, 12)},
    optional={
        "reserved": st.integers(0, 4),
        "min_unit": st.integers(1, 2),
        "max_unit": st.integers(1, 9),
        "step_size": st.integers(1, 3),
        "allocation_ratio": st.sampled_from([0.5, 1.0, 1.5, 4.0]),
    },
)
inventories = st.dictionaries(st.sampled_from(CLASSES), plain | plain | strict)
whole = st.fixed_dictionaries(dict.fromkeys(CLASSES, plain))


class Placement(RuleBasedStateMachine):
    """Every rule does one thing to both."""

    def __init__(self) -> None:
        super().__init__()
        self.model = Model()
        self._open = ExitStack()
        self.app = self._open.enter_context(ours())

    def teardown(self) -> None:
        self._open.close()

    def ask(self, method: str, path: str, body: object = None) -> tuple[int, Any]:
        answer = send(self.app, Call(method, path, body=body))
        return answer.status, answer.json

    def both(self, method: str, path: str, body: object, model: Any, *given: Any) -> None:
        status, content = self.ask(method, path, body)
        refused = None
        try:
            model(*given)
        except Refused as error:
            refused = error.status
        assert (status if status >= 400 else None) == refused, content

    def generation(self, uuid: str) -> int:
        known = self.model.providers.get(uuid)
        return known.generation if known else 0

    # --- what can be done -------------------------------------------------------------------

    @initialize(first=whole, second=whole, third=inventories)
    def some_fleet(self, first: Any, second: Any, third: Any) -> None:
        """So that not every walk begins with refusals."""
        for uuid, inventory in zip(UUIDS, (first, second, third), strict=False):
            self.create(uuid, uuid, None)
            self.put_inventories(uuid, inventory, 0)

    @rule(uuid=providers, name=providers, parent=st.none() | providers)
    def create(self, uuid: str, name: str, parent: str | None) -> None:
        body = {"uuid": uuid, "name": name, "parent_provider_uuid": parent}
        self.both("POST", "/resource_providers", body, self.model.create, uuid, name, parent)

    @rule(uuid=providers, parent=st.none() | providers)
    def move(self, uuid: str, parent: str | None) -> None:
        known = self.model.providers.get(uuid)
        body = {"name": known.name if known else "x", "parent_provider_uuid": parent}
        self.both("PUT", f"/resource_providers/{uuid}", body, self.model.move, uuid, parent)

    @rule(uuid=providers)
    def delete(self, uuid: str) -> None:
        self.both("DELETE", f"/resource_providers/{uuid}", None, self.model.delete, uuid)

    @rule(uuid=providers, given=inventories, off=stale)
    def put_inventories(self, uuid: str, given: Any, off: int) -> None:
        generation = self.generation(uuid) + off
        body = {"inventories": given, "resource_provider_generation": generation}
        path = f"/resource_providers/{uuid}/inventories"
        self.both("PUT", path, body, self.model.put_inventories, uuid, generation, given)

    @rule(uuid=providers, given=st.sets(st.sampled_from(TRAITS)), off=stale)
    def put_traits(self, uuid: str, given: set[str], off: int) -> None:
        generation = self.generation(uuid) + off
        body = {"traits": sorted(given), "resource_provider_generation": generation}
        path = f"/resource_providers/{uuid}/traits"
        self.both("PUT", path, body, self.model.put_traits, uuid, generation, given)

    @rule(uuid=providers, given=st.sets(st.sampled_from(AGGREGATES)), off=stale)
    def put_aggregates(self, uuid: str, given: set[str], off: int) -> None:
        generation = self.generation(uuid) + off
        body = {"aggregates": sorted(given), "resource_provider_generation": generation}
        path = f"/resource_providers/{uuid}/aggregates"
        self.both("PUT", path, body, self.model.put_aggregates, uuid, generation, given)

    @rule(consumer=consumers, given=allocations, off=stale)
    def put_allocations(self, consumer: str, given: Any, off: int) -> None:
        wanted = self.wanted(consumer, given, off)
        path, (generation, _, _, _) = f"/allocations/{consumer}", wanted
        self.both("PUT", path, body_of(*wanted), self.model.write, {consumer: wanted})
        assert generation is None or generation >= 0

    @rule(given=st.dictionaries(consumers, allocations, min_size=1, max_size=3), off=stale)
    def post_allocations(self, given: dict[str, Any], off: int) -> None:
        wanted = {consumer: self.wanted(consumer, one, off) for consumer, one in given.items()}
        body = {consumer: body_of(*one) for consumer, one in wanted.items()}
        self.both("POST", "/allocations", body, self.model.write, wanted)

    def wanted(self, consumer: str, given: Any, off: int) -> tuple[int | None, str, str, Any]:
        known = self.model.consumers.get(consumer)
        actual = known.generation if known else None
        generation = actual if off == 0 else max(0, (actual or 0) + off)
        return generation, "p", "INSTANCE", given

    @rule(consumer=consumers)
    def drop(self, consumer: str) -> None:
        self.both("DELETE", f"/allocations/{consumer}", None, self.model.drop, consumer)

    @rule(wanted=amounts)
    def find_room(self, wanted: dict[str, int]) -> None:
        asked = ",".join(f"{name}:{amount}" for name, amount in wanted.items())
        _, found = self.ask("GET", f"/resource_providers?resources={asked}")
        uuids = {one["uuid"] for one in found["resource_providers"]}
        assert uuids == self.model.with_room(wanted)

    # --- what holds at all times ------------------------------------------------------------

    @invariant()
    def providers_are_the_same(self) -> None:
        _, found = self.ask("GET", "/resource_providers")
        shown = {one["uuid"]: one for one in found["resource_providers"]}
        assert shown.keys() == self.model.providers.keys()
        for uuid, known in self.model.providers.items():
            one = shown[uuid]
            assert (one["name"], one["parent_provider_uuid"]) == (known.name, known.parent)
            assert one["generation"] == known.generation
            assert one["root_provider_uuid"] == self.model.line(uuid)[-1]
            self.contents_are_the_same(uuid)

    def contents_are_the_same(self, uuid: str) -> None:
        known, path = self.model.providers[uuid], f"/resource_providers/{uuid}"
        assert self.ask("GET", f"{path}/inventories")[1]["inventories"] == known.inventories
        assert set(self.ask("GET", f"{path}/traits")[1]["traits"]) == known.traits
        assert set(self.ask("GET", f"{path}/aggregates")[1]["aggregates"]) == known.aggregates
        usages = {name: self.model.used(uuid, name) for name in known.inventories}
        assert self.ask("GET", f"{path}/usages")[1]["usages"] == usages

    @invariant()
    def allocations_are_the_same(self) -> None:
        for consumer in CONSUMERS:
            _, shown = self.ask("GET", f"/allocations/{consumer}")
            known = self.model.consumers.get(consumer)
            if known is None:
                assert shown == {"allocations": {}}
                continue
            found = {uuid: one["resources"] for uuid, one in shown["allocations"].items()}
            assert found == known.allocations
            assert shown["consumer_generation"] == known.generation

    @invariant()
    def usages_of_the_project_are_the_same(self) -> None:
        _, shown = self.ask("GET", "/usages?project_id=p&consumer_type=all")
        counted = shown["usages"].get("all", {"consumer_count": 0})
        assert counted.pop("consumer_count") == len(self.model.consumers)
        for name in CLASSES:
            used = sum(self.model.used(uuid, name) for uuid in self.model.providers)
            assert counted.get(name, 0) == used


def body_of(generation: int | None, project: str, type_: str, wanted: Any) -> dict[str, Any]:
    """One consumer's part of a body."""
    return {
        "allocations": {uuid: {"resources": one} for uuid, one in wanted.items()},
        "project_id": project,
        "user_id": "u",
        "consumer_generation": generation,
        "consumer_type": type_,
    }


TestPlacement = Placement.TestCase
# A walk opens a ledger of its own, and looks at everything after each step: fewer, longer walks.
TestPlacement.settings = settings(
    max_examples=max(14, settings().max_examples // 7), stateful_step_count=50
)
