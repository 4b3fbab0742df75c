"""A request and the followed service's answer to it, without the caller's token."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from moorage.shadow.report import Example, timestamp

if TYPE_CHECKING:
    from collections.abc import Mapping

READ: Final = "GET"
WRITES: Final = frozenset({"POST", "PUT", "PATCH", "DELETE"})
KEPT: Final = (
    "HTTP_OPENSTACK_API_VERSION",
    "HTTP_ACCEPT",
    "HTTP_X_OPENSTACK_REQUEST_ID",
    "CONTENT_TYPE",
)
"""What of a request's headers decides its answer, by the names of WSGI. No token is among them."""


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer as it came: header names and values, and the whole body."""

    status: int
    reason: str
    headers: tuple[tuple[str, str], ...]
    body: bytes

    def header(self, name: str) -> str:
        """The value of a header; empty if there is none."""
        return next((value for key, value in self.headers if key.lower() == name), "")


@dataclass(frozen=True, slots=True)
class Exchange:
    """A request below the API's root, and its answer."""

    method: str
    path: str
    query: str
    body: bytes
    reply: Reply
    headers: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    """Those of `KEPT`."""
    overlapped: bool = False
    """Whether a write was under way at the same time, so that either order may be right."""
    number: int = 0
    """In the order in which exchanges were completed."""

    @property
    def writes(self) -> bool:
        """Whether it may have changed something."""
        return self.method in WRITES

    @property
    def size(self) -> int:
        """Bytes of its bodies."""
        return len(self.body) + len(self.reply.body)

    def example(self, detail: str) -> Example:
        """The request, for the report."""
        query = f"?{self.query}" if self.query else ""
        version = self.headers.get("HTTP_OPENSTACK_API_VERSION", "")
        return Example(timestamp(), self.method, self.path + query, version, detail)

    @property
    def request_id(self) -> str:
        """The id that the caller gave its work, as Nova does for a boot."""
        return self.headers.get("HTTP_X_OPENSTACK_REQUEST_ID", "")
