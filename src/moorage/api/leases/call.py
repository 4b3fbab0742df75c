"""One request as handlers see it, and their reply. No framework here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeAlias

from moorage.domain.errors import InvalidDescription
from moorage.usecases.ports import Page

if TYPE_CHECKING:
    from moorage.http.microversion import Spoken
    from moorage.usecases.parts import Parts
    from moorage.usecases.ports import Caller


@dataclass(frozen=True, slots=True)
class Call:
    """A request that passed routing, version and access rules."""

    parts: Parts
    caller: Caller
    spoken: Spoken
    path: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    query: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    body: Any = None
    """Decoded JSON; None without any."""

    def has(self, feature: str) -> bool:
        """Whether the request speaks a version that has the feature."""
        return self.spoken.has(feature)

    def object(self) -> Mapping[str, Any]:
        """The body, which must be an object.

        Raises:
            InvalidDescription: it is none.
        """
        if not isinstance(self.body, dict):
            raise InvalidDescription("The request's body must be a JSON object")
        return self.body

    def page(self) -> Page:
        """The page asked for.

        Raises:
            InvalidDescription: `limit` is no positive number.
        """
        most = self.parts.limits.page
        text = self.query.get("limit", str(most))
        if not (text.isascii() and text.isdigit() and int(text[:9]) > 0):
            raise InvalidDescription(f"limit is a positive number, not {text!r}")
        return Page(limit=min(int(text[:9]), most), marker=self.query.get("marker"))


@dataclass(frozen=True, slots=True)
class Reply:
    """What a handler answers: a JSON value, or nothing with 204."""

    body: Any
    status: int = 200


Handler: TypeAlias = Callable[[Call], Reply]
