"""Plans: ordered moves of servers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from moorage.client import lookup
from moorage.client.resource import Resource
from moorage.wire.plans import Plan, PlanSummary

if TYPE_CHECKING:
    from collections.abc import Mapping

    from moorage.client.lookup import Part
    from moorage.client.resource import Answer


class PlanCalls(Resource):
    """`/v1/plans`."""

    path, one, many = "/v1/plans", "plan", "plans"

    def _search(self, text: str, **params: str) -> str:
        """The id for the beginning of one: plans have no names, and are of no project."""
        items = lookup.pages(self._transport, self.path, self.many, params)
        return lookup.pick("plan", text, [{"name": "", **one} for one in items])

    def create(self, plan: Mapping[str, Any], *, dry_run: bool = False) -> Answer[Plan]:
        """Make a plan."""
        return self._send("POST", "", {"plan": plan}, Plan, "plan", dry_run=dry_run)

    def all(
        self, *, state: str | None = None, kind: str | None = None, part: Part = lookup.WHOLE
    ) -> Answer[list[PlanSummary]]:
        """Plans, newest first."""
        return self._all(PlanSummary, part=part, state=state, kind=kind)

    def show(self, plan_id: str) -> Answer[Plan]:
        """One plan with its moves."""
        return self._get(Plan, f"/{plan_id}")

    def apply(self, plan_id: str) -> Answer[Plan]:
        """Let its moves begin."""
        return self._send("POST", f"/{plan_id}/apply", {}, Plan, "plan")

    def pause(self, plan_id: str) -> Answer[Plan]:
        """Let no further move begin until it is applied again."""
        return self._send("POST", f"/{plan_id}/pause", {}, Plan, "plan")

    def cancel(self, plan_id: str) -> Answer[Plan]:
        """Let no further move begin, for good."""
        return self._send("POST", f"/{plan_id}/cancel", {}, Plan, "plan")

    def delete(self, plan_id: str) -> None:
        """Delete it."""
        self._delete(f"/{plan_id}")
