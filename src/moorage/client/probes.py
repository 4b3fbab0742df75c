"""Probes of a Placement service, and fingerprints of its answers to them.

Drawn from the content itself, evenly and the same every time: candidates within single trees, with
traits and aggregates, what else holds what, and what projects use. Each is narrow, so that it costs
a large service little and no limit cuts its answer.
"""

from __future__ import annotations

import hashlib
import json
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, TypeVar
from urllib.parse import urlencode

from moorage.client.placement_wire import SourceFailed
from moorage.domain.consumers import NO_PROJECT

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from moorage.domain.content import Content
    from moorage.domain.providers import ResourceProvider

    T = TypeVar("T")
    from collections.abc import Callable

    from moorage.client.placement_wire import PlacementWire

TREES: Final = 40
EACH: Final = 15
"""Questions about traits, about aggregates, about projects and about resource classes."""
WIDE: Final = 200
"""Providers that may be in the answer to one question."""


def probes(content: Content) -> list[str]:
    """The queries, as paths."""
    return list(dict.fromkeys(_probes(content)))


def _probes(content: Content) -> Iterator[str]:
    trees: dict[str, list[ResourceProvider]] = {}
    for one in content.providers.values():
        trees.setdefault(one.root_uuid, []).append(one)
    for root in _some(sorted(trees), TREES):
        asked = _resources(trees[root])
        if asked:
            yield _candidates(resources=asked, in_tree=root)
            yield _candidates(resources_1=asked, in_tree_1=root, group_policy="none")
    yield from _by(content, trees, "traits", "required")
    yield from _by(content, trees, "aggregates", "member_of")
    projects = sorted({one.consumer.project_id for one in content.consumers.values()})
    for project in _some([one for one in projects if one != NO_PROJECT], EACH):
        yield f"/usages?{urlencode({'project_id': project})}"
    for uuid in _some(sorted(content.providers), TREES):
        yield f"/resource_providers/{uuid}/usages"


def _by(
    content: Content, trees: Mapping[str, list[ResourceProvider]], attribute: str, parameter: str
) -> Iterator[str]:
    """Queries for single traits or aggregates, narrowed to one tree where many providers match."""
    having: dict[str, list[ResourceProvider]] = {}
    for one in content.providers.values():
        for name in getattr(one, attribute):
            having.setdefault(name, []).append(one)
    for name in _some(sorted(having), EACH):
        first = min(having[name], key=lambda one: one.uuid)
        asked = _resources([first])
        wide = len(having[name]) > WIDE
        if not wide:
            yield f"/resource_providers?{urlencode({parameter: name})}"
        if asked:
            # A sharing provider answers for everyone in its aggregates: only ever in one tree.
            narrow = {"in_tree": first.root_uuid} if wide or len(trees) > WIDE else {}
            yield _candidates(resources=asked, **{parameter: name}, **narrow)


def _resources(providers: Sequence[ResourceProvider]) -> str:
    """The smallest amounts of the classes of one tree, at most three of them."""
    least = {
        item.resource_class: max(item.min_unit, item.step_size)
        for one in providers
        for item in one.inventories
        if item.total > 0
    }
    return ",".join(f"{name}:{amount}" for name, amount in islice(sorted(least.items()), 3))


def _candidates(**query: str) -> str:
    return (
        f"/allocation_candidates?{urlencode({k.replace('_1', '1'): v for k, v in query.items()})}"
    )


def _some(items: Sequence[T], count: int) -> list[T]:
    """At most that many of a sequence, evenly spaced."""
    if len(items) <= count:
        return list(items)
    return [items[i * len(items) // count] for i in range(count)]


def fingerprints(
    wire: PlacementWire,
    paths: Sequence[str],
    *,
    connections: int = 8,
    advance: Callable[[int], None] = lambda _: None,
) -> dict[str, str]:
    """Path -> the digest of the answer, in any order; of a refusal its status.

    Raises:
        SourceFailed: no answer, or one that says the service has failed.
    """
    found = {}
    with ThreadPoolExecutor(connections) as pool:
        for path, digest in zip(
            paths, pool.map(lambda one: _digest(wire, one), paths), strict=True
        ):
            found[path] = digest
            advance(1)
    return found


def _digest(wire: PlacementWire, path: str) -> str:
    try:
        body = wire.get(path)
    except SourceFailed as error:
        if error.status is None or error.status >= 500:  # noqa: PLR2004 - it is the one that fails
            raise
        return f"status {error.status}"
    text = json.dumps(_plain(body), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _plain(value: Any) -> Any:  # noqa: ANN401 - JSON is what it is
    """The answer without order, and without links, which name the service's own address."""
    if isinstance(value, dict):
        return {key: _plain(one) for key, one in value.items() if key != "links"}
    if isinstance(value, list):
        return sorted(
            (_plain(one) for one in value), key=lambda one: json.dumps(one, sort_keys=True)
        )
    return value
