"""Groups of a public data set, placed one after the other: jointly, and by first fit.

Each way of placing has a fleet of its own, which fills up. A group is placed whole or not at all.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias

from benchmarks.joint.cells import quantiles
from benchmarks.joint.engine import first_answer
from benchmarks.joint.fleet import booked, snapshot_of
from benchmarks.joint.one_at_a_time import Scheduler
from benchmarks.joint.stream import with_group

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy as np
    from benchmarks.joint.fleet import Fleet
    from numpy.typing import NDArray

    from moorage.domain.ensembles import MemberName
    from moorage.domain.requests import EnsembleRequest
    from moorage.engine.state.snapshot import Snapshot

    Bools: TypeAlias = NDArray[np.bool_]
    Hosts: TypeAlias = dict[MemberName, int]

FIRST_FIT: Final = Scheduler(ideal=True, weigher="first")


class Placed(Protocol):
    """What is placed so far, as the rules of a data set see it."""

    def request(self, group: str) -> tuple[EnsembleRequest, Bools]:
        """What is asked for a group, and [H] the hosts that the groups placed before forbid it."""

    def put(self, group: str, hosts: Hosts) -> None:
        """Note where a group is."""

    def broken(self) -> int:
        """How many rules of the data set are broken now, by its own definition."""


class Joint:
    """Places jointly, on snapshots that follow one another."""

    def __init__(self, fleet: Fleet) -> None:
        self._snapshot: Snapshot = snapshot_of(fleet)

    def place(self, fleet: Fleet, request: EnsembleRequest) -> Hosts | None:
        """Member -> row, or None."""
        closed = {"rules": fleet.closed_names}
        hosts = first_answer(self._snapshot, request, closed=closed).hosts
        if hosts is None:
            return None
        found = {member: fleet.row_of[host] for member, host in hosts.items()}
        servers: dict[int, list[Any]] = {}
        for member, row in found.items():
            servers.setdefault(row, []).append(request.role_of(member).resources)
        consumer = f"group-{self._snapshot.revision}"
        self._snapshot = booked(self._snapshot, fleet, servers, consumer)
        return found


def place_all(
    fleet: Fleet, groups: Sequence[str], start: Callable[[], Placed]
) -> dict[str, dict[str, Any]]:
    """Each way of placing: how many groups and members it places, what it breaks, its times."""
    found = {}
    for name, place in (("joint", Joint(fleet).place), ("first fit", FIRST_FIT.place)):
        placed, now, seconds = start(), fleet, []
        count = members = 0
        for group in groups:
            request, barred = placed.request(group)
            begun = time.perf_counter()
            hosts = place(replace(now, closed=barred), request)
            seconds.append(time.perf_counter() - begun)
            if hosts is None:
                continue
            count += 1
            members += len(hosts)
            placed.put(group, hosts)
            now = with_group(now, request, hosts)
        found[name] = {
            "groups": count,
            "members": members,
            "broken": placed.broken() + int((now.used > now.capacity).any(axis=1).sum()),
            "seconds": quantiles(seconds or [0.0]),
        }
    return found


def as_row(
    kind: str, name: str, groups: int, found: dict[str, dict[str, Any]], left_out: str
) -> dict[str, Any]:
    """For the results file."""
    return {
        "format": kind,
        "name": name,
        "groups": groups,
        "joint": found["joint"]["groups"],
        "first fit": found["first fit"]["groups"],
        "broken": found["joint"]["broken"],
        "seconds": found["joint"]["seconds"],
        "first fit seconds": found["first fit"]["seconds"],
        "members": {way: one["members"] for way, one in found.items()},
        "left out": left_out,
    }
