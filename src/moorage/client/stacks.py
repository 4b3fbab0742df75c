"""Heat stacks: the ensemble of each has its id."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from moorage.client.resource import Resource
from moorage.wire.stacks import Stack

if TYPE_CHECKING:
    from collections.abc import Mapping

    from moorage.client.resource import Answer


class StackCalls(Resource):
    """`/v1/stacks`."""

    path, one = "/v1/stacks", "stack"

    def put(
        self, stack_id: str, stack: Mapping[str, Any], *, dry_run: bool = False
    ) -> Answer[Stack]:
        """Make a stack's ensemble equal to its template, decided and held."""
        path, body = f"/{stack_id}", {"stack": stack}
        return self._send("PUT", path, body, Stack, "stack", dry_run=dry_run)

    def show(self, stack_id: str) -> Answer[Stack]:
        """A stack's ensemble with its current decision."""
        return self._get(Stack, f"/{stack_id}")

    def delete(self, stack_id: str) -> None:
        """Release what is held for a stack, and forget its ensemble; its servers stay."""
        self._delete(f"/{stack_id}")
