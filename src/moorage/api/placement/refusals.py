"""Refusals by HTTP or by the dialect's grammar, before any use case."""

from __future__ import annotations

from typing import Final

from moorage.domain.errors import InvalidDescription

UNDEFINED: Final = "placement.undefined_code"
CONCURRENT_UPDATE: Final = "placement.concurrent_update"
INVENTORY_IN_USE: Final = "placement.inventory.inuse"
DUPLICATE_NAME: Final = "placement.duplicate_name"
PROVIDER_IN_USE: Final = "placement.resource_provider.inuse"
HAS_CHILDREN: Final = "placement.resource_provider.cannot_delete_parent"
PROVIDER_NOT_FOUND: Final = "placement.resource_provider.not_found"
DUPLICATE_KEY: Final = "placement.query.duplicate_key"
BAD_VALUE: Final = "placement.query.bad_value"
MISSING_VALUE: Final = "placement.query.missing_value"


class Refusal(Exception):
    """An error answer that is decided outside the use cases."""

    def __init__(
        self,
        status: int,
        message: str,
        *,
        allow: str | None = None,
        code: str = UNDEFINED,
        retry_after: int | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.allow = allow
        self.code = code
        self.retry_after = retry_after
        """In how many seconds to ask again, where that helps."""


class BadQuery(InvalidDescription):
    """A query parameter breaks the grammar; `code` is the wire's error code."""

    def __init__(self, message: str, *, code: str = UNDEFINED) -> None:
        super().__init__(message)
        self.code = code
