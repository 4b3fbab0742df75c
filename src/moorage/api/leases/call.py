"""A request as handlers get it, and their reply; independent of the framework."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeAlias

from moorage.domain.errors import InvalidDescription
from moorage.usecases.paging import Page

if TYPE_CHECKING:
    from moorage.http.microversion import NegotiatedVersion
    from moorage.usecases.environment import UseCaseEnvironment
    from moorage.usecases.ports import Caller


@dataclass(frozen=True, slots=True)
class Call:
    """A request that passed routing, version and access rules."""

    env: UseCaseEnvironment
    caller: Caller
    negotiated: NegotiatedVersion
    path: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    query: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    body: Any = None
    """Decoded JSON; None without any."""

    def has(self, feature: str) -> bool:
        """Whether the request speaks a version that has the feature."""
        return self.negotiated.has(feature)

    def object(self) -> Mapping[str, Any]:
        """The body, which must be an object.

        Raises:
            InvalidDescription: it is none.
        """
        if not isinstance(self.body, dict):
            raise InvalidDescription("The request's body must be a JSON object")
        return self.body

    def page(self) -> Page:
        """The requested page.

        Raises:
            InvalidDescription: `limit` is no positive number.
        """
        most = self.env.limits.page
        text = self.query.get("limit", str(most))
        if not (text.isascii() and text.isdigit() and int(text[:9]) > 0):
            raise InvalidDescription(f"limit is a positive number, not {text!r}")
        return Page(limit=min(int(text[:9]), most), marker=self.query.get("marker"))


@dataclass(frozen=True, slots=True)
class Collection:
    """An answer with one list, whose items are made as they are sent."""

    key: str
    items: Iterable[Any]

    def parts(self) -> Iterator[bytes]:
        """Its JSON, item by item."""
        yield json.dumps({self.key: []}).encode()[:-2]
        for number, one in enumerate(self.items):
            text = json.dumps(one, ensure_ascii=False)
            yield (f", {text}" if number else text).encode()
        yield b"]}"


@dataclass(frozen=True, slots=True)
class Reply:
    """A handler's reply: a JSON value, a collection, or nothing with 204."""

    body: Any
    status: int = 200


Handler: TypeAlias = Callable[[Call], Reply]
