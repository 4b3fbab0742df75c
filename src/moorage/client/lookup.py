"""From what people type, an id, its beginning or a name, to the id."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from moorage.client.errors import Ambiguous, Missing

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from moorage.client.transport import Transport

UUID: Final = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.ASCII)
BEGINNING: Final = re.compile(r"[0-9a-f-]{2,36}", re.ASCII)
PAGE: Final = 1000


def pages(
    transport: Transport, path: str, key: str, params: Mapping[str, str | int] | None = None
) -> Iterator[dict[str, Any]]:
    """Every item of a listing, page after page."""
    marker: dict[str, str] = {}
    while True:
        asked = {"limit": PAGE, **(params or {}), **marker}
        items = transport.call("GET", path, params=asked).body[key]
        yield from items
        if len(items) < PAGE:
            return
        marker = {"marker": items[-1]["id"]}


def called(item: Mapping[str, Any], text: str, *, standing: bool = True) -> bool:
    """Whether a thing has this handle (`L3`), or this name and is not over."""
    return text == item.get("handle") or (standing and text == item.get("name"))


def pick(kind: str, text: str, items: Iterable[Mapping[str, Any]]) -> str:
    """The id of the one thing that `text` means: an id, a name, or an id's beginning.

    Raises:
        Missing: nothing fits.
        Ambiguous: several do. An id or a handle, of which there is one, wins over names, and a
            name over the beginning of an id.
    """
    everything = list(items)
    sole = [item for item in everything if text in {item["id"], item.get("handle")}]
    named = [item for item in everything if text == item.get("name")]
    begun = [item for item in everything if str(item["id"]).startswith(text)]
    fitting = sole or named or (begun if BEGINNING.fullmatch(text) else [])
    if not fitting:
        raise Missing(kind, text)
    if len(fitting) > 1:
        ids = tuple(str(item["id"]) for item in fitting)
        raise Ambiguous(kind, text, ids, tuple(map(told, fitting)))
    return str(fitting[0]["id"])


def told(item: Mapping[str, Any]) -> str:
    """`1f2e… (L3, pending, from 2026-12-07T08:00:00Z)`: what tells it from its namesakes."""
    said = marks(item)
    return f"{item['id']} ({said})" if said else str(item["id"])


def marks(item: Mapping[str, Any]) -> str:
    """`L3, pending, from 2026-12-07T08:00:00Z`, as far as there is any of it."""
    start = item.get("start")
    said = [item.get("handle"), item.get("status"), f"from {start}" if start else None]
    return ", ".join(str(one) for one in said if one)
