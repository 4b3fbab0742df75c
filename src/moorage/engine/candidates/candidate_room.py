"""Orders the candidates of an answer that nothing cuts by what they take from others."""

from __future__ import annotations

from typing import TYPE_CHECKING

from moorage.domain.request_mix import shape
from moorage.engine.candidates.enumerate import in_turns
from moorage.engine.candidates.limit import turns_of
from moorage.engine.joint.fleet_room import harm_of_one

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from moorage.domain.flavors import Flavor
    from moorage.domain.request_mix import Shape
    from moorage.engine.candidates.enumerate import Batch
    from moorage.engine.candidates.query import CandidateQuery
    from moorage.engine.state.snapshot import Snapshot


def least_harm_first(
    snapshot: Snapshot,
    query: CandidateQuery,
    found: Sequence[Batch],
    flavors: Callable[[], Iterable[Flavor]],
) -> list[Batch]:
    """The same candidates in turns over the trees, first those that leave others most room.

    Trees that leave the same keep their order. For `flavors` see `ledger_mix`.
    """
    harm = harm_of_one(snapshot, asked_shape(query), flavors)
    turns = sorted(turns_of(found, None), key=lambda turn: harm[snapshot.root[turn.trees[0, 0]]])
    return list(in_turns(snapshot, turns))


def asked_shape(query: CandidateQuery) -> Shape:
    """What one server of a query takes and requires."""
    own = [one for one in query.groups if not one.suffix]
    amounts = {name: amount for one in own for name, amount in one.resources.items()}
    required = [any_of for one in own for any_of in one.required]
    groups = [
        shape(one.resources, one.required, one.forbidden) for one in query.groups if one.suffix
    ]
    forbidden = frozenset[str]().union(*(one.forbidden for one in own))
    return shape(amounts, (*required, *query.root_required), forbidden, groups)
