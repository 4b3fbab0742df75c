"""The tenant's nouns: ensembles, decisions, claims, explanations."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, TypeVar
from urllib.parse import quote

import msgspec

from moorage.client import lookup, structs
from moorage.client.errors import Ambiguous
from moorage.client.structs import Answer

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from moorage.client.transport import Reply, Transport

T = TypeVar("T")
_HANDLE: Final = re.compile(r"L[0-9]+", re.ASCII)
_OVER: Final = frozenset({"released", "expired"})
"""States of decisions whose places nobody has any more."""


def answer(reply: Reply, key: str, kind: type[T]) -> Answer[T]:
    """Decode the part of a reply that a key names."""
    value = msgspec.convert(reply.body[key], kind, strict=False)
    return Answer(value, reply.body, reply.request_id)


def made(reply: Reply) -> Answer[structs.Created]:
    """Decode a reply that may carry an ensemble, a decision or both."""
    value = msgspec.convert(reply.body, structs.Created, strict=False)
    return Answer(value, reply.body, reply.request_id)


def dry(dry_run: bool) -> dict[str, str]:  # noqa: FBT001 - it is the API's parameter itself
    """The query of a dry run."""
    return {"dry_run": "true"} if dry_run else {}


class Ensembles:
    """`/v1/ensembles`."""

    def __init__(self, transport: Transport) -> None:
        self._call = transport.call
        self._transport = transport

    def find(self, text: str) -> str:
        """The id that an id, a name or an id's beginning means, or a lease's handle or name.

        A name means the ensemble that is in use, where others that are called so are not any
        more: their lease is over, or their places were given back. A lease's handle (`L3`) goes
        before names, and an ensemble's own name before a lease's.

        Raises:
            Missing: nothing fits.
            Ambiguous: several ensembles do; the error tells of which leases they are.
        """
        if lookup.UUID.fullmatch(text):
            return text
        every = list(lookup.pages(self._transport, "/v1/ensembles", "ensembles"))
        named = [one for one in every if one["name"] == text]
        if len(named) == 1 and not _HANDLE.fullmatch(text):
            return str(named[0]["id"])
        leases = list(lookup.pages(self._transport, "/v1/leases", "leases"))
        of_lease = [one for one in leases if text == one.get("handle")]
        if not of_lease and not named:
            called = [one for one in leases if text == one["name"]]
            of_lease = [one for one in called if one["status"] != "closed"] or called
        ensembles = {one["ensemble_id"] for one in of_lease if one.get("ensemble_id")}
        fitting = [one for one in every if one["id"] in ensembles] or named
        if len(fitting) > 1:
            over = self._over({str(one["id"]) for one in fitting}, leases)
            fitting = [one for one in fitting if one["id"] not in over] or fitting
        if len(fitting) > 1:
            ids = tuple(str(one["id"]) for one in fitting)
            raise Ambiguous("ensemble", text, ids, tuple(_told(one, leases) for one in ids))
        return str(fitting[0]["id"]) if fitting else lookup.pick("ensemble", text, every)

    def _over(self, ensembles: set[str], leases: Iterable[Mapping[str, Any]]) -> set[str]:
        """Those of some ensembles whose last decision, or the lease it was for, is over."""
        newest: dict[str, Mapping[str, Any]] = {}
        for one in lookup.pages(self._transport, "/v1/decisions", "decisions"):
            if one["ensemble_id"] in ensembles:
                newest.setdefault(one["ensemble_id"], one)
            if len(newest) == len(ensembles):
                break
        closed = {one["id"] for one in leases if one["status"] == "closed"}
        return {
            ensemble
            for ensemble, one in newest.items()
            if one["status"] in _OVER or one.get("lease_id") in closed
        }

    def create(
        self, description: Mapping[str, Any], *, dry_run: bool = False
    ) -> Answer[structs.Created]:
        """Create, and with `decide` in the description place and hold at once."""
        reply = self._call(
            "POST", "/v1/ensembles", body={"ensemble": description}, params=dry(dry_run)
        )
        return made(reply)

    def show(self, ensemble_id: str) -> Answer[structs.Ensemble]:
        """One ensemble."""
        reply = self._call("GET", f"/v1/ensembles/{ensemble_id}")
        return answer(reply, "ensemble", structs.Ensemble)

    def judged(self, ensemble_id: str) -> Answer[structs.Ensemble]:
        """One ensemble, with what its members violate where they stand now."""
        reply = self._call("GET", f"/v1/ensembles/{ensemble_id}", params={"compliance": "true"})
        return answer(reply, "ensemble", structs.Ensemble)

    def all(self, *, all_projects: bool = False) -> Answer[list[structs.Ensemble]]:
        """Every ensemble of the caller's project, or of all projects."""
        asked: dict[str, str | int] = {"all_projects": "true"} if all_projects else {}
        body = {"ensembles": [*lookup.pages(self._transport, "/v1/ensembles", "ensembles", asked)]}
        found = msgspec.convert(body["ensembles"], list[structs.Ensemble], strict=False)
        return Answer(found, body)

    def change(
        self, ensemble_id: str, change: Mapping[str, Any], *, dry_run: bool = False
    ) -> Answer[structs.Created]:
        """Change counts and policies, and with `decide` place anew. Names its generation."""
        reply = self._call(
            "PATCH",
            f"/v1/ensembles/{ensemble_id}",
            body={"ensemble": change},
            params=dry(dry_run),
        )
        return made(reply)

    def delete(self, ensemble_id: str, generation: int) -> None:
        """Forget it and release its holds, if it is still at that generation."""
        self._call(
            "DELETE", f"/v1/ensembles/{ensemble_id}", headers={"If-Match": f'"{generation}"'}
        )

    def survivability(self, ensemble_id: str) -> Answer[Any]:
        """What it survives, by level."""
        reply = self._call("GET", f"/v1/ensembles/{ensemble_id}/survivability")
        return Answer(reply.body, reply.body, reply.request_id)

    def members(self, ensemble_id: str) -> Answer[list[structs.Member]]:
        """Its members."""
        reply = self._call("GET", f"/v1/ensembles/{ensemble_id}/members")
        return answer(reply, "members", list[structs.Member])

    def add_member(
        self, ensemble_id: str, member: Mapping[str, Any], *, dry_run: bool = False
    ) -> Answer[structs.Created]:
        """Add a description, or let a running server join."""
        reply = self._call(
            "POST",
            f"/v1/ensembles/{ensemble_id}/members",
            body={"member": member},
            params=dry(dry_run),
        )
        return made(reply)

    def remove_member(self, ensemble_id: str, name: str, *, keep_resources: bool) -> Reply:
        """Take a member out; its resources stay booked if they are to be kept."""
        params = {"keep_resources": "true"} if keep_resources else {}
        path = f"/v1/ensembles/{ensemble_id}/members/{quote(name, safe='')}"
        return self._call("DELETE", path, params=params)


def _told(ensemble_id: str, leases: Iterable[Mapping[str, Any]]) -> str:
    """`1f2e… (lease L3, pending, from 2026-12-07T08:00:00Z)`."""
    of = [one for one in leases if one.get("ensemble_id") == ensemble_id]
    said = f"lease {lookup.marks(of[-1])}" if of else "of no lease"
    return f"{ensemble_id} ({said})"


class Decisions:
    """`/v1/decisions`."""

    def __init__(self, transport: Transport) -> None:
        self._call = transport.call
        self._transport = transport

    def find(self, text: str) -> str:
        """The id that an id or its beginning means."""
        if lookup.UUID.fullmatch(text):
            return text
        return lookup.pick(
            "decision", text, lookup.pages(self._transport, "/v1/decisions", "decisions")
        )

    def decide(
        self, decision: Mapping[str, Any], *, dry_run: bool = False
    ) -> Answer[structs.Decision]:
        """Place an ensemble jointly and hold the places."""
        reply = self._call(
            "POST", "/v1/decisions", body={"decision": decision}, params=dry(dry_run)
        )
        return answer(reply, "decision", structs.Decision)

    def show(self, decision_id: str) -> Answer[structs.Decision]:
        """One decision."""
        return answer(
            self._call("GET", f"/v1/decisions/{decision_id}"), "decision", structs.Decision
        )

    def all(self, *, ensemble_id: str | None = None) -> Answer[list[structs.Decision]]:
        """Decisions, newest first."""
        asked: dict[str, str | int] = {} if ensemble_id is None else {"ensemble_id": ensemble_id}
        body = {"decisions": [*lookup.pages(self._transport, "/v1/decisions", "decisions", asked)]}
        found = msgspec.convert(body["decisions"], list[structs.Decision], strict=False)
        return Answer(found, body)

    def renew(self, decision_id: str, hold: str, generation: int) -> Answer[structs.Decision]:
        """Hold for so long from now on, if it is still at that generation."""
        change = {"hold": hold, "generation": generation}
        reply = self._call("PATCH", f"/v1/decisions/{decision_id}", body={"decision": change})
        return answer(reply, "decision", structs.Decision)

    def confirm(self, decision_id: str) -> Answer[Any]:
        """Close: claimed places stay, unclaimed ones are freed."""
        reply = self._call("POST", f"/v1/decisions/{decision_id}/confirm", body={})
        return Answer(reply.body, reply.body, reply.request_id)

    def release(self, decision_id: str, generation: int) -> Reply:
        """Give the places back, if it is still at that generation."""
        return self._call(
            "DELETE", f"/v1/decisions/{decision_id}", headers={"If-Match": f'"{generation}"'}
        )


class Claims:
    """`/v1/decisions/{id}/claims` and `/v1/claims`."""

    def __init__(self, transport: Transport) -> None:
        self._call = transport.call

    @staticmethod
    def anew(body: Mapping[str, Any]) -> structs.Decision | None:
        """The decision that placed the claim's member anew, if the answer carries one."""
        found = body.get("decision")
        return None if found is None else msgspec.convert(found, structs.Decision, strict=False)

    def create(self, decision_id: str, claim: Mapping[str, Any]) -> Answer[structs.Claim]:
        """Take a member's place for the server described."""
        reply = self._call("POST", f"/v1/decisions/{decision_id}/claims", body={"claim": claim})
        return answer(reply, "claim", structs.Claim)

    def all(self, decision_id: str) -> Answer[list[structs.Claim]]:
        """The claims of a decision, oldest first."""
        reply = self._call("GET", f"/v1/decisions/{decision_id}/claims")
        return answer(reply, "claims", list[structs.Claim])

    def show(self, claim_id: str) -> Answer[structs.Claim]:
        """One claim."""
        return answer(self._call("GET", f"/v1/claims/{claim_id}"), "claim", structs.Claim)

    def set(self, claim_id: str, change: Mapping[str, Any]) -> Answer[structs.Claim]:
        """Report what became of the server."""
        reply = self._call("PATCH", f"/v1/claims/{claim_id}", body={"claim": change})
        return answer(reply, "claim", structs.Claim)


class Explanations:
    """`/v1/explanations`."""

    def __init__(self, transport: Transport) -> None:
        self._call = transport.call

    def show(self, explanation_id: str, *, instance: bool = False) -> Answer[Any]:
        """One explanation; operators may have its replayable instance with it."""
        params = {"instance": "true"} if instance else {}
        reply = self._call("GET", f"/v1/explanations/{explanation_id}", params=params)
        return Answer(reply.body["explanation"], reply.body, reply.request_id)
