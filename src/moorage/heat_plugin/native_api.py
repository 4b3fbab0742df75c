"""Calls of Moorage's native API with a stack's own credentials."""

from __future__ import annotations

import logging
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote, urlencode

from keystoneauth1 import exceptions

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from moorage.heat_plugin.options import Settings

SERVICE_TYPE: Final = "ensemble"
_SUCCESS: Final = range(200, 300)
_REFUSALS: Final = range(400, 500)
_log = logging.getLogger(__name__)


class Refused(Exception):
    """Moorage refuses, with its own sentence."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class Unanswered(Exception):
    """Moorage could not be asked, or failed."""


class NativeApi:
    """Moorage, with the token of one context of Heat's."""

    def __init__(self, settings: Settings, context: Any) -> None:  # noqa: ANN401 - Heat's context
        self._settings = settings
        self._context = context

    def put_stack(
        self, stack_id: str, body: dict[str, Any], *, dry_run: bool = False
    ) -> dict[str, Any]:
        """Decide for a stack, or say what would be decided.

        Raises:
            Refused: it cannot be placed, or is not valid.
            Unanswered: Moorage does not answer.
        """
        query = "?dry_run=true" if dry_run else ""
        answer = self._call("PUT", f"/stacks/{stack_id}{query}", {"stack": body})
        return dict(answer["stack"])

    def stack(self, stack_id: str) -> dict[str, Any] | None:
        """A stack's ensemble and decision; None: Moorage has none.

        Raises:
            Refused, Unanswered: as above.
        """
        try:
            return dict(self._call("GET", f"/stacks/{stack_id}")["stack"])
        except Refused as refusal:
            if refusal.status == HTTPStatus.NOT_FOUND:
                return None
            raise

    def forget_stack(self, stack_id: str) -> None:
        """Release what is held for a stack, if anything.

        Raises:
            Refused, Unanswered: as above.
        """
        try:
            self._call("DELETE", f"/stacks/{stack_id}")
        except Refused as refusal:
            if refusal.status != HTTPStatus.NOT_FOUND:
                raise

    def confirm(self, decision_id: str) -> None:
        """End a decision's hold: places that no server took are free.

        Raises:
            Refused, Unanswered: as above.
        """
        self._call("POST", f"/decisions/{decision_id}/confirm")

    def extend(self, ensemble_id: str, body: dict[str, Any]) -> dict[str, Any]:
        """Decide more members of an ensemble.

        Raises:
            Refused, Unanswered: as above.
        """
        answer = self._call("POST", f"/ensembles/{ensemble_id}/extend", {"extend": body})
        return dict(answer["extend"])

    def shrink(self, ensemble_id: str, body: dict[str, Any]) -> None:
        """Take members out of an ensemble so that its policies keep holding.

        Raises:
            Refused, Unanswered: as above.
        """
        self._call("POST", f"/ensembles/{ensemble_id}/shrink", {"shrink": body})

    def members(self, ensemble_id: str) -> Iterator[dict[str, Any]]:
        """All members of an ensemble.

        Raises:
            Refused, Unanswered: as above.
        """
        path = f"/ensembles/{ensemble_id}/members"
        marker: dict[str, str] = {}
        while True:
            page = self._call("GET", f"{path}?{urlencode(marker)}")
            yield from page["members"]
            if not page["members"] or not page.get("members_links"):
                return
            marker = {"marker": page["members"][-1]["name"]}

    def create(self, collection: str, body: dict[str, Any]) -> dict[str, Any]:
        """Create an object of the API.

        Raises:
            Refused, Unanswered: as above.
        """
        return self._call("POST", f"/{collection}", body)

    def show(self, collection: str, name: str) -> dict[str, Any]:
        """An object of the API.

        Raises:
            Refused, Unanswered: as above.
        """
        return self._call("GET", f"/{collection}/{name}")

    def delete(self, collection: str, name: str) -> None:
        """Delete an object of the API, if it is there, in whatever generation.

        Raises:
            Refused, Unanswered: as above.
        """
        try:
            self._call("DELETE", f"/{collection}/{quote(name)}", headers={"If-Match": "*"})
        except Refused as refusal:
            if refusal.status != HTTPStatus.NOT_FOUND:
                raise

    def _call(
        self, method: str, path: str, body: object = None, headers: Mapping[str, str] | None = None
    ) -> dict[str, Any]:
        try:
            answer = self._request(method, path, body, headers or {})
        except exceptions.ClientException as error:
            raise Unanswered(str(error)) from error
        if answer.status_code in _SUCCESS:
            return _json(answer) if answer.content else {}
        if answer.status_code in _REFUSALS and answer.status_code not in {
            HTTPStatus.TOO_MANY_REQUESTS,
            HTTPStatus.REQUEST_TIMEOUT,
        }:
            raise Refused(answer.status_code, _detail(answer))
        raise Unanswered(f"status {answer.status_code}: {_detail(answer)}")

    def _request(self, method: str, path: str, body: object, headers: Mapping[str, str]) -> Any:  # noqa: ANN401 - requests' answer
        settings = self._settings
        where: dict[str, Any] = {
            "service_type": SERVICE_TYPE,
            "interface": settings.interface,
            "region_name": settings.region,
        }
        how: dict[str, Any] = {"json": body} if body is not None else {}
        if settings.endpoint:
            how["endpoint_override"] = settings.endpoint.rstrip("/")
        return self._context.keystone_session.request(
            path,
            method,
            endpoint_filter=where,
            raise_exc=False,
            headers=dict(headers),
            timeout=settings.timeout,
            **how,
        )


def _json(answer: Any) -> dict[str, Any]:  # noqa: ANN401 - as above
    try:
        return dict(answer.json())
    except (ValueError, TypeError) as error:
        raise Unanswered(f"no JSON in an answer of status {answer.status_code}") from error


def _detail(answer: Any) -> str:  # noqa: ANN401 - as above
    """The sentence of an error, and what its explanation names."""
    try:
        error = answer.json()["errors"][0]
        return "; ".join([str(error["detail"]), *_explained(error.get("explanation") or {})])
    except (ValueError, LookupError, TypeError, AttributeError):
        return f"Moorage answered {answer.status_code}"


def _explained(explanation: Mapping[str, Any]) -> Iterator[str]:
    """What is needed, what there is, and where to read more, in words."""
    for one in explanation.get("conflict") or ():
        subject = next(iter(one.values()))
        if "needs" in one:
            yield f"{subject} needs {one['needs']}"
        elif "have" in one:
            yield f"{subject}: {one['have']}"
    if "id" in explanation:
        yield f"see explanation {explanation['id']}"
