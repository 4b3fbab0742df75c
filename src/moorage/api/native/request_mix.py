"""`/v1/request-mix`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import UNSET

from moorage.api.native.call import Call, Reply
from moorage.domain.errors import InvalidDescription
from moorage.domain.period import format_instant
from moorage.domain.request_mix import Shape, shape
from moorage.usecases.ledger.request_mixes import reset_mix, set_mix, show_mix
from moorage.wire import request_mix as wire

if TYPE_CHECKING:
    from collections.abc import Iterable

    from moorage.domain.request_mix import RoomTaken, StatedShape
    from moorage.usecases.ledger.request_mixes import MixInUse
    from moorage.wire.request_mix import MixShapeBody, RequestMixBody


def show(call: Call) -> Reply:
    """GET: the mix in use."""
    return _reply(call.perform(show_mix))


def put(call: Call) -> Reply:
    """PUT: state the mix."""
    body: RequestMixBody = call.body.request_mix
    stated = [
        (one.weight, _stated(one, f"request_mix.shapes[{i}]")) for i, one in enumerate(body.shapes)
    ]
    return _reply(call.perform(set_mix, stated))


def delete(call: Call) -> Reply:
    """DELETE: let it be counted from the ledger."""
    call.perform(reset_mix)
    return Reply()


def _stated(body: MixShapeBody, path: str) -> str | Shape:
    """The flavor's name or the shape of a body.

    Raises:
        InvalidDescription: a flavor beside amounts or traits.
    """
    if body.flavor is UNSET:
        groups = (shape(one.resources, _each(one.required), one.forbidden) for one in body.groups)
        return shape(body.resources, _each(body.required), body.forbidden, groups)
    if body.resources or body.required or body.forbidden or body.groups:
        raise InvalidDescription("a shape is a flavor, or amounts with traits", path=path)
    return body.flavor


def _each(required: Iterable[str | list[str]]) -> list[list[str]]:
    return [[one] if isinstance(one, str) else one for one in required]


def _reply(found: MixInUse) -> Reply:
    mix = found.mix
    return Reply(
        wire.OneRequestMix(
            wire.RequestMix(
                "stated" if found.stated else "ledger",
                [_view(one) for one in mix.shapes],
                mix.merged,
                format_instant(mix.updated_at),
            )
        )
    )


def _view(one: StatedShape) -> wire.MixShape:
    return wire.MixShape(one.weight, list(one.flavors), *_terms(one.shape))


def room_view(found: RoomTaken) -> wire.RoomTaken:
    """What a placement took from the room for others."""
    return wire.RoomTaken(
        found.share,
        "stated" if found.stated else "ledger",
        found.weighed,
        [
            wire.ShapeTaken(one.weight, one.fits, one.taken, *_terms(one.shape))
            for one in found.most
        ],
    )


def _terms(
    asked: Shape,
) -> tuple[dict[str, int], list[str | list[str]], list[str], list[wire.MixGroup]]:
    """The resources, required and forbidden traits, and groups of a shape."""
    groups = [
        wire.MixGroup(dict(each.resources), _any_of(each.required), list(each.forbidden))
        for each in asked.groups
    ]
    return dict(asked.resources), _any_of(asked.required), list(asked.forbidden), groups


def _any_of(required: Iterable[tuple[str, ...]]) -> list[str | list[str]]:
    return [each[0] if len(each) == 1 else list(each) for each in required]
