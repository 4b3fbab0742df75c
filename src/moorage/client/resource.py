"""A resource of the API: its path, the keys of its bodies, and the calls that all of them share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

import msgspec

from moorage.client import lookup
from moorage.client.errors import UnknownAnswer
from moorage.client.lookup import WHOLE

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from moorage.client.lookup import Part
    from moorage.client.transport import Reply, Transport

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Answer(Generic[T]):
    """An answer, decoded into a struct of `moorage.wire` and as JSON."""

    value: T
    body: Any
    request_id: str = ""


def answer(reply: Reply, key: str, kind: type[T]) -> Answer[T]:
    """Decode the value under a key of a reply. Raises as `converted`."""
    return Answer(converted(reply.body[key], kind), reply.body, reply.request_id)


def whole(reply: Reply, kind: type[T]) -> Answer[T]:
    """Decode a whole reply. Raises as `converted`."""
    return Answer(converted(reply.body, kind), reply.body, reply.request_id)


def listed(pages: Iterable[Reply], key: str, kind: type[T], most: int | None = None) -> Answer[T]:
    """The pages of a listing as one answer, with the service's time at the last. As `converted`.

    All of them, or as many as have so many items.
    """
    every: list[Reply] = []
    items: list[Any] = []
    for page in pages:
        every.append(page)
        items += page.body[key]
        if most is not None and len(items) >= most:
            del items[most:]
            break
    body = {key: items, "computed_at": every[-1].body["computed_at"]}
    value = converted(body | {f"{key}_links": []}, kind)
    return Answer(value, body, every[-1].request_id)


def converted(body: object, kind: type[T]) -> T:
    """A part of an answer as a struct; fields that a newer service adds are passed over.

    Raises:
        UnknownAnswer: it has another form.
    """
    try:
        return msgspec.convert(body, kind, strict=False)
    except msgspec.ValidationError as error:
        raise UnknownAnswer(str(error)) from error


class Resource:
    """Calls of one path by one caller. In queries None is left out, and true is `true`."""

    path: ClassVar[str]
    one: ClassVar[str] = ""
    """The key of one of them in bodies."""
    many: ClassVar[str] = ""
    """The key of a listing."""
    noun: ClassVar[str] = ""
    """Its name in errors."""

    def __init__(self, transport: Transport) -> None:
        self._call = transport.call
        self._transport = transport

    def find(self, text: str) -> str:
        """The id for an id, a handle, a name or an id's beginning.

        A name means the one that is in force, where others that were called so are over.

        Raises:
            Missing, Ambiguous: nothing fits, or several do.
        """
        return text if lookup.UUID.fullmatch(text) else self._search(text)

    def _search(self, text: str, **params: str) -> str:
        def choose(items: Sequence[dict[str, Any]]) -> str:
            in_force = [
                one for one in items if lookup.called(one, text, standing=self._in_force(one))
            ]
            return lookup.pick(self.noun or self.one, text, in_force or items)

        return lookup.search(self._transport, self.path, self.many, choose, params)

    def _in_force(self, item: Mapping[str, Any]) -> bool:  # noqa: ARG002 - some are over
        """Whether it is not over; then its name goes before those of others."""
        return True

    def _get(
        self, kind: type[T], path: str = "", key: str | None = "", **query: object
    ) -> Answer[T]:
        """Read what is under a key: that of one by default, None for the whole body."""
        return self._decoded(self._call("GET", self.path + path, params=_query(query)), kind, key)

    def _send(
        self,
        method: str,
        path: str,
        body: Mapping[str, object],
        kind: type[T],
        key: str | None = None,
        /,
        **query: object,
    ) -> Answer[T]:
        """Send a body; as `_get`, with the whole body of the answer by default."""
        reply = self._call(method, self.path + path, body=body, params=_query(query))
        return self._decoded(reply, kind, key)

    def _delete(self, path: str, *, generation: int | None = None, **query: object) -> Reply:
        """Delete it, if the generation is unchanged."""
        headers = None if generation is None else {"If-Match": f'"{generation}"'}
        return self._call("DELETE", self.path + path, params=_query(query), headers=headers)

    def _decoded(self, reply: Reply, kind: type[T], key: str | None) -> Answer[T]:
        body = reply.body if key is None else reply.body[key or self.one]
        return Answer(converted(body, kind), reply.body, reply.request_id)

    def _all(
        self,
        item: type[T],
        path: str = "",
        key: str = "",
        *,
        part: Part = WHOLE,
        **query: object,
    ) -> Answer[list[T]]:
        """The items of a listing: all of them, or a part."""
        key = key or self.many
        found = [*lookup.pages(self._transport, self.path + path, key, _query(query), part)]
        return Answer([converted(one, item) for one in found], {key: found})

    def _each(self, item: type[T], path: str = "", key: str = "", **query: object) -> Iterator[T]:
        """The items of a listing, page after page as they are asked for."""
        key = key or self.many
        for one in lookup.pages(self._transport, self.path + path, key, _query(query)):
            yield converted(one, item)

    def _listed(self, kind: type[T], *, part: Part = WHOLE, **query: object) -> Answer[T]:
        """The items of a listing, all or a part of them, with the service's time."""
        asked = _query(query) | part.query
        pages = lookup.replies(self._call, self.path, self.many, asked)
        return listed(pages, self.many, kind, part.most)


def _query(given: Mapping[str, object]) -> dict[str, str | int]:
    """The parameters of a query: what is None, false or empty is left out."""
    said = {name: "true" if value is True else value for name, value in given.items()}
    return {
        name: value if isinstance(value, int) else str(value)
        for name, value in said.items()
        if value is not None and value is not False and value != ""
    }
