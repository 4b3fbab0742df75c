"""`/v1/hot`: Heat templates in, decisions out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from moorage.client import structs
from moorage.client.structs import Answer

if TYPE_CHECKING:
    from collections.abc import Mapping

    from moorage.client.transport import Transport


class Placeless(msgspec.Struct, frozen=True):
    """A resource of the template that takes no place of its own."""

    path: str
    type: str = ""
    why: str = ""


class Placed(msgspec.Struct, frozen=True):
    """A template's members, their places, and the template that carries them."""

    ensemble: structs.Ensemble
    decision: structs.Decision
    template: str = ""
    files: dict[str, str] = {}
    """What goes with the template, by name relative to it."""
    keys: dict[str, str] = {}
    """Member -> path of its resource in the stack."""
    not_placed: list[Placeless] = []
    notes: list[str] = []


class Hot:
    """`POST /v1/hot`."""

    def __init__(self, transport: Transport) -> None:
        self._call = transport.call

    def place(self, request: Mapping[str, Any], *, dry_run: bool = False) -> Answer[Placed]:
        """Place a template's servers, as a new ensemble or as the one `ensemble_id` names."""
        params = {"dry_run": "true"} if dry_run else {}
        reply = self._call("POST", "/v1/hot", body={"hot": request}, params=params)
        value = msgspec.convert(reply.body, Placed, strict=False)
        return Answer(value, reply.body, reply.request_id)
