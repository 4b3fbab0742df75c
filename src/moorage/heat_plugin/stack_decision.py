"""What a stack asks of Moorage before it acts, and what it says when it has.

Only root stacks ask: nested ones are part of the root's decision.
"""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING, Any, Final

from moorage.heat_plugin.native_api import NativeApi, Refused, Unanswered
from moorage.heat_plugin.options import ADVISE, ANNOTATED, OFF, ORDINARY
from moorage.heat_plugin.stack_body import (
    adopted_servers,
    is_annotated,
    present_servers,
    stack_body,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from moorage.heat_plugin.options import Settings
    from moorage.heat_plugin.stack_body import HeatStack

CHANGING: Final = frozenset({"CREATE", "ADOPT", "UPDATE", "ROLLBACK", "RESTORE"})
DELETE: Final = "DELETE"
PAUSES: Final = (1.0, 4.0, 15.0)
"""Seconds between the attempts to say what a stack has done."""
_log = logging.getLogger(__name__)


class StackRefused(Exception):
    """The stack does not act; the message is the reason of its failure."""


class StackDecisions:
    """Asks for stacks as the operator has set it."""

    def __init__(self, settings: Settings, pauses: tuple[float, ...] = PAUSES) -> None:
        self._settings = settings
        self._pauses = pauses

    def before(self, stack: HeatStack, action: str, described: HeatStack = None) -> None:
        """Ask for the places of a stack's servers.

        `described` is the stack as it shall be; by default `stack` is that itself.

        Raises:
            StackRefused: it must not act.
        """
        if self._is_silent(stack) or action not in CHANGING:
            return
        described = stack if described is None else described
        found = adopted_servers(stack.adopt_stack_data) if action == "ADOPT" else ()
        servers = dict(found or present_servers(stack))
        body = stack_body(stack, described, servers, self._settings.hold)
        api = NativeApi(self._settings, stack.context)
        if self._settings.stacks == ADVISE:
            self._advise(api, stack, body)
        elif self._settings.stacks == ANNOTATED and not is_annotated(body):
            if action not in {"CREATE", "ADOPT"}:
                _without_failure(lambda: api.forget_stack(stack.id), stack, ())
        else:
            self._decide(api, stack, body)

    def after(self, stack: HeatStack, action: str, is_current: Callable[[], bool]) -> None:
        """Say that a stack has acted; places that it did not need become free.

        `is_current` tells whether the stack has not begun something else meanwhile.
        """
        if self._is_silent(stack):
            return
        # A stack may have been decided before the operator chose `advise`.
        if self._settings.stacks == ADVISE and action != DELETE:
            return
        api = NativeApi(self._settings, stack.context)
        if action == DELETE or (action in CHANGING and not stack.t.t.get("resources")):
            if is_current():
                _without_failure(lambda: api.forget_stack(stack.id), stack, self._pauses)
        elif action in CHANGING:
            _without_failure(lambda: _confirm(api, stack, is_current), stack, self._pauses)

    def _is_silent(self, stack: HeatStack) -> bool:
        return self._settings.stacks == OFF or bool(stack.owner_id)

    def _decide(self, api: NativeApi, stack: HeatStack, body: dict[str, Any]) -> None:
        try:
            answer = api.put_stack(stack.id, body)
        except Refused as refusal:
            raise StackRefused(f"Moorage: {refusal}") from refusal
        except Unanswered as error:
            _log.warning("Moorage does not answer for stack %s: %s", stack.id, error)
            if self._settings.failure_mode != ORDINARY:
                text = "Moorage, which decides where its servers go, does not answer; try again"
                raise StackRefused(text) from error
            note(stack, "Moorage does not answer: Nova finds hosts one server at a time")
        else:
            note(stack, _told(answer))

    @staticmethod
    def _advise(api: NativeApi, stack: HeatStack, body: dict[str, Any]) -> None:
        try:
            api.put_stack(stack.id, body, dry_run=True)
        except Refused as refusal:
            note(stack, f"Moorage would refuse this: {refusal}")
        except Unanswered as error:
            _log.warning("Moorage does not answer for stack %s: %s", stack.id, error)
            note(stack, "Moorage does not answer, and would be asked")
        else:
            note(stack, "Moorage would place all servers of this stack")


def _without_failure(call: Callable[[], None], stack: HeatStack, pauses: tuple[float, ...]) -> None:
    """Call, again after each pause while there is no answer; what is held has an end of its own."""
    for pause in (*pauses, None):
        try:
            call()
        except Refused as refusal:
            _log_kept(stack, refusal)
        except Unanswered as error:
            if pause is not None:
                time.sleep(pause)
                continue
            _log_kept(stack, error)
        return


def _log_kept(stack: HeatStack, error: Exception) -> None:
    _log.warning(
        "what is held for stack %s stays until its end, or until `moorage ensemble delete %s`: %s",
        stack.id,
        stack.id,
        error,
    )


def note(stack: HeatStack, text: str) -> None:
    """Write an event of a stack."""
    _log.info("stack %s: %s", stack.id, text)
    stack._add_event(stack.action, stack.status, text)  # noqa: SLF001 - Heat has no other way


def _confirm(api: NativeApi, stack: HeatStack, is_current: Callable[[], bool]) -> None:
    """Confirm the decision of what the stack has done, and of nothing that it began later.

    A stack stores that it begins before it asks: a decision that was read while the stack had not
    begun anything else is its own.
    """
    found = api.stack(stack.id)
    decision = (found or {}).get("decision")
    if decision and decision.get("status") == "held" and is_current():
        api.confirm(str(decision["id"]))


def _told(answer: dict[str, Any]) -> str:
    """What was decided, in words."""
    count = len(answer.get("keys") or ())
    if not count:
        return "Moorage: no server of this stack needs a place"
    servers = "1 server" if count == 1 else f"{count} servers"
    return f"Moorage holds the places of {servers}: decision {(answer['decision'] or {}).get('id')}"
