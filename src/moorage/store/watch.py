"""The interface for metrics and traces: called around commits and renewals of a snapshot."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")


class Watch(Protocol):
    """An onlooker. It returns what the work returns, and raises what the work raises."""

    def commit(self, work: Callable[[], T]) -> T:
        """One try to commit a changeset."""

    def refresh(self, work: Callable[[], T]) -> T:
        """The snapshot is brought up to date: it was behind."""
