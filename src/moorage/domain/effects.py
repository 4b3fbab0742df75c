"""Effects: what must happen at an instant because something was decided (ADR-0008).

An effect is written with the change that causes it, and carried out by whichever worker claims it
first: at least once, and idempotent by its id. Its life is the table `EFFECT_TABLE`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING, Final
from uuid import UUID, uuid5

from moorage.domain.errors import WrongState

if TYPE_CHECKING:
    from collections.abc import Mapping

    from moorage.domain.period import Instant


class EffectKind(StrEnum):
    """What is to be done."""

    EXPIRE = "expire"
    """An offer that nobody has accepted is over."""
    PREPARE = "prepare"
    """A lease's lead begins: it becomes starting, and is bound."""
    ACTIVATE = "activate"
    """A lease's start has come."""
    END = "end"
    """A lease's end has come."""
    CLOSE = "close"
    """A lease's cleaning is over."""
    WARN = "warn"
    """Tell the owner of a preemptible server that it will be evicted, and when."""
    REPRIEVE = "reprieve"
    """Tell the owner of a server that was warned that it may stay after all, or longer."""
    OVERRUN = "overrun"
    """A declared end has passed, and the server is there still: owner and operator are told."""
    NOTIFY = "notify"
    """Tell a lease's owner of an edge."""
    ENDED = "ended"
    """Tell the operator's own check that a lease has ended which it allowed."""
    RELEASE = "release"
    """Free what of a lease nobody has claimed."""
    ACT = "act"
    """An action that a lease's owner wants done before an edge is due."""
    HOOK = "hook"
    """Have the operator's hook do what a lease's owner named."""
    EVICT = "evict"
    """The end of a preemptible server has come that yields to a lease."""
    DELETE = "delete"
    """Have a server ended by whoever ends servers here."""


TIMERS: Final = frozenset(
    {
        EffectKind.EXPIRE,
        EffectKind.PREPARE,
        EffectKind.ACTIVATE,
        EffectKind.END,
        EffectKind.CLOSE,
        EffectKind.RELEASE,
        EffectKind.ACT,
    }
)
"""What follows from a lease's terms: forgotten and written anew when they change.

All others are facts that somebody must hear of, whatever happens to the lease afterwards.
"""


class Lane(StrEnum):
    """Who carries an effect out: one lane never waits for another."""

    LIFE = "life"
    """The service itself, in the ledger."""
    TELL = "tell"
    """Whoever is told."""
    END = "end"
    """Whoever ends servers."""
    HOOK = "hook"
    """The operator's program."""
    CHECK = "check"
    """The operator's own check of leases."""


LANES: Final[Mapping[EffectKind, Lane]] = MappingProxyType(
    {
        **dict.fromkeys(EffectKind, Lane.LIFE),
        EffectKind.NOTIFY: Lane.TELL,
        EffectKind.WARN: Lane.TELL,
        EffectKind.REPRIEVE: Lane.TELL,
        EffectKind.OVERRUN: Lane.TELL,
        EffectKind.DELETE: Lane.END,
        EffectKind.HOOK: Lane.HOOK,
        EffectKind.ENDED: Lane.CHECK,
    }
)

EVICTION: Final = "it yields to a lease"
"""Why a preemptible server is ended when its time has come."""

ENDED: Final = "ended_here"
"""The detail of a deletion that says that whoever ends servers here has done it."""

_FACTS: Final = UUID("6f1f2f0e-6f0b-4c43-9a51-0d0c9b2a4b57")


def fact_id(*words: object) -> str:
    """The id of what is to be said once: the same words give the same id, everywhere."""
    return str(uuid5(_FACTS, "\n".join(map(str, words))))


class EffectState(StrEnum):
    """`pending -> done`, or given up."""

    PENDING = "pending"
    DONE = "done"
    FAILED = "failed"


class EffectStep(StrEnum):
    """What may happen to an effect."""

    RETRY = "retry"
    """A worker takes it on, or puts it off after a failure."""
    FINISH = "finish"
    GIVE_UP = "give up"


EFFECT_TABLE: Final[Mapping[tuple[EffectState, EffectStep], EffectState]] = MappingProxyType(
    {
        (EffectState.PENDING, EffectStep.RETRY): EffectState.PENDING,
        (EffectState.PENDING, EffectStep.FINISH): EffectState.DONE,
        (EffectState.PENDING, EffectStep.GIVE_UP): EffectState.FAILED,
    }
)


def effect_after(state: EffectState, step: EffectStep) -> EffectState:
    """The state after a step.

    Raises:
        WrongState: the table has no such step from `state`.
    """
    try:
        return EFFECT_TABLE[state, step]
    except KeyError:
        raise WrongState(f"cannot {step} an effect that is {state}") from None


@dataclass(frozen=True, slots=True)
class Effect:
    """Something to be done once `due`."""

    id: str
    kind: EffectKind
    subject: str
    """The lease's id, or the consumer it is about."""
    project_id: str
    due: Instant
    """When it is to be done."""
    not_before: Instant
    """When a worker may next take it on: `due`, or later after a failure or while one tries."""
    state: EffectState = EffectState.PENDING
    attempts: int = 0
    details: Mapping[str, object] = field(default_factory=lambda: MappingProxyType({}))
    """What the kind needs to know, as JSON values."""
    outcome: str = ""
    """What came of it, or why the last attempt failed."""
    created_at: Instant = 0
    updated_at: Instant = 0
