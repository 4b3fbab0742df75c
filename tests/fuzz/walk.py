"""One seed: a fleet, then requests of a mix, each sent to both sides; in the end all they hold."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from random import Random
from typing import Any

from tests.fuzz.agreement import Disagreement, agree
from tests.fuzz.differences import name_of
from tests.fuzz.generation import CANDIDATES, MIXED, call, fleet, names, trees
from tests.fuzz.sides import Answer, Call, Reference, ours, send
from tests.fuzz.world import OWNERS, World

STEPS = 60
"""Requests of a walk after its fleet is made."""


@dataclass
class Outcome:
    """What a walk came to."""

    seed: int
    history: list[Call] = field(default_factory=list)
    statuses: Counter[int] = field(default_factory=Counter)
    meant: Counter[str] = field(default_factory=Counter)
    """How often sides differed as they should, by name."""
    disagreements: list[Disagreement] = field(default_factory=list)


def walk(seed: int, reference: Reference, steps: int = STEPS) -> Outcome:
    """Every second seed asks mostly for candidates."""
    reference.empty()
    outcome = Outcome(seed)
    with ours() as app:

        def look(path: str) -> Any:
            answer = send(app, Call("GET", path))
            return answer.json if answer.status == 200 else None

        world = World(Random(seed), look)
        for one in _calls(world, seed, steps):
            outcome.history.append(one)
            here, there = send(app, one), send(reference.app, one)
            outcome.statuses[here.status] += 1
            if here.status == there.status and own_ids(here, there):
                break
            if agree(one, here, there):
                continue
            found = Disagreement(one, here, there, outcome.history[:-1])
            name = name_of(found)
            if name is None:
                outcome.disagreements.append(found)
            else:
                outcome.meant[name] += 1
            if changes(one) and here.status != there.status:
                break  # from here on the two ledgers may differ
    return outcome


def own_ids(here: Answer, there: Answer) -> bool:
    """A provider was made without saying its UUID: from here on the sides know different ones."""
    both = (here.headers.get("location", ""), there.headers.get("location", ""))
    return both[0] != both[1] and all("/resource_providers/" in one for one in both)


def changes(one: Call) -> bool:
    """Whether a request may write."""
    return one.method not in {"GET", "HEAD", "OPTIONS"}


def _calls(world: World, seed: int, steps: int) -> Iterator[Call]:
    yield from names()
    yield from trees(world) if seed % 2 else fleet(world)
    mix = CANDIDATES if seed % 2 else MIXED
    for _ in range(steps):
        yield call(world, mix)
    yield from _everything(world)


def _everything(world: World) -> Iterator[Call]:
    """All that a side holds: nothing is left of a request that was refused."""
    yield Call("GET", "/resource_providers")
    for provider in world.providers:
        for what in ("", "/inventories", "/traits", "/aggregates", "/usages", "/allocations"):
            yield Call("GET", f"/resource_providers/{provider}{what}")
    for consumer in world.consumers:
        yield Call("GET", f"/allocations/{consumer}")
    for owner in OWNERS:
        yield Call("GET", f"/usages?project_id={owner}")
