"""A cluster trace with limits between applications, in the format of Alibaba's contest of 2018.

Four files without headings, found by what their names contain:

| File | Columns |
|---|---|
| `app_resources` | application, CPU and memory as 98 values each joined by `|`, disk, P, M, PM |
| `machine_resources` | machine, CPU, memory, disk, P, M, PM |
| `instance_deploy` | instance, application, machine or nothing |
| `app_interference` | A, B, k: beside one of A a machine has at most k of B; of A itself k + 1 |

Each application is a group; the largest come first. Its CPU and memory are the highest of its
curve. Limits beside other applications become hosts that it may not use; where a host would allow
some instances, but fewer than the application's own limit, it is left out whole.
"""

from __future__ import annotations

import csv
from collections import Counter
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np
from benchmarks.joint.fleet import Fleet
from benchmarks.public.groups import as_row, place_all

from moorage.domain.ensembles import Role
from moorage.domain.member_names import MemberName
from moorage.domain.period import Period
from moorage.domain.requests import EnsembleRequest
from moorage.testing.problems import PROJECT, statement

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    Bools: TypeAlias = NDArray[np.bool_]

CLASSES: Final = ("CPU", "MEMORY", "DISK", "P", "M", "PM")
MOST_GROUPS: Final = 300
"""The largest applications, as many as are placed."""
_SCALE: Final = 100
"""Amounts have fractions; they are counted in hundredths."""


@dataclass(frozen=True)
class Trace:
    """What the files say."""

    machines: Mapping[str, tuple[int, ...]]
    """Machine -> amounts, in the order of `CLASSES`."""
    applications: Mapping[str, tuple[int, ...]]
    """Application -> what one instance takes."""
    instances: Mapping[str, int]
    """Application -> how many instances it has."""
    limits: Mapping[tuple[str, str], int]
    """(A, B) -> how many of B a machine with one of A may have, A itself included."""

    def largest(self, most: int) -> list[str]:
        """The applications with the most instances."""
        known = sorted(self.instances, key=lambda one: (-self.instances[one], one))
        return known[:most]


def read(folder: Path) -> Trace:
    """Read the four files.

    Raises:
        FileNotFoundError: one is missing.
        ValueError: a row has another form.
    """
    return Trace(
        machines={row[0]: _amounts(row[1:]) for row in _rows(folder, "machine_resources")},
        applications={row[0]: _amounts(row[1:]) for row in _rows(folder, "app_resources")},
        instances=Counter(row[1] for row in _rows(folder, "instance_deploy")),
        limits={
            (one, other): int(limit) + (one == other)
            for one, other, limit in _rows(folder, "app_interference")
        },
    )


def _rows(folder: Path, part: str) -> Iterator[list[str]]:
    """The rows of the only file with this in its name."""
    files = sorted(folder.glob(f"*{part}*.csv"))
    if not files:
        raise FileNotFoundError(f"no *{part}*.csv in {folder}")
    with files[0].open(newline="", encoding="utf-8") as stream:
        yield from (row for row in csv.reader(stream) if row)


def _amounts(cells: Sequence[str]) -> tuple[int, ...]:
    if len(cells) != len(CLASSES):
        raise ValueError(f"not the amounts of {', '.join(CLASSES)}: {cells!r}")
    return tuple(
        int(np.ceil(round(_SCALE * max(map(float, cell.split("|"))), 6))) for cell in cells
    )


def fleet_of(trace: Trace, machines: Sequence[str]) -> Fleet:
    """These machines, empty, as a fleet without racks or zones."""
    nobody = np.zeros(len(machines), dtype=np.bool_)
    capacity = np.array([trace.machines[one] for one in machines], dtype=np.int64)
    return Fleet(
        names=tuple(machines),
        classes=tuple(f"CUSTOM_{name}" for name in CLASSES),
        capacity=capacity,
        used=np.zeros_like(capacity),
        domains={},
        called={},
        trees={},
        traits={},
        strangers=nobody,
        relatives=nobody,
        closed=nobody,
    )


class Applications:
    """Where instances are, by application."""

    def __init__(self, trace: Trace, fleet: Fleet) -> None:
        self._trace, self._fleet = trace, fleet
        self._on: dict[str, Counter[int]] = {}
        self._said_of: dict[str, list[tuple[str, int]]] = {}
        """Application B -> (A, k)."""
        for (one, other), limit in trace.limits.items():
            if one != other:
                self._said_of.setdefault(other, []).append((one, limit))
        self._says: dict[str, list[tuple[str, int]]] = {}
        """Application A -> (B, k)."""
        for (one, other), limit in trace.limits.items():
            if one != other:
                self._says.setdefault(one, []).append((other, limit))

    def request(self, group: str) -> tuple[EnsembleRequest, Bools]:
        """An application's instances, and the hosts that others forbid it."""
        trace = self._trace
        count = trace.instances[group]
        own = trace.limits.get((group, group))
        taken = zip(self._fleet.classes, trace.applications[group], strict=True)
        role = Role(group, MappingProxyType({name: amount for name, amount in taken if amount}))
        policies = (
            () if own is None else (statement("own", "anti-affinity", group, max_per_domain=own),)
        )
        request = EnsembleRequest(
            project_id=PROJECT,
            roles=(role,),
            members=tuple(MemberName(group, number) for number in range(count)),
            policies=policies,
            period=Period(0),
        )
        return request, self._barred(group, min(count, count if own is None else own))

    def _barred(self, group: str, together: int) -> Bools:
        """[H] hosts that may not have `together` of the application's instances."""
        barred = np.zeros(len(self._fleet.names), dtype=np.bool_)
        for other, limit in self._said_of.get(group, ()):
            if limit < together:
                barred[list(self._on.get(other, ()))] = True
        for other, limit in self._says.get(group, ()):
            rows = [row for row, count in self._on.get(other, Counter()).items() if count > limit]
            barred[rows] = True
        return barred

    def put(self, group: str, hosts: Mapping[MemberName, int]) -> None:
        """Note where an application's instances are."""
        self._on[group] = Counter(hosts.values())

    def broken(self) -> int:
        """Machines on which a limit is exceeded, for each limit."""
        return sum(
            count > limit and (one == other or self._on[one][row] > 0)
            for (one, other), limit in self._trace.limits.items()
            if one in self._on and other in self._on
            for row, count in self._on[other].items()
        )


def measure(folder: Path, *, most: int = MOST_GROUPS, share: int = 1) -> dict[str, Any]:
    """Place the largest applications on every `share`-th machine."""
    trace = read(folder)
    fleet = fleet_of(trace, sorted(trace.machines)[::share])
    largest = trace.largest(most)
    found = place_all(fleet, largest, lambda: Applications(trace, fleet))
    name = f"{len(fleet.names)} machines"
    said = "hosts with a limit below the group's own are left out whole"
    return as_row("cluster trace", name, len(largest), found, said)
