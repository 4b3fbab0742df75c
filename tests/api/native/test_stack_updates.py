"""Updates of a stack in any order: the ensemble is the last template's, and its policies hold."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.api.native.test_stacks import (
    APART,
    PATH,
    RACKS,
    STACK,
    booked,
    claimed,
    group,
    members,
    scaling,
    server,
    stack,
)

from moorage.domain.changes import Changeset, ReplaceAllocations
from moorage.domain.consumers import ANY_GENERATION, Consumer
from moorage.testing.service import TENANT, Service
from moorage.usecases.claims.place_returns import commit_with_returns

FLAVORS = ("m1.small", "m1.medium")
POLICIES: tuple[tuple[Mapping[str, Any], ...], ...] = ((), (APART,), (RACKS,), (APART, RACKS))


@st.composite
def templates(draw: st.DrawFn) -> dict[str, Any]:
    """Resources of a template, and how many members each role has by it."""
    found: dict[str, Any] = {}
    if draw(st.booleans()):
        policies = draw(st.sampled_from(POLICIES))
        found["web"] = group(draw(st.integers(0, 4)), draw(st.sampled_from(FLAVORS)), *policies)
    if draw(st.booleans()):
        found["asg"] = scaling(draw(st.integers(0, 4)), *draw(st.sampled_from(POLICIES)))
    if draw(st.booleans()):
        found["db"] = server(draw(st.sampled_from(FLAVORS)))
    return found


def sizes(resources: Mapping[str, Any]) -> Counter[str]:
    """Role -> its members by a template, for roles with any."""
    fields = {"web": "count", "asg": "desired_capacity"}
    return Counter(
        {
            name: one["properties"][fields[name]] if name in fields else 1
            for name, one in resources.items()
        }
    )


@dataclass
class Heat:
    """The servers of the stack, as Heat has them."""

    service: Service
    servers: dict[str, str] = field(default_factory=dict)
    sizes: Counter[str] = field(default_factory=Counter)
    """Role -> its members."""
    desired: int | None = None
    """Of the scaling group by the last template; None: it had none."""

    def update(self, resources: Mapping[str, Any]) -> bool:
        """Update the stack; whether it was granted."""
        before = self.service.call("GET", PATH)
        answer = self.service.call("PUT", PATH, stack(resources, servers=self.servers))
        if answer.status_code == 409:
            assert answer.json["errors"][0]["code"] == "ensemble.infeasible", answer.text
            assert self.service.call("GET", PATH).json == before.json
            return False
        assert answer.status_code == 200, answer.text
        wanted = sizes(resources)
        if "asg" in resources and self.desired is not None:
            # As in Heat: nought is no wish, and what is not changed keeps its size.
            changed = wanted["asg"] not in {0, self.desired}
            wanted["asg"] = wanted["asg"] if changed else self.sizes["asg"]
        self.desired = sizes(resources)["asg"] if "asg" in resources else None
        self.sizes = wanted
        self._delete_servers(wanted)
        return True

    def scale(self, more: int) -> None:
        """Let the scaling group grow, if there is room."""
        body = {"extend": {"role": "asg", "count": more}}
        if self.service.call("POST", f"/ensembles/{STACK}/extend", body).status_code == 200:
            self.sizes["asg"] += more

    def _delete_servers(self, counts: Counter[str]) -> None:
        """Delete what the template has no more: of a scaling group, servers of no member."""
        found = self.service.call("GET", PATH)
        stay = set() if found.status_code == 404 else self._members()
        for path, uuid in list(self.servers.items()):
            role, _, index = path.partition("/")
            there = int(index or 0) < counts[role] if role != "asg" else uuid in stay
            assert there == (uuid in stay), path
            if not there:
                del self.servers[path]
                consumer = Consumer(uuid, TENANT.project_id, "ann", "INSTANCE")
                write = ReplaceAllocations(consumer, {}, ANY_GENERATION)
                commit_with_returns(self.service.store, Changeset((write,)))

    def _members(self) -> set[str]:
        return {str(one["server_id"]) for one in members(self.service).values()}

    def build(self, some: int) -> None:
        """Create servers of so many held members."""
        waiting = [name for name, one in members(self.service).items() if one["status"] == "held"]
        for name, uuid in claimed(self.service, waiting[:some]).items():
            role, _, index = name.rstrip("]").partition("[")
            path = {"db": "db", "web": f"web/{index}", "asg": f"asg/x{uuid[:8]}"}[role]
            self.servers[path] = uuid


@settings(max_examples=10)
@given(
    st.lists(st.tuples(templates(), st.integers(0, 4), st.integers(0, 2)), min_size=2, max_size=5)
)
def test_the_ensemble_is_what_the_last_template_says(
    three_racks: str, steps: list[tuple[dict[str, Any], int, int]]
) -> None:
    service = Service(three_racks)
    heat = Heat(service)
    for resources, built, scaled in steps:
        if not heat.update(resources):
            continue
        found = service.call("GET", PATH)
        wanted = heat.sizes
        if found.status_code == 404:
            assert not +wanted
            continue
        have = members(service)
        assert Counter(one["role"] for one in have.values()) == +wanted
        assert {one["status"] for one in have.values()} <= {"held", "active"}
        assert {one["server_id"] for one in have.values()} - {None} == set(heat.servers.values())
        assert len(booked(service)) == len(have), "nothing is held for nobody"
        shown = service.call("GET", f"/ensembles/{STACK}", query={"compliance": "true"})
        assert shown.json["ensemble"]["compliance"] == []
        again = service.call("PUT", PATH, stack(resources, servers=heat.servers)).json["stack"]
        assert again["changed"] is False
        if have:
            heat.build(built)
        if heat.desired is not None and scaled:
            heat.scale(scaled)
    service.close()
