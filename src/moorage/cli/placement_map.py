"""A map of a placement: one column per domain, its hosts below, the members on them.

Labels are the API's: opaque for tenants, names for operators.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, TypeAlias

from moorage.cli.output import table
from moorage.domain.words import natural
from moorage.policies.ideal_fleet import LEVEL_ORDER

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from rich.console import RenderableType

    from moorage.wire.decisions import Assignment

Sorted: TypeAlias = tuple[tuple[int, str], ...]

HOST: Final = "host"
NOWHERE: Final = "(no domain)"
_ROLE: Final = re.compile(r"(?P<role>.*)\[(?P<index>\d+)\]")
ABOVE: Final = frozenset(LEVEL_ORDER)
"""Levels that are shown before the one that is drawn; others would only confuse."""
COLUMN: Final = 26
"""Least width of a column of racks; more racks than fit start another row of columns."""
FEW: Final = 12
"""More hosts in a domain than this are not listed one by one."""


def picture(assignments: Sequence[Assignment], width: int) -> RenderableType:
    """The map: domains side by side if they fit, else one a line."""
    level = column_level(assignments)
    by_domain = grouped(assignments, level)
    across = max(1, width // COLUMN)
    if len(by_domain) <= across and all(len(hosts) <= FEW for hosts in by_domain.values()):
        return _columns(by_domain, level)
    return _lines(assignments, level, by_domain)


def _lines(
    assignments: Sequence[Assignment], level: str, by_domain: Mapping[str, Mapping[str, list[str]]]
) -> RenderableType:
    """One domain a line, below its parent domain, which is printed once."""
    above = {one.domains.get(level, NOWHERE): _above(one, level) for one in assignments}
    ordered = sorted(
        by_domain, key=lambda domain: (*map(natural, above[domain].values()), natural(domain))
    )
    heads = list(dict.fromkeys(name for domain in ordered for name in above[domain]))
    rows: list[list[object]] = []
    before: list[str] = []
    for domain in ordered:
        place = [above[domain].get(name, "") for name in heads]
        shown = ["" if place[: n + 1] == before[: n + 1] else one for n, one in enumerate(place)]
        hosts = by_domain[domain]
        members = summed(member for some in hosts.values() for member in some)
        rows.append([*shown, domain, len(hosts), members])
        before = place
    return table([*heads, level, "#hosts", "members"], rows)


def _above(one: Assignment, level: str) -> dict[str, str]:
    """Domains of the default tree that may be above the level, in the API's order."""
    return {
        name: label
        for name, label in one.domains.items()
        if name not in {level, HOST} and ":" not in name and name in ABOVE
    }


def column_level(assignments: Sequence[Assignment]) -> str:
    """The level to draw as columns: the finest above hosts that holds more than one domain."""
    labels: dict[str, set[str]] = {}
    for one in assignments:
        for level, label in one.domains.items():
            if level != HOST and ":" not in level:
                labels.setdefault(level, set()).add(label)
    if not labels:
        return HOST
    return max(labels, key=lambda level: (len(labels[level]), level != "zone"))


def grouped(assignments: Iterable[Assignment], level: str) -> dict[str, dict[str, list[str]]]:
    """Domain -> host -> members, each in order."""
    found: dict[str, dict[str, list[str]]] = {}
    for one in sorted(assignments, key=_place(level)):
        host = one.domains.get(HOST, "?")
        domain = one.domains.get(level, NOWHERE)
        found.setdefault(domain, {}).setdefault(host, []).append(one.member)
    return found


def _place(level: str) -> Callable[[Assignment], tuple[Sorted, ...]]:
    def key(one: Assignment) -> tuple[Sorted, ...]:
        return (
            natural(one.domains.get(level, "~")),
            natural(one.domains.get(HOST, "")),
            natural(one.member),
        )

    return key


def summed(members: Iterable[str]) -> str:
    """Members by role with index ranges: `db[0] web[0-2]`."""
    roles: dict[str, list[int]] = {}
    for name in members:
        found = _ROLE.fullmatch(name)
        if found:
            roles.setdefault(found["role"], []).append(int(found["index"]))
    return " ".join(f"{role}[{runs(sorted(numbers))}]" for role, numbers in roles.items())


def runs(numbers: Sequence[int]) -> str:
    """Numbers as ranges: `0-2,5` for 0 1 2 5."""
    parts: list[list[int]] = []
    for number in numbers:
        if parts and number == parts[-1][-1] + 1:
            parts[-1].append(number)
        else:
            parts.append([number])
    return ",".join(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in parts)


def _columns(by_domain: Mapping[str, Mapping[str, list[str]]], level: str) -> RenderableType:
    cells = [
        "\n".join(f"{host}  {summed(members)}" for host, members in hosts.items())
        for hosts in by_domain.values()
    ]
    heads = [domain if level == HOST else f"{level} {domain}" for domain in by_domain]
    return table(heads, [cells])
