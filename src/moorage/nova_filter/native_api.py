"""Calls of Moorage's native API with the caller's token."""

from __future__ import annotations

import json
import logging
import time
from http import HTTPStatus
from http.client import HTTPException
from typing import TYPE_CHECKING, Any, Final
from urllib.error import HTTPError
from urllib.parse import quote, urlencode
from urllib.request import Request, urlopen

from moorage.nova_filter.hints import GROUP, Refusal, from_volume, is_uuid

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from moorage.nova_filter.hints import Place

_BROKEN: Final = (OSError, ValueError, HTTPException)
"""What a connection or an answer that breaks raises."""
_NOT_THEIRS: Final = {HTTPStatus.NOT_FOUND, HTTPStatus.FORBIDDEN}
"""Answers about a group that is no ensemble of the caller's: nova-api judges it."""
_PAUSE: Final = 0.5
"""Seconds between two tries while Moorage restarts."""
_LEAST: Final = 0.1
"""Seconds that a try has at least."""
_log = logging.getLogger("moorage.nova_filter")


class Unanswered(Exception):
    """Moorage could not be asked, or failed."""


class NativeApi:
    """Moorage, as one caller."""

    def __init__(self, endpoint: str, timeout: float, caller: Mapping[str, str]) -> None:
        self._endpoint = endpoint
        self._timeout = timeout
        self._headers = {**caller, "Content-Type": "application/json"}
        self.waits = False
        """Whether calls are tried again, within the timeout, while Moorage restarts."""

    def ensemble(self, place: Place) -> dict[str, Any] | None:
        """The ensemble, with its current decision; None: a group that is none.

        Raises:
            Refusal: there is none of the name for this caller, or several.
            Unanswered: Moorage does not answer.
        """
        name = place.ensemble
        if not is_uuid(name):
            query = urlencode({"name": name}, errors="replace")
            listed = self._call("GET", f"/ensembles?{query}")["ensembles"]
            if len(listed) != 1:
                remedy = "; to see yours: moorage ensemble list"
                if not listed:
                    raise Refusal(404, f"no ensemble {name}{remedy}")
                text = f"{len(listed)} ensembles have the name {name}: use an id{remedy}"
                raise Refusal(409, text)
            name = listed[0]["id"]
        try:
            answer = self._call("GET", f"/ensembles/{name}")
        except Refusal as refusal:
            if place.named_by == GROUP and refusal.status in _NOT_THEIRS:
                return None
            raise
        found: dict[str, Any] = answer["ensemble"]
        return found

    def stack(self, stack_id: str) -> dict[str, Any] | None:
        """A Heat stack's ensemble, decision and members' paths; None: it is none of the caller's.

        Raises:
            Unanswered: Moorage does not answer.
        """
        try:
            return dict(self._call("GET", f"/stacks/{stack_id}")["stack"])
        except Refusal as refusal:
            if refusal.status in _NOT_THEIRS:
                return None
            raise

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

    def member(self, ensemble_id: str, name: str) -> dict[str, Any]:
        """One member of an ensemble.

        Raises:
            Refusal: there is none of this name (404).
        """
        answer = self._call("GET", f"/ensembles/{ensemble_id}/members/{quote(name)}")
        return dict(answer["member"])

    def move_refusal(self, host: str, server_id: str) -> str | None:
        """Why the server of a member must not move to a host; None if it may, or cannot be told.

        Only operators are told, and only they may name hosts.
        """
        try:
            answer = self._call("GET", f"/hosts/{quote(host, safe='')}/moves/{server_id}")
            reason: str | None = answer["move"]["reason"]
        except (Refusal, Unanswered, LookupError, TypeError):
            return None
        return reason

    def flavor_name(self, server: Mapping[str, Any]) -> str:
        """The name of the server's flavor.

        Raises:
            Refusal: Moorage does not know the flavor.
        """
        flavor = str(server.get("flavorRef", "")).rpartition("/")[2]
        return str(self._call("GET", f"/flavors/{quote(flavor, safe='')}")["flavor"]["name"])

    def add_member(self, ensemble_id: str, role: Mapping[str, Any], hold: str | None) -> None:
        """Add one member of a role, and hold a place for it.

        Without a hold of its own it is held by default, and at least as long as the others are.

        Raises:
            Refusal: there is no place for it, or the role is there already and described again.
        """
        decide = {} if hold is None else {"hold": hold}
        body = {"member": {"role": {**role, "count": 1}, "decide": decide}}
        self._call("POST", f"/ensembles/{ensemble_id}/members", body)

    def decide(self, ensemble_id: str, decision: Mapping[str, Any] | None) -> None:
        """Hold places for members that have none, on the terms of the present decision.

        Raises:
            Refusal: there are no places for them, or the ensemble was decided meanwhile.
        """
        terms: dict[str, Any] = {"ensemble_id": ensemble_id}
        if decision is not None:
            terms |= {name: decision[name] for name in ("preemptible", "priority")}
            end = decision["interval"]["end"]
            terms |= {} if end is None else {"until": end}
        self._call("POST", "/decisions", {"decision": terms})

    def remove_member(self, ensemble_id: str, name: str) -> None:
        """Remove a member. Raises as `member`."""
        self._call("DELETE", f"/ensembles/{ensemble_id}/members/{quote(name)}")

    def claim(self, decision_id: str, member: str, server: Mapping[str, Any]) -> str:
        """Claim a member's place for a server; the claim's id."""
        described: dict[str, Any] = {
            "flavorRef": str(server.get("flavorRef", "")).rpartition("/")[2],
            "boot_from_volume": from_volume(server),
        }
        zone = server.get("availability_zone")
        if isinstance(zone, str) and ":" not in zone:
            described["availability_zone"] = zone
        body = {"claim": {"member": member, "server": described}}
        answer = self._call("POST", f"/decisions/{quote(decision_id)}/claims", body)
        return str(answer["claim"]["id"])

    def check_reservation(self, reservation_id: str) -> None:
        """Check that a reservation of servers is of the caller's lease, begun and not ended.

        Raises:
            Refusal: it is not.
            Unanswered: Moorage does not answer.
        """
        query = urlencode({"reservation": reservation_id})
        leases = self._call("GET", f"/leases?{query}")["leases"]
        if not leases:
            text = f"no reservation {reservation_id}; to see leases: moorage lease list"
            raise Refusal(404, text)
        (lease,) = leases
        see = f"; to see the lease: moorage lease show {lease['id']}"
        (held,) = (one for one in lease["reservations"] if one["id"] == reservation_id)
        if held["resource_class"] is None:
            raise Refusal(409, f"reservation {reservation_id} has no places for servers{see}")
        if lease["status"] != "active":
            when = f"from {lease['start']} until {lease['end']}"
            text = f"lease {lease['name']} is {lease['status']}: it lasts {when}"
            raise Refusal(409, f"{text}{see}")

    def give_back(self, claim_id: str) -> None:
        """Give back the place of a claim without a server; if this fails, the claim lapses."""
        try:
            self._call("PATCH", f"/claims/{claim_id}", {"claim": {"status": "failed"}})
        except (Refusal, Unanswered) as error:
            _log.warning("could not give claim %s back, it lapses by itself: %s", claim_id, error)

    def _call(self, method: str, path: str, body: object = None) -> dict[str, Any]:
        sent = None if body is None else json.dumps(body).encode()
        request = Request(self._endpoint + path, sent, self._headers, method=method)  # noqa: S310 - http(s), checked
        text = self._answer(request)
        if not text:
            return {}
        try:
            found: dict[str, Any] = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise Unanswered(f"{method} {path}: no JSON") from error
        return found

    def _answer(self, request: Request) -> bytes:
        """The text of the answer, to which Moorage may have to be asked again."""
        until = time.monotonic() + self._timeout
        while True:
            try:
                with urlopen(request, timeout=max(until - time.monotonic(), _LEAST)) as answer:  # noqa: S310 - http(s), checked
                    text: bytes = answer.read()
                    return text
            except HTTPError as error:
                if error.code != HTTPStatus.SERVICE_UNAVAILABLE or not self._may_wait(until):
                    raise self._refusal(error) from error
            except _BROKEN as error:
                if not (_was_refused(error) and self._may_wait(until)):
                    raise Unanswered(str(error)) from error

    def _may_wait(self, until: float) -> bool:
        """Whether there is a next try in time; if so, wait for it."""
        may = self.waits and time.monotonic() + _PAUSE < until
        if may:
            time.sleep(_PAUSE)
        return may

    @staticmethod
    def _refusal(answer: HTTPError) -> Exception:
        status = answer.code
        if status not in range(400, 500) or status == HTTPStatus.TOO_MANY_REQUESTS:
            return Unanswered(f"status {status}")
        try:
            with answer:
                error = json.loads(answer.read())["errors"][0]
            message = "; ".join([str(error["detail"]), *map(_difference, error.get("diff", ()))])
            code = str(error.get("code", ""))
        except (*_BROKEN, LookupError, TypeError, AttributeError, RecursionError):
            message, code = f"Moorage answered {status}", ""
        return Refusal(403 if status == HTTPStatus.UNAUTHORIZED else status, message, code)


def _was_refused(error: Exception) -> bool:
    """Whether nobody listened, so that nothing was sent: Moorage may be restarting."""
    return isinstance(getattr(error, "reason", error), ConnectionRefusedError)


def _difference(one: Mapping[str, Any]) -> str:
    """A field in which the server differs from its role, in words."""
    return f"{one['path']} is {one.get('requested')}, described as {one.get('described')}"
