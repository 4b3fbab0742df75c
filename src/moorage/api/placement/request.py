"""A parsed, versioned and authenticated request, as handlers get it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from moorage.api.placement import validation

if TYPE_CHECKING:
    from collections.abc import Mapping

    from moorage.api.placement.fragments import Fragments
    from moorage.engine.candidates.limit import CandidateLimit
    from moorage.http.microversion import JSON, NegotiatedVersion
    from moorage.usecases.ports import Caller, Ids, Store
    from moorage.usecases.shared.allocation_write import WriteSettings


class Environment(Protocol):
    """What handlers may use besides the request."""

    @property
    def store(self) -> Store:
        """The ledger."""

    @property
    def ids(self) -> Ids:
        """The source of new UUIDs."""

    @property
    def summaries(self) -> Fragments:
        """Encoded provider summaries."""

    @property
    def summaries_with_terms(self) -> Fragments:
        """Encoded provider summaries for requests with a class of terms."""

    @property
    def settings(self) -> WriteSettings:
        """How writes of allocations are judged, with the default lifetimes of consumers."""

    @property
    def candidates(self) -> CandidateLimit:
        """How answers with allocation candidates are bounded."""

    def shapes(self, mount: str) -> Fragments:
        """Encoded providers, as the newest version shows them below a mount point."""


@dataclass(frozen=True, slots=True)
class Request:
    """A request that has found its route. Paths and queries are decoded text."""

    operation: str
    negotiated: NegotiatedVersion
    path: Mapping[str, str]
    query: tuple[tuple[str, str], ...]
    raw: bytes
    mount: str
    """The dialect's mount point, prefix of every path it shows; empty at the top."""
    caller: Caller | None = None
    global_request_id: str | None = None
    """The id of the request that the client itself serves; it may present a claim."""

    def has(self, feature: str) -> bool:
        """Whether the client's microversion has the feature."""
        return self.negotiated.has(feature)

    def json(self) -> JSON:
        """The decoded body, valid by the schema of the client's version, in the newest shape.

        Raises:
            InvalidDescription: no JSON, or not what the schema asks.
        """
        decoded = validation.decoded(self.raw)
        validation.check_body(self.operation, self.negotiated, decoded)
        newest = not self.negotiated.missing
        return decoded if newest else self.negotiated.lifted(self.operation, decoded)

    def values(self, key: str) -> list[str]:
        """Every value of a query parameter, in order."""
        return [value for name, value in self.query if name == key]

    def value(self, key: str) -> str | None:
        """The value of a query parameter; the last one when it is repeated."""
        for name, value in reversed(self.query):
            if name == key:
                return value
        return None
