"""What an autoscaling group asks before it grows or shrinks.

A group's members may be servers or nested stacks with several: each role of the ensemble whose
members stand below the group comes or leaves once for each member of the group.
"""

from __future__ import annotations

import logging
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from moorage.heat_plugin.native_api import NativeApi, Refused, Unanswered
from moorage.heat_plugin.options import ADVISE, OFF, ORDINARY

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from moorage.heat_plugin.options import Settings

LARGEST: Final = "largest"
_log = logging.getLogger(__name__)


class ScalingRefused(Exception):
    """The group keeps its size; the message says why."""


@dataclass(frozen=True, slots=True)
class ScaledGroup:
    """An autoscaling group of a stack."""

    root: str
    """Its root stack's id."""
    path: str
    """Where it is in the root stack."""
    size: int
    """Members that Heat does not replace."""
    servers: frozenset[str]
    """Their servers."""
    takes_less: bool
    """Whether it grows as far as it can where not all of a step fits."""
    hold: int
    """Seconds for which new places are held."""


@dataclass(frozen=True, slots=True)
class Granted:
    """The size that a group may have."""

    size: int
    decision: str | None = None
    """To be confirmed when it has that size."""
    leaving: tuple[str, ...] = ()
    """Roles whose members leave when their servers are gone."""
    victims: frozenset[str] = field(default_factory=frozenset)
    """Servers that leave."""
    told: str | None = None


def ask(settings: Settings, api: NativeApi, group: ScaledGroup, wanted: int) -> Granted:
    """Ask for another size of a group; nothing is asked for stacks that Moorage does not know.

    Raises:
        ScalingRefused: it may not have it.
    """
    if settings.stacks in {OFF, ADVISE} or wanted == group.size:
        return Granted(wanted)
    try:
        stack = api.stack(group.root)
        roles = roles_below((stack or {}).get("keys") or {}, group.path)
        if not roles:
            return Granted(wanted)
        if wanted > group.size:
            return _grown(api, group, roles, wanted)
        return _shrunk(api, group, roles, wanted)
    except Refused as refusal:
        raise ScalingRefused(f"Moorage: {refusal}") from refusal
    except Unanswered as error:
        _log.warning("Moorage does not answer for a group of stack %s: %s", group.root, error)
        if settings.failure_mode != ORDINARY:
            text = "Moorage, which decides where its servers go, does not answer; try again"
            raise ScalingRefused(text) from error
        return Granted(wanted, told="Moorage does not answer: Nova finds hosts one at a time")


def roles_below(keys: Mapping[str, str], path: str) -> tuple[str, ...]:
    """Roles that have one member in each member of the group; `keys` is member -> path."""
    steps = path.split("/")
    found: dict[str, set[str]] = {}
    counts: dict[str, int] = {}
    for member, key in keys.items():
        below = key.split("/")
        if below[: len(steps)] == steps and len(below) > len(steps):
            role = member.rpartition("[")[0]
            found.setdefault(role, set()).add(below[len(steps)])
            counts[role] = counts.get(role, 0) + 1
    return tuple(role for role, numbers in found.items() if len(numbers) == counts[role])


def finish(api: NativeApi, group: ScaledGroup, granted: Granted) -> str | None:
    """Say that a group has the size that it was granted, and its servers; what to tell of it."""
    try:
        if granted.decision is not None:
            api.confirm(granted.decision)
        if granted.leaving:
            _without_leftovers(api, group, granted.leaving)
    except (Refused, Unanswered) as error:
        return f"Moorage holds more than the group needs: {error}"
    return None


def _grown(api: NativeApi, group: ScaledGroup, roles: tuple[str, ...], wanted: int) -> Granted:
    """Asked by sizes, not by counts: a signal that comes again adds nothing twice.

    Each member of the group has one of each role, so as many of each make whole members.
    """
    before = _without_leftovers(api, group, roles)
    body: dict[str, Any] = {
        "sizes": dict.fromkeys(roles, wanted),
        "decide": {"hold": f"PT{group.hold}S"},
    }
    if group.takes_less:
        body["least"] = max(group.size + 1 - min(before[role] for role in roles), 1)
    answer = api.extend(group.root, body)
    came = Counter(str(name).rpartition("[")[0] for name in answer["members"])
    size = min(wanted, *(before[role] + came[role] for role in roles))
    decision = answer.get("decision") or {}
    told = (
        f"Moorage holds places for {size - group.size} of {wanted - group.size} more:"
        f" decision {decision.get('id')}"
    )
    return Granted(size, decision.get("id"), told=told)


def _shrunk(api: NativeApi, group: ScaledGroup, roles: tuple[str, ...], wanted: int) -> Granted:
    """The servers that leave are those that are no members any more, also after an earlier try."""
    if len(roles) > 1:
        # Which members of different roles stand in one member of the group is Heat's to know.
        return Granted(wanted, leaving=roles)
    api.shrink(group.root, {"role": roles[0], "size": wanted})
    members = {one["server_id"] for one in api.members(group.root)}
    victims = group.servers - members
    return Granted(wanted, victims=victims, told=f"Moorage chose {len(victims)} that leave")


def _without_leftovers(
    api: NativeApi, group: ScaledGroup, roles: Collection[str]
) -> Mapping[str, int]:
    """Take members out whom the group does not have, as after a try that failed; role -> size.

    A member of the group that has no server yet, or lost it, may be any of those without one.
    """
    sizes: Counter[str] = Counter()
    absent: dict[str, list[str]] = {role: [] for role in roles}
    for one in api.members(group.root):
        if one["role"] in absent:
            sizes[one["role"]] += 1
            if one["server_id"] not in group.servers:
                absent[one["role"]].append(str(one["name"]))
    for role, names in absent.items():
        # The newest: those of a try that failed.
        for name in names[::-1][: max(sizes[role] - group.size, 0)]:
            api.delete(f"ensembles/{group.root}/members", name)
            sizes[role] -= 1
    return sizes
