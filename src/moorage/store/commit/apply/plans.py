"""Plans: ordered moves of servers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from moorage.store.commit.apply.ensembles import EXCLUSIVE_MOVED
from moorage.store.commit.apply.kinds import Kind, expect, write
from moorage.store.schema import tables
from moorage.store.values import stored_bodies

if TYPE_CHECKING:
    from moorage.domain.changes import DeletePlan, PutPlan
    from moorage.store.commit.batch import Batch

_p = tables.plans.c
_PLAN: Final = Kind.of("plan", _p.generation, _p.body)


def put_plan(batch: Batch, change: PutPlan) -> None:
    """See `PutPlan`.

    Raises:
        DuplicateName, NotFound, ConcurrentUpdate.
    """
    one = change.stored
    values: dict[str, Any] = {
        "kind": one.kind.value,
        "state": one.state.value,
        "ended_at": batch.now if one.state.over and not one.under_way else None,
        "generation": one.generation,
        "body": stored_bodies.PLAN.encode(one),
    }
    write(batch, _PLAN, one.id, values, change.generation)
    if change.targets:
        batch.connection.do(EXCLUSIVE_MOVED)


def delete_plan(batch: Batch, change: DeletePlan) -> None:
    """See `DeletePlan`.

    Raises:
        NotFound, ConcurrentUpdate.
    """
    expect(batch, _PLAN, change.id, change.generation)
    batch.connection.do(_PLAN.delete, {"of": change.id})
