"""Which routes of which dialect the recorded exchanges reach, and with what success."""

import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from tests.corpus.comparison import recorded
from tests.corpus.play import Exchange
from tests.corpus.story import names

from moorage.api.compute import routes as compute_routes
from moorage.api.leases import routes as lease_routes
from moorage.api.native import routes as native_routes
from moorage.api.placement import routes as placement_routes
from moorage.options import MOUNTS
from moorage.testing.service import HandClock

SYSTEM: Final = ("GET /", "GET /healthz", "GET /readyz", "GET /metrics")
_VERSIONS: Final = ("GET {}", "GET {}/")
NEVER_FAIL: Final = frozenset(
    {
        *SYSTEM,
        *(f"GET {MOUNTS['reservation']}{path}" for path in ("/", "/versions", "/v1")),
        *(f"GET {MOUNTS['compute']}{path}" for path in ("/", "/v2.1")),
    }
)
"""Documents that anyone may read, whatever the version."""


def routes() -> Iterator[str]:
    """`METHOD /path` of each route, with `{...}` for its items."""
    yield from SYSTEM
    for method, path, *_ in placement_routes.TABLE:
        yield f"{method} {MOUNTS['placement']}{path}"
    prefix = MOUNTS["reservation"]
    yield from (f"GET {prefix}{path}" for path in ("/", "/versions", "/v1"))
    for lease_route in lease_routes.ROUTES:
        yield f"{lease_route.method} {prefix}/v1{lease_route.path}"
    prefix = MOUNTS["compute"]
    yield from (f"GET {prefix}{path}" for path in ("/", "/v2.1"))
    for group_route in compute_routes.ROUTES:
        yield f"{group_route.method} {prefix}/v2.1{group_route.path}"
    for route in (*native_routes.ROUTES, *native_routes.simulation(HandClock())):
        yield f"{route.method} {MOUNTS['native']}{route.path}"


@dataclass
class Reached:
    """How often the recorded exchanges reach a route."""

    succeeded: int = 0
    refused: int = 0
    """With a status of 400 or more but 401, which no route gives itself."""
    dry_runs: int = 0
    versions: set[str] = field(default_factory=set)
    """Of exchanges that no error was the answer to, or an absent route."""


def reached() -> dict[str, Reached]:
    """Each route with how often it is reached."""
    patterns = sorted(((_pattern(one), one) for one in routes()), key=lambda one: one[1].count("{"))
    found: dict[str, Reached] = defaultdict(Reached) | {one: Reached() for one in routes()}
    for name in names():
        for exchange in recorded(name):
            for pattern, route in patterns:
                if pattern.fullmatch(_asked(exchange)):
                    _count(found[route], exchange)
                    break
    return found


def _count(found: Reached, exchange: Exchange) -> None:
    status = exchange["status"]
    found.succeeded += status < 400
    found.refused += status >= 400 and status != 401
    found.dry_runs += status < 400 and "dry_run=true" in exchange["ask"]
    found.versions.add(exchange.get("version", ""))


def _asked(exchange: Exchange) -> str:
    """`METHOD /path`, without the query and a slash at the end."""
    method, _, target = exchange["ask"].partition(" ")
    path = target.partition("?")[0]
    return f"{method} {path.rstrip('/') or '/'}"


def _pattern(route: str) -> re.Pattern[str]:
    plain = route.rstrip("/") if route.count("/") > 1 else route
    parts = re.split(r"\{[^}]*\}", plain)
    items = re.findall(r"\{[^}]*\}", plain)
    text = re.escape(parts[0])
    for item, rest in zip(items, parts[1:], strict=True):
        text += (".+" if item.endswith(":path}") else "[^/]+") + re.escape(rest)
    return re.compile(text)
