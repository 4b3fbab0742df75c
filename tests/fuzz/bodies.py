"""Bodies of writes, in the shape of the version they are sent with."""

from typing import Any

from tests.fuzz.world import CLASSES, OWNERS, SHARING, TRAITS, TYPES, World


def inventory(world: World) -> dict[str, Any]:
    """One inventory; mostly it makes sense."""
    random = world.random
    total = random.choice([1, 2, 4, 8, 8, 16, 100])
    body: dict[str, Any] = {"total": total}
    if world.chance(0.4):
        return body
    if world.chance(0.3):
        body["reserved"] = random.choice([0, 1, total - 1, total, total + 1])
    if world.chance(0.2):
        body["allocation_ratio"] = random.choice([0.5, 1, 1.0, 1.5, 2.0, 16.0, 0.1])
    if world.chance(0.2):
        body["min_unit"] = random.choice([1, 2, 3])
    if world.chance(0.3):
        body["max_unit"] = random.choice([1, 2, 4, total])
    if world.chance(0.2):
        body["step_size"] = random.choice([1, 2, 3])
    return body


def inventories(world: World) -> dict[str, Any]:
    """Inventories by class."""
    if world.chance(0.03):
        return {world.resource_class(): inventory(world)}
    return {name: inventory(world) for name in world.some(CLASSES, 3)}


def plenty(world: World, at_least: int = 1) -> dict[str, Any]:
    """Inventories with room for many groups, one in six with rules of its own."""
    return {
        name: inventory(world) if world.chance(0.15) else {"total": world.random.choice([4, 8, 16])}
        for name in world.some(CLASSES[:4], 4, at_least=at_least)
    }


def traits(world: World) -> list[str]:
    """Traits of a provider; one that shares is rare enough to leave fleets their trees."""
    found = world.some(TRAITS, 3)
    if world.chance(0.15):
        found.append(SHARING)
    return found if world.chance(0.97) else [*found, world.trait()]


def aggregates(world: World, minor: int, provider: str) -> Any:
    """A list before 1.19, an object since."""
    members = world.some(world.aggregates, 2)
    if minor < 19:
        return members
    return {"aggregates": members, "resource_provider_generation": world.generation(provider)}


def provider(world: World, minor: int) -> dict[str, Any]:
    """A provider to be made. It always brings its UUID, so that both sides have the same."""
    known = list(world.providers)
    own = world.new_provider()
    body: dict[str, Any] = {"name": f"n-{own[:8]}", "uuid": own}
    if world.chance(0.03):
        body["name"] = f"n-{world.provider()[:8]}"
    if minor >= 14 and known and world.chance(0.65):
        body["parent_provider_uuid"] = world.random.choice(known[-6:])
    if world.chance(0.03):
        body["uuid"] = own.replace("-", "")
    return body


def provider_update(world: World, minor: int) -> dict[str, Any]:
    """A new name, and since 1.14 a parent."""
    body: dict[str, Any] = {"name": f"n-{world.uuid()[:8]}"}
    if minor >= 14 and world.chance(0.6):
        body["parent_provider_uuid"] = None if world.chance(0.2) else world.provider()
    return body


def amounts(world: World, minor: int) -> dict[str, dict[str, int]]:
    """Amounts by provider, mostly of what providers have."""
    del minor
    found = {}
    for own in {world.provider() for _ in range(world.random.choice([1, 1, 1, 2, 3]))}:
        offered = list(world.inventories(own))
        names = world.some(offered, 2, at_least=1) if offered else [world.resource_class()]
        if world.chance(0.03):
            names = [world.resource_class()]
        found[own] = {name: world.random.choice([1, 1, 1, 1, 2, 2, 3, 8]) for name in names}
    return found


def _owner(world: World) -> dict[str, Any]:
    return {"project_id": world.random.choice(OWNERS), "user_id": world.random.choice(OWNERS)}


def _consumer(world: World, minor: int, consumer: str, wanted: dict[str, Any]) -> dict[str, Any]:
    """What one consumer shall have, in the form by dictionary."""
    body: dict[str, Any] = _owner(world)
    body["allocations"] = {own: {"resources": one} for own, one in wanted.items()}
    if minor >= 28:
        body["consumer_generation"] = world.consumer_generation(consumer)
    if minor >= 34 and world.chance(0.3):
        body["mappings"] = {"": list(wanted)[:2] or [world.uuid()]}
    if minor >= 38:
        body["consumer_type"] = world.random.choice(TYPES)
    return body


def allocations(world: World, minor: int, consumer: str) -> dict[str, Any]:
    """The body of PUT /allocations/{consumer}."""
    wanted = {} if world.chance(0.08) else amounts(world, minor)
    if minor >= 12:
        return _consumer(world, minor, consumer, wanted)
    listed = [{"resource_provider": {"uuid": own}, "resources": one} for own, one in wanted.items()]
    return {"allocations": listed, **(_owner(world) if minor >= 8 else {})}


def many_allocations(world: World, minor: int) -> dict[str, Any]:
    """The body of POST /allocations; half of them hand something from one to another."""
    if minor >= 28 and world.consumers and world.chance(0.5):
        source, target = world.random.choice(world.consumers), world.consumer()
        moved = world.allocations(source)
        if moved and source != target:
            return {
                target: _consumer(world, minor, target, moved),
                source: _consumer(world, minor, source, {}),
            }
    count = world.random.choice([1, 2, 2, 3])
    chosen = {world.consumer() for _ in range(count)}
    return {
        consumer: _consumer(
            world, minor, consumer, {} if world.chance(0.15) else amounts(world, minor)
        )
        for consumer in sorted(chosen)
    }


def reshape(world: World, minor: int) -> dict[str, Any]:
    """Inventories move between providers of a tree, and allocations with them."""
    own, other = world.provider(), world.provider()
    kept = {own: world.inventories(own), other: world.inventories(other)}
    for had in kept.values():
        for one in had.values():
            one.pop("resource_provider_generation", None)
    moving = world.some(list(kept[own]), 2)
    if own != other:
        kept[other] |= {name: kept[own].pop(name) for name in moving}
    if world.chance(0.2):
        kept[own] = inventories(world)
    body = {
        one: {"inventories": had, "resource_provider_generation": world.generation(one)}
        for one, had in kept.items()
    }
    shown = world.look(f"/resource_providers/{own}/allocations") or {"allocations": {}}
    moved = {}
    for consumer in shown["allocations"] if world.chance(0.9) else ():
        wanted = world.allocations(consumer)
        here = wanted.get(own, {})
        there = {name: here.pop(name) for name in moving if name in here and own != other}
        if there:
            wanted[other] = wanted.get(other, {}) | there
        wanted = {one: amount for one, amount in wanted.items() if amount}
        moved[consumer] = _consumer(world, minor, consumer, wanted)
    return {"inventories": body, "allocations": moved}
