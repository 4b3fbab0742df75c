"""Owners' actions at the edges of a lease: a small grammar.

An action is a word, optionally with how long before its edge it is to be done: `notify`,
`notify:PT24H`, `release`, `delete`, `hook:grow-cluster`, `hook:save:30m`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Final

from moorage.domain.errors import InvalidDescription
from moorage.domain.period import HOUR, Duration, format_duration, parse_duration


class Edge(StrEnum):
    """The edges of a lease at which actions may be due."""

    ON_START = "on_start"
    """Its start: servers may be created from now on."""
    BEFORE_END = "before_end"
    """`BEFORE_END` before its end, or as long before it as the action says."""
    ON_END = "on_end"
    """Its end: what is still there is ended."""


class ActionKind(StrEnum):
    """The kinds of actions."""

    NOTIFY = "notify"
    """Notify the owner."""
    RELEASE = "release"
    """Free the unclaimed places."""
    DELETE = "delete"
    """Have the lease's servers deleted by the server deleter."""
    HOOK = "hook"
    """Run the operator's hook program with this name."""


BEFORE_END: Final[Duration] = HOUR
"""How long before the end `before_end` is, where the action does not say."""

MAX_ACTIONS: Final = 16
"""Actions of one edge."""

_HOOK_NAME: Final = re.compile(r"[a-z0-9][a-z0-9_.-]{0,63}", re.ASCII)
_AT_ANY_EDGE: Final = frozenset({ActionKind.NOTIFY, ActionKind.HOOK})


@dataclass(frozen=True, slots=True)
class Action:
    """An action due `before` an edge; `hook` names what the operator's program is to do."""

    kind: ActionKind
    before: Duration = 0
    hook: str = ""

    def __str__(self) -> str:
        parts = [self.kind.value, self.hook, format_duration(self.before) if self.before else ""]
        return ":".join(part for part in parts if part)


def read_action(text: str, edge: Edge) -> Action:
    """Read one action.

    Raises:
        InvalidDescription: an unknown word, a wrong name or duration, or an action that means
            nothing at this edge.
    """
    word, *rest = text.split(":")
    if word not in set(ActionKind):
        raise InvalidDescription(
            f"no such action: {text!r}; there are {', '.join(ActionKind)}", path=_path(edge)
        )
    kind, hook = ActionKind(word), ""
    if kind is ActionKind.HOOK:
        hook = rest.pop(0) if rest else ""
        if _HOOK_NAME.fullmatch(hook) is None:
            raise InvalidDescription(
                f"a hook has a name of lower-case letters, digits and . _ -: {text!r}",
                path=_path(edge),
            )
    if len(rest) > 1:
        raise InvalidDescription(f"not an action such as notify:PT24H: {text!r}", path=_path(edge))
    if edge is Edge.ON_START and kind not in _AT_ANY_EDGE:
        raise InvalidDescription(f"{kind} means nothing at a lease's start", path=_path(edge))
    default = BEFORE_END if edge is Edge.BEFORE_END else 0
    return Action(kind, _before(rest[0], edge) if rest else default, hook)


def _before(text: str, edge: Edge) -> Duration:
    try:
        return parse_duration(text)
    except InvalidDescription as error:
        raise InvalidDescription(error.message, path=_path(edge)) from error


def read_actions(actions: Mapping[str, object]) -> Mapping[str, tuple[str, ...]]:
    """Check the actions of a lease, edge by edge; equal ones count once.

    Raises:
        InvalidDescription: an unknown edge, what is not a list of words, too many of them, or
            what `read_action` refuses; `path` names the edge.
    """
    checked: dict[str, tuple[str, ...]] = {}
    for name, words in actions.items():
        if name not in set(Edge):
            raise InvalidDescription(
                f"no such edge: {name!r}; there are {', '.join(Edge)}", path="lease.actions"
            )
        edge = Edge(name)
        if not isinstance(words, Sequence) or isinstance(words, str):
            raise InvalidDescription("an edge has a list of actions", path=_path(edge))
        if len(words) > MAX_ACTIONS:
            raise InvalidDescription(f"an edge has at most {MAX_ACTIONS} actions", path=_path(edge))
        if not all(isinstance(word, str) for word in words):
            raise InvalidDescription("an action is a text", path=_path(edge))
        if wanted := tuple(dict.fromkeys(str(read_action(word, edge)) for word in words)):
            checked[name] = wanted
    return MappingProxyType(checked)


def actions_at(actions: Mapping[str, tuple[str, ...]], edge: Edge) -> tuple[Action, ...]:
    """The actions of an edge, of checked ones."""
    return tuple(read_action(word, edge) for word in actions.get(edge.value, ()))


def _path(edge: Edge) -> str:
    return f"lease.actions.{edge}"
