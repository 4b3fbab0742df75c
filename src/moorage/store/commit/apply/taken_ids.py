"""Looks up which ids of new things are taken, of several kinds in one query.

With them comes the last serial of the leases of a project, where the changeset makes some.

A new thing's id must be free. One statement for each kind costs more than the answer is worth
where a changeset makes an ensemble, a decision, a lease and its effects together.
"""

from __future__ import annotations

from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, TypeGuard

from sqlalchemy import String, bindparam, cast, func, literal_column, select, union_all

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
from moorage.store.database.statements import only_chunk
from moorage.store.schema import tables

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from sqlalchemy import CompoundSelect, Label, Select, Table

    from moorage.domain.changes import Change
    from moorage.store.commit.batch import Batch

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
KINDS: Final = frozenset(_NEW)
"""Kinds of changes that make something with an id."""
_SERIAL: Final = "serial"
_FREEING: Final = (DeleteEnsemble, DropEffects)
"""Changes after which an id may be free that was not before."""


def note_taken_ids(batch: Batch, every: Sequence[Change]) -> None:
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
    lessees = {one.lease.project_id for one in every if _is_new_lease(one)}
    if len(lessees) == 1:
        lists[_SERIAL] = list(lessees)
    for kind, found in batch.connection.execute(_taken(tuple(sorted(lists))), lists):
        if kind == _SERIAL:
            batch.last_serials[lists[_SERIAL][0]] = int(found or 0)
        else:
            batch.taken[kind].add(found)


_SEVERAL: Final = 2


def _is_new_lease(change: Change) -> TypeGuard[PutLease]:
    return isinstance(change, PutLease) and change.generation is None


def _new(id_: str, expected: object) -> str | None:
    return id_ if expected is None else None


@cache
def _taken(kinds: tuple[str, ...]) -> CompoundSelect[Any]:
    """Worded once for each set of kinds."""
    return union_all(*(_last_serial() if kind == _SERIAL else _taken_of(kind) for kind in kinds))


def _taken_of(kind: str) -> Select[Any]:
    ids = _TABLES[kind].c.id
    return _told(kind, ids).where(ids.in_(bindparam(kind, expanding=True)))


def _last_serial() -> Select[Any]:
    leases = tables.leases.c
    project = leases.project_id.in_(bindparam(_SERIAL, expanding=True))
    return _told(_SERIAL, cast(func.max(leases.serial), String(36)).label("id")).where(project)


def _told(kind: str, what: Any) -> Select[Any]:  # noqa: ANN401 - any expression
    name: Label[Any] = literal_column(f"'{kind}'").label("kind")
    return select(name, what)
