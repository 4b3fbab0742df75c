"""A WSGI filter for nova-api: a server takes a held place by a scheduler hint.

It stands in nova-api's pipeline between `authtoken` and `keystonecontext` (api-paste.ini):

    [filter:moorage]
    paste.filter_factory = moorage.nova_filter:filter_factory
    endpoint = http://controller:8778/v1
    # refuse: no server without its place; ordinary: as if there were no hint
    failure_mode = refuse
    # seconds for each request to Moorage
    timeout = 10

A request that creates a server names its place with `--hint moorage=<ensemble>`,
`<ensemble>/<role>` or `<ensemble>/<role>[i]`, with `--hint group=<the ensemble's id>`, or with the
metadata `moorage:ensemble` and `moorage:member`. The filter claims it with the caller's token, and
makes the claim's id the request's global id, which Nova passes on to Placement. If nova-api then
answers other than 202, the claim fails at once, and its place is held again.

Only the standard library is used: nothing of Moorage needs to be configured where nova-api runs.
"""

from __future__ import annotations

import json
import logging
import re
from dataclasses import dataclass
from http import HTTPStatus
from http.client import HTTPException
from io import BytesIO
from typing import TYPE_CHECKING, Any, Final
from urllib.error import HTTPError
from urllib.parse import quote, urlencode
from urllib.request import Request, urlopen

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    Environ = dict[str, Any]
    StartResponse = Callable[..., Any]
    Application = Callable[[Environ, StartResponse], Iterable[bytes]]

GLOBAL_ID: Final = "openstack.global_request_id"
"""Where oslo.context reads the global request id of a request."""
HINTS: Final = ("os:scheduler_hints", "OS-SCH-HNT:scheduler_hints")
HINT: Final = "moorage"
GROUP: Final = "group"
ENSEMBLE: Final = "moorage:ensemble"
MEMBER: Final = "moorage:member"
METADATA: Final = "metadata"
LONGEST: Final = 8 * 1024 * 1024
"""Bytes of a body that is read; nova-api refuses longer ones itself."""
TRIED: Final = 20
"""Members that are tried for one server, where other servers take them at the same time."""

_CREATE: Final = re.compile(r"/servers(\.json)?/?\Z")
_REFERENCE: Final = re.compile(
    r"(?P<ensemble>[^/]+)(/(?P<role>[^\[\]]+)(\[(?P<index>\d{1,6})\])?)?"
)
_BROKEN: Final = (OSError, ValueError, HTTPException)
"""What a connection or an answer that breaks raises."""
_UUID: Final = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_FAULTS: Final = {
    400: "badRequest",
    403: "forbidden",
    404: "itemNotFound",
    409: "conflictingRequest",
    503: "serviceUnavailable",
}
_NOT_THEIRS: Final = {HTTPStatus.NOT_FOUND, HTTPStatus.FORBIDDEN}
"""Answers about a group that is no ensemble of the caller's: nova-api judges it."""
_log = logging.getLogger(__name__)


class Refusal(Exception):
    """The request is refused with this status and message; nova-api does not see it."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status if status in _FAULTS else HTTPStatus.BAD_REQUEST
        self.message = message


class Unanswered(Exception):
    """Moorage could not be asked, or failed."""


@dataclass(frozen=True)
class Place:
    """The place that a request names."""

    ensemble: str
    """An id or a name."""
    role: str | None = None
    index: int | None = None
    named_by: str = HINT
    """`moorage`, `group` or `metadata`. A group may be Nova's own, and metadata is on every server
    of an ensemble: only the hint `moorage` insists on a place."""

    @property
    def told(self) -> str:
        """The members that it names, in words."""
        if self.role is None:
            return "any member"
        return self.role if self.index is None else f"{self.role}[{self.index}]"

    def is_one(self, member: Mapping[str, Any]) -> bool:
        """Whether a member is one of those that it names."""
        if self.role is not None and member["role"] != self.role:
            return False
        return self.index is None or member["name"] == f"{self.role}[{self.index}]"


def filter_factory(_global: Mapping[str, str], **local: str) -> Callable[[Application], HintFilter]:
    """Paste's factory of the filter; see the module for its options.

    Raises:
        ValueError: an option is missing, unknown or malformed.
    """
    endpoint, mode = local.pop("endpoint", ""), local.pop("failure_mode", "refuse")
    timeout = float(local.pop("timeout", "10"))
    if not endpoint.startswith(("http://", "https://")):
        raise ValueError("filter:moorage needs endpoint, the URL of Moorage's native API")
    if mode not in {"refuse", "ordinary"}:
        raise ValueError(f"filter:moorage: failure_mode must be refuse or ordinary, not {mode!r}")
    if local:
        raise ValueError(f"filter:moorage: unknown options: {', '.join(sorted(local))}")
    return lambda application: HintFilter(
        application, endpoint.rstrip("/"), timeout, refuse=mode == "refuse"
    )


class HintFilter:
    """The filter before one application."""

    def __init__(
        self, application: Application, endpoint: str, timeout: float, *, refuse: bool
    ) -> None:
        self._application = application
        self._endpoint = endpoint
        self._timeout = timeout
        self._refuse = refuse

    def __call__(self, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        """Serve one request."""
        try:
            claimed = self._claimed(environ)
        except Refusal as refusal:
            return _fault(refusal, start_response)
        if claimed is None:
            return self._application(environ, start_response)
        return self._watched(environ, start_response, *claimed)

    def _claimed(self, environ: Environ) -> tuple[_Moorage, str] | None:
        """Claim the place that a request names, and let the request present it; None: it has none.

        Raises:
            Refusal: the place cannot be had.
        """
        named = _named(environ)
        if named is None:
            return None
        request, place = named
        calls = _Moorage(self._endpoint, self._timeout, _caller(environ))
        claim = None
        try:
            claim = _claim(calls, place, request["server"])
        except Refusal:
            if place.named_by != METADATA:
                raise
        except (Unanswered, LookupError, TypeError) as error:  # the latter: of another form
            _log.warning("Moorage does not answer: %s", error)
            if place.named_by == HINT and self._refuse:
                text = "Moorage, which holds the server's place, does not answer; try again"
                raise Refusal(503, text) from error
        if claim is not None or place.named_by == HINT:
            _put_body(environ, without_hint(request, place))
        if claim is None:
            return None
        environ[GLOBAL_ID] = f"req-{claim}"
        return calls, claim

    def _watched(
        self, environ: Environ, start_response: StartResponse, calls: _Moorage, claim: str
    ) -> Iterator[bytes]:
        """Pass the request on; give the claim back unless nova-api accepts the server."""
        statuses: list[str] = []

        def noted(status: str, headers: list[tuple[str, str]], *more: Any) -> Any:  # noqa: ANN401 - as PEP 3333
            statuses.append(status)
            return start_response(status, headers, *more)

        try:
            parts = self._application(environ, noted)
            try:
                yield from parts
            finally:
                if hasattr(parts, "close"):
                    parts.close()
        finally:
            if not (statuses and statuses[-1].startswith("202")):
                calls.give_back(claim)


def _named(environ: Environ) -> tuple[dict[str, Any], Place] | None:
    """The body of a request that creates a server, and the place that it names; None: it does not.

    Raises:
        Refusal: the place cannot be understood.
    """
    creates = _CREATE.search(environ.get("PATH_INFO", ""))
    if environ.get("REQUEST_METHOD") != "POST" or not creates:
        return None
    try:
        request = json.loads(_buffered(environ))
    except (ValueError, RecursionError):
        return None  # nova-api says what is wrong
    place = named_place(request)
    if place is None or (place.named_by == METADATA and _presents(environ)):
        return None
    return request, place


def named_place(request: Any) -> Place | None:  # noqa: ANN401 - any JSON value
    """The place that a body of POST /servers names; None: none.

    Raises:
        Refusal: it names one in a way that cannot be understood.
    """
    if not isinstance(request, dict) or not isinstance(request.get("server"), dict):
        return None
    server = request["server"]
    hints: Mapping[str, Any] = next(
        (request[key] for key in HINTS if isinstance(request.get(key), dict)), {}
    )
    metadata = server.get("metadata") if isinstance(server.get("metadata"), dict) else {}
    place = _from_hint(hints) or _from_metadata(metadata)
    group = hints.get(GROUP)
    if place is None and isinstance(group, str) and _is_uuid(group):
        return Place(group, named_by=GROUP)
    return place


def _from_hint(hints: Mapping[str, Any]) -> Place | None:
    text = hints.get(HINT)
    if text is None:
        return None
    text = text[0] if isinstance(text, list) and len(text) == 1 else text
    match = _REFERENCE.fullmatch(text) if isinstance(text, str) else None
    if match is None:
        raise Refusal(
            400, f"hint moorage: not <ensemble>, <ensemble>/<role> or .../<role>[i]: {text!r}"
        )
    index = match["index"]
    return Place(match["ensemble"], match["role"], None if index is None else int(index))


def _from_metadata(metadata: Mapping[str, Any]) -> Place | None:
    ensemble, member = metadata.get(ENSEMBLE), metadata.get(MEMBER)
    if not isinstance(ensemble, str) or not isinstance(member, str):
        return None
    match = _REFERENCE.fullmatch(f"{ensemble}/{member}")
    if match is None or match["index"] is None:
        return None
    return Place(match["ensemble"], match["role"], int(match["index"]), METADATA)


def without_hint(request: Mapping[str, Any], place: Place) -> dict[str, Any]:
    """The body without the hint of the place: nova-api refuses groups that it does not have."""
    left = dict(request)
    for key in HINTS:
        if isinstance(left.get(key), dict):
            gone = {HINT, GROUP} if place.named_by == GROUP else {HINT}
            left[key] = {name: value for name, value in left[key].items() if name not in gone}
    return left


def _is_uuid(text: object) -> bool:
    return isinstance(text, str) and _UUID.fullmatch(text) is not None


def _presents(environ: Environ) -> bool:
    """Whether the request presents a claim already, by its header."""
    text = str(environ.get(GLOBAL_ID) or environ.get("HTTP_X_OPENSTACK_REQUEST_ID") or "")
    return text.startswith("req-")


# --- Moorage ----------------------------------------------------------------------------------


def _claim(calls: _Moorage, place: Place, server: Mapping[str, Any]) -> str | None:
    """The id of a claim of the named place; None: the group is none of Moorage's.

    Raises:
        Refusal: there is no such place, it is taken, or the server differs from its role.
        Unanswered: Moorage does not answer.
    """
    ensemble = calls.ensemble(place)
    if ensemble is None:
        return None
    if _several(server):
        text = "a hint names the place of one server; for several use the role's ticket flavor"
        raise Refusal(400, f"{text} (moorage decision flavors)")
    decision = ensemble.get("decision") or {}
    named = [one for one in calls.members(ensemble["id"]) if place.is_one(one)]
    if not named:
        raise Refusal(404, f"ensemble {ensemble['name']} has no {place.told}")
    held = [one for one in named if one["status"] == "held"]
    last: Refusal | None = None
    for member in _one_of_each_role_first(held)[:TRIED]:
        try:
            return calls.claim(str(decision.get("id")), member["name"], server)
        except Refusal as refusal:
            if refusal.status not in {HTTPStatus.CONFLICT, HTTPStatus.NOT_FOUND}:
                raise
            last = refusal
    text = f"no place of ensemble {ensemble['name']} is held and unclaimed for {place.told}"
    raise last or Refusal(409, f"{text}: see moorage ensemble show, or decide again")


def _several(server: Mapping[str, Any]) -> bool:
    counts = (server.get("max_count"), server.get("min_count"))
    return any(str(count) not in {"None", "1"} for count in counts)


def _from_volume(server: Mapping[str, Any]) -> bool:
    """Whether the server's root disk is a volume: Nova then asks for no room for it."""
    for one in server.get("block_device_mapping_v2") or ():
        if isinstance(one, dict) and str(one.get("boot_index")) == "0":
            local = "local" if one.get("source_type") == "image" else "volume"
            return bool(one.get("destination_type", local) == "volume")
    return not server.get("imageRef") and bool(server.get("block_device_mapping"))


def _one_of_each_role_first(members: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The members, with the first of each role before further ones: the server may be any's."""
    seen: dict[str, int] = {}
    ranked = []
    for number, one in enumerate(members):
        seen[one["role"]] = seen.get(one["role"], 0) + 1
        ranked.append((seen[one["role"]], number, one))
    return [one for *_, one in sorted(ranked, key=lambda rank: rank[:2])]


class _Moorage:
    """Calls of the native API with the caller's token."""

    def __init__(self, endpoint: str, timeout: float, caller: Mapping[str, str]) -> None:
        self._endpoint = endpoint
        self._timeout = timeout
        self._headers = {**caller, "Content-Type": "application/json"}

    def ensemble(self, place: Place) -> dict[str, Any] | None:
        """The ensemble, with its current decision; None: a group that is none.

        Raises:
            Refusal: there is none of the name for this caller, or several.
            Unanswered: Moorage does not answer.
        """
        name = place.ensemble
        if not _is_uuid(name):
            query = urlencode({"name": name}, errors="replace")
            listed = self._call("GET", f"/ensembles?{query}")["ensembles"]
            if len(listed) != 1:
                count = len(listed)
                text = f"{count} ensembles have the name {name}; use an id" if count else name
                raise Refusal(409, text) if count else Refusal(404, f"no ensemble {text}")
            name = listed[0]["id"]
        try:
            answer = self._call("GET", f"/ensembles/{name}")
        except Refusal as refusal:
            if place.named_by == GROUP and refusal.status in _NOT_THEIRS:
                return None
            raise
        found: dict[str, Any] = answer["ensemble"]
        return found

    def members(self, ensemble_id: str) -> Iterator[dict[str, Any]]:
        """All members of an ensemble."""
        path = f"/ensembles/{ensemble_id}/members"
        marker: dict[str, str] = {}
        while True:
            page = self._call("GET", f"{path}?{urlencode(marker)}")
            yield from page["members"]
            if not page["members"] or not page.get("members_links"):
                return
            marker = {"marker": page["members"][-1]["name"]}

    def claim(self, decision_id: str, member: str, server: Mapping[str, Any]) -> str:
        """Claim a member's place for a server; the claim's id."""
        described: dict[str, Any] = {
            "flavorRef": str(server.get("flavorRef", "")).rpartition("/")[2],
            "boot_from_volume": _from_volume(server),
        }
        zone = server.get("availability_zone")
        if isinstance(zone, str) and ":" not in zone:
            described["availability_zone"] = zone
        body = {"claim": {"member": member, "server": described}}
        answer = self._call("POST", f"/decisions/{quote(decision_id)}/claims", body)
        return str(answer["claim"]["id"])

    def give_back(self, claim_id: str) -> None:
        """Give back the place of a claim without a server; if this fails, the claim lapses."""
        try:
            self._call("PATCH", f"/claims/{claim_id}", {"claim": {"status": "failed"}})
        except (Refusal, Unanswered) as error:
            _log.warning("could not give claim %s back, it lapses by itself: %s", claim_id, error)

    def _call(self, method: str, path: str, body: object = None) -> dict[str, Any]:
        sent = None if body is None else json.dumps(body).encode()
        request = Request(self._endpoint + path, sent, self._headers, method=method)  # noqa: S310 - http(s), checked
        try:
            with urlopen(request, timeout=self._timeout) as answer:  # noqa: S310 - as above
                text = answer.read()
        except HTTPError as error:
            raise self._refusal(error) from error
        except _BROKEN as error:
            raise Unanswered(str(error)) from error
        try:
            found: dict[str, Any] = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise Unanswered(f"{method} {path}: no JSON") from error
        return found

    @staticmethod
    def _refusal(answer: HTTPError) -> Exception:
        status = answer.code
        if status not in range(400, 500) or status == HTTPStatus.TOO_MANY_REQUESTS:
            return Unanswered(f"status {status}")
        try:
            with answer:
                error = json.loads(answer.read())["errors"][0]
            message = "; ".join([str(error["detail"]), *map(_difference, error.get("diff", ()))])
        except (*_BROKEN, LookupError, TypeError, AttributeError, RecursionError):
            message = f"Moorage answered {status}"
        return Refusal(403 if status == HTTPStatus.UNAUTHORIZED else status, message)


def _difference(one: Mapping[str, Any]) -> str:
    """A field in which the server differs from its role, in words."""
    return f"{one['path']} is {one.get('requested')}, described as {one.get('described')}"


# --- WSGI -------------------------------------------------------------------------------------


def _caller(environ: Environ) -> dict[str, str]:
    """Headers with the caller's token, and its roles, which count for noauth2 only."""
    found = {
        "X-Auth-Token": environ.get("HTTP_X_AUTH_TOKEN"),
        "X-Roles": environ.get("HTTP_X_ROLES"),
    }
    return {name: value for name, value in found.items() if value is not None}


def _buffered(environ: Environ) -> bytes:
    """The body, which the application can read again."""
    try:
        length = int(environ.get("CONTENT_LENGTH") or 0)
    except ValueError:
        length = 0
    if length > LONGEST:
        return b""
    if length <= 0:
        return b""
    body: bytes = environ["wsgi.input"].read(length)
    environ["wsgi.input"] = BytesIO(body)
    return body


def _put_body(environ: Environ, request: Mapping[str, Any]) -> None:
    body = json.dumps(request).encode()
    environ["wsgi.input"] = BytesIO(body)
    environ["CONTENT_LENGTH"] = str(len(body))


def _fault(refusal: Refusal, start_response: StartResponse) -> list[bytes]:
    """An error in the form of Nova's."""
    fault = {_FAULTS[refusal.status]: {"code": refusal.status, "message": refusal.message}}
    body = json.dumps(fault).encode()
    headers = [("Content-Type", "application/json"), ("Content-Length", str(len(body)))]
    start_response(f"{refusal.status} {HTTPStatus(refusal.status).phrase}", headers)
    return [body]
