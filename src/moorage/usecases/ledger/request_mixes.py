"""The mix of requests that decisions weigh: stated by an operator, or counted from the ledger."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from moorage.domain.changes import Changeset, PutRequestMix
from moorage.domain.errors import InvalidDescription
from moorage.domain.request_mix import StatedMix, StatedShape, shape_of
from moorage.engine.state.ledger_mix import ledger_mix
from moorage.usecases.shared.access import require_operator
from moorage.usecases.shared.role_resolution import LedgerNames

if TYPE_CHECKING:
    from collections.abc import Sequence

    from moorage.domain.request_mix import Shape
    from moorage.usecases.environment import UseCaseEnvironment
    from moorage.usecases.ports import Caller


@dataclass(frozen=True, slots=True)
class MixInUse:
    """The mix in use; `stated` says whether an operator stated it."""

    mix: StatedMix
    stated: bool


def show_mix(env: UseCaseEnvironment, caller: Caller) -> MixInUse:
    """The mix that decisions weigh now, without the members of each request itself.

    Raises:
        Forbidden: the caller is no operator.
    """
    require_operator(caller)
    snapshot = env.store.snapshot()
    if snapshot.stated_mix is not None:
        return MixInUse(snapshot.stated_mix, stated=True)
    counted = ledger_mix(snapshot, env.store.flavors)
    shapes = tuple(StatedShape(shape, count) for shape, count in counted.shapes)
    return MixInUse(StatedMix(shapes, counted.merged, snapshot.taken_at), stated=False)


def set_mix(
    env: UseCaseEnvironment,
    caller: Caller,
    stated: Sequence[tuple[int, str | Shape]],
) -> MixInUse:
    """State the mix: weights above 0, each with a flavor, by name or id, or a shape.

    A flavor stands for the shape that it has now.

    Raises:
        Forbidden: the caller is no operator.
        UnknownName: a flavor, resource class or trait that the ledger does not have.
        InvalidDescription: the mix is empty, a weight is not above 0, or a shape takes nothing.
    """
    require_operator(caller)
    if not stated:
        raise InvalidDescription("a mix needs at least one shape", path="request_mix.shapes")
    known = LedgerNames(env.store, None)
    entries = (_entry(known, *one, f"request_mix.shapes[{i}]") for i, one in enumerate(stated))
    mix = StatedMix.of(entries, now=env.store.now())
    env.store.commit(Changeset((PutRequestMix(mix),)))
    return MixInUse(mix, stated=True)


def reset_mix(env: UseCaseEnvironment, caller: Caller) -> None:
    """Let the mix be counted from the ledger again, also if none is stated.

    Raises:
        Forbidden: the caller is no operator.
    """
    require_operator(caller)
    env.store.commit(Changeset((PutRequestMix(None),)))


def _entry(known: LedgerNames, weight: int, what: str | Shape, path: str) -> StatedShape:
    if weight <= 0:
        raise InvalidDescription("a weight is above 0", path=f"{path}.weight")
    if isinstance(what, str):
        flavor = known.flavor(what, f"{path}.flavor")
        return StatedShape(shape_of(flavor), weight, (flavor.name,))
    if not what.whole:
        raise InvalidDescription("a shape needs a flavor, resources or groups", path=path)
    for part in what.parts:
        known.check_classes(frozenset(dict(part.resources)), f"{path}.resources")
        known.check_traits(frozenset().union(*part.required), f"{path}.required")
        known.check_traits(frozenset(part.forbidden), f"{path}.forbidden")
    return StatedShape(what, weight)
