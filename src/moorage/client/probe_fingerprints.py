"""Fingerprints of a Placement service's answers to queries."""

from __future__ import annotations

import hashlib
import json
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from moorage.client.placement_wire import SourceFailed

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from moorage.client.placement_wire import PlacementWire


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
