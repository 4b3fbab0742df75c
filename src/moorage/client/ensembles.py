"""Calls of tenants: ensembles, decisions, claims, explanations."""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from moorage.client import lookup
from moorage.client.answer import Answer, answer, converted, dry, whole
from moorage.client.errors import Ambiguous, Forbidden, Missing
from moorage.wire.claims import Claim
from moorage.wire.decisions import Decision
from moorage.wire.ensembles import Ensemble, OneEnsemble
from moorage.wire.members import Added, Member

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from moorage.client.transport import Reply, Transport

_HANDLE: Final = re.compile(r"L[0-9]+", re.ASCII)
_OVER: Final = frozenset({"released", "expired"})
"""States of decisions whose places have been released."""


class Ensembles:
    """`/v1/ensembles`."""

    def __init__(self, transport: Transport) -> None:
        self._call = transport.call
        self._transport = transport

    def find(self, text: str) -> str:
        """The id for an id, a name, an id's beginning, or a lease's handle or name.

        A name means the ensemble that is in use, where others that are called so are not any
        more: their lease is over, or their places were given back. A lease's handle (`L3`) goes
        before names, and an ensemble's own name before a lease's.

        Raises:
            Missing: nothing fits.
            Ambiguous: several ensembles do; the error names their leases.
        """
        if lookup.UUID.fullmatch(text):
            return text
        try:
            return self._find(text, {})
        except Missing as missing:
            try:
                return self._find(text, {"all_projects": "true"})
            except Forbidden:
                raise missing from None

    def _find(self, text: str, where: Mapping[str, str]) -> str:
        """As `find`, within listings that `where` narrows or widens."""
        every = list(lookup.pages(self._transport, "/v1/ensembles", "ensembles", where))
        named = [one for one in every if one["name"] == text]
        if len(named) == 1 and not _HANDLE.fullmatch(text):
            return str(named[0]["id"])
        leases = list(lookup.pages(self._transport, "/v1/leases", "leases", where))
        of_lease = [one for one in leases if text == one.get("handle")]
        if not of_lease and not named:
            called = [one for one in leases if text == one["name"]]
            of_lease = [one for one in called if one["status"] != "closed"] or called
        ensembles = {one["ensemble_id"] for one in of_lease if one.get("ensemble_id")}
        fitting = [one for one in every if one["id"] in ensembles] or named
        if len(fitting) > 1:
            over = self._over({str(one["id"]) for one in fitting}, leases, where)
            fitting = [one for one in fitting if one["id"] not in over] or fitting
        if len(fitting) > 1:
            ids = tuple(str(one["id"]) for one in fitting)
            raise Ambiguous("ensemble", text, ids, tuple(_told(one, leases) for one in ids))
        return str(fitting[0]["id"]) if fitting else lookup.pick("ensemble", text, every)

    def _over(
        self,
        ensembles: set[str],
        leases: Iterable[Mapping[str, Any]],
        where: Mapping[str, str],
    ) -> set[str]:
        """The ensembles whose last decision, or the lease it was for, is over."""
        newest: dict[str, Mapping[str, Any]] = {}
        for one in lookup.pages(self._transport, "/v1/decisions", "decisions", where):
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
    ) -> Answer[OneEnsemble]:
        """Create an ensemble, and with `decide` in the description place and hold it at once."""
        reply = self._call(
            "POST", "/v1/ensembles", body={"ensemble": description}, params=dry(dry_run)
        )
        return whole(reply, OneEnsemble)

    def show(self, ensemble_id: str) -> Answer[Ensemble]:
        """One ensemble."""
        reply = self._call("GET", f"/v1/ensembles/{ensemble_id}")
        return answer(reply, "ensemble", Ensemble)

    def judged(self, ensemble_id: str) -> Answer[Ensemble]:
        """One ensemble, with its present violations."""
        reply = self._call("GET", f"/v1/ensembles/{ensemble_id}", params={"compliance": "true"})
        return answer(reply, "ensemble", Ensemble)

    def all(self, *, all_projects: bool = False) -> Answer[list[Ensemble]]:
        """Every ensemble of the caller's project, or of all projects."""
        asked: dict[str, str | int] = {"all_projects": "true"} if all_projects else {}
        body = {"ensembles": [*lookup.pages(self._transport, "/v1/ensembles", "ensembles", asked)]}
        found = converted(body["ensembles"], list[Ensemble])
        return Answer(found, body)

    def change(
        self, ensemble_id: str, change: Mapping[str, Any], *, dry_run: bool = False
    ) -> Answer[OneEnsemble]:
        """Change counts and policies, and with `decide` place anew. Sends its generation."""
        reply = self._call(
            "PATCH",
            f"/v1/ensembles/{ensemble_id}",
            body={"ensemble": change},
            params=dry(dry_run),
        )
        return whole(reply, OneEnsemble)

    def delete(self, ensemble_id: str, generation: int) -> None:
        """Delete it and release its holds, if its generation is unchanged."""
        self._call(
            "DELETE", f"/v1/ensembles/{ensemble_id}", headers={"If-Match": f'"{generation}"'}
        )

    def survivability(self, ensemble_id: str) -> Answer[Any]:
        """How many members survive the loss of one domain, by level."""
        reply = self._call("GET", f"/v1/ensembles/{ensemble_id}/survivability")
        return Answer(reply.body, reply.body, reply.request_id)

    def members(self, ensemble_id: str) -> Answer[list[Member]]:
        """Its members."""
        reply = lookup.whole(self._call, f"/v1/ensembles/{ensemble_id}/members", "members")
        return answer(reply, "members", list[Member])

    def add_member(
        self, ensemble_id: str, member: Mapping[str, Any], *, dry_run: bool = False
    ) -> Answer[Added]:
        """Add a description, or let a running server join."""
        reply = self._call(
            "POST",
            f"/v1/ensembles/{ensemble_id}/members",
            body={"member": member},
            params=dry(dry_run),
        )
        return whole(reply, Added)

    def remove_member(self, ensemble_id: str, name: str, *, keep_resources: bool) -> Reply:
        """Remove a member; with `keep_resources` its resources stay booked."""
        params = {"keep_resources": "true"} if keep_resources else {}
        path = f"/v1/ensembles/{ensemble_id}/members/{quote(name, safe='')}"
        return self._call("DELETE", path, params=params)


def _told(ensemble_id: str, leases: Iterable[Mapping[str, Any]]) -> str:
    """An ensemble with its lease: `1f2e… (lease L3, pending, from 2026-12-07T08:00:00Z)`."""
    of = [one for one in leases if one.get("ensemble_id") == ensemble_id]
    return f"{ensemble_id} (lease {lookup.marks(of[-1])})" if of else ensemble_id


class Decisions:
    """`/v1/decisions`."""

    def __init__(self, transport: Transport) -> None:
        self._call = transport.call
        self._transport = transport

    def find(self, text: str) -> str:
        """The id for an id or its beginning."""
        if lookup.UUID.fullmatch(text):
            return text
        choose = partial(lookup.pick, "decision", text)
        return lookup.search(self._transport, "/v1/decisions", "decisions", choose)

    def decide(self, decision: Mapping[str, Any], *, dry_run: bool = False) -> Answer[Decision]:
        """Place an ensemble jointly and hold the places."""
        reply = self._call(
            "POST", "/v1/decisions", body={"decision": decision}, params=dry(dry_run)
        )
        return answer(reply, "decision", Decision)

    def show(self, decision_id: str) -> Answer[Decision]:
        """One decision."""
        return answer(self._call("GET", f"/v1/decisions/{decision_id}"), "decision", Decision)

    def all(
        self, *, ensemble_id: str | None = None, all_projects: bool = False
    ) -> Answer[list[Decision]]:
        """Decisions, newest first."""
        asked: dict[str, str | int] = {} if ensemble_id is None else {"ensemble_id": ensemble_id}
        if all_projects:
            asked["all_projects"] = "true"
        body = {"decisions": [*lookup.pages(self._transport, "/v1/decisions", "decisions", asked)]}
        found = converted(body["decisions"], list[Decision])
        return Answer(found, body)

    def renew(self, decision_id: str, hold: str, generation: int) -> Answer[Decision]:
        """Extend the hold from now on, if its generation is unchanged."""
        change = {"hold": hold, "generation": generation}
        reply = self._call("PATCH", f"/v1/decisions/{decision_id}", body={"decision": change})
        return answer(reply, "decision", Decision)

    def confirm(self, decision_id: str, *, dry_run: bool = False) -> Answer[Any]:
        """Confirm it: claimed places stay, unclaimed ones are freed."""
        path = f"/v1/decisions/{decision_id}/confirm"
        reply = self._call("POST", path, body={}, params=dry(dry_run))
        return Answer(reply.body, reply.body, reply.request_id)

    def release(self, decision_id: str, generation: int) -> Reply:
        """Release the places, if its generation is unchanged."""
        return self._call(
            "DELETE", f"/v1/decisions/{decision_id}", headers={"If-Match": f'"{generation}"'}
        )


class Claims:
    """`/v1/decisions/{id}/claims` and `/v1/claims`."""

    def __init__(self, transport: Transport) -> None:
        self._call = transport.call

    @staticmethod
    def anew(body: Mapping[str, Any]) -> Decision | None:
        """The decision in the answer that placed the claim's member anew, if there is one."""
        found = body.get("decision")
        return None if found is None else converted(found, Decision)

    def create(self, decision_id: str, claim: Mapping[str, Any]) -> Answer[Claim]:
        """Claim a member's place for the described server."""
        reply = self._call("POST", f"/v1/decisions/{decision_id}/claims", body={"claim": claim})
        return answer(reply, "claim", Claim)

    def all(self, decision_id: str) -> Answer[list[Claim]]:
        """The claims of a decision, oldest first."""
        reply = lookup.whole(self._call, f"/v1/decisions/{decision_id}/claims", "claims")
        return answer(reply, "claims", list[Claim])

    def show(self, claim_id: str) -> Answer[Claim]:
        """One claim."""
        return answer(self._call("GET", f"/v1/claims/{claim_id}"), "claim", Claim)

    def set(self, claim_id: str, change: Mapping[str, Any]) -> Answer[Claim]:
        """Report the result of the server's build."""
        reply = self._call("PATCH", f"/v1/claims/{claim_id}", body={"claim": change})
        return answer(reply, "claim", Claim)


class Explanations:
    """`/v1/explanations`."""

    def __init__(self, transport: Transport) -> None:
        self._call = transport.call
        self._transport = transport

    def find(self, text: str) -> str:
        """The id for an id or its beginning."""
        if lookup.UUID.fullmatch(text):
            return text
        choose = partial(lookup.pick, "explanation", text)
        return lookup.search(self._transport, "/v1/explanations", "explanations", choose)

    def all(
        self,
        *,
        ensemble: str | None = None,
        stage: str | None = None,
        since: str | None = None,
        project_id: str | None = None,
        all_projects: bool = False,
    ) -> Answer[list[Mapping[str, Any]]]:
        """Stored refusals, newest first."""
        said = {
            "ensemble": ensemble,
            "stage": stage,
            "since": since,
            "project_id": project_id,
            "all_projects": "true" if all_projects else None,
        }
        asked = {name: value for name, value in said.items() if value}
        pages = lookup.replies(self._call, "/v1/explanations", "explanations", asked)
        found = [one for reply in pages for one in reply.body["explanations"]]
        return Answer(found, {"explanations": found})

    def show(self, explanation_id: str, *, instance: bool = False) -> Answer[Any]:
        """One explanation; operators may have its replayable instance too."""
        params = {"instance": "true"} if instance else {}
        reply = self._call("GET", f"/v1/explanations/{explanation_id}", params=params)
        return Answer(reply.body["explanation"], reply.body, reply.request_id)
