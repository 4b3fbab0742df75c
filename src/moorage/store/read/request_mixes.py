"""Reads the mix of requests that an operator has stated."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sqlalchemy import select

from moorage.store.schema import tables
from moorage.store.values import stored_bodies

if TYPE_CHECKING:
    from moorage.domain.request_mix import StatedMix
    from moorage.store.database.session import Session

_STATED: Final = select(tables.request_mix.c.body)


def stated(connection: Session) -> StatedMix | None:
    """The stated mix; None: there is none."""
    body = connection.scalars(_STATED).one_or_none()
    return None if body is None else stored_bodies.STATED_MIX.decode(body)
