"""Requests by weight: which are asked, how often, and with what."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from tests.fuzz import bodies, queries
from tests.fuzz.sides import Call
from tests.fuzz.spoiling import spoiled
from tests.fuzz.world import CLASSES, NEWEST, SHARING, TRAITS, World

Maker = "Callable[[World, int], Call]"


@dataclass(frozen=True)
class Mix:
    """How often what is asked."""

    weights: Mapping[str, int]
    spoiled: float
    """The part of requests that are broken on purpose."""


def call(world: World, mix: Mix) -> Call:
    """The next request."""
    name = world.random.choices(list(mix.weights), list(mix.weights.values()))[0]
    minor = NEWEST if world.chance(0.4) else world.random.randint(0, NEWEST)
    made = _MAKERS[name](world, minor)
    return spoiled(world, made) if world.chance(mix.spoiled) else made


def names() -> Iterator[Call]:
    """The custom classes and traits that all requests speak of."""
    for name in CLASSES[3:]:
        yield Call("PUT", f"/resource_classes/{name}")
    for name in TRAITS[3:]:
        yield Call("PUT", f"/traits/{name}")


def fleet(world: World) -> Iterator[Call]:
    """Some providers below each other, and now and then one that shares."""
    for _ in range(world.random.randint(3, 9)):
        yield Call("POST", "/resource_providers", body=bodies.provider(world, NEWEST))
        own = world.providers[-1]
        yield _replace_inventories(world, NEWEST, own)
        if world.chance(0.6):
            yield _provider_traits(world, NEWEST, own)
        if world.chance(0.6):
            yield _aggregates(world, NEWEST, own)


def trees(world: World) -> Iterator[Call]:
    """Hosts with two floors of children and room for many groups, and providers that share."""
    for _ in range(world.random.randint(2, 4)):
        host = world.new_provider()
        yield from _with_plenty(world, host, None)
        for _ in range(world.random.randint(0, 3)):
            child = world.new_provider()
            yield from _with_plenty(world, child, host)
            if world.chance(0.3):
                yield from _with_plenty(world, world.new_provider(), child)
    for _ in range(world.random.randint(0, 2)):
        own = world.new_provider()
        yield from _with_plenty(world, own, None)
        yield _share(world, NEWEST, own)
        yield _aggregates(world, NEWEST, own)


def _with_plenty(world: World, own: str, parent: str | None) -> Iterator[Call]:
    body = {"name": f"n-{own[:8]}", "uuid": own, "parent_provider_uuid": parent}
    yield Call("POST", "/resource_providers", body=body)
    inventories = bodies.plenty(world, at_least=2 if parent is None else 1)
    content = {"inventories": inventories, "resource_provider_generation": 0}
    yield Call("PUT", f"/resource_providers/{own}/inventories", body=content)
    if world.chance(0.5):
        content = {"traits": world.some(TRAITS, 3), "resource_provider_generation": 1}
        yield Call("PUT", f"/resource_providers/{own}/traits", body=content)
    if world.chance(0.5):
        yield _aggregates(world, NEWEST, own)


def _at(minor: int, method: str, path: str, body: object = None) -> Call:
    return Call(method, path, f"1.{minor}", body)


def _path(world: World, rest: str = "", own: str = "") -> str:
    return f"/resource_providers/{own or world.provider()}{rest}"


def _create_provider(world: World, minor: int) -> Call:
    return _at(minor, "POST", "/resource_providers", bodies.provider(world, minor))


def _update_provider(world: World, minor: int) -> Call:
    return _at(minor, "PUT", _path(world), bodies.provider_update(world, minor))


def _delete_provider(world: World, minor: int) -> Call:
    return _at(minor, "DELETE", _path(world))


def _list_providers(world: World, minor: int) -> Call:
    asked = queries.encoded(queries.providers(world, minor))
    return _at(minor, "GET", "/resource_providers" + asked)


def _show(world: World, minor: int) -> Call:
    parts = ["", "/inventories", "/usages", "/aggregates", "/traits", "/allocations"]
    rest = world.random.choice([*parts, f"/inventories/{world.resource_class()}"])
    return _at(minor, "GET", _path(world, rest))


def _create_inventory(world: World, minor: int) -> Call:
    body = {"resource_class": world.resource_class(), **bodies.inventory(world)}
    return _at(minor, "POST", _path(world, "/inventories"), body)


def _replace_inventories(world: World, minor: int, own: str = "") -> Call:
    own = own or world.provider()
    body = {
        "inventories": bodies.inventories(world),
        "resource_provider_generation": world.generation(own),
    }
    return _at(minor, "PUT", _path(world, "/inventories", own), body)


def _update_inventory(world: World, minor: int) -> Call:
    own = world.provider()
    name = world.random.choice(list(world.inventories(own)) or [world.resource_class()])
    body = {**bodies.inventory(world), "resource_provider_generation": world.generation(own)}
    return _at(minor, "PUT", _path(world, f"/inventories/{name}", own), body)


def _delete_inventory(world: World, minor: int) -> Call:
    rest = "" if world.chance(0.3) else f"/{world.resource_class()}"
    return _at(minor, "DELETE", _path(world, f"/inventories{rest}"))


def _provider_traits(world: World, minor: int, own: str = "") -> Call:
    own = own or world.provider()
    if world.chance(0.1):
        return _at(minor, "DELETE", _path(world, "/traits", own))
    body = {"traits": bodies.traits(world), "resource_provider_generation": world.generation(own)}
    return _at(minor, "PUT", _path(world, "/traits", own), body)


def _aggregates(world: World, minor: int, own: str = "") -> Call:
    own = own or world.provider()
    return _at(minor, "PUT", _path(world, "/aggregates", own), bodies.aggregates(world, minor, own))


def _traits(world: World, minor: int) -> Call:
    if world.chance(0.4):
        return _at(minor, "GET", "/traits" + queries.encoded(queries.traits(world)))
    method = world.random.choice(["GET", "PUT", "DELETE"])
    return _at(minor, method, f"/traits/{world.random.choice([*TRAITS, 'CUSTOM_V', 'custom_w'])}")


def _resource_classes(world: World, minor: int) -> Call:
    name = world.random.choice([*CLASSES, "CUSTOM_C", "CUSTOM_D", "custom_e"])
    method = world.random.choice(["GET", "GET", "POST", "PUT", "DELETE"])
    if method == "POST":
        return _at(minor, method, "/resource_classes", {"name": name})
    if method == "GET" and world.chance(0.5):
        return _at(minor, method, "/resource_classes")
    renamed = {"name": f"CUSTOM_{world.random.choice('CDEF')}"}
    body = renamed if method == "PUT" and minor < 7 else None
    return _at(minor, method, f"/resource_classes/{name}", body)


def _put_allocations(world: World, minor: int) -> Call:
    consumer = world.consumer()
    body = bodies.allocations(world, minor, consumer)
    return _at(minor, "PUT", f"/allocations/{consumer}", body)


def _post_allocations(world: World, minor: int) -> Call:
    minor = max(minor, 13)
    return _at(minor, "POST", "/allocations", bodies.many_allocations(world, minor))


def _allocations_of(method: str) -> Callable[[World, int], Call]:
    return lambda world, minor: _at(minor, method, f"/allocations/{world.consumer()}")


def _usages(world: World, minor: int) -> Call:
    return _at(minor, "GET", "/usages" + queries.encoded(queries.usages(world, minor)))


def _candidates(world: World, minor: int) -> Call:
    minor = max(minor, 10)
    asked = queries.encoded(queries.candidates(world, minor))
    return _at(minor, "GET", "/allocation_candidates" + asked)


def _reshape(world: World, minor: int) -> Call:
    minor = max(minor, 30)
    return _at(minor, "POST", "/reshaper", bodies.reshape(world, minor))


def _share(world: World, minor: int, own: str = "") -> Call:
    own = own or world.provider()
    traits = [*world.some(TRAITS, 1), SHARING]
    body = {"traits": traits, "resource_provider_generation": world.generation(own)}
    return _at(minor, "PUT", _path(world, "/traits", own), body)


ROUTES: Final = (
    *("", "/", "/resource_classes", "/resource_classes/{class}", "/resource_providers"),
    *("/resource_providers/{uuid}", "/resource_providers/{uuid}/inventories"),
    *("/resource_providers/{uuid}/inventories/{class}", "/resource_providers/{uuid}/usages"),
    *("/resource_providers/{uuid}/aggregates", "/resource_providers/{uuid}/allocations"),
    *("/resource_providers/{uuid}/traits", "/allocations", "/allocations/{consumer}"),
    *("/allocation_candidates", "/traits", "/traits/{trait}", "/usages", "/reshaper"),
    *("/nothing", "/nothing/", "//", "/traits/a/b", "/resource_providers/"),
)
"""Every route, and some that are none."""
METHODS: Final = ("GET", "PUT", "POST", "DELETE", "HEAD", "OPTIONS", "PATCH", "TRACE", "COPY")


def _anything(world: World, minor: int) -> Call:
    """Any method on any route, with a body or without."""
    path = world.random.choice(ROUTES).format_map(
        {
            "uuid": world.provider(),
            "class": world.resource_class(),
            "consumer": world.consumer(),
            "trait": world.trait(),
        }
    )
    body: Any = world.random.choice([None, None, {}, {"name": "CUSTOM_X"}, []])
    return _at(minor, world.random.choice(METHODS), path, body)


_MAKERS: Final[Mapping[str, Callable[[World, int], Call]]] = {
    "create provider": _create_provider,
    "update provider": _update_provider,
    "delete provider": _delete_provider,
    "list providers": _list_providers,
    "show": _show,
    "create inventory": _create_inventory,
    "replace inventories": _replace_inventories,
    "update inventory": _update_inventory,
    "delete inventory": _delete_inventory,
    "provider traits": _provider_traits,
    "share": _share,
    "aggregates": _aggregates,
    "traits": _traits,
    "resource classes": _resource_classes,
    "put allocations": _put_allocations,
    "post allocations": _post_allocations,
    "show allocations": _allocations_of("GET"),
    "delete allocations": _allocations_of("DELETE"),
    "usages": _usages,
    "candidates": _candidates,
    "reshape": _reshape,
    "anything": _anything,
}

MIXED: Final = Mix(
    {
        "create provider": 6,
        "update provider": 4,
        "delete provider": 2,
        "list providers": 6,
        "show": 10,
        "create inventory": 4,
        "replace inventories": 4,
        "update inventory": 4,
        "delete inventory": 3,
        "provider traits": 4,
        "share": 1,
        "aggregates": 4,
        "traits": 4,
        "resource classes": 6,
        "put allocations": 16,
        "post allocations": 8,
        "show allocations": 4,
        "delete allocations": 4,
        "usages": 4,
        "candidates": 6,
        "reshape": 5,
        "anything": 8,
    },
    spoiled=0.2,
)
"""Everything."""

CANDIDATES: Final = Mix(
    {
        "create provider": 3,
        "replace inventories": 2,
        "provider traits": 2,
        "share": 2,
        "aggregates": 2,
        "put allocations": 4,
        "update provider": 1,
        "list providers": 6,
        "candidates": 40,
    },
    spoiled=0.02,
)
"""Questions to a fleet with trees and providers that share, which changes a little in between."""
