"""Answers of the service: decoded, and as JSON."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import msgspec

from moorage.client.errors import UnknownAnswer

if TYPE_CHECKING:
    from collections.abc import Iterable

    from moorage.client.transport import Reply

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


def listed(pages: Iterable[Reply], key: str, kind: type[T]) -> Answer[T]:
    """All pages of a listing as one answer, with the service's time at the last. As `converted`."""
    every = list(pages)
    items = [one for page in every for one in page.body[key]]
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
