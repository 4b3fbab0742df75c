"""Resolves what people type (an id, its beginning or a name) to the id."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qsl, urlsplit

from moorage.client.errors import Ambiguous, Forbidden, Missing
from moorage.domain.words import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from moorage.client.transport import Reply, Transport

UUID: Final = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.ASCII)
BEGINNING: Final = re.compile(r"[0-9a-f-]{2,36}", re.ASCII)
PAGE: Final = 1000
ELSEWHERE: Final = "in this project; another project has one: give its id"
"""What `Missing` adds for operators, where a name is another project's."""


@dataclass(frozen=True, slots=True)
class Part:
    """The first items of a listing, in an order of its own or that of a field of them."""

    most: int | None = None
    """None: all of them."""
    sort_key: str | None = None
    descending: bool = False

    @property
    def query(self) -> dict[str, str | int]:
        """The parameters that ask for it."""
        asked: dict[str, str | int] = {} if self.most is None else {"limit": min(self.most, PAGE)}
        if self.sort_key is not None:
            asked |= {"sort_key": self.sort_key, "sort_dir": "desc" if self.descending else "asc"}
        return asked


WHOLE: Final = Part()


def pages(
    transport: Transport,
    path: str,
    key: str,
    params: Mapping[str, str | int] | None = None,
    part: Part | None = None,
) -> Iterator[dict[str, Any]]:
    """The items of a listing, page after page: all of them, or a part."""
    part = part or WHOLE
    every = replies(transport.call, path, key, {**(params or {}), **part.query})
    return islice((one for reply in every for one in reply.body[key]), part.most)


def whole(
    call: Callable[..., Reply],
    path: str,
    key: str,
    params: Mapping[str, str | int] | None = None,
    *,
    within: str | None = None,
) -> Reply:
    """A listing as one answer: the first page's, with the items of all pages."""
    every = replies(call, path, key, params, within=within)
    first = next(every)
    body = first.body if within is None else first.body[within]
    for reply in every:
        body[key] += (reply.body if within is None else reply.body[within])[key]
    body[f"{key}_links"] = []
    return first


def replies(
    call: Callable[..., Reply],
    path: str,
    key: str,
    params: Mapping[str, str | int] | None = None,
    *,
    within: str | None = None,
) -> Iterator[Reply]:
    """The pages of a listing, as long as each links to the next; the service chooses their size.

    One that says nothing of links goes on while its pages are full. The listing is under `within`,
    if that is given.
    """
    marker: dict[str, str] = {}
    while True:
        asked = {"limit": PAGE, **(params or {}), **marker}
        reply = call("GET", path, params=asked)
        yield reply
        body = reply.body if within is None else reply.body[within]
        items, links = body[key], body.get(f"{key}_links")
        if not items or not (len(items) >= PAGE if links is None else links):
            return
        marker = {"marker": _marker(links) if links else items[-1]["id"]}


def _marker(links: Sequence[Mapping[str, str]]) -> str:
    """The marker in the link to the next page."""
    return dict(parse_qsl(urlsplit(links[0]["href"]).query))["marker"]


def search(
    transport: Transport,
    path: str,
    key: str,
    choose: Callable[[Sequence[dict[str, Any]]], str],
    params: Mapping[str, str | int] | None = None,
) -> str:
    """The id that `choose` picks from a listing of the caller's project.

    Where nothing there fits, operators get what it picks from the listing of all projects by an id
    or its beginning. Names and handles, which each project has its own, are looked for in the
    caller's project alone.

    Raises:
        Missing, Ambiguous: as `choose` says.
    """
    try:
        return choose(list(pages(transport, path, key, params)))
    except Missing as missing:
        try:
            every = list(pages(transport, path, key, {**(params or {}), "all_projects": "true"}))
        except Forbidden:
            raise missing from None
        return _by_id(every, missing, choose)


def _by_id(
    items: Sequence[dict[str, Any]],
    missing: Missing,
    choose: Callable[[Sequence[dict[str, Any]]], str],
) -> str:
    """What `choose` picks by ids alone; if nothing, `Missing` says whether one is called so.

    A wrong name must not act on another project's things.
    """
    try:
        return choose([{**one, "name": None, "handle": None} for one in items])
    except Missing:
        if any(missing.text in {one.get("name"), one.get("handle")} for one in items):
            raise Missing(missing.kind, f"{missing.text} {ELSEWHERE}") from None
        raise missing from None


def called(item: Mapping[str, Any], text: str, *, standing: bool = True) -> bool:
    """Whether a thing has this handle (`L3`), or has this name and is not over."""
    return text == item.get("handle") or (standing and text == item.get("name"))


def pick(kind: str, text: str, items: Iterable[Mapping[str, Any]]) -> str:
    """The id of the one thing that matches `text`: an id, a name, or an id's beginning.

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
        hint = did_you_mean(text, {str(one.get("name") or "") for one in everything})
        raise Missing(kind, text, hint or to_list(kind))
    if len(fitting) > 1:
        ids = tuple(str(item["id"]) for item in fitting)
        raise Ambiguous(kind, text, ids, tuple(map(with_marks, fitting)))
    return str(fitting[0]["id"])


_LISTED: Final = frozenset(
    {"decision", "ensemble", "explanation", "lease", "offer", "series", "subscription", "template"}
)
"""Kinds of things that are the nouns of commands."""


def to_list(kind: str) -> str:
    """How the things of a kind are listed, if a command does."""
    return f"; to see them: moorage {kind} list" if kind in _LISTED else ""


def with_marks(item: Mapping[str, Any]) -> str:
    """An id with its distinguishing marks: `1f2e… (L3, pending, from 2026-12-07T08:00:00Z)`."""
    said = marks(item)
    return f"{item['id']} ({said})" if said else str(item["id"])


def marks(item: Mapping[str, Any]) -> str:
    """The marks of a thing: `L3, pending, from 2026-12-07T08:00:00Z`, as far as it has them."""
    start = item.get("start")
    said = [item.get("handle"), item.get("status"), f"from {start}" if start else None]
    return ", ".join(str(one) for one in said if one)
