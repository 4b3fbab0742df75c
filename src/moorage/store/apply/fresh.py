"""Which ids of what a changeset makes are taken: of several kinds, asked at one go.

A new thing's id must be free. One statement for each kind costs more than the answer is worth
where a changeset makes an ensemble, a decision, a lease and its effects together.
"""

from __future__ import annotations

from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import bindparam, literal_column, select, union_all

from moorage.domain.changes import (
    DeleteEnsemble,
    DropEffects,
    PutClaim,
    PutDecision,
    PutEffect,
    PutEnsemble,
    PutExplanation,
    PutLease,
)
from moorage.store import tables
from moorage.store.batch import only_chunk

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from sqlalchemy import CompoundSelect, Table

    from moorage.domain.changes import Change
    from moorage.store.batch import Batch

_TABLES: Final[Mapping[str, Table]] = MappingProxyType(
    {
        "ensemble": tables.ensembles,
        "decision": tables.decisions,
        "claim": tables.claims,
        "explanation": tables.explanations,
        "lease": tables.leases,
        "effect": tables.effects,
    }
)
_NEW: Final[Mapping[type, Callable[[Any], tuple[str, str | None]]]] = MappingProxyType(
    {
        PutEnsemble: lambda one: ("ensemble", _new(one.ensemble.id, one.generation)),
        PutDecision: lambda one: ("decision", _new(one.decision.id, one.generation)),
        PutClaim: lambda one: ("claim", _new(one.claim.id, one.expected_state)),
        PutExplanation: lambda one: ("explanation", one.explanation.id),
        PutLease: lambda one: ("lease", _new(one.lease.id, one.generation)),
        PutEffect: lambda one: ("effect", _new(one.effect.id, one.attempts)),
    }
)
"""Kind and id of what a change makes; no id where it changes what is there."""
_FREEING: Final = (DeleteEnsemble, DropEffects)
"""Changes after which an id may be free that was not before."""


def look_up(batch: Batch, every: Sequence[Change]) -> None:
    """Note which ids are taken, of each kind of which the changeset makes new ones."""
    wanted: dict[str, set[str]] = {}
    for change in every:
        if isinstance(change, _FREEING):
            return
        name = _NEW.get(type(change))
        if name is not None:
            kind, id_ = name(change)
            if id_ is not None:
                wanted.setdefault(kind, set()).add(id_)
    lists = {kind: some for kind, ids in wanted.items() for some in only_chunk(ids)}
    if len(lists) < _SEVERAL:
        return
    batch.taken = {kind: set() for kind in lists}
    for kind, id_ in batch.connection.execute(_taken(tuple(sorted(lists))), lists):
        batch.taken[kind].add(id_)


_SEVERAL: Final = 2


def _new(id_: str, expected: object) -> str | None:
    return id_ if expected is None else None


@cache
def _taken(kinds: tuple[str, ...]) -> CompoundSelect[Any]:
    """Worded once for each set of kinds."""
    return union_all(
        *(
            select(literal_column(f"'{kind}'").label("kind"), _TABLES[kind].c.id).where(
                _TABLES[kind].c.id.in_(bindparam(kind, expanding=True))
            )
            for kind in kinds
        )
    )
