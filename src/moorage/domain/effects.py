"""Effects: work that is due at an instant because of a decision or lease (ADR-0008).

An effect is written with the change that causes it, and carried out by whichever worker claims it
first: at least once, and idempotent by its id. Its life is the table `EFFECT_TABLE`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import Final
from uuid import UUID, uuid5

from moorage.domain.errors import WrongState
from moorage.domain.period import Instant


class EffectKind(StrEnum):
    """What an effect does."""

    EXPIRE = "expire"
    """An offer expires without having been accepted."""
    PREPARE = "prepare"
    """A lease's lead begins: it becomes starting, and is bound."""
    ACTIVATE = "activate"
    """A lease's start has come."""
    END = "end"
    """A lease's end has come."""
    CLOSE = "close"
    """A lease's cleaning is over."""
    WARN = "warn"
    """Notify the owner of a preemptible server that it will be evicted, and when."""
    REPRIEVE = "reprieve"
    """Notify the owner of a warned server that it may stay after all, or longer."""
    OVERRUN = "overrun"
    """Notify owner and operator that a server has outlived its declared end."""
    NOTIFY = "notify"
    """Notify a lease's owner of an edge."""
    ENDED = "ended"
    """Notify the operator's own check of the end of a lease that it allowed."""
    RELEASE = "release"
    """Free the unclaimed places of a lease."""
    ACT = "act"
    """Run an action that a lease's owner wants before an edge."""
    HOOK = "hook"
    """Run the operator's hook that a lease's owner named."""
    EVICT = "evict"
    """Evict a preemptible server that yields to a lease."""
    REPLACE = "replace"
    """Place members anew that lost held places because their host was removed."""
    PLACE_ANEW = "place anew"
    """Place a held member on another host, after its server was deleted."""
    DELETE = "delete"
    """Have a server deleted by the configured server deleter: Nova or a webhook."""
    CREATE_FLAVORS = "create flavors"
    """Create the ticket flavors of a held decision in Nova."""
    DELETE_FLAVORS = "delete flavors"
    """Delete them: nothing is held for the ticket any more."""


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
"""Effects that follow from a lease's terms: deleted and written anew when the terms change.

All others report facts, which must be delivered whatever happens to the lease afterwards.
"""


class Lane(StrEnum):
    """The executor of an effect; no lane waits for another."""

    LIFE = "life"
    """The service itself, in the ledger."""
    TELL = "tell"
    """The recipients of notices: webhook and subscribers."""
    END = "end"
    """The server deleter."""
    HOOK = "hook"
    """The operator's program."""
    CHECK = "check"
    """The operator's own check of leases."""
    FLAVOR = "flavor"
    """Nova, for flavors."""


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
        EffectKind.CREATE_FLAVORS: Lane.FLAVOR,
        EffectKind.DELETE_FLAVORS: Lane.FLAVOR,
    }
)

EVICTION: Final = "it yields to a lease"
"""Why a preemptible server is ended when its time has come."""

ENDED: Final = "ended_here"
"""The detail of a deletion that says that the server deleter has done it."""

_FACTS: Final = UUID("6f1f2f0e-6f0b-4c43-9a51-0d0c9b2a4b57")


def fact_id(*words: object) -> str:
    """The deterministic id of a fact that is reported once: the same words give the same id."""
    return str(uuid5(_FACTS, "\n".join(map(str, words))))


class EffectState(StrEnum):
    """`pending -> done`, or given up."""

    PENDING = "pending"
    DONE = "done"
    FAILED = "failed"


class EffectStep(StrEnum):
    """The steps of an effect's lifecycle."""

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
    """Work that is due at an instant."""

    id: str
    kind: EffectKind
    subject: str
    """The lease's id, the ensemble's, the ticket, or the consumer it is about."""
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
    """Its result, or why the last attempt failed."""
    created_at: Instant = 0
    updated_at: Instant = 0
