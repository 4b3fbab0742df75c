"""Heat's lifecycle plug-in, by whose entry point Heat loads the package.

Its methods serve the engine without convergence; the engine with convergence does not call
lifecycle plug-ins and is given the same questions by `engine`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from heat.engine import lifecycle_plugin

from moorage.heat_plugin import engine, options
from moorage.heat_plugin.stack_decision import StackDecisions

if TYPE_CHECKING:
    from moorage.heat_plugin.stack_body import HeatStack

_decisions = StackDecisions(options.read())
engine.install(_decisions)


class MoorageLifecycle(lifecycle_plugin.LifecyclePlugin):  # type: ignore[misc]
    """Asks Moorage before a stack acts, and tells it when the stack has."""

    def do_pre_op(
        self,
        cnxt: object,  # noqa: ARG002 - Heat's own
        stack: HeatStack,
        current_stack: HeatStack = None,
        action: str | None = None,
    ) -> None:
        """Ask; `current_stack` is what a stack shall become.

        Raises:
            StackRefused: the stack must not act.
        """
        if not stack.convergence:
            _decisions.before(stack, action or stack.action, current_stack)

    def do_post_op(
        self,
        cnxt: object,  # noqa: ARG002 - Heat's own
        stack: HeatStack,
        current_stack: HeatStack = None,  # noqa: ARG002
        action: str | None = None,
        is_stack_failure: bool | None = None,  # noqa: ARG002, FBT001 - Heat always says None
    ) -> None:
        """Tell, if the stack has done what it should."""
        if not stack.convergence and stack.status == stack.COMPLETE:
            _decisions.after(stack, action or stack.action, lambda: True)
