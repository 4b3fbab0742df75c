"""Server groups at one endpoint: Nova's own, and those that are Moorage's ensembles.

With `server_groups` in the filter's options, new groups are created at Moorage's door; a list has
those of both, and one group is shown and deleted where it is.
"""

from __future__ import annotations

import json
import logging
import re
from http import HTTPStatus
from http.client import HTTPException
from itertools import count
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias
from urllib.error import HTTPError
from urllib.parse import parse_qs, quote, urlencode
from urllib.request import Request, urlopen

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    Environ: TypeAlias = dict[str, Any]
    Application: TypeAlias = Callable[[Environ, Callable[..., Any]], Iterable[bytes]]

PAGE: Final = 1000
"""The most groups of one answer, as Nova's default is."""
_LIST: Final = "server_groups"
_PATH: Final = re.compile(
    r"(?:/v2(?:\.1)?)?(?:/(?P<project>[0-9a-f-]+))?/os-server-groups(?:\.json)?"
    r"(?:/(?P<id>[^/]+?)(?:\.json)?)?/?"
)
"""With a version and a project, of which Nova says that it looks so, or without."""
_PASSED: Final = {
    "HTTP_X_AUTH_TOKEN": "X-Auth-Token",
    "HTTP_X_ROLES": "X-Roles",
    "HTTP_OPENSTACK_API_VERSION": "OpenStack-API-Version",
    "HTTP_X_OPENSTACK_NOVA_API_VERSION": "X-OpenStack-Nova-API-Version",
    "CONTENT_TYPE": "Content-Type",
}
_HOPS: Final = {"connection", "content-length", "date", "keep-alive", "server", "transfer-encoding"}
"""Headers of an answer that are not passed on."""
_log = logging.getLogger("moorage.nova_filter")


class DoorClosed(Exception):
    """Moorage does not answer for its groups."""


class Answer(NamedTuple):
    """An answer of nova-api's or of the door's."""

    status: int
    headers: list[tuple[str, str]]
    body: bytes

    @property
    def groups(self) -> list[dict[str, Any]]:
        """The groups of a list; none if it is no list."""
        try:
            found: list[dict[str, Any]] = json.loads(self.body)[_LIST]
        except (ValueError, LookupError, TypeError):
            return []
        return found


class GroupDoor:
    """Serves requests for server groups before one application."""

    def __init__(self, application: Application, endpoint: str, timeout: float) -> None:
        self._application = application
        self._endpoint = endpoint
        self._timeout = timeout

    def answer(self, environ: Environ, body: bytes, *, refuse: bool) -> Answer | None:
        """The answer to a request; None: it is not about server groups, or Nova's to refuse.

        `refuse` says whether a list without Moorage's groups is an error.

        Raises:
            DoorClosed: Moorage does not answer.
        """
        found = _asked(environ)
        if found is None:
            return None
        method, group = environ.get("REQUEST_METHOD"), found["id"]
        if not group and method == "POST":
            return self._at_door(environ, "", body)
        if not group and method == "GET":
            return self._listed(environ, refuse=refuse)
        if not group or method not in {"GET", "DELETE"}:
            return None
        own = self._at_nova(environ)
        if own.status == HTTPStatus.NOT_FOUND:
            return self._at_door(environ, f"/{quote(group, safe='')}")
        if method == "DELETE" and own.status == HTTPStatus.NO_CONTENT:
            self._delete_imported(environ, group)
        return own

    def _listed(self, environ: Environ, *, refuse: bool) -> Answer:
        first = self._at_nova(environ)
        if first.status != HTTPStatus.OK:
            return first
        query = parse_qs(environ.get("QUERY_STRING", ""))
        limit, offset = (int(query.pop(name, ["0"])[-1]) for name in ("limit", "offset"))
        found = {one["id"]: one for one in self._pages(environ, query, self._at_nova)}
        try:
            door = {one["id"]: one for one in self._pages(environ, query, self._list_at_door)}
        except DoorClosed as error:
            if refuse:
                raise
            _log.warning("Moorage does not answer: %s", error)
            door = {}
        rows = [*found.values(), *(one for one in door.values() if one["id"] not in found)]
        shown = rows[offset:][: min(limit or PAGE, PAGE)]
        return first._replace(body=json.dumps({_LIST: shown}).encode())

    def _pages(
        self, environ: Environ, query: dict[str, list[str]], ask: Callable[[Environ], Answer]
    ) -> Iterator[dict[str, Any]]:
        """All groups that one side lists."""
        known: set[str] = set()
        for _ in count():
            text = urlencode({**query, "offset": [str(len(known))]}, doseq=True)
            page = ask({**environ, "QUERY_STRING": text}).groups
            yield from page
            before = len(known)
            known |= {one["id"] for one in page}
            if len(known) == before:
                return

    def _delete_imported(self, environ: Environ, group: str) -> None:
        """Delete the ensemble that was imported from a group of Nova's that is deleted."""
        try:
            self._at_door(environ, f"/{quote(group, safe='')}")
        except DoorClosed as error:
            _log.warning("the ensemble of server group %s stays: %s", group, error)

    def _list_at_door(self, environ: Environ) -> Answer:
        return self._at_door(environ, f"?{environ['QUERY_STRING']}")

    def _at_nova(self, environ: Environ) -> Answer:
        said: list[Any] = []

        def start_response(status: str, headers: list[tuple[str, str]], *_: Any) -> None:  # noqa: ANN401 - as PEP 3333
            said[:] = [int(status.split(maxsplit=1)[0]), headers]

        parts = self._application(dict(environ), start_response)
        try:
            body = b"".join(parts)
        finally:
            if hasattr(parts, "close"):
                parts.close()
        return Answer(said[0], _ends(said[1]), body)

    def _at_door(self, environ: Environ, rest: str, body: bytes | None = None) -> Answer:
        headers = {name: environ[key] for key, name in _PASSED.items() if environ.get(key)}
        url = f"{self._endpoint}/os-server-groups{rest}"
        request = Request(url, body, headers, method=environ["REQUEST_METHOD"])  # noqa: S310 - http(s), checked
        try:
            with urlopen(request, timeout=self._timeout) as answer:  # noqa: S310 - http(s), checked
                found = Answer(answer.status, _ends(answer.getheaders()), answer.read())
        except HTTPError as error:
            with error:
                found = Answer(error.code, _ends(error.headers.items()), error.read())
        except (OSError, ValueError, HTTPException) as error:
            raise DoorClosed(str(error)) from error
        if found.status >= HTTPStatus.INTERNAL_SERVER_ERROR:
            raise DoorClosed(f"status {found.status}")
        return found


def _asked(environ: Environ) -> re.Match[str] | None:
    """The path of a request for server groups; Nova refuses other projects' than the token's."""
    found = _PATH.fullmatch(environ.get("PATH_INFO", ""))
    named = found and found["project"]
    own = named is None or named == environ.get("HTTP_X_PROJECT_ID", named)
    return found if own else None


def _ends(headers: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    return [(name, value) for name, value in headers if name.lower() not in _HOPS]
