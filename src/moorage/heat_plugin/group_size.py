"""What an autoscaling group asks before it grows or shrinks.

A group's members may be servers or nested stacks with several: each role of the ensemble whose
members stand below the group comes or leaves once for each member of the group.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from moorage.heat_plugin.native_api import NativeApi, Refused, Unanswered
from moorage.heat_plugin.options import ADVISE, OFF, ORDINARY

if TYPE_CHECKING:
    from collections.abc import Mapping

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


def _grown(api: NativeApi, group: ScaledGroup, roles: tuple[str, ...], wanted: int) -> Granted:
    count = wanted - group.size
    body: dict[str, Any] = {"decide": {"hold": f"PT{group.hold}S"}}
    if len(roles) == 1:
        body |= {"role": roles[0], "count": count}
        if group.takes_less and count > 1:
            body["least"] = 1
    else:
        body["roles"] = dict.fromkeys(roles, count)
    answer = api.extend(group.root, body)
    got = len(answer["members"]) // len(roles)
    decision = (answer.get("decision") or {}).get("id")
    told = f"Moorage holds places for {got} of {count} more: decision {decision}"
    return Granted(group.size + got, decision, told=told)


def _shrunk(api: NativeApi, group: ScaledGroup, roles: tuple[str, ...], wanted: int) -> Granted:
    count = group.size - wanted
    if len(roles) > 1:
        # Which members of different roles stand in one member of the group is Heat's to know.
        return Granted(wanted)
    victims = api.shrink(group.root, {"role": roles[0], "count": count})
    servers = frozenset(str(one["server_id"]) for one in victims if one["server_id"])
    return Granted(wanted, victims=servers, told=f"Moorage chose {len(servers)} that leave")
