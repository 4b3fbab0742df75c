"""Encodes a joint problem as plain JSON values, and decodes it."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from moorage.domain.member_names import MemberName
from moorage.domain.requests import Objective
from moorage.domain.topology import Level
from moorage.engine.joint.problem import Problem
from moorage.policies.primitives import (
    Apart,
    AtLeastDomains,
    AtMost,
    AtMostTogether,
    Near,
    NeverOn,
    NeverTogether,
    OnlyOn,
    Pooled,
    SameDomain,
    Skew,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from moorage.policies.primitives import Cut, Primitive

PRIMITIVES: Final = {
    cls.__name__: cls
    for cls in (
        Apart, AtLeastDomains, AtMost, AtMostTogether, Near, NeverOn, OnlyOn, SameDomain, Skew
    )
}  # fmt: skip
CUTS: Final = {cls.__name__: cls for cls in (NeverTogether, Pooled)}


def encode(problem: Problem) -> dict[str, object]:
    """Plain values; masks as lists of rows, members and levels as text."""
    return {
        "members": [str(member) for member in problem.members],
        "roles": list(problem.roles),
        "role_of": problem.role_of.tolist(),
        "demand": problem.demand.tolist(),
        "allowed": [np.flatnonzero(mask).tolist() for mask in problem.allowed],
        "fixed": problem.fixed.tolist(),
        "classes": list(problem.classes),
        "free": problem.free.tolist(),
        "capacity": problem.capacity.tolist(),
        "hosts": list(problem.hosts),
        "domains": {level_text(k): v.tolist() for k, v in sorted(problem.domains.items())},
        "primitives": [_primitive(one) for one in problem.primitives],
        "cuts": [_cut(one) for one in problem.cuts],
        **({"choices": [list(one) for one in problem.choices]} if problem.choices else {}),
        "objective": None if problem.objective is None else str(problem.objective),
    }


def decode(values: Mapping[str, Any]) -> Problem:
    """The problem that `encode` wrote."""
    hosts, roles, classes = tuple(values["hosts"]), tuple(values["roles"]), values["classes"]
    allowed = np.zeros((len(roles), len(hosts)), dtype=np.bool_)
    for mask, rows in zip(allowed, values["allowed"], strict=True):
        mask[rows] = True
    objective = values["objective"]
    return Problem(
        members=tuple(MemberName.parse(text) for text in values["members"]),
        roles=roles,
        role_of=np.array(values["role_of"], dtype=np.int64),
        demand=np.array(values["demand"], dtype=np.int64).reshape(len(roles), len(classes)),
        allowed=allowed,
        fixed=np.array(values["fixed"], dtype=np.int64),
        classes=tuple(classes),
        free=np.array(values["free"], dtype=np.int64).reshape(len(hosts), len(classes)),
        capacity=np.array(values["capacity"], dtype=np.int64).reshape(len(hosts), len(classes)),
        hosts=hosts,
        domains={
            level_of(text): np.array(numbers, dtype=np.int64)
            for text, numbers in values["domains"].items()
        },
        primitives=tuple(_read_primitive(one) for one in values["primitives"]),
        objective=None if objective is None else Objective(objective),
        cuts=tuple(_read_cut(one) for one in values.get("cuts", ())),
        choices=tuple(map(tuple, values.get("choices", ()))),
    )


def level_text(level: Level) -> str:
    """`tree/name`, with another slash behind it for a level `or_below`."""
    return f"{level.tree}/{level.name}{'/' if level.or_below else ''}"


def level_of(text: str) -> Level:
    """Read what `level_text` wrote."""
    tree, _, name = text.removesuffix("/").rpartition("/")
    return Level(tree, name, or_below=text.endswith("/"))


def _primitive(one: Primitive) -> dict[str, object]:
    found: dict[str, object] = {"primitive": type(one).__name__}
    for field in fields(one):
        value = getattr(one, field.name)
        match field.name:
            case "members" | "others":
                value = [str(member) for member in value]
            case "level":
                value = level_text(value)
            case "hosts" | "domains" if not isinstance(value, int):
                value = sorted(value)
        found[field.name] = value
    return found


def _cut(one: Cut) -> dict[str, object]:
    found = {field.name: getattr(one, field.name) for field in fields(one)}
    return {"cut": type(one).__name__, **found, "hosts": sorted(one.hosts)}


def _read_cut(values: Mapping[str, Any]) -> Cut:
    given = dict(values)
    cls = CUTS[given.pop("cut")]
    for name in {"counts", "amounts"} & given.keys():
        given[name] = tuple((role, number) for role, number in given[name])
    return cls(**given | {"hosts": frozenset(given["hosts"])})


def _read_primitive(values: Mapping[str, Any]) -> Primitive:
    given = dict(values)
    cls = PRIMITIVES[given.pop("primitive")]
    for name in ("members", "others"):
        if name in given:
            given[name] = tuple(MemberName.parse(text) for text in given[name])
    if "level" in given:
        given["level"] = level_of(given["level"])
    if "hosts" in given:
        given["hosts"] = frozenset(given["hosts"])
    if isinstance(given.get("domains"), list):
        given["domains"] = tuple(given["domains"])
    return cls(**given)
