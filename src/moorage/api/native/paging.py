"""Listings: pages bounded in items and bytes, read and sent part by part.

What a listing holds in memory does not depend on its length: a few items are read, encoded and
sent, then the next few, as fast as the client takes them.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import islice
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, Generic, Protocol, TypeVar

import msgspec

from moorage.api.native.call import Reply
from moorage.domain.errors import NotFound

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from moorage.api.native.call import Call
    from moorage.usecases.paging import Page

T = TypeVar("T")


class HasId(Protocol):
    """An item with an id."""

    @property
    def id(self) -> str:
        """Its id."""


Named = TypeVar("Named", bound=HasId)

ENCODER: Final = msgspec.json.Encoder(order="deterministic")
_FIRST: Final = 4
"""Items of the first read, before their size is known."""
_AT_ONCE: Final = 256 * 1024
"""Approximate bytes of items per read."""
_MOST: Final = 500
"""Items per read at most."""
_TRIES: Final = 20
"""Markers that are tried when items are deleted during a listing."""
_NOTHING: Final[Mapping[str, object]] = MappingProxyType({})


SORT_KEYS: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "ensembles": ("name", "created_at", "project_id"),
        "decisions": ("created_at", "expires_at", "project_id"),
        "leases": ("name", "start", "end", "created_at", "project_id"),
        "offers": ("name", "start", "end", "created_at", "project_id"),
        "series": ("name", "created_at", "project_id"),
        "waitlist": ("priority", "created_at", "project_id"),
        "templates": ("name", "created_at", "project_id"),
        "explanations": ("computed_at", "stage", "project_id"),
    }
)
"""Listing to the fields by which it may be sorted (`sort_key`)."""


class Listing(Generic[T]):
    """A page of a collection, as JSON in parts."""

    def __init__(
        self,
        call: Call,
        path: str,
        read: Callable[[Page], Sequence[T]],
        shown: Callable[[Sequence[T]], Iterable[tuple[str, object]]],
    ) -> None:
        """The page that `call` asks for.

        Args:
            call: the request; its query says which page.
            path: where the collection is, for the link to the next page.
            read: the things of a page, in their order.
            shown: the marker and the view of each thing; things of one marker follow one another,
                and count as one.
        """
        self._call = call
        self._path = path
        self._read = read
        self._shown = shown
        self._page = call.page(SORT_KEYS.get(path, ()))
        self._left = call.env.limits.page_bytes
        self._markers: list[str] = []
        self._ended = False
        """Whether the page is complete."""
        self._goes_on = False
        """Whether there may be a next page."""

    def reply(
        self,
        key: str,
        more: Mapping[str, object] = _NOTHING,
        *,
        within: str | None = None,
        generation: int | None = None,
    ) -> Reply:
        """The items under `key`, the link to the next page, and further fields.

        All that is under `within`, if that is given. Errors of the first read are raised here.
        """
        parts = self._parts(key, self._chunk(_FIRST), more)
        if within is not None:
            parts = _enveloped(within, parts)
        return Reply(parts=parts, generation=generation)

    def _parts(self, key: str, some: list[bytes], more: Mapping[str, object]) -> Iterator[bytes]:
        yield b'{"%b":[' % key.encode()
        comma = b""
        while some:
            size = sum(map(len, some)) // len(some)
            for one in some:
                yield comma + one
                comma = b","
            rows = max(min(_AT_ONCE // max(size, 1), _MOST), 1)
            some = [] if self._ended else self._chunk(rows)
        links = []
        if self._goes_on:
            links = [self._call.next_link(self._path, self._markers[-1], self._page)]
        yield b"]," + ENCODER.encode({f"{key}_links": links, **more})[1:]

    def _chunk(self, rows: int) -> list[bytes]:
        """The next items as JSON; none once the page's bytes are used."""
        asked, fresh = min(rows, self._page.limit - len(self._markers)), 0
        told: list[bytes] = []
        for marker, view in self._shown(self._following(asked)):
            if self._markers[-1:] != [marker]:
                if self._left <= 0:
                    self._ended = self._goes_on = True
                    return told
                self._markers.append(marker)
                fresh += 1
            told.append(ENCODER.encode(view))
            self._left -= len(told[-1])
        self._goes_on = len(self._markers) >= self._page.limit
        self._ended = self._goes_on or fresh < asked
        return told

    def _following(self, limit: int) -> Sequence[T]:
        """The items after the last one sent; sent items may be deleted meanwhile."""
        for marker in self._markers[: -_TRIES - 1 : -1]:
            try:
                return self._read(replace(self._page, limit=limit, marker=marker))
            except NotFound:
                continue
        if self._markers:
            raise NotFound("marker", self._markers[-1])
        return self._read(replace(self._page, limit=limit))


def _enveloped(key: str, parts: Iterator[bytes]) -> Iterator[bytes]:
    yield b'{"%b":' % key.encode()
    yield from parts
    yield b"}"


def array(things: Iterable[object]) -> Iterator[bytes]:
    """All items as a JSON array, in parts."""
    rest = iter(things)
    opening = b"["
    while some := list(islice(rest, _MOST)):
        yield opening + ENCODER.encode(some)[1:-1]
        opening = b","
    yield b"[]" if opening == b"[" else b"]"


def of_sequence(
    things: Sequence[T], marker_of: Callable[[T], str]
) -> Callable[[Page], Sequence[T]]:
    """A reader of pages over a sequence in memory.

    Each marker is one thing's. NotFound where there is none.
    """
    places: dict[str, int] = {}

    def read(page: Page) -> Sequence[T]:
        start = 0
        if page.marker is not None:
            if not places:
                places.update((marker_of(one), place) for place, one in enumerate(things))
            if page.marker not in places:
                raise NotFound("marker", page.marker)
            start = places[page.marker] + 1
        return things[start : start + page.limit]

    return read


def listed(
    call: Call,
    key: str,
    read: Callable[[Page], Sequence[Named]],
    view: Callable[[Named], msgspec.Struct],
    more: Mapping[str, object] = _NOTHING,
    *,
    path: str = "",
) -> Reply:
    """A page of items with ids; see `Listing`. The key is their path by default."""

    def shown(found: Sequence[Named]) -> Iterator[tuple[str, msgspec.Struct]]:
        return ((one.id, view(one)) for one in found)

    return Listing(call, path or key, read, shown).reply(key, more)
