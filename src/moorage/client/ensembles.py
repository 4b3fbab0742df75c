"""Calls of tenants: ensembles, decisions, claims, explanations."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from moorage.client import lookup
from moorage.client.errors import Ambiguous, Missing
from moorage.client.lookup import WHOLE
from moorage.client.resource import Answer, Resource, answer, converted
from moorage.wire.claims import Claim
from moorage.wire.compliance import Compliance, ViolationRecord
from moorage.wire.decision_records import DecisionRecord
from moorage.wire.decisions import Decision
from moorage.wire.ensembles import Ensemble, OneEnsemble
from moorage.wire.growth import Extended, Headroom, Shrunk
from moorage.wire.members import Added, Member, Removed

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from moorage.client.lookup import Part
    from moorage.client.transport import Reply

_HANDLE: Final = re.compile(r"L[0-9]+", re.ASCII)


class Ensembles(Resource):
    """`/v1/ensembles`."""

    path, one, many = "/v1/ensembles", "ensemble", "ensembles"

    def find(self, text: str) -> str:
        """The id for an id, a name, an id's beginning, or a lease's handle or name.

        A name means the ensemble that is in use, where others that are called so are not any
        more: their lease is over, or their places were given back. A lease's handle (`L3`) goes
        before names, and an ensemble's own name before a lease's. Both are looked for in the
        caller's project, and names also among ensembles with a role of it; operators find others
        by ids.

        Raises:
            Missing: nothing fits.
            Ambiguous: several ensembles do; the error names their leases.
        """
        if lookup.UUID.fullmatch(text):
            return text
        try:
            return self._find(text)
        except Missing:
            if (shared := self._shared(text)) is not None:
                return shared
            # What no project of the caller has, operators find by its id.
            return lookup.search(
                self._transport,
                self.path,
                self.many,
                lambda every: lookup.pick(self.one, text, every),
            )

    def _shared(self, text: str) -> str | None:
        """The id of another project's ensemble that the caller's project has a role in."""
        shares = lookup.pages(self._transport, "/v1/shares", "shares")
        found = {one["ensemble_id"]: one["ensemble"] for one in shares}
        try:
            items = [{"id": id_, "name": name} for id_, name in found.items()]
            return lookup.pick("ensemble", text, items)
        except Missing:
            return None

    def _find(self, text: str) -> str:
        """As `find`, in the caller's project."""
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
            raise Ambiguous("ensemble", text, ids, tuple(_with_lease(one, leases) for one in ids))
        return str(fitting[0]["id"]) if fitting else lookup.pick("ensemble", text, every)

    def _over(self, ensembles: set[str], leases: Iterable[Mapping[str, Any]]) -> set[str]:
        """The ensembles whose lease is over, or that were decided and have no place any more."""
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
            if one.get("lease_id") in closed
            or (one["status"] != "held" and self._is_left(ensemble))
        }

    def _is_left(self, ensemble_id: str) -> bool:
        """Whether no member has a place."""
        return all(one.status == "unplaced" for one in self.each_member(ensemble_id))

    def create(
        self, description: Mapping[str, Any], *, dry_run: bool = False
    ) -> Answer[OneEnsemble]:
        """Create an ensemble, and with `decide` in the description place and hold it at once."""
        return self._send("POST", "", {"ensemble": description}, OneEnsemble, dry_run=dry_run)

    def show(self, ensemble_id: str) -> Answer[Ensemble]:
        """One ensemble."""
        return self._get(Ensemble, f"/{ensemble_id}")

    def judged(self, ensemble_id: str) -> Answer[Ensemble]:
        """One ensemble, with its present violations."""
        return self._get(Ensemble, f"/{ensemble_id}", compliance=True)

    def compliance(self, ensemble_id: str, *, history: bool = False) -> Answer[Compliance]:
        """How it complies now; with its newest violations that have ended, if so asked."""
        return self._get(Compliance, f"/{ensemble_id}/compliance", "compliance", history=history)

    def named(self, name: str) -> Ensemble | None:
        """The ensemble of the caller's project with exactly this name; None: there is none.

        Raises:
            Ambiguous: several in use have it.
        """
        found = self._all(Ensemble, name=name).value
        if not found:
            return None
        return self.show(found[0].id if len(found) == 1 else self._find(name)).value

    def all(
        self,
        *,
        all_projects: bool = False,
        part: Part = WHOLE,
    ) -> Answer[list[Ensemble]]:
        """The ensembles of the caller's project, or of all projects, or the first ones of them."""
        return self._all(Ensemble, part=part, all_projects=all_projects)

    def each(self, *, name: str | None = None, all_projects: bool = False) -> Iterator[Ensemble]:
        """As `all`, page after page as they are asked for."""
        return self._each(Ensemble, name=name, all_projects=all_projects)

    def change(
        self, ensemble_id: str, change: Mapping[str, Any], *, dry_run: bool = False
    ) -> Answer[OneEnsemble]:
        """Change counts and policies, and with `decide` place anew. Sends its generation."""
        path, body = f"/{ensemble_id}", {"ensemble": change}
        return self._send("PATCH", path, body, OneEnsemble, dry_run=dry_run)

    def delete(self, ensemble_id: str, generation: int, *, leases: bool = False) -> Reply:
        """Delete it and release its holds, if its generation is unchanged; or with its lease."""
        cascade = "leases" if leases else None
        return self._delete(f"/{ensemble_id}", generation=generation, cascade=cascade)

    def extend(
        self, ensemble_id: str, extension: Mapping[str, Any], *, dry_run: bool = False
    ) -> Answer[Extended]:
        """Decide more members beside those that there are."""
        path, body = f"/{ensemble_id}/extend", {"extend": extension}
        return self._send("POST", path, body, Extended, "extend", dry_run=dry_run)

    def shrink(
        self, ensemble_id: str, reduction: Mapping[str, Any], *, dry_run: bool = False
    ) -> Answer[Shrunk]:
        """Take members out so that the policies keep holding."""
        path, body = f"/{ensemble_id}/shrink", {"shrink": reduction}
        return self._send("POST", path, body, Shrunk, "shrink", dry_run=dry_run)

    def headroom(
        self, ensemble_id: str, role: str, count: int, *, dry_run: bool = False
    ) -> Answer[Headroom]:
        """Hold places for so many more members of a role, until another number is set."""
        path, body = f"/{ensemble_id}/headroom", {"headroom": {"role": role, "count": count}}
        return self._send("PUT", path, body, Headroom, "headroom", dry_run=dry_run)

    def survivability(self, ensemble_id: str) -> Answer[dict[str, Any]]:
        """How many members survive the loss of one domain, by level."""
        return self._get(dict[str, Any], f"/{ensemble_id}/survivability", None)

    def members(self, ensemble_id: str) -> Answer[list[Member]]:
        """Its members."""
        reply = lookup.whole(self._call, f"{self.path}/{ensemble_id}/members", "members")
        return answer(reply, "members", list[Member])

    def each_member(self, ensemble_id: str) -> Iterator[Member]:
        """As `members`, page after page as they are asked for."""
        return self._each(Member, f"/{ensemble_id}/members", "members")

    def member(self, ensemble_id: str, name: str) -> Answer[Member]:
        """One member."""
        return self._get(Member, f"/{ensemble_id}/members/{quote(name, safe='')}", "member")

    def add_member(
        self, ensemble_id: str, member: Mapping[str, Any], *, dry_run: bool = False
    ) -> Answer[Added]:
        """Add a description, or let a running server join."""
        path, body = f"/{ensemble_id}/members", {"member": member}
        return self._send("POST", path, body, Added, dry_run=dry_run)

    def remove_member(
        self, ensemble_id: str, name: str, *, keep_resources: bool, dry_run: bool = False
    ) -> Answer[Removed]:
        """Remove a member: what that freed, and which policies break by it.

        The place of a server being built is freed, too; with `keep_resources` such a member is not
        removed.
        """
        path = f"/{ensemble_id}/members/{quote(name, safe='')}"
        reply = self._delete(path, keep_resources=keep_resources, dry_run=dry_run)
        return self._decoded(reply, Removed, "removed")


def _with_lease(ensemble_id: str, leases: Iterable[Mapping[str, Any]]) -> str:
    """An ensemble with its lease: `1f2e… (lease L3, pending, from 2026-12-07T08:00:00Z)`."""
    of = [one for one in leases if one.get("ensemble_id") == ensemble_id]
    return f"{ensemble_id} (lease {lookup.marks(of[-1])})" if of else ensemble_id


class Decisions(Resource):
    """`/v1/decisions`."""

    path, one, many = "/v1/decisions", "decision", "decisions"

    def decide(self, decision: Mapping[str, Any], *, dry_run: bool = False) -> Answer[Decision]:
        """Place an ensemble jointly and hold the places."""
        body = {"decision": decision}
        return self._send("POST", "", body, Decision, "decision", dry_run=dry_run)

    def show(self, decision_id: str) -> Answer[Decision]:
        """One decision."""
        return self._get(Decision, f"/{decision_id}")

    def record(self, decision_id: str, *, instance: bool = False) -> Answer[DecisionRecord]:
        """A decision's record; operators may have its replayable instance too."""
        return self._get(DecisionRecord, f"/{decision_id}/record", "record", instance=instance)

    def all(
        self,
        *,
        ensemble_id: str | None = None,
        all_projects: bool = False,
        part: Part = WHOLE,
    ) -> Answer[list[Decision]]:
        """Decisions, newest first, or the first ones of an order."""
        return self._all(Decision, part=part, ensemble_id=ensemble_id, all_projects=all_projects)

    def each(
        self, *, ensemble_id: str | None = None, all_projects: bool = False
    ) -> Iterator[Decision]:
        """As `all`, page after page as they are asked for."""
        return self._each(Decision, ensemble_id=ensemble_id, all_projects=all_projects)

    def renew(self, decision_id: str, hold: str, generation: int) -> Answer[Decision]:
        """Extend the hold from now on, if its generation is unchanged."""
        body = {"decision": {"hold": hold, "generation": generation}}
        return self._send("PATCH", f"/{decision_id}", body, Decision, "decision")

    def confirm(self, decision_id: str, *, dry_run: bool = False) -> Answer[dict[str, Any]]:
        """Confirm it: claimed places stay, unclaimed ones are freed."""
        path = f"/{decision_id}/confirm"
        return self._send("POST", path, {}, dict[str, Any], dry_run=dry_run)

    def release(self, decision_id: str, generation: int) -> Reply:
        """Release the places, if its generation is unchanged."""
        return self._delete(f"/{decision_id}", generation=generation)


class Claims(Resource):
    """`/v1/decisions/{id}/claims` and `/v1/claims`."""

    path, one, many = "/v1", "claim", "claims"

    @staticmethod
    def redecision(body: Mapping[str, Any]) -> Decision | None:
        """The decision in the answer that placed the claim's member anew, if there is one."""
        found = body.get("decision")
        return None if found is None else converted(found, Decision)

    def create(self, decision_id: str, claim: Mapping[str, Any]) -> Answer[Claim]:
        """Claim a member's place for the described server."""
        path = f"/decisions/{decision_id}/claims"
        return self._send("POST", path, {"claim": claim}, Claim, "claim")

    def all(self, decision_id: str) -> Answer[list[Claim]]:
        """The claims of a decision, oldest first."""
        reply = lookup.whole(self._call, f"/v1/decisions/{decision_id}/claims", "claims")
        return answer(reply, "claims", list[Claim])

    def each(self, decision_id: str) -> Iterator[Claim]:
        """As `all`, page after page as they are asked for."""
        return self._each(Claim, f"/decisions/{decision_id}/claims")

    def show(self, claim_id: str) -> Answer[Claim]:
        """One claim."""
        return self._get(Claim, f"/claims/{claim_id}")

    def set(self, claim_id: str, change: Mapping[str, Any]) -> Answer[Claim]:
        """Report the result of the server's build."""
        return self._send("PATCH", f"/claims/{claim_id}", {"claim": change}, Claim, "claim")


class Violations(Resource):
    """`/v1/violations`."""

    path, one, many = "/v1/violations", "violation", "violations"

    def all(  # noqa: PLR0913 - each filter of a listing has its name
        self,
        *,
        ensemble: str | None = None,
        host: str | None = None,
        types: Sequence[str] = (),
        required: bool | None = None,
        state: str | None = None,
        since: str | None = None,
        project_id: str | None = None,
        all_projects: bool = False,
        part: Part = WHOLE,
    ) -> Answer[list[ViolationRecord]]:
        """Broken policies and members out of service, newest first, or the first ones of them."""
        given: dict[str, object] = {
            "ensemble": ensemble,
            "host": host,
            "type": ",".join(types),
            "required": None if required is None else str(required).lower(),
            "state": state,
            "since": since,
            "project_id": project_id,
        }
        return self._all(
            ViolationRecord, "", self.many, part=part, all_projects=all_projects, **given
        )


class Explanations(Resource):
    """`/v1/explanations`."""

    path, one, many = "/v1/explanations", "explanation", "explanations"

    def all(
        self,
        *,
        ensemble: str | None = None,
        stage: str | None = None,
        since: str | None = None,
        project_id: str | None = None,
        all_projects: bool = False,
        part: Part = WHOLE,
    ) -> Answer[list[dict[str, Any]]]:
        """Stored refusals, newest first, or the first ones of an order."""
        given: dict[str, object] = {
            "ensemble": ensemble,
            "stage": stage,
            "since": since,
            "project_id": project_id,
        }
        return self._all(
            dict[str, Any], "", self.many, part=part, all_projects=all_projects, **given
        )

    def show(self, explanation_id: str, *, instance: bool = False) -> Answer[dict[str, Any]]:
        """One explanation; operators may have its replayable instance too."""
        return self._get(dict[str, Any], f"/{explanation_id}", instance=instance)
