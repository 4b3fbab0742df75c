"""`/v1/hot`: Heat templates, placed jointly."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from moorage.client.answer import Answer, dry, whole
from moorage.wire.hot import Hot

if TYPE_CHECKING:
    from collections.abc import Mapping

    from moorage.client.transport import Transport


class HotCalls:
    """`POST /v1/hot`."""

    def __init__(self, transport: Transport) -> None:
        self._call = transport.call

    def place(self, request: Mapping[str, Any], *, dry_run: bool = False) -> Answer[Hot]:
        """Place a template's servers, as a new ensemble or as the one `ensemble_id` names."""
        reply = self._call("POST", "/v1/hot", body={"hot": request}, params=dry(dry_run))
        return whole(reply, Hot)
