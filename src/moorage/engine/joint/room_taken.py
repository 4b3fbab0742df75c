"""What a placement takes from the room for others."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from moorage.domain.request_mix import MOST_RECORDED, RoomTaken, ShapeTaken

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from moorage.engine.joint.problem import Problem

    Floats: TypeAlias = NDArray[np.float64]


def room_taken(problem: Problem, placed: Iterable[tuple[int, int]]) -> RoomTaken | None:
    """The room that members take who are placed now, each by the numbers of its role and host.

    None: the problem weighs no room, or no member is placed.
    """
    on: dict[int, list[int]] = {}
    for role, row in placed:
        on.setdefault(row, []).append(role)
    room = problem.room
    if room is None or not on:
        return None
    rows = np.array(sorted(on), dtype=np.int64)
    demand = np.array([problem.demand[on[row]].sum(axis=0) for row in rows.tolist()])
    devices = [
        np.array([one.left_on(row, on[row]) for row in rows.tolist()]) for one in room.devices
    ]
    left = room.left((problem.free[rows] - demand).T, rows, devices)
    taken = (room.ceiling[:, rows] - left).sum(axis=1, dtype=np.float64)
    fits = room.ceiling.sum(axis=1, dtype=np.float64)
    weights = np.array([weight for _, weight in room.mix.shapes], dtype=np.float64)
    costs = np.where(fits > 0, weights * taken / np.maximum(fits, 1), 0.0)
    known = float(weights[fits > 0].sum())
    dearest = np.argsort(-costs, kind="stable")[:MOST_RECORDED]
    return RoomTaken(
        share=round(float(costs.sum()) / known, 6) if known else 0.0,
        stated=room.mix.stated,
        weighed=len(weights),
        most=tuple(
            ShapeTaken(shape, weight, int(fits[j]), int(taken[j]))
            for j in dearest.tolist()
            for shape, weight in (room.mix.shapes[j],)
            if costs[j] > 0
        ),
    )
