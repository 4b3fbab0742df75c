"""Every route of the dialect on one screen, each with its access rule.

The operation is the name by which schemas and declared changes speak of a line. A path item in
braces matches one segment. Rules are the reference's; the root needs none.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, TypeAlias

from moorage.api.placement import (
    allocations,
    candidates,
    inventories,
    providers,
    resource_classes,
    root,
    traits,
    usages,
)
from moorage.api.placement.refusals import Refusal
from moorage.api.placement.request import Environment, Request
from moorage.api.placement.validation import body_schema
from moorage.http.microversion import Response

if TYPE_CHECKING:
    from moorage.http.microversion import NegotiatedVersion

Handler: TypeAlias = Callable[[Environment, Request], Response]

# fmt: off
TABLE: Final[tuple[tuple[str, str, str, Handler, str], ...]] = (
    # ruff: noqa: E501 - one line per route, or it is no table
    ("GET",    "/",                                                 "root.show",                root.show,                   ""),
    ("GET",    "/resource_providers",                               "providers.list",           providers.list_all,          "placement:resource_providers:list"),
    ("POST",   "/resource_providers",                               "providers.create",         providers.create,            "placement:resource_providers:create"),
    ("GET",    "/resource_providers/{uuid}",                        "providers.show",           providers.show,              "placement:resource_providers:show"),
    ("PUT",    "/resource_providers/{uuid}",                        "providers.update",         providers.update,            "placement:resource_providers:update"),
    ("DELETE", "/resource_providers/{uuid}",                        "providers.delete",         providers.delete,            "placement:resource_providers:delete"),
    ("GET",    "/resource_providers/{uuid}/inventories",            "inventories.list",         inventories.list_all,        "placement:resource_providers:inventories:list"),
    ("POST",   "/resource_providers/{uuid}/inventories",            "inventories.create",       inventories.create,          "placement:resource_providers:inventories:create"),
    ("PUT",    "/resource_providers/{uuid}/inventories",            "inventories.replace",      inventories.replace_all,     "placement:resource_providers:inventories:update"),
    ("DELETE", "/resource_providers/{uuid}/inventories",            "inventories.clear",        inventories.clear,           "placement:resource_providers:inventories:delete"),
    ("GET",    "/resource_providers/{uuid}/inventories/{resource_class}", "inventory.show",     inventories.show,            "placement:resource_providers:inventories:show"),
    ("PUT",    "/resource_providers/{uuid}/inventories/{resource_class}", "inventory.update",   inventories.update,          "placement:resource_providers:inventories:update"),
    ("DELETE", "/resource_providers/{uuid}/inventories/{resource_class}", "inventory.delete",   inventories.delete,          "placement:resource_providers:inventories:delete"),
    ("GET",    "/resource_providers/{uuid}/usages",                 "provider_usages.show",     usages.of_provider,          "placement:resource_providers:usages"),
    ("GET",    "/resource_providers/{uuid}/aggregates",             "aggregates.show",          providers.show_aggregates,   "placement:resource_providers:aggregates:list"),
    ("PUT",    "/resource_providers/{uuid}/aggregates",             "aggregates.replace",       providers.replace_aggregates, "placement:resource_providers:aggregates:update"),
    ("GET",    "/resource_providers/{uuid}/allocations",            "provider_allocations.list", allocations.of_provider,    "placement:resource_providers:allocations:list"),
    ("GET",    "/resource_providers/{uuid}/traits",                 "provider_traits.list",     traits.list_of_provider,     "placement:resource_providers:traits:list"),
    ("PUT",    "/resource_providers/{uuid}/traits",                 "provider_traits.replace",  traits.replace_of_provider,  "placement:resource_providers:traits:update"),
    ("DELETE", "/resource_providers/{uuid}/traits",                 "provider_traits.clear",    traits.clear_of_provider,    "placement:resource_providers:traits:delete"),
    ("GET",    "/resource_classes",                                 "resource_classes.list",    resource_classes.list_all,   "placement:resource_classes:list"),
    ("POST",   "/resource_classes",                                 "resource_classes.create",  resource_classes.create,     "placement:resource_classes:create"),
    ("GET",    "/resource_classes/{name}",                          "resource_class.show",      resource_classes.show,       "placement:resource_classes:show"),
    ("PUT",    "/resource_classes/{name}",                          "resource_class.update",    resource_classes.ensure,     "placement:resource_classes:update"),
    ("DELETE", "/resource_classes/{name}",                          "resource_class.delete",    resource_classes.delete,     "placement:resource_classes:delete"),
    ("GET",    "/traits",                                           "traits.list",              traits.list_all,             "placement:traits:list"),
    ("GET",    "/traits/{name}",                                    "trait.show",               traits.show,                 "placement:traits:show"),
    ("PUT",    "/traits/{name}",                                    "trait.update",             traits.ensure,               "placement:traits:update"),
    ("DELETE", "/traits/{name}",                                    "trait.delete",             traits.delete,               "placement:traits:delete"),
    ("POST",   "/allocations",                                      "allocations.write",        allocations.write,           "placement:allocations:manage"),
    ("GET",    "/allocations/{consumer_uuid}",                      "allocations.show",         allocations.show,            "placement:allocations:list"),
    ("PUT",    "/allocations/{consumer_uuid}",                      "allocations.replace",      allocations.replace,         "placement:allocations:update"),
    ("DELETE", "/allocations/{consumer_uuid}",                      "allocations.delete",       allocations.delete,          "placement:allocations:delete"),
    ("GET",    "/usages",                                           "usages.show",              usages.of_project,           "placement:usages"),
    ("GET",    "/allocation_candidates",                            "candidates.list",          candidates.list_all,         "placement:allocation_candidates:list"),
    ("POST",   "/reshaper",                                         "reshaper.reshape",         allocations.reshape,            "placement:reshaper:reshape"),
)
# fmt: on

ANY_ACCEPT: Final = frozenset({"root.show", "trait.show"})
"""Reading operations that answer whatever the client accepts."""


@dataclass(frozen=True, slots=True, eq=False)
class Route:
    """A matched line of the table; `allow` lists every method of its path."""

    method: str
    path: str
    """As in the table."""
    operation: str
    handler: Handler
    rule: str
    allow: str


@dataclass(frozen=True, slots=True)
class VersionedRoute:
    """A route in one version: what is the same for all its requests."""

    absent: int | None
    """The status to answer where the version does not have it."""
    takes_json: bool
    """Whether it has a body."""
    gives_json: bool
    """Whether the client must accept JSON."""
    handler: Handler
    lowers: bool
    """Whether the version shows the answer in another shape than the newest."""
    dates: bool
    """Whether the version's answers have cache headers."""


@cache
def route_in_version(route: Route, negotiated: NegotiatedVersion) -> VersionedRoute:
    """The route in this version; there are as many as routes times versions."""
    operation = route.operation
    return VersionedRoute(
        absent=negotiated.absent(operation),
        takes_json=body_schema(operation, negotiated) is not None,
        gives_json=route.method == "GET" and operation not in ANY_ACCEPT,
        handler=negotiated.handler(operation, route.handler),
        lowers=negotiated.lowers(operation),
        dates=negotiated.has("cache-headers"),
    )


Path: TypeAlias = tuple[str, ...]


def _by_path() -> Mapping[Path, Mapping[str, Route]]:
    """The table by path segments, then by method."""
    found: dict[Path, dict[str, Route]] = {}
    for _, path, *_ in TABLE:
        allow = ", ".join(method for method, of, *_ in TABLE if of == path)
        found[tuple(path.split("/")[1:])] = {
            method: Route(method, path, operation, handler, rule, allow)
            for method, of, operation, handler, rule in TABLE
            if of == path
        }
    return MappingProxyType(found)


_PATHS: Final = _by_path()
_FIXED: Final = {
    text: methods for path, methods in _PATHS.items() if "{" not in (text := "/" + "/".join(path))
} | {"": _PATHS["",]}
"""Paths without items, as they are asked for."""


def _with_names() -> Mapping[tuple[object, ...], tuple[Mapping[str, Route], Path]]:
    """Path templates with the positions and names of their items.

    By how many segments they have and those that are no items.
    """
    found: dict[tuple[object, ...], tuple[Mapping[str, Route], Path]] = {}
    for path, methods in _PATHS.items():
        if "{" in "".join(path):
            assert all(part.startswith("{") == bool(at % 2) for at, part in enumerate(path))
            names = tuple(part[1:-1] for part in path[1::2])
            found[len(path), *path[::2]] = methods, names
    return MappingProxyType(found)


_WITH_ITEMS: Final = _with_names()


_LINE_FEED: Final = re.compile(r"(?<=[^/])\n\Z|(?<=\A/)\n\Z")
"""One at the end of a path, where something stands before it."""


def find(method: str, path: str) -> tuple[Route, dict[str, str]]:
    """The route of a request and its path items.

    One line feed at the end of a path is overlooked, as by the reference, whose patterns end in `$`.

    Raises:
        Refusal: 404 for an unknown path, 405 for a method the path does not have.
    """
    items: dict[str, str] = {}
    if "\n" in path:
        path = _LINE_FEED.sub("", path)
    methods = _FIXED.get(path)
    if methods is None:
        methods, items = _with_items(path)
    if method not in methods:
        raise Refusal(
            405,
            "The method specified is not allowed for this resource.",
            allow=", ".join(methods),
        )
    return methods[method], items


def _with_items(path: str) -> tuple[Mapping[str, Route], dict[str, str]]:
    parts = path.split("/")  # the first is what stands before the first slash
    found, given = _WITH_ITEMS.get((len(parts) - 1, *parts[1::2])), parts[2::2]
    if found is None or not all(given):
        raise Refusal(404, "")
    methods, names = found
    return methods, dict(zip(names, given, strict=True))
