"""The claim of the place that a server names: a member's, or one that the server joins as."""

from __future__ import annotations

import random
import re
from dataclasses import replace
from http import HTTPStatus
from shlex import quote
from typing import TYPE_CHECKING, Any, Final

from moorage.nova_filter.hints import (
    GROUP,
    Place,
    Refusal,
    is_imported,
    is_joinable,
    members_at,
    several,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from moorage.nova_filter.native_api import NativeApi

TRIED: Final = 20
"""Members that are tried after one listing, where other servers take them at the same time."""
LISTED: Final = 5
"""How often the members are listed for one server."""
JOINED: Final = 20
"""How often the members are listed for a server that joins, while others join."""
HOLD: Final = "PT2M"
"""How long a place is held for a server that joins, until it is claimed."""
_MISMATCH: Final = "description_mismatch"
"""The code of the refusal of a server that differs from its role."""
_TAKEN: Final = "taken"
_MEANWHILE: Final = {_TAKEN, "concurrent_update", "not_found"}
"""Codes of refusals of what another server that joins may have changed meanwhile."""
_UNNAMABLE: Final = re.compile(r"^[^A-Za-z0-9_]|[^A-Za-z0-9_./:-]")
"""What the names of flavors have and those of roles have not."""


def claimed_place(calls: NativeApi, place: Place, server: Mapping[str, Any]) -> str | None:
    """The id of a claim of the named place; None: the group or stack is none of Moorage's.

    Raises:
        Refusal: there is no such place, it is taken, or the server differs from its role.
        Unanswered: Moorage does not answer.
    """
    if place.path is not None:
        in_stack = _in_stack(calls, place)
        ensemble, place = in_stack or (None, place)
    else:
        ensemble = calls.ensemble(place)
    if ensemble is None:
        return None
    named = _named(calls, ensemble, place)
    held = _held(named)
    if not held and place.named_by == GROUP and is_imported(ensemble):
        return None
    name = ensemble["name"]
    joins = place.named_by == GROUP and is_joinable(ensemble)
    if joins and several(server):
        text = (
            f"servers join group {name} one by one, and this request is for several: create each"
            " by a request of its own (no --min, --max)"
        )
        add = f"moorage member add {quote(name)} --role ROLE --flavor FLAVOR --count N --hold 10m"
        flavors = f"moorage decision flavors {quote(name)}"
        raise Refusal(
            400, f"{text}; or to place N at once: {add}; then create them by its flavor: {flavors}"
        )
    if several(server):
        text = "a hint names the place of one server; for several use the role's ticket flavor"
        raise Refusal(400, f"{text}; to see it: moorage decision flavors {quote(name)}")
    if joins:
        return _joined(calls, ensemble, server)
    if not named and place.role is None:
        text = f"ensemble {name} has no members yet"
        raise Refusal(409, f"{text}; to add some: moorage member add {quote(name)} --role ROLE")
    if not named:
        text = f"ensemble {name} has no {place.told}"
        raise Refusal(404, f"{text}; to see its members: moorage ensemble show {quote(name)}")
    return _one_of(calls, ensemble, place, held, server)


def _in_stack(calls: NativeApi, place: Place) -> tuple[dict[str, Any], Place] | None:
    """A stack's ensemble, and the place with the names of the members at its path.

    None: Moorage does not know the stack, or there is nothing to take: no member is at the path, or
    all there have servers. Heat makes a server that replaces another before it deletes that.

    Raises:
        Unanswered: Moorage does not answer.
    """
    stack = calls.stack(place.ensemble)
    names = members_at(stack["keys"], str(place.path)) if stack is not None else ()
    if stack is None or not names:
        return None
    found = replace(place, names=names)
    ensemble = {**stack["ensemble"], "decision": stack["decision"]}
    if all(one["server_id"] for one in _named(calls, ensemble, found)):
        return None
    return ensemble, found


def _one_of(
    calls: NativeApi,
    ensemble: Mapping[str, Any],
    place: Place,
    held: list[dict[str, Any]],
    server: Mapping[str, Any],
) -> str:
    """The id of a claim of one of the held members, or of one that is held after others took these.

    Raises:
        Refusal: none can be had.
        Unanswered: Moorage does not answer.
    """
    decision = str((ensemble.get("decision") or {}).get("id"))
    last: Refusal | None = None
    for _ in range(LISTED):
        for member in _in_order(held)[:TRIED]:
            try:
                return calls.claim(decision, member["name"], server)
            except Refusal as refusal:
                if refusal.status not in {HTTPStatus.CONFLICT, HTTPStatus.NOT_FOUND}:
                    raise
                last = refusal
        before, held = held, _held(_named(calls, ensemble, place))
        if not held or held == before:
            break  # it is not others who are in the way
    name = ensemble["name"]
    raise last or Refusal(
        409,
        f"no place of ensemble {name} is held and unclaimed for {place.told}"
        f"; to see its places: moorage ensemble show {quote(name)}"
        f"; to place members without one: moorage decision create {quote(name)} --hold 10m",
    )


def _named(calls: NativeApi, ensemble: Mapping[str, Any], place: Place) -> list[dict[str, Any]]:
    """The members of the ensemble that a place names; without a role only the caller's own."""
    name = place.one_name
    if name is None:
        found = [one for one in calls.members(ensemble["id"]) if place.is_one(one)]
        if place.role is not None:
            return found
        roles = ensemble.get("members", ())
        others = {one["name"] for one in roles if one.get("others")}
        return [one for one in found if one["role"] not in others]
    try:
        return [calls.member(ensemble["id"], name)]
    except Refusal as refusal:
        if refusal.status != HTTPStatus.NOT_FOUND:
            raise
        return []


def _held(members: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [one for one in members if one["status"] == "held"]


def _in_order(members: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The members in the order in which they are tried.

    First the first of each role, as the server may be any's; then the others at random, one of
    each role after the other, so that servers created at once seldom try the same one.
    """
    firsts = list({one["role"]: one for one in reversed(members)}.values())[::-1]
    others = [one for one in members if one not in firsts]
    seen: dict[str, int] = {}
    ranked = []
    for number, one in enumerate(random.sample(others, len(others))):
        seen[one["role"]] = seen.get(one["role"], 0) + 1
        ranked.append((seen[one["role"]], number, one))
    return [*firsts, *(one for *_, one in sorted(ranked, key=lambda rank: rank[:2]))]


def _joined(calls: NativeApi, ensemble: Mapping[str, Any], server: Mapping[str, Any]) -> str:
    """The id of a claim of a member that the server becomes, in a role of its flavor.

    A place that is held in any role of the flavor is taken first, also one that is held for a
    server which joins at the same time: that one then adds a member, too. Described members whose
    holds have lapsed are placed again before a member is added. Members are added to the role that
    has the flavor's name.

    Raises:
        Refusal: there is no place for one more, or Moorage does not know the flavor.
        Unanswered: Moorage does not answer.
    """
    flavor = calls.flavor_name(server)
    role = _UNNAMABLE.sub("-", flavor)
    unfit: set[str] = set()
    last: Refusal | None = None
    for _ in range(JOINED):
        members = list(calls.members(ensemble["id"]))
        # The ensemble after its members: they may be of a decision that was made meanwhile.
        found = calls.ensemble(Place(ensemble["id"])) or ensemble
        roles = _described(flavor, found) - {role}
        described = [one for one in members if one["role"] in roles and one["name"] not in unfit]
        came = [one for one in members if one["role"] == role]
        held = _held([*described, *came])
        try:
            if held:
                return _first_claim(calls, found, held, server, unfit)
            if _without_a_place(described):
                calls.decide(ensemble["id"], found["decision"])
            else:
                _add_one(calls, found, came, {"name": role, "flavor": flavor})
        except Refusal as refusal:
            if refusal.code not in _MEANWHILE:
                raise
            last = refusal
    raise last or Refusal(503, f"too many servers join group {ensemble['name']} at once; try again")


def _first_claim(
    calls: NativeApi,
    ensemble: Mapping[str, Any],
    held: list[dict[str, Any]],
    server: Mapping[str, Any],
    unfit: set[str],
) -> str:
    """The id of a claim of one of the held members.

    Members whose description the server does not match are added to `unfit`; if one is there
    already, its refusal is final.

    Raises:
        Refusal: none can be had; that of the last one that was tried, as if others had taken it.
        Unanswered: Moorage does not answer.
    """
    last = Refusal(HTTPStatus.CONFLICT, "no place is held")
    for member in random.sample(held, min(len(held), TRIED)):
        try:
            return calls.claim(str(ensemble["decision"]["id"]), member["name"], server)
        except Refusal as refusal:
            if refusal.status not in {HTTPStatus.CONFLICT, HTTPStatus.NOT_FOUND}:
                raise
            if refusal.code == _MISMATCH and member["name"] in unfit:
                raise
            if refusal.code == _MISMATCH:
                unfit.add(member["name"])
            last = refusal
    raise Refusal(last.status, last.message, _TAKEN)


def _without_a_place(members: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Those whose servers were never built, and whose holds have lapsed."""
    return [one for one in members if one["status"] == "unplaced" and one["server_id"] is None]


def _described(flavor: str, ensemble: Mapping[str, Any]) -> set[str]:
    """The caller's own roles that are described with the flavor."""
    roles = ensemble["members"]
    return {one["name"] for one in roles if one.get("flavor") == flavor and not one.get("others")}


def _add_one(
    calls: NativeApi,
    ensemble: Mapping[str, Any],
    members: list[dict[str, Any]],
    role: dict[str, Any],
) -> None:
    """Add a member to the role, or with the role, in place of those whose servers were never built.

    Raises:
        Refusal: there is no place for it.
        Unanswered: Moorage does not answer.
    """
    for member in _without_a_place(members):
        calls.remove_member(ensemble["id"], member["name"])
    # What is held for longer is not to lapse sooner because a server joins.
    holds = (ensemble["decision"] or {}).get("status") == "held"
    known = any(one["name"] == role["name"] for one in ensemble["members"])
    try:
        calls.add_member(
            ensemble["id"], {"name": role["name"]} if known else role, None if holds else HOLD
        )
    except Refusal as refusal:
        # Another server has added the role meanwhile: then the next one is added to it.
        if known or refusal.status != HTTPStatus.BAD_REQUEST:
            raise
        again = calls.ensemble(Place(ensemble["id"])) or ensemble
        if not any(one["name"] == role["name"] for one in again["members"]):
            raise
