"""Queries of lists, usages and allocation candidates, mostly such as the version knows."""

from urllib.parse import quote

from tests.fuzz.world import CLASSES, OWNERS, SHARING, TRAITS, TYPES, World

Pairs = list[tuple[str, str]]


def encoded(pairs: Pairs) -> str:
    """A query string, with its question mark if there is anything to ask."""
    text = "&".join(f"{quote(key)}={quote(value, safe=':,!')}" for key, value in pairs)
    return f"?{text}" if text else ""


def resources(world: World) -> str:
    """One or two classes with small amounts."""
    chosen = world.some(CLASSES[:4], 2 if world.chance(0.4) else 1, at_least=1)
    if world.chance(0.02):
        chosen.append(world.resource_class())
    return ",".join(f"{name}:{world.random.choice([1, 1, 1, 1, 2, 2, 3])}" for name in chosen)


def required(world: World, minor: int, key: str) -> Pairs:
    """Traits wanted, forbidden since 1.22, any of several since 1.39."""
    if minor >= 39 and world.chance(0.3):
        chosen = world.some((*TRAITS, SHARING), 3, at_least=1)
        found = [(key, "in:" + ",".join(chosen))]
        if world.chance(0.4):
            found.append((key, "!" + world.trait()))
        return found
    chosen = world.some((*TRAITS, SHARING), 2, at_least=1)
    if minor >= 22:
        chosen = [f"!{name}" if world.chance(0.5) else name for name in chosen]
    if world.chance(0.02):
        chosen.append(world.trait())
    return [(key, ",".join(chosen))]


def member_of(world: World, minor: int, key: str) -> Pairs:
    """Aggregates: one, any of several, repeated since 1.24, forbidden since 1.32."""
    found = []
    for _ in range(2 if minor >= 24 and world.chance(0.25) else 1):
        refused = "!" if minor >= 32 and world.chance(0.35) else ""
        several = world.chance(0.4)
        chosen = ",".join(world.aggregate() for _ in range(2)) if several else world.aggregate()
        found.append((key, f"{refused}{'in:' if several else ''}{chosen}"))
    return found


def providers(world: World, minor: int) -> Pairs:
    """The query of GET /resource_providers."""
    pairs: Pairs = []
    if world.chance(0.15):
        pairs.append(("name", f"n-{world.provider()[:8]}"))
    if world.chance(0.1):
        pairs.append(("uuid", world.provider()))
    if minor >= 3 and world.chance(0.3):
        pairs += member_of(world, minor, "member_of")
    if minor >= 4 and world.chance(0.4):
        pairs.append(("resources", resources(world)))
    if minor >= 14 and world.chance(0.2):
        pairs.append(("in_tree", world.provider()))
    if minor >= 18 and world.chance(0.4):
        pairs += required(world, minor, "required")
    return pairs


def usages(world: World, minor: int) -> Pairs:
    """The query of GET /usages."""
    pairs = [("project_id", world.random.choice(OWNERS))]
    if world.chance(0.3):
        pairs.append(("user_id", world.random.choice(OWNERS)))
    if minor >= 38 and world.chance(0.6):
        pairs.append(("consumer_type", world.random.choice([*TYPES, "all", "unknown", "OTHER"])))
    return pairs


def traits(world: World) -> Pairs:
    """The query of GET /traits."""
    pairs: Pairs = []
    if world.chance(0.5):
        pairs.append(("associated", world.random.choice(["true", "false", "True", "maybe"])))
    if world.chance(0.7):
        listed = "in:" + ",".join(world.some(TRAITS, 3, at_least=1))
        pairs.append(("name", world.random.choice(["startswith:CUSTOM_", "startswith:", listed])))
    return pairs


def candidates(world: World, minor: int) -> Pairs:
    """The query of GET /allocation_candidates."""
    pairs: Pairs = []
    suffixes = _suffixes(world, minor)
    bare = set()
    for suffix in suffixes:
        if suffix and minor >= 36 and world.chance(0.15):
            bare.add(suffix)
        pairs += _group(world, minor, suffix, with_resources=suffix not in bare)
    numbered = [suffix for suffix in suffixes if suffix]
    if minor >= 25 and world.chance(0.97 if len(numbered) > 1 else 0.1):
        pairs.append(("group_policy", world.random.choice(["none", "none", "isolate"])))
    if minor >= 36 and numbered and (bare or world.chance(0.3)):
        named = sorted(bare | set(world.some(numbered, 3, at_least=1)))
        pairs.append(("same_subtree", ",".join(named)))
    if minor >= 35 and world.chance(0.15):
        pairs += [("root_required", value) for _, value in required(world, 22, "")][:1]
    if minor >= 16 and world.chance(0.1):
        pairs.append(("limit", str(world.random.choice([1, 2, 5, 1000]))))
    world.random.shuffle(pairs)
    return pairs


def _suffixes(world: World, minor: int) -> list[str]:
    numbered: list[str] = []
    if minor >= 25 and world.chance(0.6):
        count = world.random.choice([1, 1, 2, 2, 3])
        words = ["1", "2", "3"] if minor < 33 or world.chance(0.3) else ["_NUMA", "-b", "_C3"]
        numbered = words[:count]
    return [*numbered, *([""] if not numbered or world.chance(0.5) else [])]


def _group(world: World, minor: int, suffix: str, *, with_resources: bool) -> Pairs:
    pairs: Pairs = []
    if with_resources:
        pairs.append((f"resources{suffix}", resources(world)))
    if minor >= 36 and not with_resources and world.chance(0.25):
        pairs.append((f"required{suffix}", f"!{world.trait()}"))
    elif minor >= 17 and world.chance(0.25 if with_resources else 0.7):
        pairs += required(world, minor, f"required{suffix}")
    if minor >= 21 and world.chance(0.15):
        pairs += member_of(world, minor, f"member_of{suffix}")
    if minor >= 31 and world.chance(0.08):
        pairs.append((f"in_tree{suffix}", world.provider()))
    return pairs
