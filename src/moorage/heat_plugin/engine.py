"""The convergence engine asks first, where its source has a TODO for lifecycle plug-ins.

`Stack.converge_stack` stores that a stack begins, and starts `_converge_create_or_update` in a
thread, which stores the resources and hands the first ones to the workers. The question comes at
that method's beginning: the stack's row is there, none of its resources is. What it raises is the
stack's failure, by Heat's own decorator. `mark_complete` is called once, by whichever worker
finishes last.
"""

from __future__ import annotations

import functools
import logging
from typing import TYPE_CHECKING

from heat.engine import stack as heat_stack
from heat.objects import stack as stored_stacks

if TYPE_CHECKING:
    from moorage.heat_plugin.stack_body import HeatStack
    from moorage.heat_plugin.stack_decision import StackDecisions

_log = logging.getLogger(__name__)


def install(decisions: StackDecisions) -> None:
    """Make the stacks of this process ask; once."""
    kind = heat_stack.Stack
    if hasattr(kind, "moorage_decisions"):
        return
    kind.moorage_decisions = decisions
    begin, complete = kind._converge_create_or_update, kind.mark_complete  # noqa: SLF001

    @functools.wraps(begin)
    def asking(stack: HeatStack, *given: object, **named: object) -> object:
        decisions.before(stack, stack.action)
        return begin(stack, *given, **named)

    @functools.wraps(complete)
    def telling(stack: HeatStack) -> object:
        decisions.after(stack, stack.action, functools.partial(_is_current, stack))
        return complete(stack)

    kind._converge_create_or_update = heat_stack.reset_state_on_error(asking)  # noqa: SLF001
    kind.mark_complete = telling
    _log.info("stacks ask Moorage before they act")


def _is_current(stack: HeatStack) -> bool:
    """Whether nothing else was begun with the stack since."""
    stored = stored_stacks.Stack.get_by_id(stack.context, stack.id, eager_load=False)
    return stored is not None and stored.current_traversal == stack.current_traversal
